"""Contacts of simple shapes against MuJoCo's C library, and their derivatives."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from shape_pairs import Pair

from jaxgpu.physics.rigid.collision import FAR, KERNELS, Collision, Shape, batches
from jaxgpu.physics.rigid.collision.convex import overlap
from jaxgpu.physics.rigid.collision.kernels import CONVEX_PAIR, PLANE_MESH

# Rotations without rounding: for shapes that are exactly along, on and in one another.
SQUARE = np.array(
    [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0.5, 0.5, 0.5, 0.5], [0.5, -0.5, -0.5, -0.5]]
)
PAIRS = [pair for pair in KERNELS if pair != ("capsule", "cylinder")]  # exact in C
# Pairs whose derivatives compile in a second.
FEW = [("sphere", "sphere"), ("sphere", "capsule")]
COUNT = 256
PLANE = np.array([5.0, 5.0, 0.1])
OPTIONS = {"xla_backend_optimization_level": 0}  # compiled once and run once


@functools.cache
def poses(one, two):
    """Sample sizes, positions and quaternions of touching pairs: half at random, half aligned."""
    rng = np.random.default_rng(3)
    size = rng.uniform(0.1, 0.6, (COUNT, 2, 3))
    pos = rng.normal(size=(COUNT, 2, 3)) * 0.2
    turn = rng.normal(size=(COUNT, 2, 4))
    turn /= np.linalg.norm(turn, axis=-1, keepdims=True)
    half = COUNT // 2
    size[half:] = rng.choice([0.25, 0.5, 1.0], (half, 2, 3))
    pos[half:] = rng.choice([-0.5, -0.25, -0.125, 0, 0.125, 0.25, 0.5], (half, 2, 3))
    pos[half : half + 20, 1] = pos[half : half + 20, 0]
    turn[half:] = SQUARE[rng.integers(0, len(SQUARE), (half, 2))]
    if one == "plane":
        size[:, 0] = PLANE
    return size, pos, turn


@functools.cache
def c_contacts(one, two):
    """Return the shapes in MuJoCo's poses, and its contacts, by pair."""
    pair = Pair(one, two, margin=0.02)
    placed, rows = zip(*(pair.place(*pose) for pose in zip(*poses(one, two))))
    return [np.array(part) for part in zip(*placed)], rows


def shapes(arrays):
    """Return the two shapes of many pairs."""
    return tuple(Shape(*(part[:, i] for part in arrays)) for i in (0, 1))


@functools.cache
def program(pair):
    return jax.jit(jax.vmap(KERNELS[pair].touch), compiler_options=OPTIONS)


def error(got: Collision, i, rows):
    """Return the maximum difference of contacts within the margin, in the best order."""
    left = [k for k in range(len(got.dist[i])) if got.dist[i, k] <= 0.02]
    if len(left) != len(rows):
        return np.inf
    worst = 0.0
    for dist, pos, frame in rows:
        apart = [
            max(
                abs(dist - got.dist[i, k]),
                np.abs(pos - got.pos[i, k]).max(),
                np.abs(frame - got.frame[i, k]).max(),
            )
            for k in left
        ]
        worst = max(worst, min(apart))
        left.pop(int(np.argmin(apart)))
    return worst


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_contacts_are_those_of_mujoco(pair, x64):
    """Compare positions, distances and frames, of shapes at random and exactly aligned."""
    arrays, rows = c_contacts(*pair)
    got = jax.tree.map(np.asarray, program(pair)(*shapes(arrays)))
    errors = [error(got, i, found) for i, found in enumerate(rows)]
    assert max(errors) < 1e-9, (np.argmax(errors), max(errors))
    assert sum(len(found) > 0 for found in rows) > COUNT / 2


def move_along(both, ways, h):
    return jax.tree.map(lambda x, v: x + h * v, both, ways)


def derivatives(pair):
    """Return slopes by reverse mode and by differences along one direction, and curvatures."""
    arrays, _ = c_contacts(*pair)
    both = shapes(arrays)
    rng = np.random.default_rng(0)
    ways = jax.tree.map(lambda x: rng.normal(size=x.shape), both)
    weights = rng.normal(size=(COUNT, KERNELS[pair].points, 13))

    def value(one, two, weights, mask):
        """Return a sum of a kernel's outputs over the rows of a mask, which all touch."""
        got = KERNELS[pair].touch(one, two)
        parts = (got.dist[:, None], got.pos, got.frame.reshape(-1, 9))
        values = jnp.concatenate(parts, -1) * weights
        return jnp.sum(jnp.where(mask[:, None], values, 0)), got.dist < FAR / 2

    slopes = jax.vmap(jax.value_and_grad(value, argnums=(0, 1), has_aux=True))
    run = jax.jit(slopes, compiler_options=OPTIONS)
    near = run(*both, weights, np.ones(weights.shape[:2], bool))[0][1]
    (middle, _), slopes = run(*both, weights, near)
    h = 1e-7
    high, low = (run(*move_along(both, ways, s * h), weights, near)[0][0] for s in (1, -1))
    high, low, middle, slopes = jax.tree.map(np.asarray, (high, low, middle, slopes))
    dots = jax.tree.map(lambda g, v: np.sum(g * v, tuple(range(1, g.ndim))), slopes, ways)
    slope = sum(jax.tree.leaves(dots))
    return slopes, slope, (high - low) / (2 * h), high + low - 2 * middle


@pytest.mark.parametrize(
    "pair",
    [pytest.param(p, marks=() if p in FEW else pytest.mark.slow) for p in KERNELS],
    ids="-".join,
)
def test_derivatives_are_finite_and_those_of_differences(pair, x64):
    """Test random poses: slopes without a kink nearby agree to 5e-6, and all are finite."""
    slopes, slope, difference, bend = derivatives(pair)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(slopes))
    scale = 1 + np.abs(slope)
    smooth = np.abs(bend) < 1e-12 * scale
    random = np.arange(COUNT) < COUNT // 2
    assert (smooth & random).sum() > COUNT // 4
    wrong = np.where(smooth & random, np.abs(slope - difference) / scale, 0)
    assert wrong.max() < 1e-5


def test_a_capsule_touches_a_cylinder_as_in_mujoco(x64):
    """The capsule's axis is outside, and not within 5 degrees of a cap, which MuJoCo rounds.

    MuJoCo iterates to a tolerance of 1e-6.
    """
    pair = ("capsule", "cylinder")
    arrays, rows = c_contacts(*pair)
    got = jax.tree.map(np.asarray, program(pair)(*shapes(arrays)))
    rot, size = arrays[1], arrays[2]
    lean = np.abs(np.sum(rot[:, 0, :, 2] * rot[:, 1, :, 2], -1))
    outside = got.dist[:, 0] > -size[:, 0, 0]
    plain = outside & (lean > 0.1) & (np.arange(COUNT) < COUNT // 2)
    errors = [error(got, i, rows[i]) for i in np.flatnonzero(plain)]
    assert len(errors) > 30 and max(errors) < 1e-5, (len(errors), max(errors))


# Shapes of different types, two planes last; one mesh is used both as mesh and as signed distance.
KINDS = ("box", "sphere", "mesh", "sdf", "capsule", "ellipsoid", "mesh", "box", "plane", "plane")
HULLS = (-1, -1, 1, 0, -1, -1, 0, -1, -1, -1)
# Support of shapes in their own axes along directions [N, 3], and their radii.
REACH = {
    "box": (lambda s, n: np.abs(n) @ s, np.linalg.norm),
    "sphere": (lambda s, n: np.full(len(n), s[0]), lambda s: s[0]),
    "capsule": (lambda s, n: s[0] + s[1] * np.abs(n[:, 2]), lambda s: s[0] + s[1]),
    "ellipsoid": (lambda s, n: np.linalg.norm(s * n, axis=1), np.max),
}


class Gathered:
    """Ten shapes in space, with reference results by NumPy."""

    def __init__(self):
        rng, count = np.random.default_rng(11), len(KINDS)
        turns = np.linalg.qr(rng.normal(size=(count, 3, 3)))[0]
        turns[..., 0] *= np.linalg.det(turns)[:, None]
        pos, size = 0.6 * rng.normal(size=(count, 3)), rng.uniform(0.1, 0.5, (count, 3))
        self.shapes, self.points = Shape(pos, turns, size), 0.4 * rng.normal(size=(2, 9, 3))
        self.corners = {i: self.points[h] @ turns[i].T for i, h in enumerate(HULLS) if h >= 0}

    def reach(self, i, n):
        """Return how far shape `i` extends from its centre along directions [N, 3]."""
        if i in self.corners:
            return np.max(n @ self.corners[i].T, 1)
        return REACH[KINDS[i]][0](self.shapes.size[i], n @ self.shapes.rot[i])

    def radius(self, i):
        if i in self.corners:
            return np.linalg.norm(self.corners[i], axis=1).max()
        return REACH[KINDS[i]][1](self.shapes.size[i])

    def meet(self, kinds, first, second, margin, *most):
        """Return the contacts of pairs, once for each maximum number of tested pairs."""

        @functools.partial(jax.jit, compiler_options=OPTIONS)
        def run(shapes, points, margin):
            none = (-1,) * len(KINDS)
            meshes = batches.Meshes(KINDS, HULLS, points, none, (), none, ())
            batch = batches.Batch(kinds, first, second)
            return [batches.collide_batch(batch, shapes, meshes, margin, n) for n in most]

        return jax.tree.map(np.asarray, run(self.shapes, self.points, margin))


def test_a_batch_asks_its_nearest_pairs_and_gives_each_its_own_shapes(x64, monkeypatch):
    """Test the seven of 20 pairs with the closest bounding balls minus margins, or all.

    A stand-in kernel returns the distances of its shapes along four directions.
    """
    here, rng, most = Gathered(), np.random.default_rng(2), 7
    ways = rng.normal(size=(4, 3))
    ways /= np.linalg.norm(ways, axis=1)[:, None]

    def separation(one, two):
        along = jax.vmap(lambda n: -overlap(one, two, n) - one.radius - two.radius)(ways)
        rows = lambda a: jnp.broadcast_to(a, (4, *a.shape))
        return Collision(along, rows(one.pos), rows(two.rot))

    monkeypatch.setattr(batches, "hull_hull", separation)
    first, second = np.transpose(np.triu_indices(8, 1))[rng.permutation(28)[:20]].T
    margin, pos = rng.uniform(0, 0.5, 20), here.shapes.pos
    near, every = here.meet(CONVEX_PAIR, first, second, margin, most, 20)
    balls = np.array([here.radius(i) for i in range(8)])
    gap = np.linalg.norm(pos[first] - pos[second], axis=1) - balls[first] - balls[second] - margin
    for found, rows in ((near, np.argsort(gap)[:most]), (every, np.arange(20))):
        np.testing.assert_array_equal(found.pair, np.repeat(rows, 4))
        one, two = first[rows], second[rows]
        want = [
            ways @ (pos[b] - pos[a]) - here.reach(a, ways) - here.reach(b, -ways)
            for a, b in zip(one, two)
        ]
        np.testing.assert_allclose(found.touch.dist, np.concatenate(want), atol=1e-12)
        np.testing.assert_array_equal(found.touch.pos, np.repeat(pos[one], 4, 0))
        np.testing.assert_array_equal(found.touch.frame, np.repeat(here.shapes.rot[two], 4, 0))
    assert int(near.beyond) == np.sum(gap < 0) - most > 0 and int(every.beyond) == 0


def test_the_lowest_corner_of_each_mesh_touches_its_own_plane(x64):
    here, first, second = Gathered(), np.array([8, 9, 8, 9, 9]), np.array([3, 2, 6, 6, 3])
    ((touch, pair, beyond),) = here.meet(PLANE_MESH, first, second, np.zeros(5), 2)
    dist = touch.dist.reshape(5, -1)
    np.testing.assert_array_equal(pair, np.repeat(np.arange(5), dist.shape[1]))
    for k, (a, b) in enumerate(zip(first, second)):
        normal, corners = here.shapes.rot[a][:, 2], here.corners[b] + here.shapes.pos[b]
        height = (corners - here.shapes.pos[a]) @ normal
        row = k * dist.shape[1] + np.argmin(dist[k])
        assert float(touch.dist[row]) == pytest.approx(height.min(), abs=1e-12)
        place = corners[np.argmin(height)] - height.min() / 2 * normal
        np.testing.assert_allclose(touch.pos[row], place, atol=1e-12)
        np.testing.assert_allclose(touch.frame[row, 0], normal, atol=1e-12)
    assert int(beyond) == 0
