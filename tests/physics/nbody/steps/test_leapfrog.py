"""Leapfrogs: order conditions, measured orders, reversal, symplecticity, gradients."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.physics.nbody.steps import leapfrog
from jaxgpu.physics.nbody.steps.leapfrog import Leapfrog
from jaxgpu.runs.loop import rollout

ORDERS = (2, 4, 6, 8)


def kepler(t, x):
    return -x / jnp.sum(x * x) ** 1.5


def walk(force, x, v, time, steps, order=2):
    """Return positions and velocities after equal steps between two times."""
    spec = Leapfrog(force, (time[1] - time[0]) / steps, order)
    end, _ = rollout(spec.step, spec.init(x, v, time[0]), steps)
    return end.x, end.v


@partial(jax.jit, static_argnums=(2, 3))
def orbit(x, v, steps, order):
    return walk(kepler, x, v, (0.0, 2 * jnp.pi), steps, order)


def start(e):
    return jnp.array([1 - e, 0.0]), jnp.array([0.0, np.sqrt((1 + e) / (1 - e))])


@pytest.mark.parametrize("order", ORDERS)
def test_chains_satisfy_the_simplest_order_conditions(order):
    """Sums of odd powers vanish, as a symmetric chain of second-order steps requires."""
    w = leapfrog.KICK_WEIGHTS[order]
    np.testing.assert_array_equal(w, w[::-1])
    assert abs(w.sum() - 1) < 1e-15
    for power in range(3, order, 2):
        assert abs((w**power).sum()) < 1e-14


@pytest.mark.parametrize("order, steps", [(2, 400), (4, 100), (6, 60), (8, 40)])
def test_error_shrinks_with_its_order(x64, order, steps):
    """Run one period at e = 0.2, where a step is long enough for an error above rounding."""
    x, v = start(0.2)
    error = [np.abs(orbit(x, v, n, order)[0] - x).max() for n in (steps, steps * 3 // 2)]
    assert abs(np.log(error[0] / error[1]) / np.log(1.5) - order) < 0.15, error


def test_time_is_where_the_positions_are(x64):
    """A force that depends only on time is integrated to the order of the method."""
    force = lambda t, x: jnp.exp(t) * jnp.ones_like(x)
    for order in ORDERS:
        error = []
        for steps in (2, 3):
            x, v = walk(force, jnp.ones(1), jnp.ones(1), (0.0, 2.0), steps, order)
            error.append(np.abs(np.array([x[0], v[0]]) - np.exp(2)).max())
        assert error[1] < error[0] * (2 / 3) ** (order - 0.5)


def test_there_and_back(x64):
    x, v = start(0.3)
    for order in ORDERS:
        there = walk(kepler, x, v, (0.0, 3.0), 40, order)
        back = walk(kepler, *there, (3.0, 0.0), 40, order)
        np.testing.assert_allclose(back, (x, v), atol=1e-13)


def test_volume_in_phase_space_and_energy_stay(x64):
    """The energy of a coarse orbit oscillates: no larger after 160 periods than after 40."""
    x, v = start(0.3)
    flow = lambda q: jnp.concatenate(orbit(q[:2], q[2:], 60, 4))
    jacobian = np.asarray(jax.jit(jax.jacfwd(flow))(jnp.concatenate([x, v])))
    form = np.block([[np.zeros((2, 2)), np.eye(2)], [-np.eye(2), np.zeros((2, 2))]])
    np.testing.assert_allclose(jacobian.T @ form @ jacobian, form, atol=1e-11)
    energy = jax.jit(lambda x, v: jnp.sum(v * v) / 2 - 1 / jnp.sqrt(jnp.sum(x * x)))
    stretch = jax.jit(lambda q: walk(kepler, *q, (0.0, 2.5), 20, 4))
    errors, q = [], (x, v)
    for _ in range(400):
        q = stretch(q)
        errors.append(float(energy(*q) / energy(x, v)) - 1)
    early, late = np.abs(errors[:100]).max(), np.abs(errors[300:]).max()
    assert 1e-9 < late < 1.1 * early < 1e-3


@pytest.mark.slow
def test_gradients_both_ways_match_central_differences(x64):
    """Use fixed steps, reverse and forward: within 1e-7 of differences, whose error is 1e-9."""
    mass = np.array([0.6, 0.3, 0.1])

    def pull(m, t, x):
        d = x[None] - x[:, None]
        r2 = jnp.sum(d * d, -1) + jnp.eye(3)
        return jnp.sum((m[None] * r2**-1.5)[..., None] * d, 1)

    @jax.jit
    def ends(q):
        x, v, m = q[:9].reshape(3, 3), q[9:18].reshape(3, 3), q[18:]
        x, v = walk(partial(pull, m), x, v, (0.0, 1.5), 30, 4)
        return jnp.concatenate([x.ravel(), v.ravel()])

    x = np.array([[1.0, 0, 0.1], [-0.6, 0.9, 0], [-0.5, -0.8, -0.2]])
    v = np.array([[0, 0.5, 0], [-0.4, -0.3, 0.1], [0.5, -0.2, 0]])
    q = np.concatenate([x.ravel(), v.ravel(), mass])
    h = 1e-5
    sides = [np.array([ends(q + side * h * way) for way in np.eye(21)]) for side in (1, -1)]
    slope = (sides[0] - sides[1]).T / (2 * h)
    for got in jax.jit(lambda q: (jax.jacfwd(ends)(q), jax.jacrev(ends)(q)))(q):
        np.testing.assert_allclose(got, slope, atol=1e-7 * np.abs(slope).max())


def test_other_numbers_of_a_partial_are_the_same_program(x64):
    """The fields of a partial are traced, so two strengths of one force compile once."""
    traces = []

    def pull(strength, t, x):
        traces.append(strength)
        return -strength * x

    step = jax.jit(Leapfrog.step)
    ends = []
    for strength in (1.0, 4.0):
        spec = Leapfrog(partial(pull, strength), np.pi / 200)
        state = spec.init(jnp.ones(1), jnp.zeros(1))
        for _ in range(100):
            state = step(spec, state)
        ends.append(float(state.x[0]))
    np.testing.assert_allclose(ends, [0.0, -1.0], atol=1e-3)
    assert len(traces) == 1
    assert abs(float(spec.time(state)) - np.pi / 2) < 1e-15


def test_wrong_orders_and_values_are_refused():
    with pytest.raises(ValueError, match="Leapfrog.init: order=5; it must be one of 2, 4, 6, 8"):
        Leapfrog(kepler, 0.1, 5).init(jnp.ones(2), jnp.ones(2))
    with pytest.raises(TypeError, match="Leapfrog.init: force=3; it must be a function of t and x"):
        Leapfrog(3, 0.1).init(jnp.ones(2), jnp.ones(2))
    whole = walk(kepler, np.array([1, 0]), np.array([0, 1]), (0.0, 1.0), 50)[0]
    assert abs(float(whole[0]) - np.cos(1)) < 1e-3  # whole numbers; their step was rounded to 0
    for change in (dict(t=np.nan), dict(x=[np.inf, 0.0]), dict(v=[1.0]), dict(dt=np.inf)):
        given = dict(x=[1.0, 0], v=[0.0, 1], t=0.0, dt=0.1) | change
        with pytest.raises(ValueError, match="^Leapfrog.init: "):
            Leapfrog(kepler, given.pop("dt")).init(**given)


def test_a_time_step_is_one_number():
    with pytest.raises(ValueError, match=r"Leapfrog.init: dt has shape \[2\]; it must be"):
        Leapfrog(kepler, np.ones(2, np.float32)).init(np.ones((1, 3)), np.ones((1, 3)))
