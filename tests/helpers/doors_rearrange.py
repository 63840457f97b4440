"""The doors of cameras among solids, and of houses."""

import jax
import jax.numpy as jnp
import numpy as np
from doors import Door

from jaxgpu import render
from jaxgpu.geometry.solids import Boxes, Solids
from jaxgpu.rl.envs.rearrange import geodesic, houses

LOOK = render.Camera((0.0, 0.0, 0.2), (3.0, 0.5, 0.0), (0.0, 0.0, 1.0), width=6, height=5)
BOXES = {
    "centre": np.array([[3.0, 0.5, 0.0], [5.0, -1.0, 0.4]], np.float32),
    "half": np.array([[0.5, 0.75, 1.0], [0.25, 1.5, 2.0]], np.float32),
    "turn": np.array([0.25, -1.5], np.float32),
}
# boxes may overlap, be flat, or not be there
ANY = ("zero", "negative", "flat")
ROWS = tuple(f"{name}: {kind}" for name in BOXES for kind in ANY)
FLOOR = jnp.ones((5, 4), bool).at[2, 1:].set(False)


def _seen():
    """Two boxes, seen."""
    return render.sight(LOOK, Solids(Boxes(**BOXES)))


DOORS = [
    Door(
        "render.depth_image",
        lambda centre, half, turn, far: render.depth_image(
            LOOK, Solids(Boxes(centre, half, turn)), far=far
        ),
        {**BOXES, "far": 10.0},
        right=ROWS,
    ),
    Door(
        "render.sight",
        lambda centre, half, turn, far: (
            render.sight(LOOK, Solids(Boxes(centre, half, turn)), far=far).depth
        ),
        {**BOXES, "far": 10.0},
        right=ROWS,
    ),
    Door(
        "render.Sight.picked",
        lambda values, none: _seen().picked(values, none),
        {"values": np.arange(6, dtype=np.float32).reshape(2, 3), "none": -1.0},
        right=(
            "values: zero",
            "values: negative",
            "values: narrow",
            "none: zero",
            "none: negative",
        ),
    ),
    Door(
        "render.Sight.shaded",
        lambda colour: _seen().shaded(colour),
        {"colour": np.array([[0.25, 0.5, 0.75], [1.0, 0.5, 0.25]], np.float32)},
        right=("colour: zero", "colour: negative"),
    ),
    Door(
        "render.nearest_boxes",
        lambda centre, half, turn, far: (
            render.nearest_boxes(LOOK, Boxes(centre, half, turn), 2, far=far).boxes.centre
        ),
        {**BOXES, "far": 10.0},
        right=ROWS,
    ),
    Door(
        "rl.envs.rearrange.geodesic.cells_near",
        lambda place, reach: geodesic.cells_near(FLOOR, place, reach).sum(),
        {"place": np.array([0.25, 0.125], np.float32), "reach": 0.3},
        right=("place: zero", "place: negative", "place: wrong length", "reach: zero"),
    ),
    Door(
        "rl.envs.rearrange.houses.generate",
        lambda seed: jax.tree.leaves(houses.generate(seed, plan="bathroom"))[0],
        {"seed": 5},
        right=("seed: zero",),
    ),
]
