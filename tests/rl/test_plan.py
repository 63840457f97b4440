"""Planners against the exact solution of a linear system with quadratic costs (LQR)."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from conformance import assert_exports, check_program, no_compile

from jaxgpu import rl
from jaxgpu.rl.plan import (
    CEM,
    MPPI,
    Descent,
    EpisodeCost,
    TemporalExpansion,
    average_gradient,
    cost,
    initial_states,
    plan,
)
from jaxgpu.rl.plan.sampling import _sample_actions

T = 12
A, B = np.array([[1.0, 0.1], [-0.2, 0.95]]), np.array([[0.0], [0.3]])
Q, R, START = np.diag([1.0, 0.2]), np.array([[0.05]]), np.array([1.0, -0.5])


def riccati():
    """Return the optimal actions [T, 1] and their cost, by dynamic programming in float64."""
    p, gains = Q, []
    for _ in range(T):
        gains.append(np.linalg.solve(R + B.T @ p @ B, B.T @ p @ A))
        p = Q + A.T @ p @ (A - B @ gains[-1])
    x, u = START, []
    for k in gains[::-1]:
        u.append(-k @ x)
        x = A @ x + B @ u[-1]
    return np.array(u), START @ p @ START


BEST, LEAST = riccati()


def quadratic(actions, frames=T):
    """Return the cost of the first `frames` steps and of the state after the last one."""
    a, b, q, r = (jnp.asarray(m, actions.dtype) for m in (A, B, Q, R))

    def step(x, action):
        u, t = action
        spent = jnp.where(t < frames, x @ q @ x + u @ r @ u, 0)
        return jnp.where(t < frames, a @ x + b @ u, x), spent

    x, spent = jax.lax.scan(step, jnp.asarray(START, a.dtype), (actions, jnp.arange(T)))
    return jnp.sum(spent) + x @ q @ x


ZERO, KEY = np.zeros((T, 1), np.float32), jax.random.key(0)
WIDE = {"low": -10.0, "high": 10.0}


def test_a_planner_is_held_to_its_ranges_before_it_begins():
    with pytest.raises(ValueError, match="plan: CEM.sigma=-1; it must be"):
        CEM(sigma=-1.0).init(ZERO)


def test_riccati_is_the_minimum_that_differences_see():
    run = jax.jit(quadratic)
    cost_at = lambda u: float(run(u.astype(np.float32)))
    np.testing.assert_allclose(cost_at(BEST), LEAST, rtol=1e-5)
    rng = np.random.default_rng(0)
    assert all(cost_at(BEST + 0.05 * rng.normal(size=(T, 1))) > LEAST for _ in range(10))


def test_lbfgs_finds_the_exact_actions_and_counts_its_line_search():
    done = plan(quadratic, ZERO, Descent(optax.lbfgs(), **WIDE), 15, key=KEY)
    # At the minimum the loss rounds to 1e-7 of itself, so that actions are known to its root.
    np.testing.assert_allclose(done.state.actions, BEST, atol=2e-3)
    np.testing.assert_allclose(done.state.best.loss, LEAST, rtol=1e-5)
    assert done.state.evaluations > 15 and done.state.skipped == 0
    assert np.all(np.diff(done.history["best"]) <= 0) and done.history["best"][0] == np.inf


def test_every_loss_that_a_line_search_computes_is_counted():
    """A step of the full gradient overshoots a bowl, and is halved until it does not."""
    computed = []

    def bowl(actions):
        jax.debug.callback(lambda: computed.append(1))
        return 5 * jnp.sum(actions**2)

    search = optax.scale_by_backtracking_linesearch(max_backtracking_steps=9, decrease_factor=0.5)
    planner = Descent(optax.chain(optax.sgd(1.0), search), **WIDE)
    state = planner.init(jnp.ones((1, 1)))
    for _ in range(2):
        state = planner.update(bowl, state, KEY)
    jax.effects_barrier()
    assert state.evaluations == len(computed) > 6


def test_adam_with_a_plateau_schedule_descends_to_the_minimum():
    rate = optax.chain(
        optax.adam(0.2), optax.contrib.reduce_on_plateau(factor=0.5, patience=5, rtol=1e-3)
    )
    done = plan(quadratic, ZERO, Descent(rate, **WIDE), 200, key=KEY)
    np.testing.assert_allclose(done.state.best.loss, LEAST, rtol=1e-3)
    assert done.state.evaluations == 200


@pytest.mark.parametrize(
    "planner, most",
    [
        (CEM(64, 12, sigma=1.0, correlation=0.0, **WIDE), 1.05),
        (MPPI(64, sigma=0.6, temperature=0.2, correlation=0.3, **WIDE), 1.15),
    ],
    ids=["CEM", "MPPI"],
)
def test_sampling_comes_near_from_every_seed(planner, most):
    """A noise of 0.1 in each of 12 actions would cost 4 %: set before the runs."""
    loss = jax.jit(lambda key: _plan_loss(planner, key))
    worst = max(float(loss(jax.random.key(seed))) for seed in range(5))
    assert LEAST * (1 - 1e-5) <= worst <= most * LEAST


def _plan_loss(planner, key):
    def update_once(i, state):
        return planner.update(quadratic, state, jax.random.fold_in(key, i))

    return jax.lax.fori_loop(0, 60, update_once, planner.init(ZERO)).best.loss


def test_plans_are_drawn_first_with_the_deviation_that_was_given():
    for planner in (CEM(64, 12, sigma=0.7, **WIDE), MPPI(64, sigma=0.7, **WIDE)):
        np.testing.assert_allclose(planner.init(ZERO).sigma, 0.7, rtol=1e-6)


def test_the_mean_of_mppi_is_that_of_its_samples_weighted_by_their_costs():
    """Compare with NumPy: weights fall with the cost over its deviation and temperature."""
    planner, loss = MPPI(8, sigma=0.5, temperature=0.4, **WIDE), lambda a: jnp.sum((a - 0.3) ** 2)

    def draw_and_plan(key):
        state = planner.init(ZERO)
        return _sample_actions(planner, state, key), planner.update(loss, state, key).actions

    x, mean = map(np.asarray, jax.jit(draw_and_plan)(KEY))
    f = ((x - 0.3) ** 2).sum((1, 2))
    weight = np.exp(-(f - f.min()) / (0.4 * f.std()))
    want = np.tensordot(weight / weight.sum(), x, 1)
    np.testing.assert_allclose(mean, want, rtol=1e-4, atol=1e-6)
    assert np.abs(want - x.mean(0)).max() > 0.05


def test_noise_is_correlated_and_within_bounds():
    wide = CEM(4000, 2, sigma=1.0, correlation=0.8, low=-50.0, high=50.0)
    narrow = CEM(16, 4, sigma=5.0, low=-0.5, high=0.25)
    zero = np.zeros((8, 1), np.float32)

    @jax.jit
    def draw_and_plan(key):
        state = narrow.init(ZERO)
        draws = _sample_actions(wide, wide.init(zero), key), _sample_actions(narrow, state, key)
        return *draws, narrow.update(quadratic, state, key)

    e, held, state = draw_and_plan(KEY)
    e = np.asarray(e)[1:, :, 0]
    # With 4000 samples, a correlation has a standard error of 1 / sqrt(4000) = 0.016.
    np.testing.assert_allclose(np.corrcoef(e.T)[0], 0.8 ** np.arange(8), atol=0.06)
    np.testing.assert_allclose(e.std(0), 1, atol=0.05)
    assert np.abs(held).max() <= 0.5
    assert np.min(state.best.actions) >= -0.5 and state.evaluations == 16


def test_bounds_hold_and_a_step_without_a_gradient_is_not_taken():
    far = np.linspace(-2, 2, T, dtype=np.float32)[:, None]
    done = plan(lambda a: jnp.sum((a - far) ** 2), ZERO, Descent(optax.sgd(0.3)), 30, key=KEY)
    np.testing.assert_allclose(done.state.actions, np.clip(far, -1, 1), atol=1e-4)
    trap = lambda a: jnp.where(a[0, 0] > 0.5, jnp.nan, -a[0, 0])
    done = plan(trap, ZERO, Descent(optax.sgd(0.3)), 9, key=KEY)
    assert jnp.isfinite(done.state.best.loss) and done.state.skipped > 0
    assert jnp.isfinite(done.state.actions).all()
    done = plan(trap, ZERO, CEM(16, 4), 9, key=KEY)
    assert jnp.isfinite(done.state.best.loss) and jnp.isfinite(done.state.actions).all()
    assert done.state.best.actions[0, 0] <= 0.5


def test_a_window_grows_to_the_whole_and_leaves_the_future_alone():
    inner = Descent(optax.adam(0.1), **WIDE)
    spec = TemporalExpansion(inner, first=4, grow=4, patience=3, tolerance=1e-3)
    update = jax.jit(lambda state, key: spec.update(quadratic, state, key))
    state, windows = spec.init(ZERO), []
    for i in range(250):
        if state.window == 4:
            assert jnp.all(state.actions[4:] == 0)
        state = update(state, jax.random.fold_in(KEY, i))
        windows.append(int(state.window))
    assert sorted(set(windows)) == [4, 8, 12] and np.all(np.diff(windows) >= 0)
    np.testing.assert_allclose(state.best.loss, LEAST, rtol=1e-2)
    frozen = TemporalExpansion(inner, first=4, grow=4, patience=3, tolerance=1e-3, freeze=True)
    done = plan(quadratic, ZERO, frozen, 250, key=KEY).state
    assert done.window == 12 and done.frozen == 8
    assert done.best.loss > LEAST  # what is planned first is planned blind


def test_frozen_actions_stay_as_they_were_planned():
    spec = TemporalExpansion(Descent(optax.sgd(0.1), **WIDE), first=4, grow=4, freeze=True)
    state = dataclasses.replace(spec.init(ZERO), frozen=jnp.int32(4), window=jnp.int32(8))
    bowl = lambda actions, frames: jnp.sum((actions - 1) ** 2)
    after = jax.jit(lambda state: spec.update(bowl, state, KEY))(state)
    np.testing.assert_array_equal(after.actions[:4], 0)
    assert jnp.all(after.actions[4:] > 0.1)


def test_an_averaged_gradient_is_the_stated_mixture_both_ways():
    x, w, way = np.float32([np.linspace(-1, 2, 7), np.sin(np.arange(7)), np.cos(np.arange(7))])
    f = lambda x: jnp.sum(w * average_gradient(x, 0.3) ** 2)
    found = jax.jit(
        lambda x, way: (average_gradient(x, 0.3), jax.grad(f)(x), jax.jvp(f, (x,), (way,))[1])
    )
    same, slope, along = found(x, way)
    np.testing.assert_array_equal(same, x)
    own = 2 * w * x
    want = 0.7 * own + 0.3 * np.mean(own)
    np.testing.assert_allclose(slope, want, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(along, np.sum(want * way), rtol=1e-5)


def test_the_cost_of_actions_is_minus_the_rewards_of_single_steps():
    env = rl.make("pendulum")
    state, _ = jax.jit(env.reset)(jax.random.key(3))
    actions = np.sin(np.arange(6, dtype=np.float32))[:, None]
    step, at, total = jax.jit(env.step), state, []
    for a in actions:
        out = step(at, a, KEY)
        at, total = out.state, [*total, float(out.reward)]
    price = jax.jit(lambda actions, frames: cost(env, state, actions, frames))
    np.testing.assert_allclose(price(actions, 6), -sum(total), rtol=1e-5)
    np.testing.assert_allclose(price(actions, 4), -sum(total[:4]), rtol=1e-5)
    slope = jax.jit(jax.grad(price))(actions, 4)
    assert np.all(slope[4:] == 0) and np.all(slope[:3] != 0)
    check_program(lambda a: jax.grad(price)(a, 4), actions)
    assert_exports(lambda a: jax.grad(price)(a, 4), actions)


def test_a_discounted_gradient_sees_its_own_reward_and_less_and_less_of_others():
    env = rl.make("pendulum")
    state, _ = jax.jit(env.reset)(jax.random.key(3))
    actions = np.sin(np.arange(4, dtype=np.float32))[:, None]
    price = lambda actions, discount: cost(env, state, actions, gradient_discount=discount)
    both = jax.jit(jax.value_and_grad(price))
    value, slope = both(actions, 0.6)
    # The gradient is d cost / d u_i = sum over rewards j >= i of 0.6^(j - i) d r_j / d u_i.
    reward = jax.jit(jax.jacrev(lambda a: jnp.stack([cost(env, state, a, k) for k in range(5)])))
    each = np.diff(np.asarray(reward(actions))[..., 0], axis=0)  # [reward, action]
    lag = np.subtract.outer(np.arange(4), np.arange(4))
    want = (each * np.where(lag >= 0, 0.6 ** np.maximum(lag, 0), 0)).sum(0)
    np.testing.assert_allclose(slope[:, 0], want, rtol=1e-4, atol=1e-6)
    plain, _ = both(actions, 1.0)
    np.testing.assert_allclose(value, plain, rtol=1e-6)


def test_a_plan_resumes_to_the_bit(tmp_path):
    whole = plan(quadratic, ZERO, CEM(8, 3), 6, key=KEY)
    plan(quadratic, ZERO, CEM(8, 3), 4, key=KEY, out=tmp_path)
    rest = plan(quadratic, ZERO, CEM(8, 3), 6, key=KEY, out=tmp_path, resume=True)
    np.testing.assert_array_equal(rest.state.actions, whole.state.actions)
    np.testing.assert_array_equal(rest.history["loss"], whole.history["loss"])


def test_bad_input_gets_a_sentence():
    with pytest.raises(ValueError, match="CEM: 9 elites of 8; take 2 or more, up to all"):
        CEM(8, 9).init(ZERO)
    with pytest.raises(
        ValueError, match="MPPI.population=1; it must be a whole number of at least 2"
    ):
        MPPI(1).init(ZERO)


def test_histories_begin_at_the_start_and_a_condition_ends_planning():
    whole = plan(quadratic, ZERO, CEM(8, 3), 6, key=KEY)
    assert whole.history["loss"].shape == (7,) and np.isinf(whole.history["best"][0])
    assert whole.history["evaluations"].tolist() == [8 * i for i in range(7)]
    np.testing.assert_array_equal(whole.loss, whole.history["best"][-1])
    np.testing.assert_allclose(quadratic(whole.actions), whole.loss, rtol=1e-6)
    enough = float(whole.history["best"][3])
    part = plan(
        quadratic,
        ZERO,
        CEM(8, 3),
        6,
        key=KEY,
        until=lambda state: state.best.loss <= enough,
        measure=lambda state: state.best.loss,
    )
    np.testing.assert_array_equal(part.history, whole.history["best"][: len(part.history)])
    assert part.loss <= enough and len(part.history) <= 4


def test_another_state_and_another_environment_use_the_program_again():
    env, planner = rl.make("pendulum"), CEM(8, 3)
    states = initial_states(env, 2)
    here, there = (jax.tree.map(lambda x, i=i: x[i], states) for i in (0, 1))
    heavy = dataclasses.replace(env, mass=2.0)
    first = plan(EpisodeCost(env, here), ZERO, planner, 3, key=KEY)
    with no_compile():
        others = [
            plan(loss, ZERO, planner, 3, key=KEY)
            for loss in (EpisodeCost(env, there), EpisodeCost(heavy, here))
        ]
    assert len({float(found.loss) for found in (first, *others)}) == 3
