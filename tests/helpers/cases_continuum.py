"""API cases of `jaxgpu.physics.continuum`."""

import dataclasses

import numpy as np
from api_cases import ApiCase

from jaxgpu import render
from jaxgpu.geometry import sdf
from jaxgpu.physics import continuum
from jaxgpu.physics.continuum import (
    Body,
    Collector,
    Collider,
    Grid,
    Injector,
    Liquid,
    Scene,
    SoftContact,
)

X = np.array([[0.4, 0.45], [0.5, 0.5], [0.61, 0.4]], np.float32)
GRID = Grid(0.1, (10, 10))
DRAWN = np.array([[0.1, 0.0, 0.2], [-0.2, 0.1, 0.0]], np.float32)
PREPARED = "matter is prepared on the host, where its values are checked"
PAINT = np.array([[0.2, 0.5, 0.9], [0.9, 0.5, 0.1]], np.float32)
CAMERA = render.Camera((0.0, 0.0, 2.0), (0.0, 0.0, 0.0), width=8, height=6)


def prepare_scene(x=X, body=None, material=None, collider=None, source=None, grid=GRID, **fields):
    """Return the time step of a scene after `prepare`, and its initial state."""
    body = body or Body(x, material or Liquid(), 1e-4, capacity=6)
    scene = Scene(
        (body,),
        grid,
        colliders=(collider,) if collider else (),
        sources=(source,) if source else (),
        **fields,
    )
    scene = scene.prepare()
    return scene.dt, scene.init()


def prepare_3d(shape):
    """Prepare a scene with a shape that rotates in a three-dimensional box."""
    body = Body(np.full((1, 3), 0.5, np.float32), Liquid(), 1e-4)
    tool = Collider(shape, (0.5, 0.5, 0.5), mass=1.0, inertia=(1.0, 2.0, 2.0), spin=(1.0, 0.2, 0.3))
    return prepare_scene(body=body, grid=Grid(0.1, (10, 10, 10)), collider=tool)


BALL = Collider(
    sdf.Ball(0.1), (0.5, 0.5), v=(0.1, 0.0), mass=1.0, inertia=0.1, soft=SoftContact(0.1)
)
# all materials; steppers.py steps them
MATERIALS = {
    "Liquid": continuum.Liquid(1e4, viscosity=0.1),
    "HerschelBulkley": continuum.HerschelBulkley(1e4, yield_stress=1.0, consistency=1.0),
    "NeoHookean": continuum.NeoHookean(),
    "Corotated": continuum.Corotated(),
    "VonMises": continuum.VonMises(),
    "DruckerPrager": continuum.DruckerPrager(),
    "DruckerPrager, grains": continuum.DruckerPrager(grain=1e-3),
    "Snow": continuum.Snow(),
}
SHAPES = [
    sdf.HalfSpace((0.0, 1.0, 0.0)),
    sdf.Ball(0.1),
    sdf.Box((0.1, 0.1, 0.2)),
    sdf.Capsule(0.1, 0.1),
    sdf.Cylinder(0.1, 0.1),
    sdf.Torus(0.2, 0.1),
    sdf.HoledPlate(0.1, 0.1),
    sdf.Moved(sdf.Ball(0.1), (0.0, 0.1, 0.0)),
    sdf.Rounded(sdf.Ball(0.1), 0.01),
    sdf.Voxels(np.ones((2, 2, 2), np.float32), (0.0, 0.0, 0.0), 0.1),
]


def run_rollout(controls, substeps, budget):
    """Return the state and measures of a rollout without control."""
    scene = Scene((Body(X, Liquid(), 1e-4),), GRID).prepare()
    keep_scene = lambda scene, state, _: (scene, state)
    start = scene.init()
    return continuum.rollout(scene, start, controls, keep_scene, substeps=substeps, budget=budget)


CASES = [
    ApiCase(
        "physics.continuum.rollout",
        run_rollout,
        {"controls": 1, "substeps": 2, "budget": 1e6},
        host=PREPARED,
    ),
    *(
        ApiCase(f"physics.continuum.{name}", prepare_scene, {"material": material}, host=PREPARED)
        for name, material in MATERIALS.items()
    ),
    *(
        ApiCase(f"geometry.sdf.{type(shape).__name__}", prepare_3d, {"shape": shape}, host=PREPARED)
        for shape in SHAPES
    ),
    ApiCase(
        "physics.continuum.prepare",
        prepare_scene,
        {"x": X},
        right=("x: wrong length", "x: empty", "x: zero"),
        host=PREPARED,
    ),
    ApiCase(
        "physics.continuum.Body",
        prepare_scene,
        {"body": Body(X, Liquid(), 1e-4, v=(0.1, 0.0))},
        host=PREPARED,
    ),
    ApiCase("physics.continuum.Collider", prepare_scene, {"collider": BALL}, host=PREPARED),
    ApiCase(
        "physics.continuum.SoftContact",
        lambda soft: prepare_scene(collider=dataclasses.replace(BALL, soft=soft)),
        {"soft": SoftContact(0.1, 50.0)},
        host=PREPARED,
    ),
    ApiCase(
        "physics.continuum.Injector",
        prepare_scene,
        {"source": Injector(X, (0.1, 0.0), 0.1), "dt": 1e-3},
        right=("source.stop: *", "dt: None"),
        host=PREPARED,
    ),
    ApiCase(
        "physics.continuum.Collector",
        prepare_scene,
        {"source": Collector(sdf.Ball(0.1))},
        host=PREPARED,
    ),
    ApiCase(
        "physics.continuum.Scene",
        lambda gravity: prepare_scene(gravity=gravity),
        {"gravity": np.array([0.3, -9.81], np.float32)},
        right=("gravity: zero", "gravity: negative", "gravity: empty"),
        host=PREPARED,
    ),
    ApiCase(
        "physics.continuum.Grid",
        lambda dx: prepare_scene(grid=Grid(dx, (20, 20))),
        {"dx": 0.1},
        host=PREPARED,
    ),
    ApiCase(
        "physics.continuum.simulate",
        lambda t, frames: (
            continuum.simulate(Scene((Body(X, Liquid(), 1e-4),), GRID), t, frames=frames).state
        ),
        {"t": 0.01, "frames": 1},
        host="a run, whose loop is on the host",
    ),
    ApiCase(
        "geometry.fill_box",
        continuum.fill_box,
        {"lower": np.zeros(2), "upper": np.ones(2), "spacing": 0.25},
        right=("lower: negative", "lower: zero"),
        host=PREPARED,
        pairs=(("lower", "upper"),),
    ),
    ApiCase(
        "physics.continuum.lame",
        continuum.lame,
        {"young": 10.0, "poisson": 0.25},
        right=("poisson: zero", "poisson: negative", "poisson: empty", "young: empty"),
    ),
    ApiCase(
        "render.Camera",
        lambda camera: render.nearest_ball(camera, DRAWN, 0.1)[0],
        {"camera": CAMERA},
    ),
    ApiCase(
        "render.nearest_ball",
        lambda x, radius, reach: render.nearest_ball(CAMERA, x, radius, reach),
        {"x": DRAWN, "radius": 0.1, "reach": 2},
        right=("x: zero", "x: negative", "x: wrong length", "radius: zero", "reach: zero"),
        limits=("x: *", "radius: *", "reach: *"),  # the depth of an empty view is infinite
    ),
    ApiCase(
        "render.soft_depth",
        lambda x, radius, far, blur: render.soft_depth(CAMERA, x, radius, far=far, blur=blur),
        {"x": DRAWN, "radius": 0.1, "far": 3.0, "blur": 0.05},
        right=("x: zero", "x: negative", "x: wrong length", "x: empty", "radius: zero"),
    ),
    ApiCase(
        "render.picture",
        lambda x, colour, look: render.picture(CAMERA, x, colour, look),
        {"x": DRAWN, "colour": PAINT, "look": render.ParticleStyle(0.1, reach=1, smoothing=1)},
        right=("x: zero", "x: negative", "colour: zero"),
    ),
    ApiCase(
        "render.trace",
        lambda shape, x, turn, far: render.trace(CAMERA, shape, x, turn, far=far, steps=4)[1],
        {"shape": sdf.Ball(0.1), "x": np.full(3, 0.1), "turn": np.eye(4)[0], "far": 3.0},
        right=("x: zero", "x: negative", "turn: negative", "turn: not normalised"),
        normalised=("turn",),
    ),
    ApiCase(
        "render.gif",
        lambda images, seconds: render.gif(images, seconds)[:6],
        {"images": np.full((1, 2, 2, 3), 0.5), "seconds": 0.05},
        right=("images: zero",),
        host="writes a picture",
    ),
    ApiCase(
        "render.show",
        lambda x, times: render.show(x, times=times).times,
        {"x": np.arange(12.0).reshape(2, 2, 3), "times": np.arange(2.0)},
        right=("x: zero", "x: negative", "x: narrow")
        + ("times: zero", "times: negative", "times: None"),
        host="draws what it is given",
    ),
]
