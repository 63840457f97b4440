"""SAC: soft values, policy and temperature against quadrature, its score, and invalid inputs."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rl_probe import Probe
from scipy import optimize

from jaxgpu import rl
from jaxgpu.inputs.fields import pytree
from jaxgpu.rl.learners.sac import Networks

# 20,000 steps have 10,000 updates. The settings were chosen on four other seeds, the random steps
# on these and 40 more.
SWING = rl.SAC(
    learning_rate=3e-3,
    gamma=0.98,
    tau=0.01,
    start_steps=1000.0,
    num_envs=8,
    num_steps=2,
    gradient_steps=8,
)


@pytree
class Bowl(Probe):
    """Reward 1 - 4 (a - 0.3)^2, one observation, truncated every 20 steps, never terminated."""

    def step(self, state, action, key):
        return super().step(state, action, key)._replace(reward=reward(action[0]))


def reward(a):
    return 1 - 4 * (a - 0.3) ** 2


def best(alpha):
    """Return pre-tanh mean and spread, mean reward and entropy of the best squashed normal."""
    z, weight = np.polynomial.hermite_e.hermegauss(80)
    weight = weight / weight.sum()

    def moments(p):
        u = p[0] + np.exp(p[1]) * z
        entropy = p[1] + 0.5 * np.log(2 * np.pi * np.e) - weight @ (2 * np.log(np.cosh(u)))
        return weight @ reward(np.tanh(u)), entropy

    objective = lambda p: -moments(p)[0] - alpha * moments(p)[1]
    p = optimize.minimize(objective, [0.3, -1.0], tol=1e-10).x
    return *p, *moments(p)


@pytest.mark.slow
def test_values_policy_and_temperature_are_the_exact_soft_ones():
    """Q(a) = r(a) + gamma V with V = (E r + alpha H) / (1 - gamma) and the target entropy H.

    If truncation counted as termination, or without the entropy, V would be less than 0.97 of it.
    The smaller of two critics is a little low, by the spread between them.
    """
    env, discount, asked = Bowl(), 0.8, -0.2
    learner = rl.SAC(
        learning_rate=3e-3,
        gamma=discount,
        tau=0.05,
        target_entropy=asked,
        num_envs=8,
        gradient_steps=4,
        batch_size=64,
        buffer_size=2000,
        hidden_sizes=(32,),
    )
    state, reports = jax.jit(lambda key: rl.learn(env, learner, key, 1500))(jax.random.key(0))
    alpha = optimize.brentq(lambda alpha: best(alpha)[3] - asked, 0.05, 5.0)
    mean, log_std, gain, entropy = best(alpha)
    np.testing.assert_allclose(reports["temperature"][-1], alpha, rtol=0.1)
    choice = learner._act(env, state.params, jnp.zeros(1))
    np.testing.assert_allclose(choice.mean, mean, atol=0.05)
    np.testing.assert_allclose(choice.log_std, log_std, atol=0.1)
    value = (gain + alpha * entropy) / (1 - discount)
    a = np.linspace(-0.3, 0.8, 5, dtype=np.float32)  # where the policy goes
    said = learner._network(env).apply(
        state.params["weights"], jnp.zeros((5, 1)), jnp.asarray(a)[:, None], method=Networks.q
    )
    exact = np.stack([reward(a) + discount * value] * 2)
    np.testing.assert_allclose(said, exact, atol=0.03 * abs(value))


@pytest.mark.slow
def test_pendulum_is_swung_up_in_20k_steps():
    """Test one seed; of eight the median was above -165, the worst -200; the zoo's SAC has -157."""
    env = rl.make("pendulum")

    @jax.jit
    def returns(key):
        state, _ = rl.learn(env, SWING, key, 1250)
        policy = SWING.policy(env, state)
        return rl.evaluate(env, policy, jax.random.fold_in(key, 1), 100, 200).episode_return

    assert np.mean(returns(jax.random.split(jax.random.key(0), 8)[0])) >= -200


@pytest.mark.slow
def test_random_actions_are_held_on():
    """Two in three are held, and none of them where none should be."""
    env = rl.make("pendulum")

    @jax.jit
    def first_actions(hold):
        learner = rl.SAC(
            start_steps=1e9,
            hold=hold,
            num_envs=32,
            num_steps=64,
            buffer_size=2048,
            hidden_sizes=(4,),
        )
        state = learner.init(env, jax.random.key(0))
        return learner._rollout(env, state, jax.random.key(1))[1]["action"]

    for hold in (2 / 3, 0.0):
        action = np.asarray(first_actions(hold))
        same = np.mean(action[1:] == action[:-1])
        np.testing.assert_allclose(same, hold, atol=4 * (hold * (1 - hold) / 2016) ** 0.5)


def test_the_first_steps_are_random_and_those_after_them_the_policys():
    """Random ones cover the box and are held; no two actions of the policy are equal."""
    env, sizes = Probe(), {"num_envs": 64, "num_steps": 4, "buffer_size": 256, "hidden_sizes": ()}
    learner = rl.SAC(start_steps=128.0, hold=0.99999, **sizes)

    @partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
    def actions(key):
        return learner._rollout(env, learner.init(env, key), key)[1]["action"]

    action = actions(jax.random.key(0))
    same = (action[1:] == action[:-1]).all((1, 2))
    np.testing.assert_array_equal(same, [True, False, False])
    assert -1 <= action[0].min() < -0.9 and 0.9 < action[0].max() <= 1


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="SAC: CartPole has 2 actions; they must be real"):
        rl.SAC().init(rl.make("cartpole"), jax.random.key(0))
    with pytest.raises(ValueError, match="buffer_size=3; an update has 8 steps"):
        rl.SAC(buffer_size=3).init(rl.make("pendulum"), jax.random.key(0))
