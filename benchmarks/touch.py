"""Tactile sensors: force fields, and images compared with the renderer of the package `taxim`."""

from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from benchmarks.harness import Contender, Entry
from jaxgpu.geometry import sdf
from jaxgpu.physics import touch

FIELDS, IMAGES, HIGH, WIDE = 1024, 64, 60, 80
FIELD = touch.ForceField(stiffness=100.0, shear_stiffness=50.0, friction=0.6)
VISCOUS = touch.ViscousField(stiffness=100.0, shear_damping=10.0, friction=0.6)


def entries() -> list[Entry]:
    """Return force fields of two sizes, and images of a ball."""
    return [_force_field_entry(10), _force_field_entry(100), _image_entry()]


def _force_field_entry(n: int) -> Entry:
    """Return an entry of pads of n x n taxels, 102,400 in total, each pressed by a moving peg."""
    count = max(1, FIELDS * 100 // n**2)
    points = touch.taxels(0.02, 0.02, n, n)
    depth = jnp.linspace(3e-3, 3.9e-3, count)

    def step_pad(field: Any, anchors: Array, depth: Array) -> tuple[Array, Array]:
        pos = jnp.stack([0 * depth, 0 * depth, depth])
        quat, v = jnp.array([0.8, 0.6, 0.0, 0.0]), jnp.array([0.01, -0.02, 0.0])
        seen = touch.probe(sdf.Capsule(8e-3, 4e-3), points, pos, quat, v, 10 * v)
        force, anchors = field.force(anchors, *seen, 0.01)
        return touch.wrench(points, force)[0], anchors

    def contender(name: str, field: Any) -> Contender:
        step = jax.jit(jax.vmap(lambda anchors, depth: step_pad(field, anchors, depth)))
        anchors = jnp.stack([field.init(n * n)] * count)
        return Contender(name, lambda: {"press": float(step(anchors, depth)[0][0, 2])})

    return Entry(
        name=f"force fields {n} x {n}",
        work=f"{count} pads of {n} x {n} taxels, each against the distance of a rod, one step",
        contenders=[contender("jaxgpu, anchored", FIELD), contender("without memory", VISCOUS)],
        amount=count,
        unit="fields",
    )


def _image_entry() -> Entry:
    """Return an entry of the same images by jaxgpu and by `taxim`, which takes millimetres."""
    heights = jnp.asarray(
        np.stack([_ball_heights(1e-3 * (0.5 + i / IMAGES)) for i in range(IMAGES)])
    )
    bins = touch.gelsight("gelsight", HIGH, WIDE)
    smooth = touch.gelsight("gelsight", HIGH, WIDE, smooth=True)
    renderer, millimetres = _load_taxim(), 1e3 * heights
    render_with_taxim = lambda: renderer.render_direct(millimetres, with_shadow=False)
    exact = np.asarray(render_with_taxim()[0])

    def contender(name: str, draw: Callable[[], Array]) -> Contender:
        def run() -> dict[str, float]:
            first = np.asarray(draw())[0]
            return {"first off by, of 255": float(255 * np.abs(first - exact).mean())}

        return Contender(name, run)

    ours = jax.jit(jax.vmap(bins.image))
    with_slopes = jax.jit(jax.vmap(smooth.image))
    return Entry(
        name=f"pictures of touch {HIGH} x {WIDE}",
        work=f"{IMAGES} pictures of a ball that is pressed by 0.5 to 1.5 mm, without shadows",
        contenders=[
            contender("jaxgpu, bins", lambda: ours(heights)),
            contender("jaxgpu, smooth", lambda: with_slopes(heights)),
            contender(f"taxim {version('taxim')}, JAX", render_with_taxim),
        ],
        amount=IMAGES,
        unit="pictures",
    )


def _load_taxim() -> Any:
    try:
        from taxim.calibration import CALIB_GELSIGHT
        from taxim.taxim_jax import TaximJax
    except ImportError:
        raise SystemExit("touch needs taxim; pip install 'jaxgpu[bench]'") from None
    return TaximJax(CALIB_GELSIGHT)


def _ball_heights(depth: float, radius: float = 4e-3) -> np.ndarray:
    """Return the heights [H, W] of a ball at the center, m."""
    y, x = (np.mgrid[:HIGH, :WIDE] - np.array([HIGH, WIDE])[:, None, None] / 2) * 2.95e-5 * 8
    near = np.minimum(x**2 + y**2, radius**2)
    return (radius - np.sqrt(radius**2 - near) - depth).astype(np.float32)
