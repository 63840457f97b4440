"""Every single-objective algorithm converges past failures and updates its state by its paper."""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance import assert_same
from scipy.linalg import expm

from jaxgpu.evolution import Real, minimize, protocol, single
from jaxgpu.evolution.problem import Problem, box
from jaxgpu.evolution.single import lshade
from jaxgpu.evolution.single.adaptation import normal_length, rates

BEST = np.linspace(-2.0, 2.5, 5)
WEIGHTS = 10 ** np.linspace(0.0, 3.0, 5)


def valley(x):
    """Evaluate an ellipsoid of condition 1000 that fails near its optimum, where x_0 < -3."""
    z = x - BEST.astype(x.dtype)
    f = jnp.sum(WEIGHTS.astype(x.dtype) * z * z, keepdims=True)
    return jnp.where(x[0] < -3, jnp.nan, f)


PROBLEM = Problem(box(-5.0, 5.0, 5), valley)
# Spec, generations, and the maximum value allowed over five seeds; first values are about 1e4.
RUNS = {
    "cma": (single.CMAES(8), 300, 1e-8),
    "cma_cholesky": (single.CMAES(8, factor="cholesky"), 300, 1e-8),
    "sep_cma": (single.SepCMAES(8), 300, 1e-8),
    "lm_ma": (single.LMMAES(8), 700, 1e-5),
    "xnes": (single.XNES(9), 500, 1e-8),
    "snes": (single.SNES(9), 500, 1e-8),
    "openes": (single.OpenES(50), 1500, 2.0),
    "pgpe": (single.pgpe(50), 1500, 0.05),
    "restarts": (single.Restarts(8, doublings=2), 400, 1e-7),
    "lshade": (single.LSHADE(8000, pop_size=90, batch_size=5), 1600, 1e-5),
    "pso": (single.PSO(30), 300, 1e-8),
    "cso": (single.CSO(50), 600, 1e-8),
}


def start(spec, problem):
    """Return the initial state, computed by one program."""
    return jax.jit(lambda: spec.init(jax.random.key(0), problem))()


# LLVM skips its optimizations, because compilation is most of the cost of these runs.
@partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
def evolve(spec, keys, generations):
    """Return the best points of several runs, and the next candidates of each."""

    def run_lane(lane):
        key, count = lane
        state = protocol.evolve(spec, PROBLEM, key, count)
        return state.best, spec.ask(state, key)

    return jax.lax.map(run_lane, (keys, generations))


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_converges_past_failures_from_five_seeds(name):
    """The sixth run continues long after it has converged to the last bit; the last one is new."""
    spec, generations, limit = RUNS[name]
    keys = jax.random.split(jax.random.key(0), 5)[np.array([0, 1, 2, 3, 4, 0, 0])]
    best, asked = jax.device_get(evolve(spec, keys, np.array(5 * [generations] + [3000, 0])))
    assert best.f[:5].max() < limit, best.f
    assert (best.violation[:6] == 0).all() and best.f[5] <= best.f[0] < best.f[6]
    z = np.float64(best.x[:6] - np.float32(BEST))
    np.testing.assert_allclose(np.sum(WEIGHTS * z * z, axis=1), best.f[:6], rtol=1e-5)
    assert ((asked >= -5) & (asked <= 5)).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cma", "xnes", "snes", "sep_cma"])
def test_only_the_order_of_the_values_counts(name):
    spec = RUNS[name][0]

    @jax.jit
    def tell_values(f):
        state = spec.init(jax.random.key(1), PROBLEM)
        x = spec.ask(state, jax.random.key(1))
        return replace(spec.tell(state, x, f, jnp.zeros(len(f))), best=None)

    f = np.arange(spec.batch_size, dtype=np.float32)[::-1, None]
    assert_same(tell_values(f), tell_values(1e9 * np.exp(f)))


@pytest.mark.slow
def test_lm_ma_is_finite_where_its_rates_would_exceed_one():
    spec = single.LMMAES(256)
    problem = Problem(box(-5.0, 5.0, 64), lambda x: jnp.sum(x * x, keepdims=True))
    state = jax.jit(protocol.evolve)(spec, problem, jax.random.key(0), 150)
    assert np.isfinite(state.sigma) and state.best.f < 1e-3, state.best.f


@pytest.mark.slow
def test_lm_ma_recovers_the_normal_vectors(x64):
    # The step size and the path depend on the maps: compare with matrices, inverted by LU.
    spec = single.LMMAES(12, 0.01)
    problem = Problem(box(-5.0, 5.0, 6), lambda x: jnp.sum(x**4, keepdims=True))

    @jax.jit
    def last_step(key):
        state = protocol.evolve(spec, problem, key, 20)
        x = spec.ask(state, jax.random.key(7))
        return state, x, spec.tell(state, x, -jnp.arange(12.0)[:, None], jnp.zeros(12))

    state, x, after = last_step(jax.random.key(0))
    maps = np.eye(6)
    for i, v in enumerate(np.asarray(state.vectors)):
        c = 1 / (1.5**i * 6)
        maps = ((1 - c) * np.eye(6) + c * np.outer(v, v)) @ maps
    raw = np.log(13 / 2) - np.log(np.arange(1, 7))
    w = raw / raw.sum()
    y = (np.asarray(x)[::-1][:6] - np.asarray(state.mean)) / (10 * float(state.sigma))
    path = np.sqrt(1 / (w**2).sum()) * np.linalg.solve(maps, w @ y)  # c_sigma = 1
    np.testing.assert_allclose(after.path, path, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("spec", [single.PSO(6), single.CSO(6)])
def test_a_swarm_begins_at_rest_at_generation_zero(spec):
    state = start(spec, PROBLEM)
    assert state.generation == 0 and not state.v.any() and np.isinf(state.violation).all()


def test_lm_ma_draws_through_the_maps_of_the_generations_so_far():
    """Samples are a product of matrices applied to the same normal numbers."""
    spec, key = single.LMMAES(5, 0.01), jax.random.key(3)
    state = start(spec, PROBLEM)
    vectors = np.random.default_rng(0).normal(size=state.vectors.shape)
    state = replace(state, generation=jnp.int32(2), vectors=jnp.float32(vectors))
    maps = np.eye(5)
    for i, v in enumerate(vectors[:2]):
        c = 1 / (1.5**i * 5)
        maps = ((1 - c) * np.eye(5) + c * np.outer(v, v)) @ maps
    want = np.asarray(state.mean) + 0.1 * np.asarray(jax.random.normal(key, (5, 5))) @ maps.T
    got = jax.jit(lambda state: spec.sampler(state)[1](key))(state)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("spec", [single.SNES, single.SepCMAES, single.XNES, single.LMMAES])
def test_populations_that_a_strategy_cannot_learn_from_are_named(spec):
    with pytest.raises(ValueError, match=f"{spec.__name__}: pop_size=3; it must be at least 4"):
        spec(3)
    with pytest.raises(ValueError, match="OpenES: pop_size=7; it must be"):
        single.OpenES(7)  # samples come in pairs


LEARN = jax.jit(single.OpenES.learn)


@pytest.mark.parametrize(
    "spec, learn_sigma", [(single.pgpe(6, 0.1, 0.02), 0.1), (single.OpenES(6, 0.1, 0.02, 3.0), 3.0)]
)
def test_openes_steps_by_adam_along_centred_ranks_and_pgpe_learns_deviations(
    x64, spec, learn_sigma
):
    """Check Kingma & Ba (2015), algorithm 1, and Sehnke et al. (2010), eqs. 10 and 11, by ranks."""
    rng = np.random.default_rng(0)
    first, second = 0.1 * rng.normal(size=3), 0.01 * rng.random(3)
    mean, sigma = rng.normal(size=3), np.array([0.5, 1.0, 2.0])
    state = replace(
        start(spec, Problem(box(-5.0, 5.0, 3), jnp.sum)),
        mean=jnp.asarray(mean),
        sigma=jnp.asarray(sigma),
        first=jnp.asarray(first),
        second=jnp.asarray(second),
        generation=jnp.int32(4),
    )
    half = rng.normal(size=(3, 3))
    z = np.concatenate([half, -half])
    rank = rng.permutation(6)
    after = LEARN(
        spec, state, jnp.asarray(mean + sigma * z), jnp.asarray(rank * 7.0)[:, None], jnp.zeros(6)
    )
    share = 0.5 - rank / 5
    slope = share @ z / 6
    first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
    step = first / (1 - 0.9**5) / (np.sqrt(second / (1 - 0.999**5)) + 1e-8)
    np.testing.assert_allclose(after.mean, mean + 0.02 * 10 * step, rtol=1e-12)
    np.testing.assert_allclose([after.first, after.second], [first, second], rtol=1e-12)
    change = np.clip(learn_sigma * (share @ (z * z - 1)) / 6, -0.2, 0.2)
    assert (np.abs(change) == 0.2).any() == (learn_sigma == 3.0)
    np.testing.assert_allclose(after.sigma, sigma * (1 + change), rtol=1e-12)


def test_particles_are_pulled_to_their_own_best_and_to_the_best_of_their_ring(x64):
    """Check Clerc & Kennedy (2002): x + chi v + c (u (p - x) + w (g - x)), u and w in 0 ... 1."""
    phi = 4.1
    chi = 2 / abs(2 - phi - np.sqrt(phi**2 - 4 * phi))
    spec, rng = single.PSO(7), np.random.default_rng(1)
    np.testing.assert_allclose([spec.inertia, spec.attraction], [chi, chi * phi / 2], rtol=1e-5)
    x, v, own = rng.normal(size=(3, 7, 4))
    f = np.array([3.0, 1.0, 4.0, 1.5, 9.0, 2.6, 5.0])
    state = replace(
        start(spec, Problem(box(-50.0, 50.0, 4), jnp.sum)),
        x=jnp.asarray(x),
        v=jnp.asarray(v),
        own=jnp.asarray(own),
        f=jnp.asarray(f),
        violation=jnp.zeros(7),
        generation=jnp.int32(1),
    )
    place = own[[min((i - 1) % 7, i, (i + 1) % 7, key=lambda j: f[j]) for i in range(7)]]
    pull = (np.asarray(jax.jit(single.PSO.ask)(spec, state, jax.random.key(1))) - x - chi * v) / (
        chi * phi / 2
    )
    ways = np.stack([own - x, place - x])
    assert (pull >= np.minimum(ways, 0).sum(0) - 1e-4).all()
    assert (pull <= np.maximum(ways, 0).sum(0) + 1e-4).all()
    alone = (own == place).all(1)
    part = (pull / (own - x))[alone]  # u + w
    assert alone.sum() == 3 and part.max() > 1 and np.ptp(part) > 0.5


def test_losers_learn_from_winners_and_from_the_mean_of_the_swarm(x64):
    """Check Cheng & Jin (2015), equation 6: u v + u' (winner - x) + phi u'' (mean - x)."""
    spec, rng = single.CSO(12, social=0.3), np.random.default_rng(2)
    x, v = rng.normal(size=(2, 12, 4))
    state = replace(
        start(spec, Problem(box(-50.0, 50.0, 4), jnp.sum)),
        x=jnp.asarray(x),
        v=jnp.asarray(v),
        loser=jnp.arange(0, 12, 2),
        winner=jnp.arange(1, 12, 2),
        generation=jnp.int32(2),
    )
    ask = lambda phi: jax.jit(single.CSO.ask)(replace(spec, social=phi), state, jax.random.key(1))
    with_mean, plain = (np.asarray(ask(phi)) for phi in (0.3, 0.0))
    part = (with_mean - plain) / (0.3 * (x.mean(0) - x[::2]))
    assert 0 <= part.min() and part.max() <= 1 and np.ptp(part) > 0.5
    ways = np.stack([v[::2], x[1::2] - x[::2]])
    assert (plain - x[::2] >= np.minimum(ways, 0).sum(0)).all()
    assert (plain - x[::2] <= np.maximum(ways, 0).sum(0)).all()


def test_lshade_pulls_to_the_best_and_along_differences_of_others():
    """Check current-to-pbest/1 where F and CR are 1: leader + one - other.

    Powers of three identify the terms. The leader is one of the best two, `one` is another member,
    `other` is a third one or in the archive, of which three slots count. All combinations occur.
    """
    spec = single.LSHADE(100, pop_size=6, batch_size=6, archive=1.0)
    state = start(spec, Problem(box(-1e9, 1e9, 1), lambda x: x))
    power = 3.0 ** np.arange(12)
    state = replace(
        state,
        x=jnp.float32(power[:6, None]),
        archive=jnp.float32(power[6:, None]),
        count=jnp.int32(5),
        kept=jnp.int32(3),
        generation=jnp.int32(1),
        scale=jnp.ones(6),
        cross=jnp.ones(6),
    )
    ask = jax.jit(lambda keys: jax.lax.map(lambda key: spec.ask(state, key), keys))
    asked = np.asarray(ask(jax.random.split(jax.random.key(1), 2000)))[..., 0]
    alive, pool = range(5), [0, 1, 2, 3, 4, 6, 7, 8]
    for i in alive:
        others = [(one, two) for one in alive for two in pool if len({i, one, two}) == 3]
        want = {power[best] + power[one] - power[two] for best in (0, 1) for one, two in others}
        assert set(asked[:, i].tolist()) == want
    assert (asked[:, 5] == power[5]).all()  # who is gone does not move


def test_sep_cma_learns_the_diagonal_as_the_tutorial_learns_the_matrix(x64):
    """Check Ros & Hansen (2008): (D + 2) / 3 times as fast. A long path stalls the other one."""
    spec, rng = single.SepCMAES(10), np.random.default_rng(3)
    rate, norm, width = rates(10, 10.0, 4, jnp.float64), float(normal_length(4)), 0.05 * 20
    c, c_c, mu = float(rate.sigma), float(rate.path), float(rate.mu_eff)
    one, many = 2 * float(rate.one), 2 * float(rate.mu)
    mean, variance = np.array([0.5, -1, 2, 0]), np.array([0.25, 1, 4, 9])
    y = mean + width * np.sqrt(variance) * rng.normal(size=(10, 4))
    begun = replace(
        start(spec, Problem(box(-10.0, 10.0, 4), lambda x: x[:1])),
        mean=jnp.asarray(mean),
        sigma=jnp.asarray(0.05),
        variance=jnp.asarray(variance),
        path=jnp.ones(4),
        generation=jnp.int32(3),
    )
    f = jnp.arange(10.0)[:, None]
    learn = jax.jit(lambda state: spec.learn(state, jnp.asarray(y), f, jnp.zeros(10)))
    for length in (0.5, 9.0):
        before = length * np.array([0.5, -0.5, 0.5, 0.5])
        after = learn(replace(begun, step_path=jnp.asarray(before)))
        w, steps = np.maximum(rate.weights, 0), (y - mean) / width
        step = w @ steps
        along = (1 - c) * before + np.sqrt(c * (2 - c) * mu) * step / np.sqrt(variance)
        size = np.linalg.norm(along)
        fair = size / np.sqrt(1 - (1 - c) ** 8) < (1.4 + 2 / 5) * norm
        assert fair == (length == 0.5)
        path = (1 - c_c) * np.ones(4) + fair * np.sqrt(c_c * (2 - c_c) * mu) * step
        keep = 1 - one - many + (not fair) * one * c_c * (2 - c_c)
        spread = keep * variance + one * path**2 + many * (w @ steps**2)
        growth = min(1, c / float(rate.damping) * (size / norm - 1))
        np.testing.assert_allclose(after.mean, mean + width * step, rtol=1e-10)
        np.testing.assert_allclose(after.step_path, along, rtol=1e-10)
        np.testing.assert_allclose(after.path, path, rtol=1e-10)
        np.testing.assert_allclose(after.variance, spread, rtol=1e-10)
        np.testing.assert_allclose(after.sigma, 0.05 * np.exp(growth), rtol=1e-10)


def nes_utilities(count):
    """Return the utilities of the ranks: Wierstra et al. (2014), equation 11."""
    raw = np.maximum(0, np.log(count / 2 + 1) - np.log(np.arange(1, count + 1)))
    return raw / raw.sum() - 1 / count


def test_xnes_turns_and_stretches_by_an_exponential_of_the_natural_gradient(x64):
    """Check Glasmachers et al. (2010), algorithm 1, at one rate: A exp(eta / 2 G) replaces A."""
    spec, rng, box_ = single.XNES(9), np.random.default_rng(4), box(-10.0, 10.0, 3)
    mean, shape, z = rng.normal(size=3), rng.normal(size=(3, 3)), rng.normal(size=(9, 3))
    shape /= np.cbrt(np.linalg.det(shape))
    wide = 0.05 * 20 * shape
    state = replace(
        start(spec, Problem(box_, lambda x: x[:1])),
        mean=jnp.asarray(mean),
        sigma=jnp.asarray(0.05),
        shape=jnp.asarray(shape),
    )
    y, f = jnp.asarray(mean + z @ wide.T), jnp.arange(9.0)[:, None]
    after = jax.jit(single.XNES.learn)(spec, state, y, f, jnp.zeros(9))
    u = nes_utilities(9)
    slope = sum(w * (np.outer(row, row) - np.eye(3)) for w, row in zip(u, z))
    eta = (9 + 3 * np.log(3)) / (5 * 3 * 3**0.5)
    want = wide @ expm(eta / 2 * slope)
    np.testing.assert_allclose(after.mean, mean + wide @ (u @ z), rtol=1e-10)
    np.testing.assert_allclose(20 * after.sigma * after.shape, want, rtol=1e-10)
    np.testing.assert_allclose(np.linalg.det(after.shape), 1, rtol=1e-10)


def test_snes_stretches_each_deviation_by_an_exponential_of_its_slope(x64):
    """Check Wierstra et al. (2014), algorithm 6 and table 1."""
    spec, rng = single.SNES(9), np.random.default_rng(5)
    mean, sigma, z = rng.normal(size=3), np.array([0.3, 1.0, 2.0]), rng.normal(size=(9, 3))
    state = replace(
        start(spec, Problem(box(-10.0, 10.0, 3), lambda x: x[:1])),
        mean=jnp.asarray(mean),
        sigma=jnp.asarray(sigma),
    )
    y, f = jnp.asarray(mean + sigma * z), jnp.arange(9.0)[:, None]
    after = jax.jit(single.SNES.learn)(spec, state, y, f, jnp.zeros(9))
    u, eta = nes_utilities(9), (3 + np.log(3)) / (5 * 3**0.5)
    np.testing.assert_allclose(after.mean, mean + sigma * (u @ z), rtol=1e-10)
    want = sigma * np.exp(eta / 2 * (u @ (z * z - 1)))
    np.testing.assert_allclose(after.sigma, want, rtol=1e-10)


def test_lshade_draws_about_its_memories_and_no_crossing_after_the_terminal_value():
    draw = jax.jit(
        lambda key: lshade._sample_parameters(key, jnp.full(2, 0.5), jnp.array([0.8, -1.0]), 2000)
    )
    scale, cross = map(np.asarray, draw(jax.random.key(0)))
    assert (0 < scale).all() and scale.max() == 1 and abs(np.median(scale) - 0.5) < 0.02
    assert abs(np.mean(cross == 0) - 0.5) < 0.06  # 5 sigma
    # CR has a normal distribution of deviation 0.1 that is clipped at 1.
    assert cross.max() == 1 and abs(np.median(cross[cross > 0]) - 0.8) < 0.02


def test_lshade_keeps_the_beaten_beside_those_that_it_has_kept():
    """Two of three archive slots are used; of four members the first and the last lost."""
    spec = single.LSHADE(100, pop_size=6, batch_size=3)
    state = SimpleNamespace(
        archive=jnp.array([[1.0], [2.0], [9.0], [9.0], [9.0], [9.0]]),
        x=jnp.array([[10.0], [11.0], [12.0], [13.0]]),
        kept=jnp.int32(2),
        count=jnp.int32(4),
    )
    beaten = jnp.array([True, False, False, True])
    store = jax.jit(lambda key: lshade._update_archive(key, spec, state, beaten))
    members, size = store(jax.random.key(0))
    assert size == 4 and sorted(members[:4, 0].tolist()) == [1, 2, 10, 13]


def test_lshade_has_half_of_its_way_to_four_behind_it_after_half_of_its_evaluations():
    """Check equation 10 of Tanabe & Fukunaga (2014): 12 - 8 / 2 members after 24 of 48."""
    spec = single.LSHADE(48, pop_size=12, batch_size=12, archive=0.01)
    state = start(spec, PROBLEM)
    assert state.archive.shape == (1, 5)  # one place at least
    after = jax.jit(lambda used: lshade._complete_generation(spec, replace(state, used=used)).count)
    assert [after(jnp.int32(used)) for used in (12, 24, 48, 60)] == [10, 8, 4, 4]


@pytest.mark.slow
def test_lshade_shrinks_to_four_and_keeps_its_bounds():
    spec = single.LSHADE(1500, pop_size=40, batch_size=40)

    def step_once(state, key):
        s = protocol.step(spec, PROBLEM, state, key)
        return s, (s.count, s.kept, s.used, s.scale.min(), s.scale.max(), s.f[:4])

    run = jax.jit(lambda keys: jax.lax.scan(step_once, spec.init(keys[0], PROBLEM), keys)[1])
    count, kept, used, least, most, f = jax.device_get(
        run(jax.random.split(jax.random.key(2), 120))
    )
    assert count[-1] == 4 and (np.diff(count) <= 0).all()
    # Equation 10 uses the evaluations before the generation.
    np.testing.assert_array_equal(count, np.round(40 - 36 * np.minimum(used / 1500, 1)).astype(int))
    assert (kept <= np.round(2.6 * np.append(40, count[:-1]))).all()
    assert (least > 0).all() and (most <= 1).all()
    assert (np.diff(f, axis=1) >= 0).all()  # in order


@pytest.mark.slow
def test_lshade_ends_its_schedule_with_the_evaluations_that_are_paid():
    """The schedule at f7b4d67 counted 6452 of 10,000 evaluations; 35 members remained."""
    spec = single.LSHADE(2000, pop_size=30)
    bowl = lambda x: jnp.sum((x - 0.3) ** 2)
    done = minimize(bowl, Real(-5.0, 5.0, (3,)), 2000, algorithm=spec)
    assert done.state.used == 2000 and done.state.count == 4
    # dN / du = -26 / 2000, so generations of N members are 2000 / 26 ln(30 / 4) = 155. With the 1.5
    # copies that fill the last batch of each, they are 2000 / 26 ln(31.5 / 5.5) = 134.
    assert 134 - 8 < int(done.state.generation) < 155 and done.f < 1e-6


@pytest.mark.slow
def test_lshade_in_batches_is_lshade():
    """The children are equal, whether a generation is requested in one or in four batches."""
    key = jax.random.key(0)
    whole, parts = (single.LSHADE(1500, 40, batch_size=n) for n in (40, 10))
    tell, ask = jax.jit(single.LSHADE.tell), jax.jit(single.LSHADE.ask)
    evaluate = jax.jit(lambda x: PROBLEM.evaluate(x)[0])
    a, b, none = start(whole, PROBLEM), start(parts, PROBLEM), np.zeros(40, np.float32)
    for i in range(3):
        x = np.asarray(ask(whole, a, jax.random.fold_in(key, i)))
        f = np.asarray(evaluate(x))
        a = tell(whole, a, x, f, none)
        for rows in range(0, 40, 10):
            assert b.filled == rows
            b = tell(parts, b, x[rows : rows + 10], f[rows : rows + 10], none[:10])
        for one, other in zip(jax.tree.leaves(a), jax.tree.leaves(b)):
            assert_same(one, other)


@pytest.mark.slow
def test_swarms_move_as_their_equations_say(x64):
    spec = single.CSO(8)

    @jax.jit
    def last_step(key):
        state = protocol.evolve(spec, PROBLEM, key, 5)
        return state, spec.ask(state, jax.random.key(1))

    state, x = jax.device_get(last_step(jax.random.key(0)))
    tell = jax.jit(lambda state, x: spec.tell(state, x, *PROBLEM.evaluate(x)))
    after = jax.device_get(tell(state, x))
    worse, broken = state.f[state.loser] >= state.f[state.winner], state.violation
    assert (worse | (broken[state.loser] > broken[state.winner])).all()
    assert sorted(np.append(state.loser, state.winner)) == list(range(8))
    np.testing.assert_array_equal(after.x[state.winner], state.x[state.winner])
    np.testing.assert_allclose(after.v[state.loser], x - state.x[state.loser], rtol=1e-15)


def test_lm_ma_draws_no_farther_than_its_deviation_before_it_has_learnt():
    spec = single.LMMAES(8)
    state = start(spec, PROBLEM)
    cloud, _ = spec.sampler(state)
    np.testing.assert_allclose(cloud.deviation, state.sigma * 10.0, rtol=1e-6)  # of a box 10 wide
