"""PPO: scores, the value of a truncated episode, and the full loop as one program."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rl_probe import Drift, Probe

from jaxgpu import rl
from jaxgpu.rl.learners import normalizer, ppo
from jaxgpu.rl.learners.networks import ActorCritic, Normal
from jaxgpu.studies.classic_control import ROWS

FEW = {"xla_backend_optimization_level": 0}  # programs that run once
PPO = {row.task: row.learner for row in ROWS if type(row.learner) is rl.PPO}


def scores(env, learner, updates, seeds, limit):
    """Return the mean return of 100 episodes after training, for each seed."""

    def run_seed(key):
        state, _ = rl.learn(env, learner, key, updates)
        test_key = jax.random.fold_in(key, 1)
        return rl.evaluate(env, learner.policy(env, state), test_key, 100, limit)

    keys = jax.random.split(jax.random.key(0), seeds)
    return np.asarray(jax.jit(jax.vmap(run_seed))(keys).episode_return).mean(1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, updates, limit, median, worst",
    [
        # After 99,328 steps: Stable-Baselines3's zoo has 500 at 100k; one of 80 other seeds had
        # 378, the others 475 or above.
        ("cartpole", 97, 500, 495, 475),
        # After 196,608 steps: chosen on 24 other seeds, the worst -219; the zoo has -172 at 100k,
        # by gSDE.
        pytest.param("pendulum", 96, 200, -180, -300, marks=pytest.mark.release),
    ],
)
def test_scores(name, updates, limit, median, worst):
    """Two seeds reach the scores with the settings of the study."""
    total = scores(rl.make(name), PPO[name], updates, 2, limit)
    assert np.median(total) >= median and total.min() >= worst, total


@pytest.mark.slow
def test_a_truncated_episode_keeps_its_worth():
    """The reward is always 1, truncated every 20 steps: the value is 1 / (1 - gamma), not < 20."""
    learner = rl.PPO(
        learning_rate=3e-3,
        gamma=0.9,
        num_envs=8,
        num_steps=40,
        update_epochs=4,
        num_minibatches=2,
        hidden_sizes=(16,),
    )
    env = Probe()
    state, _ = jax.jit(lambda key: rl.learn(env, learner, key, 150))(jax.random.key(0))
    network = ActorCritic(env.action_space, (16,))
    value = network.apply(state.params, jnp.zeros(1), method=ActorCritic.value)
    np.testing.assert_allclose(value, 10, rtol=0.05)


def test_values_ahead_are_of_what_was_seen_next_or_last_before_a_truncation():
    """Values are multiples of observations; the first copy is truncated twice, the last ended."""
    seen = -1 - np.arange(12.0, dtype=np.float32).reshape(4, 3)
    cut, ended = np.zeros((2, 4, 3), bool)
    cut[[0, 2, 3], [0, 0, 1]] = ended[1, 2] = True
    later = np.where(cut | ended, np.float32(99), 3 * seen)
    ahead = jax.jit(lambda k, x: ppo.final_values(jnp.multiply, k, later, x, cut))
    np.testing.assert_array_equal(ahead(np.float32(3), seen), np.where(ended, 99.0, 3 * seen))
    total = lambda k, x: jnp.sum(ahead(k, x))
    for slopes in (jax.grad, jax.jacfwd):
        both = jax.jit(jax.vmap(slopes(total, (0, 1)), (0, None)))
        one, other = both(np.float32([3.0, 4.0]), seen)
        np.testing.assert_allclose(one, [seen.sum()] * 2, rtol=1e-6)
        np.testing.assert_array_equal(other, np.stack([0 * seen + 3, 0 * seen + 4]))


def test_values_are_those_of_the_observations_as_they_are_normalised():
    """Test current observations, next ones, and the last ones before a truncation."""
    env, learner = Drift(rl.Box(-1.0, 1.0, (1,))), rl.PPO(hidden_sizes=(3,))
    rng = np.random.default_rng(0)
    x, final = rng.normal(size=(2, 6, 4)).astype(np.float32)
    cut, ended = np.zeros((2, 6, 4), bool)
    cut[[0, 3, 5], [1, 2, 0]] = True
    ended[2, 3] = True
    known = rng.normal(3.0, 2.0, 50).astype(np.float32)
    out = SimpleNamespace(final=jnp.asarray(final)[..., None], truncated=cut, terminated=ended)
    rows = jnp.asarray(x)[..., None]

    def value_rows():
        network = learner._network(env)
        params = network.init(jax.random.key(1), jnp.zeros(1))
        stats = normalizer.update(normalizer.init(jnp.zeros(1)), jnp.asarray(known)[:, None])
        state = SimpleNamespace(params=params, obs_stats=stats)
        value = lambda x: network.apply(params, (x - 3) / 2, method=ActorCritic.value)
        scale = lambda x: (x - known.mean()) / known.std() * 2 + 3
        plain = value(scale(rows)), value(scale(out.final))
        return learner._values(env, state, rows[:5], rows[5], cropped), plain

    cropped = SimpleNamespace(**{name: part[:5] for name, part in vars(out).items()})
    (own, ahead), (value, last) = jax.tree.map(np.asarray, jax.jit(value_rows)())
    np.testing.assert_allclose(own, value[:5], rtol=1e-4, atol=1e-5)
    want = np.where(cut[:5], last[:5], value[1:])
    known = ~ended[:5]  # after an end they do not count
    np.testing.assert_allclose(ahead[known], want[known], rtol=1e-4, atol=1e-5)
    assert np.ptp(value) > 0.05


def test_the_target_of_a_single_step_is_its_reward_and_what_it_leads_to():
    learner, no = rl.PPO(gamma=0.5, normalize_reward=False), jnp.zeros((1, 2), bool)
    out = SimpleNamespace(
        reward=jnp.array([[1.0, 2.0]]),
        terminated=no.at[0, 1].set(True),
        truncated=no,
        broken=no,
    )
    value, final = jnp.array([[3.0, 5.0]]), jnp.array([[4.0, 9.0]])
    batch = learner.batch(normalizer.init_returns(2), value, final, out)[1]
    np.testing.assert_allclose(batch["target"], [[3, 2]], rtol=1e-6)
    np.testing.assert_allclose(batch["advantage"], [[0, -3]], atol=1e-6)


def test_the_loss_is_that_of_the_paper():
    """Schulman et al. (2017), equations 7 and 9, for normals and advantages of mean 0, width 1."""
    rng = np.random.default_rng(0)
    mean, action, noise = rng.normal(size=(3, 50, 2)).astype(np.float32)
    old = rng.normal(-3, 0.3, 50).astype(np.float32)
    value, target, advantage = rng.normal(size=(3, 50)).astype(np.float32)
    log_std = np.array([-0.3, 0.2], np.float32)
    z = (action - mean) / np.exp(log_std)
    log_prob = -0.5 * (z**2).sum(1) - log_std.sum() - np.log(2 * np.pi)
    scaled = (advantage - advantage.mean()) / advantage.std()
    ratio = np.exp(log_prob - old)
    least = np.minimum(ratio * scaled, np.clip(ratio, 0.7, 1.3) * scaled)
    entropy = log_std.sum() + 1 + np.log(2 * np.pi)
    want = 0.4 * ((value - target) ** 2).mean() - least.mean() - 0.02 * entropy
    learner = rl.PPO(clip_eps=0.3, vf_coef=0.4, ent_coef=0.02)
    part = {"advantage": advantage, "action": action, "log_prob": old, "target": target}
    pi = Normal(jnp.asarray(mean), jnp.broadcast_to(jnp.asarray(log_std), mean.shape))
    got = jax.jit(learner.surrogate)(pi, jnp.asarray(value), part)
    np.testing.assert_allclose(got, want, rtol=1e-5)


@pytest.mark.slow
def test_slopes_of_a_training_are_those_of_the_plain_formula(monkeypatch):
    """Differentiate a value by learning rate and discount, in reverse mode, for three seeds."""
    env = rl.make("cartpole", max_steps=11)  # which cuts most episodes; some fall before

    def slopes():
        def value(numbers, key):
            learner = rl.PPO(
                learning_rate=numbers[0],
                gamma=numbers[1],
                num_envs=4,
                num_steps=24,
                update_epochs=1,
                num_minibatches=2,
                hidden_sizes=(8,),
            )
            state, _ = rl.learn(env, learner, key, 3)
            network, x = ActorCritic(env.action_space, (8,)), jnp.array([0.1, 0.2, 0.03, 0.1])
            return network.apply(state.params, x, method=ActorCritic.value)

        keys = jax.random.split(jax.random.key(0), 3)
        slope = jax.vmap(jax.grad(value), (None, 0))
        return jax.jit(slope, compiler_options=FEW)((1e-2, 0.9), keys)

    ours = slopes()
    monkeypatch.setattr(ppo, "final_values", lambda f, model, later, final, cut: f(model, final))
    for one, other in zip(ours, slopes(), strict=True):
        assert np.all(np.abs(one) > 1e-3)
        np.testing.assert_allclose(one, other, rtol=1e-4)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="7 minibatches of 64 environments times 64 steps"):
        rl.PPO(num_minibatches=7).init(rl.make("cartpole"), jax.random.key(0))


def test_the_learning_rate_keeps_to_a_divergence():
    """Normals moved by d diverge by d^2 / 2: slower above twice 0.01, faster below half of it."""
    learner, moves = rl.PPO(adaptive_lr=True), np.sqrt(2 * np.float32([0.025, 0.015, 0.007, 0.003]))

    @jax.jit
    def scales(key):
        old = Normal(jnp.zeros((40_000, 1)), jnp.zeros((40_000, 1)))
        action = old.sample(key)
        batch = {"action": action, "log_prob": old.log_prob(action)}
        adapt = lambda spec, d: spec.adapt_lr(
            jnp.ones(()), Normal(old.mean + d, old.log_std), batch
        )
        return jax.vmap(lambda d: adapt(learner, d))(moves), adapt(rl.PPO(), moves[3])

    found, plain = scales(jax.random.key(0))
    np.testing.assert_allclose(found, [1 / 1.5, 1.0, 1.0, 1.5], rtol=1e-6)
    assert plain == 1


def test_the_noise_at_the_start_is_what_is_asked_for():
    """This holds with a memory and under vmap; all other parameters start as usual."""
    env, key = rl.make("pendulum"), jax.random.key(0)

    def init_params(spec):
        return spec.init(env, key).params["params"]

    def starts(each):
        narrow = rl.PPO(log_std=-2.0)
        many = jax.vmap(lambda log_std: init_params(rl.PPO(log_std=log_std))["spread"])(each)
        return (
            init_params(rl.PPO()),
            init_params(narrow),
            init_params(rl.RecurrentPPO(narrow)),
            many,
        )

    each = np.float32([-1.0, -3.0])
    wide, narrow, memory, many = jax.jit(starts, compiler_options=FEW)(each)
    np.testing.assert_array_equal(wide["spread"], [-0.5])
    np.testing.assert_array_equal(narrow["spread"], [-2.0])
    jax.tree.map(np.testing.assert_array_equal, wide["actor"], narrow["actor"])
    np.testing.assert_array_equal(memory["heads"]["spread"], [-2.0])
    np.testing.assert_array_equal(many, each[:, None])
