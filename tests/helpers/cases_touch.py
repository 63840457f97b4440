"""API cases of `jaxgpu.physics.touch`."""

import dataclasses

import numpy as np
from api_cases import ApiCase

from jaxgpu.geometry import sdf
from jaxgpu.physics import touch

POINTS = np.array([[0.0, 0.0, 0.0], [2.0, 0.0, 0.0]], np.float32)
D = np.array([-0.5, 0.25], np.float32)
N = np.array([[0.0, 0.6, 0.8], [0.0, 0.0, 1.0]], np.float32)
V = np.array([[1.0, 2.0, 3.0], [0.5, -1.0, 0.2]], np.float32)
U = np.array([[0.1, 0.2, 0.0], [0.0, 0.0, 0.0]], np.float32)
QUAT = np.array([1.0, 0.0, 0.0, 0.0], np.float32)
BALL = {
    "shape": sdf.Ball(1.5),
    "points": POINTS,
    "pos": np.array([0.0, 1.0, 2.0], np.float32),
    "quat": QUAT,
}
SEEN = tuple(f"points: {kind}" for kind in ("zero", "negative", "wrong length", "empty"))
SEEN += ("quat: negative",)
ANY = tuple(f"{x}: {kind}" for x in ("pos", "velocity", "spin") for kind in ("zero", "negative"))
FIELDS = tuple(
    f"{x}: {kind}"
    for x in ("anchors", "distance", "normal", "velocity")
    for kind in ("zero", "negative")
)
LAID_OUT = "points of parts are laid out on the host, by their sizes"
NUMBERS = ("young", "radius", "load", "friction", "area")


def force(field, anchors, distance, normal, velocity, dt):
    return field.force(anchors, distance, normal, velocity, dt)


def _field_case(name, field, anchors, right=()):
    good = {"field": field, "anchors": anchors, "distance": D, "normal": N, "velocity": V}
    return ApiCase(
        f"physics.touch.{name}.force",
        force,
        {**good, "dt": np.float32(0.1)},
        right=(*FIELDS, *right),
        normalised=("normal",),
    )


RNG = np.random.default_rng(0)
SENSOR = touch.GelSight(
    gel=-RNG.uniform(0, 3, (8, 10)).astype(np.float32),
    rest=RNG.uniform(0.2, 0.8, (8, 10, 3)).astype(np.float32),
    table=(1e-6 * RNG.normal(size=(6, 5, 5, 3))).astype(np.float32),
    down=(np.array([0.25, 0.5, 0.25], np.float32),) * 2,
    across=(np.array([0.25, 0.5, 0.25], np.float32),) * 2,
    pixel=np.float32(3e-5),
    last=True,
)
SMOOTH = dataclasses.replace(SENSOR, smooth=True)
HEIGHT = RNG.uniform(-5e-4, 1e-3, (8, 10)).astype(np.float32)


def _sensor_case(name, sensor, kind=""):
    return ApiCase(
        f"physics.touch.GelSight.{name}{kind}",
        lambda sensor, height: getattr(sensor, name)(height),
        {"sensor": sensor, "height": HEIGHT},
        right=("height: zero", "height: negative"),
    )


PAIR = touch.peg_and_socket()
GRASP = touch.Grasp.from_parts(*PAIR, taxels=(4, 3))
HELD = GRASP.init(np.array([0.01, 0.0, 0.1], np.float32), np.array([0.01, 0.0, 0.08], np.float32))
PLACES = tuple(f"{x}: {kind}" for x in ("hand", "part", "fixture") for kind in ("zero", "negative"))


def init(grasp, hand, part, fixture, part_quat, hand_quat, opening):
    return grasp.init(hand, part, fixture, part_quat, hand_quat, opening)


CASES = [
    _sensor_case("image", SENSOR),
    _sensor_case("image", SMOOTH, ", smooth"),
    _sensor_case("depth", SENSOR),
    ApiCase(
        "physics.touch.gelsight",
        touch.gelsight,
        {"name": "gelsight", "height": 12, "width": 16, "pixel": 3e-5},
        right=("pixel: None",),
    ),
    _field_case("ForceField", touch.ForceField(100.0, 50.0, 0.5, 1.0), U),
    _field_case(
        "ViscousField", touch.ViscousField(100.0, 50.0, 0.5, 1.0), U[:, :0], ("anchors: narrow",)
    ),
    ApiCase(
        "physics.touch.ForceField.init",
        lambda field, taxels: field.init(taxels),
        {"field": touch.ForceField(100.0, 50.0, 0.5), "taxels": 3},
    ),
    ApiCase(
        "physics.touch.ForceField.from_elastomer",
        touch.ForceField.from_elastomer,
        {name: 0.5 for name in (*NUMBERS, "poisson")},
        right=("poisson: zero",),
    ),
    ApiCase(
        "physics.touch.taxels",
        touch.taxels,
        {"width": 0.02, "height": 0.03, "rows": 2, "columns": 3, "margin": 0.002},
        right=("margin: zero",),
    ),
    ApiCase(
        "physics.touch.probe",
        touch.probe,
        {**BALL, "velocity": V[0], "spin": V[1]},
        right=(*ANY, *SEEN),
        normalised=("quat",),
    ),
    ApiCase(
        "physics.touch.heights",
        touch.heights,
        {**BALL, "far": 0.5},
        right=("pos: zero", "pos: negative", *SEEN),
        normalised=("quat",),
    ),
    ApiCase(
        "physics.touch.Grasp.init",
        init,
        {
            "grasp": GRASP,
            "hand": V[0],
            "part": V[1],
            "fixture": V[0] + V[1],
            "part_quat": QUAT,
            "hand_quat": QUAT,
            "opening": 0.01,
        },
        right=(
            *PLACES,
            "part_quat: negative",
            "hand_quat: negative",
            "opening: zero",
            *(f"{x}: None" for x in ("fixture", "part_quat", "hand_quat", "opening")),
        ),
        normalised=("part_quat", "hand_quat"),
    ),
    ApiCase(
        "physics.touch.Grasp.closed_opening",
        lambda below: GRASP.closed_opening(below),
        {"below": 0.01},
        right=("below: zero", "below: negative"),
    ),
    ApiCase(
        "physics.touch.Grasp.step",
        lambda shift, turn, opening: GRASP.step(HELD, shift, turn, opening).part,
        {"shift": V[0] / 100, "turn": V[1] / 100, "opening": 0.01},
        right=(
            *(f"{x}: {kind}" for x in ("shift", "turn") for kind in ("zero", "negative", "None")),
            "opening: zero",
        ),
    ),
    ApiCase(
        "physics.touch.peg_and_socket",
        lambda clearance: touch.peg_and_socket("round-8", clearance).fixture.shape.radius,
        {"clearance": 5e-4},
        right=("clearance: None",),
        host=LAID_OUT,
    ),
    ApiCase(
        "physics.touch.peg_and_pad, peg",
        lambda diameter, height: touch.peg_and_pad("round-8", diameter, height).fixture.goal,
        {"diameter": 0.1, "height": 0.02},
        host=LAID_OUT,
    ),
    ApiCase(
        "physics.touch.nut_and_bolt",
        lambda clearance, length: touch.nut_and_bolt("M8", clearance, length).part.mass,
        {"clearance": 2e-4, "length": 0.05},
        right=("clearance: None",),
        host=LAID_OUT,
    ),
    ApiCase(
        "physics.touch.wrench",
        touch.wrench,
        {"points": POINTS, "force": V},
        right=tuple(f"{x}: {kind}" for x in ("points", "force") for kind in ("zero", "negative")),
    ),
]
