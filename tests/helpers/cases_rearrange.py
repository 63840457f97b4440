"""API cases of cameras among solids, and of houses."""

import typing

import jax
import jax.numpy as jnp
import numpy as np
from api_cases import ApiCase

from jaxgpu import render, rl
from jaxgpu.geometry.solids import Boxes, Solids
from jaxgpu.rl.environment import _REGISTRY
from jaxgpu.rl.envs.rearrange import geodesic, hand_paths, houses, tasks

LOOK = render.Camera((0.0, 0.0, 0.2), (3.0, 0.5, 0.0), (0.0, 0.0, 1.0), width=6, height=5)
BOXES = {
    "centre": np.array([[3.0, 0.5, 0.0], [5.0, -1.0, 0.4]], np.float32),
    "half": np.array([[0.5, 0.75, 1.0], [0.25, 1.5, 2.0]], np.float32),
    "turn": np.array([0.25, -1.5], np.float32),
}
# boxes may overlap, be flat, or be padding
ANY = ("zero", "negative", "flat")
ROWS = tuple(f"{name}: {kind}" for name in BOXES for kind in ANY)
FLOOR = jnp.ones((5, 4), bool).at[2, 1:].set(False)


def _make_episodes():
    """Return two identical episodes in an empty house, generated on the host only.

    A table of one episode makes XLA for CPUs emit code that LLVM rejects, in mobile-pick's step.
    """
    zeros, field = lambda *shape: np.zeros(shape, np.float32), (1, 20, 20)
    rows = zeros(1, 4, 8)
    rows[..., 2], rows[..., 6] = -1e3, 1.0
    things = rows.copy()
    things[0, 0] = [1.0, 1.0, 0.7, 0.02, 0.02, 0.03, 1.0, 0.0]
    made = tasks.Episodes(
        houses=houses.generate_many([0], plan="bathroom"),
        boxes=rows,
        things=things,
        house=np.zeros(1, np.int32),
        target=np.zeros(1, np.int32),
        goal=np.float32([[2.0, 1.0, 0.7]]),
        starts=np.float32([[[0.5, 1.0, 0.3]]]),
        to_target=zeros(*field),
        to_goal=zeros(*field),
        near_target=zeros(1, hand_paths.CELLS**3),
        near_goal=zeros(1, hand_paths.CELLS**3),
    )
    return jax.tree.map(lambda row: jnp.asarray(np.repeat(row, 2, 0)), made)


EPISODES = _make_episodes()


def make_task(name):
    """Return an environment; tasks in houses get fixed episodes, which are free to generate."""
    return rl.make(name, **({"episodes": EPISODES} if name.startswith("rearrange/") else {}))


def task_class(name):
    """Return the class of an environment without constructing it."""
    maker = _REGISTRY[name]
    return maker if isinstance(maker, type) else typing.get_type_hints(maker)["return"]


def _box_sight():
    """Return two boxes as seen by a camera."""
    return render.camera_images(LOOK, Solids(Boxes(**BOXES)))


CASES = [
    ApiCase(
        "render.depth_image",
        lambda centre, half, turn, far: render.depth_image(
            LOOK, Solids(Boxes(centre, half, turn)), far=far
        ),
        {**BOXES, "far": 10.0},
        right=ROWS,
    ),
    ApiCase(
        "render.camera_images",
        lambda centre, half, turn, far: (
            render.camera_images(LOOK, Solids(Boxes(centre, half, turn)), far=far).depth
        ),
        {**BOXES, "far": 10.0},
        right=ROWS,
    ),
    ApiCase(
        "render.CameraImages.pixel_values",
        lambda values, none: _box_sight().pixel_values(values, none),
        {"values": np.arange(6, dtype=np.float32).reshape(2, 3), "none": -1.0},
        right=(
            "values: zero",
            "values: negative",
            "values: narrow",
            "none: zero",
            "none: negative",
        ),
    ),
    ApiCase(
        "render.CameraImages.render",
        lambda colour: _box_sight().render(colour),
        {"colour": np.array([[0.25, 0.5, 0.75], [1.0, 0.5, 0.25]], np.float32)},
        right=("colour: zero", "colour: negative"),
    ),
    ApiCase(
        "render.nearest_boxes",
        lambda centre, half, turn, far: (
            render.nearest_boxes(LOOK, Boxes(centre, half, turn), 2, far=far).boxes.centre
        ),
        {**BOXES, "far": 10.0},
        right=ROWS,
    ),
    ApiCase(
        "rl.envs.rearrange.geodesic.cells_near",
        lambda place, reach: geodesic.cells_near(FLOOR, place, reach).sum(),
        {"place": np.array([0.25, 0.125], np.float32), "reach": 0.3},
        right=("place: zero", "place: negative", "place: wrong length", "reach: zero"),
    ),
    ApiCase(
        "rl.envs.rearrange.houses.generate",
        lambda seed: jax.tree.leaves(houses.generate(seed, plan="bathroom"))[0],
        {"seed": 5},
        right=("seed: zero",),
    ),
]
