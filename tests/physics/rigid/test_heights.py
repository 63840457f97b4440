"""Height fields and convex shapes: against MuJoCo, planes, dense directions and differences."""

import dataclasses
import functools
import zlib

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from jaxgpu.physics import rigid
from jaxgpu.physics.rigid import integrators
from jaxgpu.physics.rigid.collision import Shape
from jaxgpu.physics.rigid.collision.height_field import HeightField, collide_heights
from jaxgpu.physics.rigid.collision.hull import hull

OPTIONS = {"xla_backend_optimization_level": 0}  # compiled once and run a few times
# Types, margins and shapes of bodies that collide with the field but not with one another.
BODIES = [
    ("sphere", 0.0, 'size=".15"'),
    ("sphere", 0.05, 'size=".15"'),
    ("capsule", 0.0, 'type="capsule" size=".08 .2"'),
    ("capsule", 0.05, 'type="capsule" size=".08 .2"'),
    ("cylinder", 0.0, 'type="cylinder" size=".1 .2"'),
    ("ellipsoid", 0.0, 'type="ellipsoid" size=".1 .2 .15"'),
]
HILLS = np.random.default_rng(0).uniform(size=(9, 11))
TEXT = """<mujoco><option cone="elliptic" timestep=".002"/><asset>
<hfield name="hills" nrow="{rows}" ncol="{columns}" size="1 .8 {high} .1" elevation="{z}"/></asset>
<worldbody><geom type="hfield" hfield="hills" pos=".1 .2 .3" euler="10 20 30"/>{bodies}
</worldbody></mujoco>"""
BODY = """<body pos="{place} 0 3"><freejoint/>
<geom {shape} margin="{margin}" mass="1" conaffinity="0"/></body>"""


def load_field(bodies, high=0.3, **sizes):
    """Return MuJoCo's model with converged searches, jaxgpu's, and the frame of the field."""
    numbers = " ".join(map(str, HILLS[::-1].ravel()))  # the first row of a file has the largest y
    rows, columns = HILLS.shape
    bodies = "".join(
        BODY.format(place=i, shape=shape, margin=margin)
        for i, (_, margin, shape) in enumerate(bodies)
    )
    c = mujoco.MjModel.from_xml_string(
        TEXT.format(z=numbers, rows=rows, columns=columns, bodies=bodies, high=high)
    )
    c.opt.jacobian, c.opt.tolerance, c.opt.iterations, c.opt.ls_iterations = 0, 0, 200, 100
    c.opt.ccd_tolerance, c.opt.ccd_iterations = 1e-13, 200
    d = mujoco.MjData(c)
    mujoco.mj_kinematics(c, d)
    frame = d.geom_xpos[0].copy(), d.geom_xmat[0].reshape(3, 3).copy()
    return c, d, rigid.load(c, dtype=jnp.float64, **sizes), frame


SIZES = {"contacts": 80, "iterations": 20}


@functools.partial(jax.jit, compiler_options=OPTIONS)
def motion(model, state):
    """Return the state a step later, and the contacts and accelerations at its start."""
    still = jnp.zeros(0), jnp.zeros(model.layout.nv)
    return integrators.step_and_look(model, state, *still, lambda d: (d.contacts, d.qacc))


@pytest.mark.slow
def test_accelerations_agree_with_c(x64):
    """Test random contacts, over the field and outside its edges, at all depths.

    While a sphere's centre or a capsule's axis stays outside, MuJoCo has the nearest points to
    rounding. Inside, and for other shapes, it searches, with normals to about 1e-6.
    """
    c, d, model, (origin, turn) = load_field(BODIES, **SIZES)
    rng, count = np.random.default_rng(1), len(BODIES)
    errors, near = [[] for _ in BODIES], [[] for _ in BODIES]
    for _ in range(100):
        place = rng.uniform([-1.05, -0.85, 0.1], [1.05, 0.85, 0.45], (count, 3))
        mujoco.mj_resetData(c, d)
        d.qpos[:] = np.hstack([origin + place @ turn.T, rng.normal(size=(count, 4))]).ravel()
        mujoco.mj_normalizeQuat(c, d.qpos)
        d.qvel[:] = rng.normal(size=c.nv)
        mujoco.mj_forward(c, d)
        end, ((found,), qacc) = motion(model, model.init(d.qpos, d.qvel))
        assert int(end.overflow) == 0
        geoms, dist = np.asarray(found.geoms), np.asarray(found.dist)
        acts = dist < np.asarray(found.margin)
        for i, (kind, _, _) in enumerate(BODIES):
            ours = np.sort(dist[acts & (geoms == i + 1).any(1)])
            theirs = np.sort(d.contact.dist[(d.contact.geom == i + 1).any(1)])
            assert len(ours) == len(theirs)
            if not len(ours):
                continue
            np.testing.assert_allclose(ours, theirs, atol=2e-5)
            own = slice(6 * i, 6 * i + 6)
            errors[i].append(np.abs(qacc[own] - d.qacc[own]).max() / np.abs(d.qacc[own]).max())
            near[i].append(np.abs(ours - theirs).max() < 1e-6)  # its search ended
            outside = theirs.min() > -c.geom_size[i + 1, 0]
            assert not (kind in ("sphere", "capsule") and outside) or errors[i][-1] < 1e-9
    for (kind, _, _), error, close in zip(BODIES, errors, near):
        assert len(error) > 50 and np.mean(close) > 0.96
        if kind in ("sphere", "capsule"):
            assert max(error) < 2e-5
        else:  # where a rim lies along an edge the place follows the normal's last digits
            assert np.quantile(np.array(error)[close], 0.99) < 1e-3


@pytest.mark.slow
def test_bodies_roll_over_hills_as_in_c(x64):
    """Run a capsule and a ball for 200 steps, 0.4 s: as long as two roundings can agree.

    The other bodies fly.
    """
    c, d, model, (origin, turn) = load_field(BODIES, high=0.1, **SIZES)
    start, touched = c.qpos0.copy(), np.zeros(2)
    start[:7] = *(origin + turn @ [-0.5, 0.3, 0.2]), 1, 0, 0, 0
    start[14:21] = *(origin + turn @ [0.2, 0.1, 0.2]), 0.8, 0.2, 0.5, 0.1
    mujoco.mj_normalizeQuat(c, start)
    mujoco.mj_resetData(c, d)
    d.qpos[:], state = start, model.init(start)
    for _ in range(200):
        mujoco.mj_step(c, d)
        state, _ = motion(model, state)
        touched += [(d.contact.geom == i).any() for i in (1, 3)]
    assert touched.min() > 50
    np.testing.assert_allclose(state.qpos, d.qpos, atol=1e-6)


def test_a_field_of_one_slope_is_a_plane(x64):
    """Compare distance, position and normal of a ball's contact, away from edges."""
    slope, offset = np.array([0.3, -0.2]), 0.1
    x, y = np.linspace(-1, 1, 7), np.linspace(-0.8, 0.8, 5)
    field = HeightField(
        z=jnp.asarray(offset + slope[0] * x[None] + slope[1] * y[:, None]),
        half=jnp.array([1.0, 0.8]),
        base=jnp.array(1.0),
    )
    normal = np.array([-slope[0], -slope[1], 1]) / np.sqrt(1 + slope @ slope)
    still = Shape(jnp.zeros(3), jnp.eye(3), jnp.zeros(3))

    @functools.partial(jax.jit, compiler_options=OPTIONS)
    def touch_ball(pos):
        ball = Shape(pos, jnp.eye(3), jnp.array([0.2, 0, 0]))
        return collide_heights("sphere", still, ball, field, None, (3, 3, 8))

    rng = np.random.default_rng(3)
    for _ in range(20):
        foot = rng.uniform(-0.5, 0.5, 2)
        foot = np.array([*foot, offset + slope @ foot])
        height = rng.uniform(0.05, 0.3)
        found, beyond = jax.tree.map(np.asarray, touch_ball(foot + height * normal))
        best = int(np.argmin(found.dist))
        assert float(found.dist[best]) == pytest.approx(height - 0.2, abs=1e-12)
        np.testing.assert_allclose(found.frame[best, 0], normal, atol=1e-12)
        np.testing.assert_allclose(found.pos[best], foot + (height - 0.2) / 2 * normal, atol=1e-12)
        assert int(beyond) == 0


@pytest.mark.slow
def test_derivatives_are_those_of_differences(x64):
    """Test a capsule's contacts in its pose and the heights, where no other prism is closer."""
    rng = np.random.default_rng(4)
    field = HeightField(jnp.asarray(0.2 * HILLS), jnp.array([1.0, 0.8]), jnp.array(0.1))
    still = Shape(jnp.zeros(3), jnp.eye(3), jnp.zeros(3))
    size = jnp.array([0.08, 0.2, 0])

    def value(pos, turn, z):
        shape = Shape(pos, turn, size)
        here = dataclasses.replace(field, z=z)
        found = collide_heights("capsule", still, shape, here, None, (4, 4, 1))[0]
        return jnp.concatenate([found.dist, found.pos[0], found.frame[0, 0]])

    def jvp_along(*given):
        """Return the values, and their slopes along the given directions."""
        at, ways = given[:3], given[3:]
        return jax.jvp(value, at, ways)

    run, checked = jax.jit(jvp_along, compiler_options=OPTIONS), 0
    for _ in range(20):
        pos = rng.uniform([-0.6, -0.5, 0.1], [0.6, 0.5, 0.25])
        turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        at = (pos, turn, np.asarray(field.z))
        ways = [rng.normal(size=np.shape(x)) for x in at]
        value_at = lambda s, at=at, ways=ways: run(*(x + s * w for x, w in zip(at, ways)), *ways)[0]
        want = [(value_at(h) - value_at(-h)) / (2 * h) for h in (1e-6, 5e-7)]
        if np.abs(want[0] - want[1]).max() > 1e-4:
            continue  # a switch lies between
        np.testing.assert_allclose(run(*at, *ways)[1], want[1], atol=1e-4)
        checked += 1
    assert checked > 12


def test_what_a_window_leaves_out_is_counted(x64):
    """Test a ball that has outgrown its window, and prisms above the capacity."""
    _, _, model, (origin, turn) = load_field(BODIES[:1], contacts=2)
    assert model.layout.groups[0].window == (3, 3)
    state_over = lambda z: model.init(np.array([*(origin + turn @ [0.3, 0.2, z]), 1, 0, 0, 0]))

    @functools.partial(jax.jit, compiler_options=OPTIONS)
    def count_beyond(state, size):
        grown = dataclasses.replace(model.geoms, size=size * model.geoms.size)
        return dataclasses.replace(model, geoms=grown).forward(state).beyond

    assert int(count_beyond(state_over(2.0), 1.0)) == 0
    assert int(count_beyond(state_over(0.15), 1.0)) > 0
    assert int(count_beyond(state_over(2.0), 2.0)) == 2  # a row and a column


def png(image):
    """Return the bytes of an image of one channel [R, C]."""
    rows, columns = image.shape
    part = lambda name, data: (
        len(data).to_bytes(4, "big") + name + data + zlib.crc32(name + data).to_bytes(4, "big")
    )
    head = columns.to_bytes(4, "big") + rows.to_bytes(4, "big") + bytes([8, 0, 0, 0, 0])
    lines = b"".join(b"\0" + line.tobytes() for line in image)
    ends = part(b"IHDR", head), part(b"IDAT", zlib.compress(lines)), part(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(ends)


def test_heights_come_from_files_pictures_and_programs(tmp_path):
    """All three are equal, scaled to the height of the asset."""
    grey = np.random.default_rng(5).integers(0, 256, (4, 6)).astype(np.uint8)
    grey[0, 0], grey[1, 2] = 0, 255
    (tmp_path / "grey.png").write_bytes(png(grey))
    rest = (
        '<worldbody><geom type="hfield" hfield="h"/><body pos="0 0 2"><freejoint/>'
        '<geom size=".1"/></body></worldbody></mujoco>'
    )
    drawn = f'<mujoco><asset><hfield name="h" file="{tmp_path}/grey.png" size="1 2 .3 .1"/></asset>'
    numbers = " ".join(str(int(n)) for n in grey.ravel())
    listed = '<mujoco><asset><hfield name="h" nrow="4" ncol="6" size="1 2 .3 .1"{}/></asset>'
    spec = mujoco.MjSpec.from_string(listed.format("") + rest)
    spec.hfield("h").userdata = grey[::-1].ravel().astype(float).tolist()
    sources = (drawn + rest, listed.format(f' elevation="{numbers}"') + rest, spec)
    for source in sources:
        (field,) = rigid.load(source).geoms.heights
        np.testing.assert_allclose(field.z, 0.3 * grey[::-1] / 255, atol=1e-6)
        np.testing.assert_allclose(field.half, [1, 2])


def overlaps(prisms, box):
    """Return depths of hulls [P, 6, 3] in a box [8, 3], by all separating directions, in NumPy."""
    edges = lambda x, links: np.stack([x[..., b, :] - x[..., a, :] for a, b in links], -2)
    one, two = edges(prisms, PRISM), np.tile(edges(box, BOX), (len(prisms), 1, 1))
    pairs = lambda e: [e[:, i] for i in np.triu_indices(e.shape[1], 1)]
    mixed = np.cross(one[:, :, None], two[:, None]).reshape(len(prisms), -1, 3)
    ways = np.concatenate([np.cross(*pairs(one)), np.cross(*pairs(two)), mixed], 1)
    size = np.linalg.norm(ways, axis=2, keepdims=True)
    ways = ways / np.maximum(size, 1e-12)
    first, second = ways @ prisms.swapaxes(1, 2), ways @ box.T
    deep = np.minimum(first.max(2) - second.min(2), second.max(2) - first.min(2))
    return np.where(size[..., 0] > 1e-12, deep, np.inf).min(1)


CORNERS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
BOX = [(a, b) for a in range(8) for b in range(a) if np.abs(CORNERS[a] - CORNERS[b]).sum() == 2]
PRISM = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (0, 3), (1, 4), (2, 5)]


@pytest.mark.slow
def test_a_box_is_as_deep_in_the_prisms_as_every_direction_says(x64):
    """Check the maximum depth, and the contacts: only of overlapping prisms, and none without."""
    z, half, base = 0.2 * HILLS, np.array([1.0, 0.8]), 0.1
    field = HeightField(jnp.asarray(z), jnp.asarray(half), jnp.asarray(base))
    x, y = np.linspace(-1, 1, 11), np.linspace(-0.8, 0.8, 9)
    prisms = []
    for i in range(8):
        for j in range(10):
            corner_at = lambda di, dj, i=i, j=j: [x[j + dj], y[i + di], z[i + di, j + dj]]
            for three in (((1, 0), (0, 0), (1, 1)), ((0, 0), (0, 1), (1, 1))):
                top = np.array([corner_at(*k) for k in three])
                prisms.append(np.concatenate([top, [[*k[:2], -base] for k in top]]))
    still = Shape(jnp.zeros(3), jnp.eye(3), jnp.zeros(3))
    size = np.array([0.1, 0.12, 0.15])

    @functools.partial(jax.jit, compiler_options=OPTIONS)
    def meet_box(pos, turn):
        shape = Shape(pos, turn, size)
        found, beyond = collide_heights("box", still, shape, field, hull("box", shape), (4, 4, 48))
        return found.dist, beyond

    rng, checked = np.random.default_rng(1), 0
    for _ in range(40):
        pos = rng.uniform([-1.05, -0.85, 0.0], [1.05, 0.85, 0.4])
        turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        dist, beyond = map(np.asarray, meet_box(pos, turn))
        assert int(beyond) == 0
        box = pos + (CORNERS * size) @ turn.T
        deep = overlaps(np.array(prisms), box)
        assert (np.sum(dist < 0) >= np.sum(deep > 1e-6)) and (np.sum(dist < 0) > 0) == (
            deep.max() > 0
        )
        if deep.max() > 1e-6:
            assert float(-np.min(dist)) == pytest.approx(deep.max(), abs=1e-7)
            checked += 1
    assert checked > 16


CUBE = " ".join(f"{0.1 * a} {0.1 * b} {0.05 * c}" for a, b, c in CORNERS)
SLIDES = """<mujoco><option cone="elliptic" timestep=".002"/><asset><mesh name="m" vertex="{cube}"/>
<hfield name="h" nrow="9" ncol="17" size="2 1 .8 .1" elevation="{z}"/></asset><worldbody>
<geom type="hfield" hfield="h"/>{blocks}</worldbody></mujoco>"""
BLOCK = """<body pos="{x} {y} {up}" euler="0 {lean} 0">
<freejoint/><geom {shape} friction="1" density="500"/></body>"""


@pytest.mark.slow
def test_blocks_lie_and_slide_on_a_slope_of_heights_by_coulombs_law(x64):
    """The slope is 0.2: with higher friction it stays, with lower it slides over all edges.

    Velocity and position of a box and of a mesh after half a second are checked, and the absence of
    rotation: a ghost contact of an inner edge would stop or tip it.
    """
    slope = 0.2
    lean = np.arctan(slope)
    z = " ".join(map(str, np.tile(np.linspace(0, 1, 17), (9, 1)).ravel()))
    up = 0.4 + 0.5 * slope + 0.049 / np.cos(lean)
    shapes = {-0.5: 'type="box" size=".1 .1 .05"', 0.5: 'type="mesh" mesh="m"'}
    at = dict(x=0.5, up=up, lean=-np.rad2deg(lean))
    blocks = "".join(BLOCK.format(y=y, shape=shape, **at) for y, shape in shapes.items())
    text = SLIDES.format(cube=CUBE, z=z, blocks=blocks)
    model = rigid.load(text, dtype=jnp.float64, contacts=64)
    start = model.init()

    @jax.jit
    def slide_block(friction):
        geoms = dataclasses.replace(model.geoms, friction=friction * model.geoms.friction)
        slippery = dataclasses.replace(model, geoms=geoms)
        still = jnp.zeros(0), jnp.zeros(12)
        step_block = lambda s, _: integrators.step_and_look(slippery, s, *still, lambda d: d.beyond)
        end, beyond = jax.lax.scan(step_block, start, length=250)
        return end.qpos, end.qvel, jnp.sum(beyond)

    for friction in (0.5, 0.05):
        qpos, qvel, beyond = jax.tree.map(np.asarray, slide_block(friction))
        assert int(beyond) == 0
        want = 0.5 * max(9.81 * (np.sin(lean) - friction * np.cos(lean)), 0.0)
        speed = -(qvel[0::6] * np.cos(lean) + qvel[2::6] * np.sin(lean))
        np.testing.assert_allclose(speed, want, atol=0.02 * want + 2e-3)
        turned = np.abs(qpos - start.qpos).reshape(2, 7)[:, 3:]
        assert turned.max() < 5e-3


def test_a_signed_distance_on_a_height_field_is_refused_by_name():
    text = (
        f'<mujoco><asset><mesh name="ring" vertex="{CUBE}"/>'
        '<hfield name="hill" nrow="2" ncol="2" size="1 1 1 .1"/></asset><worldbody>'
        '<geom name="hill" type="hfield" hfield="hill"/><body><freejoint/>'
        '<geom name="ring" type="mesh" mesh="ring"/></body></worldbody></mujoco>'
    )
    with pytest.raises(ValueError, match=r"a hfield and a sdf \(geoms hill and ring\) is not sup"):
        rigid.load(text, sdf={"ring": 0.02})
