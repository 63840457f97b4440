"""The registry of the package: every public name, and the rules that each is held to.

Functions are in it by their doors (`doors_<pillar>.py`); specs, environments, learners and
algorithms by the tables of `protocols.py`. `tests/core/test_conformance.py` walks all of it:
nothing opts in, and a public name that is missing fails.

A door that takes arrays is a *program*, held to float32 and float64, to `jit`, `vmap` and export,
unless it is listed in `HOST` with the reason; one that can be traced may not be listed there.
"""

import importlib
import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import conformance
import jax
import jax.export
import jax.numpy as jnp
import numpy as np
from doors import Door, as_users

TABLES = sorted(file.stem for file in Path(__file__).parent.glob("doors_*.py"))
DOORS: list[Door] = [door for table in TABLES for door in importlib.import_module(table).DOORS]


# doors that take arrays whose values they must see, and why
HOST = {
    "points of parts are laid out on the host, by their sizes": [
        "physics.touch.peg_and_socket",
        "physics.touch.peg_and_pad, peg",
        "physics.touch.nut_and_bolt",
    ],
    "matter is prepared on the host, where its values are checked; protocols.py steps it": [
        "physics.continuum.rollout",
        "physics.continuum.Liquid",
        "physics.continuum.HerschelBulkley",
        "physics.continuum.NeoHookean",
        "physics.continuum.Corotated",
        "physics.continuum.VonMises",
        "physics.continuum.DruckerPrager",
        "physics.continuum.Snow",
        "geometry.sdf.HalfSpace",
        "geometry.sdf.Ball",
        "geometry.sdf.Box",
        "geometry.sdf.Capsule",
        "geometry.sdf.Cylinder",
        "geometry.sdf.Torus",
        "geometry.sdf.HoledPlate",
        "geometry.sdf.Moved",
        "geometry.sdf.Rounded",
        "geometry.sdf.Voxels",
        "physics.continuum.prepare",
        "physics.continuum.Body",
        "physics.continuum.Collider",
        "physics.continuum.Soft",
        "physics.continuum.Injector",
        "physics.continuum.Collector",
        "physics.continuum.Scene",
        "physics.continuum.Grid",
        "geometry.fill_box",
    ],
    "a run, whose loop is on the host": [
        "physics.continuum.simulate",
        "physics.nbody.evolve",
        "physics.nbody.evolve, Hermite",
        "physics.nbody.evolve, Hermite6",
        "physics.nbody.integrate",
        "run.run",
        "rl.train, PPO",
        "rl.train, SAC",
        "rl.train, PQN",
        "rl.train, SHAC",
        "rl.train, DAgger",
        "rl.train, KickstartedPPO",
        "rl.train, ES",
        "rl.train, RecurrentPPO",
        "rl.plan, MPPI",
        "rl.plan, CEM, its numbers",
        "rl.plan, MPPI, its numbers",
        "rl.plan, Descent, its numbers",
    ],
    "writes, draws or places what it is given": [
        "render.gif",
        "render.show",
        "render.Camera",
        "mesh.split",
        "mesh.replicate",
        "checkpoint.save",
        "checkpoint.load",
        "report.save",
    ],
    "checks values, and is nothing else": [
        "pytree.number",
        "ranges.numbers",
        "physics.nbody.checks.bodies",
    ],
    "makes a start in NumPy, once": [
        "evolution.single.LSHADE",
        "physics.nbody.virial",
        "physics.nbody.models.salpeter",
        "physics.nbody.kroupa",
        "physics.nbody.binary_orbits",
        "physics.nbody.ephemeris.ecliptic",
        "physics.nbody.ephemeris.de440",
        "numerics.sphere.sampling.draw",
        "numerics.features.unit",
    ],
}

# doors whose float64 needs numbers beyond float32's exponents, and why: wrong on a TPU near those
BEYOND = {
    "Bessel functions are right to the ends of float64, and their limits are told apart there": [
        "numerics.log_iv",
        "numerics.log_ive",
        "numerics.log_kv",
        "numerics.log_kve",
        "numerics.iv_ratio",
        "numerics.kv_ratio",
        "numerics.log_hyp0f1",
        "numerics.matern",
        "numerics.VonMisesFisher.log_prob",
        "numerics.VonMisesFisher.entropy",
        "numerics.VonMisesFisher.kl_divergence",
        "numerics.Mixture.log_prob",
        "numerics.Mixture.refined",
    ],
    "jax.random.categorical draws above finfo.tiny, which is 0 there: a candidate of log 0": [
        "numerics.spherical_kmeans",
    ],
}
# doors that many programs answer: seconds of compilation under hostile input
DEAR = {
    "numerics.iv_ratio",
    "numerics.iv_ratio_inverse",
    "numerics.log_iv",
    "numerics.spherical_kmeans",
    "numerics.sphere.sampling.draw",
    "numerics.VonMisesFisher.fit",
    "evolution.pareto.ranks",
    "physics.nbody.encounters.watched",
    "physics.rigid.Model.step",
    "render.nearest",
    "render.picture",
}
BEYOND_FLOAT32 = {name for names in BEYOND.values() for name in names}
OF_THE_HOST = {name for names in HOST.values() for name in names}


def split(door: Door) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arguments of a door that are arrays, or pytrees of arrays and numbers, and the others."""
    kept = {
        name: value
        for name, value in door.good.items()
        if name not in door.things and _is_data(value)
    }
    return kept, {name: value for name, value in door.good.items() if name not in kept}


def programs() -> list[Door]:
    """The doors whose calls may be traced: all that take arrays and are not of the host."""
    return [door for door in DOORS if door.name not in OF_THE_HOST and split(door)[0]]


def of_the_host(door: Door) -> None:
    """A door that is listed as of the host does need the values of its arrays."""
    arrays, others = split(door)
    assert arrays, f"{door.name}: takes no arrays; take it from registry.HOST"
    try:
        with jax.enable_x64(door.wide), as_users():
            jax.eval_shape(lambda arrays: door.call(**arrays, **others), arrays)
    except Exception:
        return
    raise AssertionError(f"{door.name}: can be traced; take it from registry.HOST")


def cast(tree: Any, dtype: Any) -> Any:
    """Every floating array and every Python float of a pytree as an array of `dtype`."""

    def one(leaf: Any) -> Any:
        if isinstance(leaf, float):
            return np.asarray(leaf, dtype)
        floating = hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jnp.floating)
        return np.asarray(leaf).astype(dtype) if floating else leaf

    return jax.tree.map(one, tree)


def _is_data(value: Any) -> bool:
    leaves = jax.tree.leaves(value)
    numbers = (np.ndarray, np.generic, jax.Array, float)
    return bool(leaves) and all(isinstance(leaf, numbers) for leaf in leaves)


def in_precision(door: Door, dtype: Any) -> None:
    """Arrays of `dtype` come back as arrays of `dtype`: no float64 by accident, none lost.

    What a door holds besides its arguments (a problem, a field) keeps its own dtype, and where that
    is float32 so may be the result. Under it stands one program without a call back to the host,
    with a precision for every product of matrices; it may also be a part of a program that knows
    the arrays.
    """
    arrays, others = split(door)
    f = lambda arrays: door.call(**arrays, **others)
    with jax.enable_x64(np.dtype(dtype) == np.float64), as_users():
        arrays = cast(arrays, dtype)
        wide = np.dtype(dtype) == np.float64
        conformance.check_program(f, arrays, beyond=wide and door.name in BEYOND_FLOAT32)
        program, out = jax.make_jaxpr(f, return_shape=True)(arrays)
        known = jax.tree.map(jnp.asarray, arrays)
        jax.make_jaxpr(lambda: f(known))()  # what is checked by value must be so inside a program
    held = {str(a.dtype) for a in program.consts if hasattr(a, "dtype") and _floats(a)}
    found = {str(leaf.dtype) for leaf in jax.tree.leaves(out) if _floats(leaf)}
    name = np.dtype(dtype).name
    assert found <= {name, *held}, f"{door.name}: {found} out of {name}"


def both_precisions(door: Door) -> None:
    """A program of 64 bits is traced after one of 32 in one process; see `protocols`."""
    arrays, others = split(door)

    def traced(dtype: Any) -> Any:
        return jax.jit(lambda arrays: door.call(**arrays, **others)).trace(cast(arrays, dtype))

    with as_users():
        kept = traced(np.float32)
        with jax.enable_x64(True):
            traced(np.float64)
    del kept


def portable(door: Door) -> None:
    """The program lowers for a CPU, a CUDA device and a TPU."""
    arrays, others = split(door)
    with jax.enable_x64(door.wide), as_users():
        conformance.exports(lambda arrays: door.call(**arrays, **others), cast32(door, arrays))


def jit_and_vmap(door: Door) -> None:
    """`jit` gives the values of the plain call, and `vmap` those of a loop."""
    arrays, others = split(door)
    f = lambda arrays: door.call(**arrays, **others)
    with jax.enable_x64(door.wide), as_users():
        arrays = cast32(door, arrays)
        plain = f(arrays)
        conformance.same(jax.jit(f)(arrays), jax.tree.map(jnp.asarray, plain), door.rtol)
        lanes = jax.tree.map(lambda leaf: jnp.stack([jnp.asarray(leaf)] * 2), arrays)
        got = jax.vmap(f)(lanes)
        for lane in range(2):
            one = jax.tree.map(operator.itemgetter(lane), got)
            conformance.same(one, jax.tree.map(jnp.asarray, plain), door.rtol)


def cast32(door: Door, arrays: Any) -> Any:
    """Arrays as the door takes them: of float64 where it is wide, else of float32."""
    return cast(arrays, np.float64 if door.wide else np.float32)


def _floats(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jnp.floating)


RULES: dict[str, Callable[[Door], None]] = {
    "float32": lambda door: in_precision(door, np.float32),
    "float64": lambda door: in_precision(door, np.float64),
    "both precisions": both_precisions,
    "export": portable,
    "jit and vmap": jit_and_vmap,
}
