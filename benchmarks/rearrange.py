"""Depth images of furnished houses and of random boxes: jaxgpu, MuJoCo's rays and Embree's.

All programs get the same boxes and the same rays, and return exact depth. MuJoCo and Embree build a
tree per scene and the directions of their rays before timing starts; jaxgpu gets the boxes and the
pose of the camera. Needs MuJoCo and `embreex` (pip install embreex).
"""

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.harness import Contender, Entry
from jaxgpu.geometry.solids import Boxes, Solids
from jaxgpu.render import Camera, depth_image
from jaxgpu.rl.envs.rearrange import houses

VIEWS, FAR, HIGH = 64, 30.0, 1.1  # images per run; far plane, m; height of the camera, m
ANGLE, DOWN = np.pi / 3, 0.35  # field of view, rad; angle below the horizon, rad


def _camera_poses(rng: np.random.Generator, eyes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return eyes and targets of cameras with random headings that look slightly down."""
    yaw = rng.uniform(0, 2 * np.pi, len(eyes))
    way = [
        np.cos(DOWN) * np.cos(yaw),
        np.cos(DOWN) * np.sin(yaw),
        np.full(len(eyes), -np.sin(DOWN)),
    ]
    return eyes, eyes + np.stack(way, 1)


def _house_scenes() -> tuple[Boxes, np.ndarray, np.ndarray]:
    """Return one house per view, with a camera at a random position where the robot may stand."""
    many, rng = houses.generate_many(range(VIEWS)), np.random.default_rng(5)
    eyes = []
    for free in np.asarray(many.nav):
        cells = np.argwhere(free)
        eyes.append([*(cells[rng.integers(len(cells))] + 0.5) * 0.1, HIGH])
    boxes = jax.vmap(lambda house: house.solids().boxes)(many)
    return boxes, *_camera_poses(rng, np.array(eyes))


def _random_box_scenes(count: int) -> tuple[Boxes, np.ndarray, np.ndarray]:
    """Return random boxes of about half a metre in a hall of 12 by 9 m, with none at the camera."""
    rng = np.random.default_rng(count)
    shape = (VIEWS, count)
    eyes = np.append(rng.uniform(0, [12, 9], (VIEWS, 2)), np.full((VIEWS, 1), HIGH), 1)
    centre = rng.uniform(0, [12, 9, 1.5], (*shape, 3))
    half = 0.05 + 0.45 * rng.uniform(size=(*shape, 3)) ** 2
    near = np.linalg.norm(centre - eyes[:, None], axis=-1) < np.linalg.norm(half, axis=-1) + 0.05
    half[near] = -1
    turn = rng.uniform(0, 2 * np.pi, shape)
    boxes = Boxes(*(jnp.asarray(a, jnp.float32) for a in (centre, half, turn)))
    return boxes, *_camera_poses(rng, eyes)


def _make_jaxgpu_run(
    boxes: Boxes, eyes: np.ndarray, targets: np.ndarray, size: int
) -> Callable[[], Any]:
    def image(boxes: Boxes, eye: Any, target: Any) -> Any:
        up = (0.0, 0.0, 1.0)
        camera = Camera(eye, target, up, angle=ANGLE, width=size, height=size)
        return depth_image(camera, Solids(boxes), far=FAR)

    f = jax.jit(lambda *given: jax.vmap(image)(*given))
    given = (boxes, *(jnp.asarray(a, jnp.float32) for a in (eyes, targets)))
    return lambda: {"mean depth, m": float(np.mean(np.asarray(f(*given))))}


def _camera_rays(eye: np.ndarray, target: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return unit vectors [P, 3] along the rays of a view, and the depth per metre of each."""
    camera = Camera(eye, target, (0.0, 0.0, 1.0), angle=ANGLE, width=size, height=size)
    there = np.stack([np.asarray(a) for a in camera.unproject(jnp.ones((size, size)))], -1)
    way = there.reshape(-1, 3).astype(float) - eye
    length = np.linalg.norm(way, axis=1)
    return way / length[:, None], 1 / length


def _mean_depth(depths: list[np.ndarray]) -> dict[str, float]:
    return {"mean depth, m": float(np.mean([np.minimum(d, FAR).mean() for d in depths]))}


def _make_mujoco_run(
    boxes: Boxes, eyes: np.ndarray, targets: np.ndarray, size: int
) -> Callable[[], Any]:
    mujoco = import_module("mujoco")
    scenes = []
    for k, (eye, target) in enumerate(zip(eyes, targets)):
        spec = mujoco.MjSpec()
        for centre, half, turn in _present_boxes(boxes, k):
            quat = [np.cos(turn / 2), 0, 0, np.sin(turn / 2)]
            kind = mujoco.mjtGeom.mjGEOM_BOX
            half = np.maximum(half, 1e-5)
            spec.worldbody.add_geom(type=kind, pos=centre, size=half, quat=quat)
        model = spec.compile()
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        scenes.append((model, data, eye, *_camera_rays(eye, target, size)))
    number, distance = np.zeros(size * size, np.int32), np.zeros(size * size)

    def run() -> dict[str, float]:
        depths = []
        for model, data, eye, way, ahead in scenes:
            mujoco.mj_multiRay(
                model, data, eye, way.ravel(), None, True, -1, number, distance, None, len(way), 1e3
            )
            depths.append(np.where(distance < 0, FAR, distance * ahead))
        return _mean_depth(depths)

    return run


def _make_embree_run(
    boxes: Boxes, eyes: np.ndarray, targets: np.ndarray, size: int
) -> Callable[[], Any]:
    scene = import_module("embreex.rtcore_scene")
    mesh = import_module("embreex.mesh_construction")
    corners = np.array(list(product((-1, 1), repeat=3)))
    squares = np.array(
        [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
    )
    faces = np.concatenate([squares[:, :3], squares[:, [0, 2, 3]]])
    scenes = []
    for k, (eye, target) in enumerate(zip(eyes, targets)):
        points = []
        for centre, half, turn in _present_boxes(boxes, k):
            c, s = np.cos(turn), np.sin(turn)
            points.append(centre + corners * half @ np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]]))
        every = faces[None] + 8 * np.arange(len(points))[:, None, None]
        made = scene.EmbreeScene()
        triangles = every.reshape(-1, 3).astype(np.int32)
        mesh.TriangleMesh(made, np.concatenate(points).astype(np.float32), triangles)
        way, ahead = _camera_rays(eye, target, size)
        start = np.broadcast_to(eye, way.shape).astype(np.float32)
        scenes.append((made, start, way.astype(np.float32), ahead))

    def run() -> dict[str, float]:
        depths = [made.run(at, way, query="DISTANCE") * share for made, at, way, share in scenes]
        return _mean_depth(depths)

    run()  # the first call builds the trees
    return run


def _present_boxes(boxes: Boxes, k: int) -> Any:
    """Return center, half size and angle of the boxes of a view that are not padding."""
    centre, half, turn = (np.asarray(a[k], float) for a in (boxes.centre, boxes.half, boxes.turn))
    return [row for row in zip(centre, half, turn) if np.all(row[1] >= 0)]


def _entry(name: str, what: str, scene: tuple[Any, Any, Any], size: int) -> Entry:
    peer = import_module("mujoco").__version__
    return Entry(
        f"depth {name}, {size} x {size}",
        f"{VIEWS} depth images of {size} x {size} pixels, each of {what}; exact, no list cut short",
        [
            Contender("jaxgpu", _make_jaxgpu_run(*scene, size)),
            Contender(f"C MuJoCo {peer}, mj_multiRay", _make_mujoco_run(*scene, size)),
            Contender(f"Embree, embreex {version('embreex')}", _make_embree_run(*scene, size)),
        ],
        float(VIEWS),
        "frames",
    )


def entries() -> list[Entry]:
    """Return depth images of houses and of random boxes, at two sizes."""
    scenes = {"houses": ("its own furnished house", _house_scenes())}
    for count in (32, 300):
        scenes[f"{count} boxes"] = (f"{count} boxes at random", _random_box_scenes(count))
    return [
        _entry(name, what, scene, size)
        for name, (what, scene) in scenes.items()
        for size in (64, 128)
    ]
