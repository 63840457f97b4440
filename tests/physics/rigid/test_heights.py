"""Height fields and convex shapes: against C MuJoCo, planes, every direction and differences."""

import dataclasses
import zlib

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from jaxgpu.physics import rigid
from jaxgpu.physics.rigid.collision import Shape
from jaxgpu.physics.rigid.collision.heights import Heights, touch_heights
from jaxgpu.physics.rigid.collision.hull import hull
from jaxgpu.run import rollout

SHAPES = {
    "sphere": 'size=".15"',
    "capsule": 'type="capsule" size=".08 .2"',
    "cylinder": 'type="cylinder" size=".1 .2"',
    "ellipsoid": 'type="ellipsoid" size=".1 .2 .15"',
}
HILLS = np.random.default_rng(0).uniform(size=(9, 11))
TEXT = """<mujoco><option cone="elliptic" timestep=".002"/><asset>
<hfield name="hills" nrow="{rows}" ncol="{columns}" size="1 .8 {high} .1" elevation="{z}"/></asset>
<worldbody><geom type="hfield" hfield="hills" pos=".1 .2 .3" euler="10 20 30" margin="{margin}"/>
<body><freejoint/><geom {shape} mass="1"/></body></worldbody></mujoco>"""


def loaded(shape, heights=HILLS, margin=0.0, high=0.3, **sizes):
    """The model in C, with searches that converge, and ours."""
    numbers = " ".join(map(str, heights[::-1].ravel()))  # the first row of a file has the largest y
    rows, columns = heights.shape
    c = mujoco.MjModel.from_xml_string(
        TEXT.format(z=numbers, rows=rows, columns=columns, shape=shape, margin=margin, high=high)
    )
    c.opt.jacobian, c.opt.tolerance, c.opt.iterations, c.opt.ls_iterations = 0, 0, 200, 100
    c.opt.ccd_tolerance, c.opt.ccd_iterations = 1e-13, 200
    d = mujoco.MjData(c)
    mujoco.mj_kinematics(c, d)
    frame = d.geom_xpos[0].copy(), d.geom_xmat[0].reshape(3, 3).copy()
    sizes = {"contacts": 48, "iterations": 20, **sizes}
    return c, d, rigid.load(c, dtype=jnp.float64, **sizes), frame


@pytest.mark.parametrize(
    "kind, margin",
    [
        ("sphere", 0.0),
        pytest.param("sphere", 0.05, marks=pytest.mark.slow),
        pytest.param("capsule", 0.0, marks=pytest.mark.slow),
        pytest.param("capsule", 0.05, marks=pytest.mark.slow),
        pytest.param("cylinder", 0.0, marks=pytest.mark.slow),
        pytest.param("ellipsoid", 0.0, marks=pytest.mark.slow),
    ],
)
def test_accelerations_agree_with_c(kind, margin, x64):
    """In contact at random, over the field and beyond its edges, at all depths.

    While the centre of a sphere and the axis of a capsule stay outside MuJoCo has the nearest
    points to rounding; within, and for other shapes, it searches, with normals to some 1e-6.
    """
    c, d, model, (origin, turn) = loaded(SHAPES[kind], margin=margin)
    forward = jax.jit(lambda q, v: model.forward(model.init(q, v)))
    rng, errors, near = np.random.default_rng(1), [], []
    for _ in range(200):
        place = rng.uniform([-1.05, -0.85, 0.1], [1.05, 0.85, 0.45])
        mujoco.mj_resetData(c, d)
        d.qpos[:3], d.qpos[3:] = origin + turn @ place, rng.normal(size=4)
        mujoco.mj_normalizeQuat(c, d.qpos)
        d.qvel[:] = rng.normal(size=6)
        mujoco.mj_forward(c, d)
        got = forward(d.qpos, d.qvel)
        (found,) = got.contacts
        ours = np.sort(found.dist[found.dist < found.margin])
        theirs = np.sort(d.contact.dist)
        assert len(ours) == len(theirs)
        if len(ours):
            np.testing.assert_allclose(ours, theirs, atol=2e-5)
            errors.append(np.abs(got.qacc - d.qacc).max() / np.abs(d.qacc).max())
            near.append(np.abs(ours - theirs).max() < 1e-6)  # its search ended
            outside = theirs.min() > -c.geom_size[1, 0]
            assert not (kind in ("sphere", "capsule") and outside) or errors[-1] < 1e-9
    assert len(errors) > 100 and np.mean(near) > 0.97
    if kind in ("sphere", "capsule"):
        assert max(errors) < 2e-5
    else:  # where a rim lies along an edge the place follows the normal's last digits
        assert np.quantile(np.array(errors)[near], 0.99) < 1e-3


def test_a_field_of_one_slope_is_a_plane(x64):
    """Its distance from a ball, and where and along what they touch, away from edges."""
    slope, offset = np.array([0.3, -0.2]), 0.1
    x, y = np.linspace(-1, 1, 7), np.linspace(-0.8, 0.8, 5)
    field = Heights(
        z=jnp.asarray(offset + slope[0] * x[None] + slope[1] * y[:, None]),
        half=jnp.array([1.0, 0.8]),
        base=jnp.array(1.0),
    )
    normal = np.array([-slope[0], -slope[1], 1]) / np.sqrt(1 + slope @ slope)
    still = Shape(jnp.zeros(3), jnp.eye(3), jnp.zeros(3))
    asked = jax.jit(
        lambda pos: touch_heights(
            "sphere",
            still,
            Shape(pos, jnp.eye(3), jnp.array([0.2, 0, 0])),
            field,
            None,
            (3, 3, 8),
        )
    )
    rng = np.random.default_rng(3)
    for _ in range(20):
        foot = rng.uniform(-0.5, 0.5, 2)
        foot = np.array([*foot, offset + slope @ foot])
        height = rng.uniform(0.05, 0.3)
        found, beyond = asked(foot + height * normal)
        best = int(jnp.argmin(found.dist))
        assert float(found.dist[best]) == pytest.approx(height - 0.2, abs=1e-12)
        np.testing.assert_allclose(found.frame[best, 0], normal, atol=1e-12)
        np.testing.assert_allclose(found.pos[best], foot + (height - 0.2) / 2 * normal, atol=1e-12)
        assert int(beyond) == 0


@pytest.mark.slow
def test_derivatives_are_those_of_differences(x64):
    """Of contacts of a capsule, by where it and the heights are, where no other prism is nearer."""
    rng = np.random.default_rng(4)
    field = Heights(jnp.asarray(0.2 * HILLS), jnp.array([1.0, 0.8]), jnp.array(0.1))
    still = Shape(jnp.zeros(3), jnp.eye(3), jnp.zeros(3))
    size = jnp.array([0.08, 0.2, 0])

    def value(pos, turn, z):
        shape = Shape(pos, turn, size)
        here = dataclasses.replace(field, z=z)
        found = touch_heights("capsule", still, shape, here, None, (4, 4, 1))[0]
        return jnp.concatenate([found.dist, found.pos[0], found.frame[0, 0]])

    run, slope = jax.jit(value), jax.jit(jax.jacfwd(value, argnums=(0, 1, 2)))
    checked = 0
    for _ in range(20):
        pos = rng.uniform([-0.6, -0.5, 0.1], [0.6, 0.5, 0.25])
        turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        at = (pos, turn, field.z)
        ways = [rng.normal(size=np.shape(x)) for x in at]
        move = lambda s, at=at, ways=ways: run(*(x + s * w for x, w in zip(at, ways)))
        want = [(move(h) - move(-h)) / (2 * h) for h in (1e-6, 5e-7)]
        if np.abs(want[0] - want[1]).max() > 1e-4:
            continue  # a switch lies between
        got = sum(np.tensordot(s, w, w.ndim) for s, w in zip(slope(*at), ways))
        np.testing.assert_allclose(got, want[1], atol=1e-4)
        checked += 1
    assert checked > 12


@pytest.mark.slow
def test_what_a_window_leaves_out_is_counted(x64):
    """A ball that has grown over its window, and prisms beyond those that are kept."""
    _, _, model, (origin, turn) = loaded(SHAPES["sphere"], contacts=2)
    assert model.layout.groups[0].window == (3, 3)
    over = lambda z: model.init(np.array([*(origin + turn @ [0.3, 0.2, z]), 1, 0, 0, 0]))

    @jax.jit
    def beyond(state, size):
        grown = dataclasses.replace(model.geoms, size=size * model.geoms.size)
        return dataclasses.replace(model, geoms=grown).forward(state).beyond

    assert int(beyond(over(2.0), 1.0)) == 0
    assert int(beyond(over(0.15), 1.0)) > 0
    assert int(beyond(over(2.0), 2.0)) == 2  # a row and a column


def png(image):
    """The bytes of a picture of one channel [R, C]."""
    rows, columns = image.shape
    part = lambda name, data: (
        len(data).to_bytes(4, "big") + name + data + zlib.crc32(name + data).to_bytes(4, "big")
    )
    head = columns.to_bytes(4, "big") + rows.to_bytes(4, "big") + bytes([8, 0, 0, 0, 0])
    lines = b"".join(b"\0" + line.tobytes() for line in image)
    ends = part(b"IHDR", head), part(b"IDAT", zlib.compress(lines)), part(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(ends)


def test_heights_come_from_files_pictures_and_programs(tmp_path):
    """All three the same, scaled to the height that the asset has."""
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


@pytest.mark.slow
def test_a_capsule_rolls_over_hills_as_in_c(x64):
    """For 200 steps, 0.4 s: as far as two programs agree that differ by rounding alone."""
    c, d, model, (origin, turn) = loaded(SHAPES["capsule"], heights=HILLS, high=0.1)
    start = np.array([*(origin + turn @ [0.2, 0.1, 0.2]), 0.8, 0.2, 0.5, 0.1])
    mujoco.mj_normalizeQuat(c, start)
    mujoco.mj_resetData(c, d)
    d.qpos[:], touched = start, 0
    end = jax.jit(lambda s: rollout(model.step, s, 200)[0])(model.init(start))
    for _ in range(200):
        mujoco.mj_step(c, d)
        touched += d.ncon > 0
    assert touched > 50
    np.testing.assert_allclose(end.qpos, d.qpos, atol=1e-6)


def overlap(prism, box):
    """How deep two hulls [N, 3] lie in one another, by all directions that can tell, in NumPy."""
    sides = []
    for points, links in ((prism, PRISM), (box, BOX)):
        edges = np.array([points[b] - points[a] for a, b in links])
        sides.append(edges)
    faces = [np.cross(a, b) for edges in sides for i, a in enumerate(edges) for b in edges[:i]]
    ways = np.array(faces + [np.cross(a, b) for a in sides[0] for b in sides[1]])
    size = np.linalg.norm(ways, axis=1)
    ways = ways[size > 1e-12] / size[size > 1e-12, None]
    first, second = ways @ prism.T, ways @ box.T
    return np.minimum(first.max(1) - second.min(1), second.max(1) - first.min(1)).min()


CORNERS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
BOX = [(a, b) for a in range(8) for b in range(a) if np.abs(CORNERS[a] - CORNERS[b]).sum() == 2]
PRISM = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (0, 3), (1, 4), (2, 5)]


@pytest.mark.slow
def test_a_box_is_as_deep_in_the_prisms_as_every_direction_says(x64):
    """The deepest of all, and the contacts: those of prisms that it overlaps, and none without."""
    z, half, base = 0.2 * HILLS, np.array([1.0, 0.8]), 0.1
    field = Heights(jnp.asarray(z), jnp.asarray(half), jnp.asarray(base))
    x, y = np.linspace(-1, 1, 11), np.linspace(-0.8, 0.8, 9)
    prisms = []
    for i in range(8):
        for j in range(10):
            at = lambda di, dj, i=i, j=j: [x[j + dj], y[i + di], z[i + di, j + dj]]
            for three in (((1, 0), (0, 0), (1, 1)), ((0, 0), (0, 1), (1, 1))):
                top = np.array([at(*k) for k in three])
                prisms.append(np.concatenate([top, [[*k[:2], -base] for k in top]]))
    still = Shape(jnp.zeros(3), jnp.eye(3), jnp.zeros(3))
    size = np.array([0.1, 0.12, 0.15])

    @jax.jit
    def met(pos, turn):
        shape = Shape(pos, turn, size)
        found, beyond = touch_heights("box", still, shape, field, hull("box", shape), (5, 5, 48))
        return found.dist, beyond

    rng, checked = np.random.default_rng(1), 0
    for _ in range(60):
        pos = rng.uniform([-1.05, -0.85, 0.0], [1.05, 0.85, 0.4])
        turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        dist, beyond = met(pos, turn)
        assert int(beyond) == 0
        box = pos + (CORNERS * size) @ turn.T
        deep = np.array([overlap(prism, box) for prism in prisms])
        assert (np.sum(dist < 0) >= np.sum(deep > 1e-6)) and (np.sum(dist < 0) > 0) == (
            deep.max() > 0
        )
        if deep.max() > 1e-6:
            assert float(-jnp.min(dist)) == pytest.approx(deep.max(), abs=1e-7)
            checked += 1
    assert checked > 25


CUBE = " ".join(f"{0.1 * a} {0.1 * b} {0.05 * c}" for a, b, c in CORNERS)
SLIDES = """<mujoco><option cone="elliptic" timestep=".002"/><asset><mesh name="m" vertex="{cube}"/>
<hfield name="h" nrow="9" ncol="17" size="2 1 .8 .1" elevation="{z}"/></asset><worldbody>
<geom type="hfield" hfield="h"/><body pos="{x} 0 {up}" euler="0 {lean} 0">
<freejoint/><geom {shape} friction="1" density="500"/></body></worldbody></mujoco>"""


@pytest.mark.slow
@pytest.mark.parametrize("shape", ['type="box" size=".1 .1 .05"', 'type="mesh" mesh="m"'])
def test_a_box_lies_and_slides_on_a_slope_of_heights_by_coulombs_law(shape, x64):
    """A rise of 0.2: with a friction above it stays, below it slides over all edges on the way.

    Speed and place of a block after half a second, and no turning: a ghost of an inner edge would
    stop or tip it.
    """
    slope = 0.2
    lean = np.arctan(slope)
    z = " ".join(map(str, np.tile(np.linspace(0, 1, 17), (9, 1)).ravel()))
    up = 0.4 + 0.5 * slope + 0.049 / np.cos(lean)
    text = SLIDES.format(cube=CUBE, z=z, shape=shape, lean=-np.rad2deg(lean), x=0.5, up=up)
    model = rigid.load(text, dtype=jnp.float64, contacts=32)
    start = model.init()

    @jax.jit
    def slid(friction):
        geoms = dataclasses.replace(model.geoms, friction=friction * model.geoms.friction)
        slippery = dataclasses.replace(model, geoms=geoms)
        end, beyond = rollout(
            slippery.step, start, 250, measure=lambda s: slippery.forward(s).beyond
        )
        return end, jnp.sum(beyond)

    for friction in (0.5, 0.05):
        end, beyond = slid(friction)
        assert int(beyond) == 0
        want = 0.5 * max(9.81 * (np.sin(lean) - friction * np.cos(lean)), 0.0)
        speed = -(end.qvel[0] * np.cos(lean) + end.qvel[2] * np.sin(lean))
        assert float(speed) == pytest.approx(want, abs=0.02 * want + 2e-3)
        assert np.abs(np.asarray(end.qpos[3:] - start.qpos[3:])).max() < 5e-3


def test_a_signed_distance_on_a_height_field_is_refused_by_name():
    text = (
        f'<mujoco><asset><mesh name="ring" vertex="{CUBE}"/>'
        '<hfield name="hill" nrow="2" ncol="2" size="1 1 1 .1"/></asset><worldbody>'
        '<geom name="hill" type="hfield" hfield="hill"/><body><freejoint/>'
        '<geom name="ring" type="mesh" mesh="ring"/></body></worldbody></mujoco>'
    )
    with pytest.raises(ValueError, match=r"a hfield and a sdf \(geoms hill and ring\) is not sim"):
        rigid.load(text, sdf={"ring": 0.02})
