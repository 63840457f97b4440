"""Contacts of any two convex shapes: against dense directions, differences and MuJoCo."""

import functools

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from jaxgpu.physics import rigid
from jaxgpu.physics.rigid.collision import FAR, Shape, expansion, flat_faces
from jaxgpu.physics.rigid.collision.convex import _least_curvature, _newton_step, hull_hull
from jaxgpu.physics.rigid.collision.hull import hull

COUNT = 64
OPTIONS = {"xla_backend_optimization_level": 0}  # compiled once and run once
CLOUD = np.random.default_rng(5).normal(size=(30, 3))
CLOUD *= [0.2, 0.3, 0.35] / np.linalg.norm(CLOUD, axis=1)[:, None]
PAIRS = [
    ("cylinder", "cylinder"),
    ("cylinder", "box"),
    ("cylinder", "mesh"),
    ("ellipsoid", "cylinder"),
    ("ellipsoid", "ellipsoid"),
    ("ellipsoid", "mesh"),
    ("sphere", "mesh"),
    ("capsule", "mesh"),
    ("box", "mesh"),
    ("mesh", "mesh"),
]
# The reference: the farthest point along directions [N, 3] of shapes in their own axes.
FARTHEST = {
    "sphere": lambda s, n: s[0] * n,
    "capsule": lambda s, n: s[0] * n + s[1] * np.sign(n[:, 2:]) * [0, 0, 1],
    "ellipsoid": lambda s, n: s**2 * n / np.linalg.norm(s * n, axis=1, keepdims=True),
    "box": lambda s, n: s * np.sign(n),
    "cylinder": lambda s, n: (
        s[0] * n * [1, 1, 0] / np.linalg.norm(n[:, :2], axis=1, keepdims=True)
        + s[1] * np.sign(n[:, 2:]) * [0, 0, 1]
    ),
    "mesh": lambda s, n: CLOUD[np.argmax(n @ CLOUD.T, 1)],
}


CUBE = 0.1 * np.array([[x, y, z] for x in (-1.0, 1) for y in (-1, 1) for z in (-1, 1)])
MESHES = {"mesh": CLOUD, "cube": CUBE}


def make_hull(kind, shape, count=0):
    mesh = MESHES.get(kind)
    return hull(kind, shape, mesh if mesh is None else jnp.asarray(mesh, shape.pos.dtype), count)


@functools.cache
def poses():
    """Sample two shapes per case, separate and overlapping, at all depths."""
    rng = np.random.default_rng(1)
    pos = rng.normal(size=(COUNT, 2, 3)) * 0.25
    turns = np.linalg.qr(rng.normal(size=(COUNT, 2, 3, 3)))[0]
    turns[..., 0] *= np.linalg.det(turns)[..., None]
    return Shape(pos, turns, rng.uniform(0.1, 0.5, (COUNT, 2, 3)))


@functools.cache
def face_pairs():
    """Sample ellipsoids above and in the upper face of a wide box, all over that face."""
    rng = np.random.default_rng(8)
    turns = np.linalg.qr(rng.normal(size=(COUNT, 2, 3, 3)))[0]
    turns[..., 0] *= np.linalg.det(turns)[..., None]
    place = rng.uniform([-0.5, -0.6, 0.35], [0.5, 0.6, 0.45], (COUNT, 3))  # in the box's axes
    pos = np.stack([np.einsum("nij,nj->ni", turns[:, 1], place), np.zeros((COUNT, 3))], 1)
    sizes = np.array([[0.1, 0.2, 0.15], [0.8, 0.9, 0.3]])
    return Shape(pos, turns, np.broadcast_to(sizes, (COUNT, 2, 3)))


def flat_pairs():
    """Make a shape of half height 0.1 on an equally high cube, over a quarter of it, 1 mm deep."""
    pos = np.array([[[0.1, 0.1, 0.199], [0.0, 0, 0]]])
    return Shape(pos, np.tile(np.eye(3), (1, 2, 1, 1)), np.full((1, 2, 3), 0.1))


@functools.partial(jax.jit, static_argnums=0, compiler_options=OPTIONS)
def contacts(pairs, cases):
    """Return the contacts of `cases` [N, 2] per pair of types, in one batch of convex shapes."""
    return split(batch_contacts(pairs, cases), cases)


def batch_contacts(pairs, cases):
    """Return the contacts of all cases in one row."""

    def side(i):
        parts = []
        for pair, both in zip(pairs, cases):
            put = functools.partial(make_hull, pair[i], count=len(CLOUD))
            shape = jax.tree.map(lambda a: jnp.asarray(a)[:, i], both)
            parts.append(jax.vmap(put)(shape))
        return jax.tree.map(lambda *a: jnp.concatenate(a), *parts)

    return jax.vmap(hull_hull)(side(0), side(1))


def split(found, cases):
    ends = np.cumsum([len(both.pos) for both in cases])[:-1]
    parts = [jnp.split(a, ends) for a in jax.tree.leaves(found)]
    return [jax.tree.unflatten(jax.tree.structure(found), part) for part in zip(*parts)]


@functools.cache
def touches():
    """Return the contacts of all cases, by pair of types, from one program."""
    cases = {pair: poses() for pair in PAIRS}
    cases |= {("ellipsoid", "box"): face_pairs()}
    cases |= {("cube", "cube"): flat_pairs(), ("cylinder", "cube"): flat_pairs()}
    with jax.enable_x64(True):
        found = contacts(tuple(cases), tuple(cases.values()))
    return dict(zip(cases, jax.tree.map(np.asarray, found)))


def overlap(kinds, both, n):
    """Return the overlap of two shapes along directions [N, 3] from the first to the second."""
    total = n @ (both.pos[0] - both.pos[1])
    for i, (kind, sign) in enumerate(zip(kinds, (1, -1))):
        local = sign * n @ both.rot[i]
        total = total + np.sum(local * FARTHEST[kind](both.size[i], local), 1)
    return total


def height_over(kind, both, i, point, n):
    """Return the maximum height of a point over shape `i` along directions [N, 3]; <= 0 inside."""
    local = n @ both.rot[i]
    edge = np.sum(local * FARTHEST[kind](both.size[i], local), 1)
    return np.max(n @ (point - both.pos[i]) - edge)


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_no_direction_has_a_smaller_overlap(pair):
    """The distance is the overlap along the normal, and 4,000 directions have none smaller.

    Half of it along the normal on either side of the contact are a point of one shape and one of
    the other. They are on the surfaces, so no direction has them outside.
    """
    got = touches()[pair]
    rng = np.random.default_rng(0)
    ways = rng.normal(size=(4000, 3))
    ways /= np.linalg.norm(ways, axis=1)[:, None]
    for i in range(COUNT):
        both = jax.tree.map(lambda a, i=i: a[i], poses())
        normal = got.frame[i, 0, :1]
        along = overlap(pair, both, normal)[0]
        # Directions are close to the normal, and all around.
        near = normal + 1e-3 * ways[:500]
        near /= np.linalg.norm(near, axis=1)[:, None]
        assert along <= overlap(pair, both, np.concatenate([ways, near])).min() + 1e-9
        # No position is counted twice: edges cross in one point, from whichever sides it is found.
        places = got.pos[i][got.dist[i] < FAR]
        apart = np.linalg.norm(places[:, None] - places[None], axis=-1)
        assert np.all(apart[~np.eye(len(places), dtype=bool)] > 1e-4)
        single = np.sum(got.dist[i] < FAR) == 1
        if single:
            assert float(got.dist[i, 0]) == pytest.approx(-along, abs=1e-9)
            around = np.concatenate([ways, near, normal])
            for side, sign in enumerate((1, -1)):
                point = got.pos[i, 0] - sign * got.dist[i, 0] / 2 * normal[0]
                assert abs(height_over(pair[side], both, side, point, sign * around)) < 1e-9
        else:  # a corner of what two flats share, which are within 0.0016 of one another
            assert float(got.dist[i].min()) == pytest.approx(-along, abs=2e-3)


def test_an_ellipsoid_touches_a_wide_face_below_its_deepest_point():
    """Test all over the face, for any three of its corners at which the polytope ends."""
    got, both = touches()["ellipsoid", "box"], face_pairs()
    pos, turns, (size, half) = both.pos, both.rot, both.size[0]
    up = turns[:, 1, :, 2]
    down = -np.einsum("nji,nj->ni", turns[:, 0], up)
    lowest = size**2 * down / np.linalg.norm(size * down, axis=1, keepdims=True)
    lowest = pos[:, 0] + np.einsum("nij,nj->ni", turns[:, 0], lowest)
    dist = np.sum(lowest * up, 1) - half[2]
    np.testing.assert_allclose(got.dist[:, 0], dist, atol=1e-9)
    np.testing.assert_allclose(got.pos[:, 0], lowest - dist[:, None] / 2 * up, atol=1e-6)


@pytest.mark.parametrize("kind", ["cube", "cylinder"])
def test_flats_share_four_points(kind):
    """Test the corners of a quarter of a cube, and points of a cap, on another cube."""
    found = jax.tree.map(lambda a: a[0], touches()[kind, "cube"])
    near = found.dist < 0
    assert near.sum() == 4
    np.testing.assert_allclose(found.dist[near], -0.001, atol=1e-8)
    if kind == "cube":
        corners = sorted(map(tuple, np.round(found.pos[near], 6)))
        assert corners == [(0, 0, 0.0995), (0, 0.1, 0.0995), (0.1, 0, 0.0995), (0.1, 0.1, 0.0995)]


@pytest.mark.slow
def test_derivatives_are_those_of_differences(x64):
    """Test distance, position and normal of the deepest contact, where no kink is nearby."""
    rng = np.random.default_rng(0)
    weights = rng.normal(size=7)

    def total(cases):
        got = batch_contacts(PAIRS, cases)
        parts = jnp.concatenate([got.dist[:, :1], got.pos[:, 0], got.frame[:, 0, 0]], 1)
        value = parts @ weights
        return jnp.sum(value), (value, got.dist[:, 1] > FAR / 2)

    both = (poses(),) * len(PAIRS)
    ways = jax.tree.map(lambda a: rng.normal(size=a.shape), both)
    run = jax.jit(jax.value_and_grad(total, has_aux=True), compiler_options=OPTIONS)
    rows = lambda a: np.asarray(a).reshape(len(PAIRS), COUNT)
    h, values = 1e-6, []
    for s in (1, -1, 0):
        (_, (value, single)), slopes = run(
            jax.tree.map(lambda a, w, s=s: a + s * h * w, both, ways)
        )
        values.append(rows(value))
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(slopes))
    dots = jax.tree.map(lambda g, w: np.sum(g * w, tuple(range(1, w.ndim))), slopes, ways)
    slope = np.stack([sum(jax.tree.leaves(pair)) for pair in dots])
    high, low, middle = values
    smooth = (np.abs(high + low - 2 * middle) < 1e-8 * (1 + np.abs(slope))) & rows(single)
    assert (smooth.sum(1) > COUNT / 2).all()
    error = np.abs(slope - (high - low) / (2 * h)) / (1 + np.abs(slope))
    assert error[smooth].max() < 1e-4


CORNERS = " ".join(f"{x} {y} {z}" for x in (-1, 1) for y in (-1, 1) for z in (-1, 1))
TURNS = np.pi / 12 * np.arange(24)
EDGE = zip(np.cos(TURNS), np.sin(TURNS))
DRUM = " ".join(f"{x:.6f} {y:.6f} {z}" for x, y in EDGE for z in (-1, 1))
ASSET = f"""<asset><mesh name="cube" vertex="{CORNERS}" scale=".1 .1 .1"/>
<mesh name="drum" vertex="{DRUM}" scale=".1 .1 .1"/></asset>"""
SHAPES = {
    "mesh": '<geom type="mesh" mesh="cube"/>',
    "cylinder": '<geom type="cylinder" size=".1 .1"/>',
}


@pytest.mark.slow
def test_a_pile_of_flats_stays_where_it_is():
    """Meshes with 24 and 4 corners per flat and a cylinder are on a plane and on one another."""
    drum = '<geom type="mesh" mesh="drum"/>'
    pile = [drum, drum, SHAPES["mesh"], SHAPES["cylinder"]]
    bodies = "".join(
        f'<body pos="{0.02 * (i % 2)} 0 {0.1 + 0.2 * i}"><freejoint/>{geom}</body>'
        for i, geom in enumerate(pile)
    )
    text = f"""<mujoco><option timestep="0.004"/>{ASSET}<worldbody>
    <geom type="plane" size="1 1 1"/>{bodies}</worldbody></mujoco>"""
    model = rigid.load(text, iterations=20)
    run = lambda s: jax.lax.fori_loop(0, 500, lambda _, s: model.step(s), s)
    end = jax.jit(run, compiler_options=OPTIONS)(model.init())
    np.testing.assert_allclose(end.qpos, model.qpos0, atol=5e-3)
    assert np.abs(end.qvel).max() < 1e-2 and int(end.overflow) == 0


HANDS = """<mujoco><option cone="elliptic"/>
<asset><mesh name="stone" vertex="{points}"/></asset>
<worldbody><geom type="plane" size="2 2 .1"/>
<body pos="0 0 .3"><freejoint/><geom type="mesh" mesh="stone" mass="1"/></body>
<body pos=".3 .1 .5"><joint axis="0 1 0"/><joint type="slide" axis="1 0 0"/>
<geom type="cylinder" size=".1 .2"/></body>
<body pos="-.2 .1 .6"><freejoint/><geom type="ellipsoid" size=".1 .15 .2"/></body>
</worldbody></mujoco>"""


def deepest_rows(pairs, dists, normals):
    """Return the distance and the normal of the deepest contact of each pair."""
    rows = sorted(zip(pairs, dists, normals), key=lambda row: -row[1])
    return {tuple(sorted(pair)): (dist, normal) for pair, dist, normal in rows}


@pytest.mark.slow
def test_accelerations_agree_with_c(x64):
    """Compare the deepest contacts, and all accelerations where both have equally many contacts.

    For a mesh on a plane, MuJoCo selects other corners in addition to the lowest one. A cylinder
    along a face has one contact there without perturbations, which its tolerances require.
    """
    text = HANDS.format(points=" ".join(str(x) for x in CLOUD.ravel()))
    c = mujoco.MjModel.from_xml_string(text)
    c.opt.tolerance, c.opt.iterations, c.opt.ls_iterations = 0, 200, 100
    c.opt.ccd_tolerance, c.opt.ccd_iterations = 1e-12, 200
    c.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_MULTICCD)
    d, model = mujoco.MjData(c), rigid.load(c, dtype=jnp.float64, iterations=20)

    @functools.partial(jax.jit, compiler_options=OPTIONS)
    def forward(q, v):
        got = model.forward(model.init(q, v))
        return got.contacts, got.qacc

    rng, compared = np.random.default_rng(0), 0
    for _ in range(60):
        q = c.qpos0 + 0.15 * rng.normal(size=c.nq)
        mujoco.mj_normalizeQuat(c, q)
        mujoco.mj_resetData(c, d)
        d.qpos[:], d.qvel[:] = q, rng.normal(size=c.nv)
        mujoco.mj_forward(c, d)
        (found,), qacc = jax.tree.map(np.asarray, forward(q, d.qvel))
        acts = found.dist < found.margin
        ours = deepest_rows(found.geoms[acts].tolist(), found.dist[acts], found.frame[acts, 0])
        theirs = deepest_rows(d.contact.geom.tolist(), d.contact.dist, d.contact.frame[:, :3])
        assert ours.keys() == theirs.keys()
        for pair, (dist, normal) in theirs.items():
            assert ours[pair][0] == pytest.approx(dist, abs=1e-6)
            assert abs(abs(normal @ ours[pair][1]) - 1) < 1e-5
        depths = [np.sort(found.dist[acts]), np.sort(d.contact.dist)]
        if len(depths[0]) == len(depths[1]) and np.allclose(*depths, atol=1e-5):
            compared += d.ncon > 0
            assert np.abs(qacc - d.qacc).max() < 1e-3 * np.abs(d.qacc).max()
    assert compared > 15


shared = jax.jit(flat_faces.flat_contacts, compiler_options=OPTIONS)


@pytest.mark.slow
@pytest.mark.parametrize("tilt, count", [(0.0, 4), (1.5e-3, 4), (1.7e-3, 1)])
def test_a_can_stands_on_a_box_by_four_points_of_its_rim(tilt, count, x64):
    """Faces within 1.6e-3 rad count as aligned; otherwise the contact is the lowest point."""
    c, s, gap = np.cos(tilt), np.sin(tilt), 0.01
    turn = np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])
    put = lambda z, rot, *size: Shape(*map(jnp.asarray, ([0, 0, z], rot, np.array(size))))
    can = make_hull("cylinder", put(0.2 + gap, turn, 0.1, 0.2, 0.0))
    box = make_hull("box", put(-0.5, np.eye(3), 0.5, 0.5, 0.5))
    found = shared(can, box, jnp.array([0.0, 0, -1]))
    there = np.asarray(found.dist) < FAR
    assert there.sum() == count
    at, slack = np.asarray(found.pos)[there], 0.11 * tilt + 1e-12
    np.testing.assert_allclose(np.linalg.norm(at[:, :2], axis=1), 0.1, atol=0.21 * tilt + 1e-9)
    np.testing.assert_allclose(found.dist[there], gap, atol=slack)
    np.testing.assert_allclose(at[:, 2], -0.2 - gap / 2, atol=slack)
    if count == 4:  # the axis is within them
        angles = np.sort(np.arctan2(at[:, 1], at[:, 0]))
        assert np.diff(angles, append=angles[0] + 2 * np.pi).max() < np.pi


@pytest.mark.slow
def test_boxes_are_nearest_across_the_gap_and_overlap_least_along_an_axis(x64):
    """Check parallel boxes: the vector of gaps, or the axis of minimum overlap."""
    rng = np.random.default_rng(0)
    sizes = rng.uniform(0.1, 0.5, (40, 2, 3))
    reach, sign = sizes.sum(1), rng.choice([-1.0, 1.0], (40, 3))
    gaps = rng.uniform(-1, 1, (40, 3)) * np.repeat([0.3, -0.9], 20)[:, None] * reach
    gaps[20:] = -abs(gaps[20:])  # half of them overlap along every axis
    gaps[:20, 0] = abs(gaps[:20, 0])  # and half of them are apart along one at least
    stacked = np.stack([np.zeros((40, 3)), (reach + gaps) * sign], 1)

    @functools.partial(jax.jit, compiler_options=OPTIONS)
    @jax.vmap
    def normal(pos, size):
        one, two = (make_hull("box", Shape(pos[i], jnp.eye(3), size[i])) for i in (0, 1))
        return expansion.nearest_face(one, two).normal

    got = normal(jnp.asarray(stacked), jnp.asarray(sizes))
    least = np.eye(3)[np.argmax(gaps, 1)]
    want = sign * np.where(gaps.max(1)[:, None] > 0, np.maximum(gaps, 0), least)
    want /= np.linalg.norm(want, axis=1)[:, None]
    np.testing.assert_allclose(got, want, atol=1e-12)


def test_newtons_method_squares_the_error_of_a_normal(x64):
    """Two ellipsoids are separate along an axis of both, across which their radii differ."""
    put = lambda x, *size: Shape(jnp.array([x, 0.0, 0.0]), jnp.eye(3), jnp.array(size))
    one, two = (
        make_hull("ellipsoid", a) for a in (put(0.0, 0.3, 0.1, 0.2), put(1.0, 0.2, 0.5, 0.4))
    )
    newton = jax.jit(_newton_step, compiler_options=OPTIONS)
    for off in (1e-2, 1e-4):
        n = np.array([1.0, 0.6 * off, -0.8 * off])
        n /= np.linalg.norm(n)
        across = np.cross(n, [0.0, 0.0, 1.0]) / np.hypot(n[0], n[1])
        basis = jnp.asarray(np.stack([across, np.cross(n, across)]))
        moved, fit = newton(one, two, one.pos - two.pos, jnp.asarray(n), basis)
        assert fit and np.abs(moved[1:]).max() < 10 * off**2


def test_the_least_curvature_is_the_smaller_eigenvalue(x64):
    for H in np.random.default_rng(1).normal(size=(5, 2, 2)):
        H = H + H.T
        np.testing.assert_allclose(_least_curvature(H), np.linalg.eigvalsh(H)[0], rtol=1e-12)
