"""Forces of pairs on other bodies, against the sum over all single stars."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from nbody_inputs import halves

from jaxgpu.physics.nbody.clusters import Hermite, Pairing
from jaxgpu.physics.nbody.clusters.binary import forces, ks_pairs, members
from jaxgpu.physics.nbody.clusters.blocks import predict

M = np.array([0.3, 0.2, 0.4, 0.1, 0.25])
PAIRING = Pairing(close=0.02, weak=1e-6, strong=10.0, slots=3)
SPEC, NOW = Hermite(pairing=PAIRING), 1.0
RUN_ONCE = {"xla_backend_optimization_level": 0}


def two_pairs(seed):
    """Make two pairs, stars 0, 1 and 2, 3, about ten semi-major axes apart; star 4 is single."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(6, 5)) * 0.01
    x[0] += [0, 0, 0.1, 0.1, 0.3]
    for k in (0, 2):
        way, _ = np.linalg.qr(random.normal(size=(3, 3)))
        apart, speed = 0.01 * way[0], 0.8 * np.sqrt((M[k] + M[k + 1]) / 0.01) * way[1]
        x[:, k + 1] = x[:, k] + np.concatenate([apart, speed])
    return x


@partial(jax.jit, compiler_options=RUN_ONCE)
def init_pairs(x):
    """Return the regularised pairs and the predicted states of all stars."""
    state = SPEC.init(*halves(x), M)
    return state.pairs, predict(SPEC, state.stars, jnp.asarray(NOW))


@partial(jax.jit, compiler_options=RUN_ONCE)
def pair_forces(held, sources, disturbed, due, index, place):
    """Return forces on stars `index` and massless bodies at `place`, and the stars' weights."""
    tide = jnp.where(disturbed, held.batch.tide, 0)
    held = replace(held, columns=ks_pairs.pack_pairs(replace(held.batch, tide=tide)))
    taken = held.first < 5
    relative = members.relative_states(SPEC, held, jnp.asarray(NOW), taken)
    taken = members.members(SPEC, held, sources, relative, taken)
    acting, on_centres = forces.on_due_centers(SPEC, held, sources, due, taken)
    on_stars = forces.on_stars(held, sources, acting, on_centres, index, place)
    return on_stars, forces.on_tracers(held, sources, taken, place), held.weights


def direct_sum(x, k):
    """Return acceleration and jerk of star k by all others except its partner."""
    total = np.zeros(6, np.longdouble)
    for n in range(5):
        if n == k or {n, k} in ({0, 1}, {2, 3}):
            continue
        d, w = x[:3, n] - x[:3, k], x[3:, n] - x[3:, k]
        r = np.sqrt(np.longdouble(d @ d))
        total += np.concatenate([M[n] * d / r**3, M[n] * (w - 3 * (d @ w) * d / r**2) / r**3])
    return total


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_near_pairs_are_seen_as_two_and_centres_feel_the_mean(x64, seed):
    x = two_pairs(seed)
    held, sources = init_pairs(x)
    assert np.sum(np.asarray(held.first) < 5) == 2
    index = np.arange(5, dtype=np.int32)
    f, _, weight = map(
        np.asarray, pair_forces(held, sources, True, np.ones(5, bool), index, sources)
    )
    single = [direct_sum(x, k) for k in range(5)]
    want = {4: single[4]}
    for q in range(2):
        i, j = int(held.first[q]), int(held.batch.second[q])
        want[i] = (M[i] * single[i] + M[j] * single[j]) / (M[i] + M[j])
    for k, value in want.items():
        np.testing.assert_allclose(f[:, k], value.astype(float), rtol=1e-9)
    force = np.array([weight[k] * f[:3, k] for k in want])
    assert np.abs(force.sum(0)).max() < 1e-11 * np.abs(force).max()  # Newton's third law


@pytest.mark.slow
def test_slots_at_once_are_what_they_are_one_by_one(x64):
    """Test the functions for accelerators, with one of two pairs requested and a free slot."""
    held, sources = init_pairs(two_pairs(0))

    @partial(jax.jit, compiler_options=RUN_ONCE)
    def forms(held, sources):
        now, taken = jnp.asarray(NOW), held.is_occupied
        lanes = members.states_by_lanes(SPEC, held, now, taken)
        whole = members.all_states(SPEC, held, now)
        of_all = members.members(SPEC, held, sources, lanes, taken)
        found = []
        for asked in (taken & (held.first != held.first[0]), jnp.zeros(3, bool)):
            given = held, asked, sources, of_all
            found.append((forces.on_centers_serial(*given), forces.on_centers_batch(*given)))
        return taken, lanes, whole, found

    taken, lanes, whole, found = jax.tree.map(np.asarray, forms(held, sources))
    np.testing.assert_allclose(whole[:, taken], lanes[:, taken], rtol=1e-14)
    for turns, once in found:
        np.testing.assert_allclose(once, turns, rtol=1e-13)
    assert np.abs(found[0][0]).sum() > 0


def test_weak_pairs_are_points_for_stars_and_two_for_the_massless(x64):
    x = two_pairs(0)
    held, sources = init_pairs(x)
    at = np.array([[0.03, 0.05, 0.02, 0.0, 0.0, 0.0]]).T
    place, index = np.repeat(at, 5, 1), np.full(5, 4, np.int32)  # in the program of the test above
    point_pull = lambda where, m: np.sum(
        m * (where[:3] - at[:3]) / np.linalg.norm(where[:3] - at[:3], axis=0) ** 3, axis=1
    )
    found = pair_forces(held, sources, False, np.zeros(5, bool), index, place)
    point, two, weight = map(np.asarray, found)
    point, two = point[:3, 0], two[:3, 0]
    np.testing.assert_allclose(point, point_pull(np.asarray(sources), weight), rtol=1e-12)
    np.testing.assert_allclose(two, point_pull(x, M), rtol=1e-9)
    assert np.abs(two - point).max() > 1e-6 * np.abs(two).max()


def unit_pull(x, source):
    """Return acceleration and jerk [6] at x [6] by a unit mass; zero at the same position."""
    d, w = source[:3] - x[:3], source[3:] - x[3:]
    r = np.linalg.norm(d)
    if r == 0:
        return np.zeros(6)
    return np.concatenate([d / r**3, w / r**3 - 3 * (d @ w) * d / r**5])


def three_pairs(seed):
    """Make members of three pairs, the third of zero reach, and seven positions with stars."""
    random = np.random.default_rng(seed)
    m = np.array([[0.3, 0.7, 0.2], [0.5, 0.1, 0.6]])
    one, two = random.normal(size=(2, 6, 3))
    centre = (m[0] * one + m[1] * two) / m.sum(0)
    reach, first = np.array([1.3, 2.1, 0.0]), np.array([4, 0, 2])
    x = 0.6 * random.normal(size=(6, 7))
    x[:, 0], x[:, 1] = one[:, 1], centre[:, 0]  # a member feels the other; 4 is the first's centre
    index = np.array([-1, 4, 0, 2, 3, -1, 4])
    given = [first.astype(np.int32), one, two, centre, m, reach]
    return members.Members(*map(jnp.asarray, given)), x, index


corrections = jax.jit(forces.resolved_correction, compiler_options=RUN_ONCE)


@pytest.mark.parametrize("seed", range(3))
def test_within_reach_two_stars_stand_for_their_centre(x64, seed):
    """Check the correction to the pull of centres: m1 and m2 in place, minus both at the centre.

    It is zero outside the reach of a pair, and at its own centre.
    """
    pairs, x, index = three_pairs(seed)
    first, one, two, centre, m, reach = map(np.asarray, jax.tree.leaves(pairs))
    want, near = np.zeros((6, 7)), 0
    for k in range(7):
        for s in range(3):
            away = np.linalg.norm(centre[:3, s] - x[:3, k])
            if away < reach[s] and index[k] != first[s]:
                both = m[0, s] * unit_pull(x[:, k], one[:, s]) + m[1, s] * unit_pull(
                    x[:, k], two[:, s]
                )
                want[:, k] += both - m[:, s].sum() * unit_pull(x[:, k], centre[:, s])
                near += 1
    assert 3 < near < 11
    got = corrections(x, index.astype(np.int32), pairs)
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)


def test_only_pairs_that_are_perturbed_and_not_slowed_act_as_two_on_stars(x64):
    """Test four pairs and a free slot: perturbed, calm, slowed down, perturbed; free.

    The centre of a perturbed pair that is due has the mean force on its members.
    """
    pairing = Pairing(close=1e-2, weak=1e-6, slots=5)
    none = jax.jit(ks_pairs.init_pairs)(pairing, jnp.full(10, 0.1))
    batch = replace(
        none.batch,
        first=jnp.array([1, 3, 5, 7, 10], jnp.int32),
        tide=jnp.array([2e-6, 0.5e-6, 2e-6, 1e-3, 1e-3]),
        slowdown=jnp.array([1.0, 1.0, 4.0, 1.0, 1.0]),
        m=jnp.tile(jnp.array([[0.1], [0.2]]), 5),
        share=jnp.tile(jnp.array([[0.25], [0.75]]), 5),
    )
    held = replace(none, columns=ks_pairs.pack_pairs(batch))
    acting = ks_pairs.is_resolved(pairing, held)
    np.testing.assert_array_equal(acting, [True, False, False, True, False])
    x = np.random.default_rng(3).normal(size=(3, 6, 10))
    one, two, centre = (jnp.asarray(q[:, :5]) for q in x[:3])
    of_all = members.Members(held.first, one, two, centre, batch.m, jnp.arange(1.0, 6.0))
    due = jnp.zeros(10, bool).at[jnp.array([1, 3])].set(True)
    on_due = jax.jit(forces.on_due_centers, compiler_options=RUN_ONCE)
    taken, f = on_due(Hermite(pairing=pairing), held, jnp.asarray(x[0]), due, of_all)
    np.testing.assert_array_equal(taken.reach, [1.0, 0.0, 0.0, 4.0, 0.0])
    want = np.zeros(6)
    for share, place in ((0.25, x[0, :, 0]), (0.75, x[1, :, 0])):
        want += share * sum(0.1 * unit_pull(place, x[0, :, n]) for n in range(10) if n != 1)
        assert np.linalg.norm(x[2, :3, 3] - place[:3]) < 4  # so that the fourth acts as two
        both = 0.1 * unit_pull(place, x[0, :, 3]) + 0.2 * unit_pull(place, x[1, :, 3])
        want += share * (both - 0.3 * unit_pull(place, x[2, :, 3]))
    np.testing.assert_allclose(f[:, 0], want, rtol=1e-9)
    np.testing.assert_array_equal(f[:, 1:], 0)  # they are not due, or act as points
