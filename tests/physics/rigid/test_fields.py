"""Contacts of signed-distance shapes: against closed forms, pair formulas, and energy."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import trimesh

from jaxgpu.geometry import sdf
from jaxgpu.physics import rigid
from jaxgpu.physics.rigid.collision import KERNELS, Shape
from jaxgpu.physics.rigid.collision.sdf_contacts import DistanceField, collide_field, group_points
from jaxgpu.runs.loop import rollout

RING, TUBE = 0.1, 0.03
NOWHERE = np.zeros((16, 32, 3))
quick = functools.partial(  # compiled once and run a few times
    jax.jit, compiler_options={"xla_backend_optimization_level": 0}
)


def field(shape, points):
    """A shape whose axes are the geom's."""
    shape = jax.tree.map(jnp.asarray, shape)
    return DistanceField(shape=shape, pos=jnp.zeros(3), rot=jnp.eye(3), points=jnp.asarray(points))


def random_shape(rng, size):
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    turn[:, 0] *= np.linalg.det(turn)
    return Shape(rng.normal(size=3) * 0.05, turn, np.asarray(size))


def test_a_ball_and_a_ring_touch_where_the_torus_is_nearest(x64):
    ring = field(sdf.Torus(RING, TUBE), NOWHERE)
    rng, size = np.random.default_rng(0), np.array([0.02, 0, 0])
    both = [(random_shape(rng, size), random_shape(rng, size)) for _ in range(64)]
    one, two = (jax.tree.map(lambda *a: np.stack(a), *side) for side in zip(*both))
    into = quick(jax.vmap(lambda a, b: collide_field("sphere", a, b, None, ring)))(one, two)
    into = jax.tree.map(lambda a: np.asarray(a[:, 0]), into)
    # Compute by hand, in the ring's axes, the nearest point of its circle.
    p = np.einsum("kji,kj->ki", two.rot, one.pos - two.pos)
    circle = RING * p * [1, 1, 0] / np.linalg.norm(p[:, :2], axis=1, keepdims=True)
    out = p - circle
    far = np.linalg.norm(out, axis=1)
    np.testing.assert_allclose(into.dist, far - TUBE - 0.02, rtol=0, atol=1e-14)
    way = np.einsum("kij,kj->ki", two.rot, out / far[:, None])
    np.testing.assert_allclose(into.frame[:, 0], -way, rtol=0, atol=1e-12)
    middle = circle + out / far[:, None] * ((far + TUBE - 0.02) / 2)[:, None]
    want = np.einsum("kij,kj->ki", two.rot, middle) + two.pos
    np.testing.assert_allclose(into.pos, want, rtol=0, atol=1e-12)
    for frame in into.frame:
        np.testing.assert_allclose(frame @ frame.T, np.eye(3), rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["sphere", "capsule", "cylinder", "box"])
def test_the_deepest_contact_on_a_flat_is_that_of_the_formula(kind, x64):
    """Compare a block's upper face, by its distance, with the formulas of a plane there."""
    half, size = np.array([0.4, 0.5, 0.3]), np.array([0.05, 0.08, 0.06])
    block = field(sdf.Box(half), NOWHERE + half)  # its own corner alone
    rng = np.random.default_rng(2)
    asked = quick(lambda a, b: collide_field(kind, a, b, None, block))
    floor = quick(lambda a, b: KERNELS["plane", kind].touch(b, a))
    for _ in range(8):
        one, two = random_shape(rng, size), random_shape(rng, half)
        up = two.rot[:, 2]
        one = dataclasses.replace(one, pos=two.pos + 0.34 * up)
        got, want = asked(one, two), floor(one, dataclasses.replace(two, pos=two.pos + 0.3 * up))
        best = int(np.argmin(got.dist))
        # A rim has 32 points: its lowest is missed by r (1 - cos(pi / 32)) at most.
        slack = 0.05 * (1 - np.cos(np.pi / 32)) if kind == "cylinder" else 0
        assert -1e-12 <= got.dist[best] - want.dist.min() <= slack + 1e-12
        np.testing.assert_allclose(got.frame[best, 0], -up, rtol=0, atol=1e-12)


def test_patches_share_out_all_points_evenly():
    points = np.random.default_rng(1).normal(size=(512, 3))
    cut = group_points(points, points)
    assert cut.shape == (16, 32, 3)
    assert {tuple(p) for p in cut.reshape(-1, 3)} == {tuple(p) for p in points}
    spread = np.linalg.norm(cut - cut.mean(1, keepdims=True), axis=-1)
    assert spread.mean() < 0.7 * np.linalg.norm(points, axis=-1).mean()


def scene(folder, mesh, rest, **options):
    mesh.export(folder / "part.stl")
    return rigid.load(
        f"""<mujoco><option timestep="0.002"/>
        <asset><mesh name="part" file="{folder}/part.stl"/></asset><worldbody>{rest}</worldbody>
        </mujoco>""",
        **options,
    )


PEG = """<geom type="plane" size="2 2 .1"/>
<geom name="peg" type="capsule" fromto="0 0 0 0 0 .4" size=".05"/>
<body pos=".01 0 .3"><freejoint/><geom name="ring" type="mesh" mesh="part"/></body>"""


def ring():
    return trimesh.creation.torus(RING, TUBE, major_sections=32, minor_sections=16)


@pytest.mark.slow
def test_a_ring_falls_down_its_peg_and_gains_no_energy(tmp_path, x64):
    model = scene(tmp_path, ring(), PEG, sdf={"ring": 0.01})
    start = model.init(qvel=[0.1, 0, 0, 0.3, 0.5, 0])

    def step(state, _):
        after = model.step(state)
        return after, sum(rigid.energy(model, after))

    end, energy = quick(lambda s: jax.lax.scan(step, s, None, length=500))(start)
    assert np.hypot(*end.qpos[:2]) < RING - TUBE - 0.05 + 0.002  # around the peg
    assert abs(end.qpos[2] - TUBE) < 1e-3 and np.abs(end.qvel).max() < 1e-6
    assert end.overflow == 0
    scale = 9.81 * 0.3 * float(model.bodies.mass[1])
    assert np.diff(energy).max() < 2e-3 * scale and energy[-1] < energy[0]


@pytest.mark.slow
def test_the_slopes_of_a_contact_are_those_of_differences(x64):
    """Test its depth, position and frame, in the pose of a capsule on a ring."""
    rng = np.random.default_rng(3)
    one, two = random_shape(rng, np.array([0.02, 0.05, 0])), random_shape(rng, np.zeros(3))
    around = field(sdf.Torus(RING, TUBE), NOWHERE)

    def touch_at(moved):
        turned = one.rot + jnp.cross(moved[3:], one.rot, axisb=0, axisc=0)
        there = dataclasses.replace(one, pos=one.pos + moved[:3], rot=turned)
        return jax.tree.leaves(collide_field("capsule", there, two, None, around))

    run, slope, e = quick(touch_at), quick(jax.jacfwd(touch_at))(jnp.zeros(6)), 1e-6
    for axis, way in enumerate(np.eye(6)):
        for one_leaf, up, down in zip(slope, run(e * way), run(-e * way)):
            np.testing.assert_allclose(one_leaf[..., axis], (up - down) / (2 * e), atol=1e-6)


@pytest.mark.slow
def test_a_ball_rolls_to_and_fro_in_a_bowl(tmp_path, x64):
    """A frictionless ball in a hollow of radius R swings as a pendulum of length R - r."""
    turn = np.linspace(-np.pi / 2, 0, 24)
    inner = 0.5 * np.stack([np.cos(turn), np.sin(turn)], 1)
    profile = np.concatenate([[[0, -0.6], [0.6, -0.6], [0.6, 0]], inner[::-1]])
    profile[-1, 0] = 0
    bowl = trimesh.creation.revolve(profile, sections=64)
    hollow = sdf.Complement(sdf.Ball(0.5))
    text = """<geom name="bowl" type="mesh" mesh="part" friction="0"/>
    <body pos=".08 0 -.44"><freejoint/><geom size=".05" friction="0" mass="1"/></body>"""
    model = scene(tmp_path, bowl, text, sdf={"bowl": hollow})
    assert abs(model.geoms.pos[0, 2]) > 0.1  # MuJoCo has moved the mesh, and not the shape
    period = 2 * np.pi * np.sqrt(0.45 / 9.81)
    count = round(period / 0.002)
    place = lambda state: state.qpos[0]
    _, x = quick(lambda s: rollout(model.step, s, count, measure=place))(model.init())
    half = int(np.argmin(x)) * 0.002
    assert abs(half / (period / 2) - 1) < 0.02
    assert x.min() < -0.07 and x[-1] > 0.07


@pytest.mark.parametrize(
    "given, sentence",
    [
        ({"rong": 0.01}, "no geom 'rong'"),
        ({"peg": 0.01}, "it must be a mesh"),
        ({"ring": -1.0}, "above 0"),
        ({"ring": float("nan")}, "finite"),
        (["ring"], "dictionary"),
        ({"ring": 0.5}, "the mesh is 0.06 m thin"),
        ({"ring": sdf.Ball}, "above 0"),
        ({"ring": sdf.Ball(1.0)}, "0% of the mesh's surface"),
        ({"ring": sdf.Torus(100.0, 30.0)}, "in metres"),
        ({"ring": sdf.Torus(RING, -1.0)}, "at least 0"),
        ({"ring": sdf.Box((0.1, 0.1))}, "its distance cannot be computed"),
    ],
)
def test_refuses_what_is_no_field(given, sentence, tmp_path):
    with pytest.raises((ValueError, TypeError), match=sentence):
        scene(tmp_path, ring(), PEG, sdf=given)


def test_refuses_a_mesh_that_is_not_closed(tmp_path):
    cut = ring()
    cut.update_faces(np.arange(len(cut.faces)) > 3)
    text = PEG.replace('mesh="part"', 'mesh="part" mass="1"')
    cut.export(tmp_path / "part.stl")
    asset = f'<mesh name="part" file="{tmp_path}/part.stl" inertia="shell"/>'
    whole = f"<mujoco><asset>{asset}</asset><worldbody>{text}</worldbody></mujoco>"
    with pytest.raises(ValueError, match="watertight"):
        rigid.load(whole, sdf={"ring": 0.01})
