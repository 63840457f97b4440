"""Evolution strategies: scores, the search loop, and failed episodes."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rl_cliff import Cliff

from jaxgpu import rl
from jaxgpu.evolution import protocol
from jaxgpu.evolution.single import SNES


@pytest.mark.slow
def test_the_pole_is_balanced_after_20_generations():
    """Take the median of three seeds with 64 episodes each, at the defaults."""
    env, learner = rl.make("cartpole"), rl.ES(max_steps=500)

    def run_seed(key):
        state, _ = rl.learn(env, learner, key, 20)
        test_key = jax.random.fold_in(key, 1)
        return rl.evaluate(env, learner.policy(env, state), test_key, 64, 500).episode_return

    total = jax.jit(jax.vmap(run_seed))(jax.random.split(jax.random.key(0), 3))
    means = np.asarray(total).mean(1)
    assert np.median(means) >= 500, means


@pytest.mark.slow
def test_a_generation_is_one_of_the_search_on_the_objective():
    """Compare with the loop of `evolution`, for the same keys."""
    env, learner, key = rl.make("cartpole"), rl.ES(SNES(4), max_steps=20), jax.random.key(5)

    problem = learner.objective(env).problem()

    @partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
    def update_both(state, search, key):
        following = protocol.advance_search(learner.algorithm, problem, search, key)
        return learner.update(env, state, key), following

    state = jax.jit(lambda key: learner.init(env, key))(key)
    search = protocol.init_search(learner.algorithm, problem, key)
    for i in range(3):
        state, search = update_both(state, search, jax.random.fold_in(key, i))
    one = state.search, state.obs_stats
    other = search.state, search.objective.obs_stats
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), one, other)


def test_bad_input_is_named():
    env, key = rl.make("cartpole"), jax.random.key(0)
    with pytest.raises(ValueError, match="max_weight"):
        rl.ES(max_weight=-1.0).init(env, key)
    with pytest.raises(ValueError, match="episodes"):
        rl.ES(episodes=0).init(env, key)
    with pytest.raises(TypeError, match="ES: env is a int; it must be an environment"):
        rl.ES().init(3, key)


@pytest.mark.slow
def test_a_return_that_is_nan_never_wins():
    env, learner = Cliff(lambda a: jnp.sqrt(-a), 2), rl.ES(SNES(8), max_steps=2, hidden_sizes=())
    state, _ = jax.jit(lambda key: rl.learn(env, learner, key, 40))(jax.random.key(0))
    assert learner.policy(env, state)(jnp.ones(1)) < -0.9
