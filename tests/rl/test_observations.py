"""Observations that are images, dictionaries and vectors, with every learner."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from conformance import avals
from rl_pictures import CNN, LEARNERS, PRIVATE, TINY, Pointer, best_return

from jaxgpu import rl
from jaxgpu.inputs.fields import pytree

KEY = jax.random.key(0)


def task(name):
    return Pointer(rl.Discrete(2)) if name == "PQN" else Pointer()


@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_by_gradients_takes_pictures_and_vectors(name):
    """An update preserves the dtypes of a state, and its policy accepts observations."""
    env, learner = task(name), LEARNERS[name]

    def run_learner(key):
        state = learner.init(env, key, 2)
        policy, seen = learner.policy(env, state), env.reset(key)[1]
        acts = policy.act(policy.carry, seen)[1] if "Recurrent" in name else policy(seen)
        return state, learner.update(env, state, key), acts

    state, after, action = jax.eval_shape(run_learner, KEY)
    assert avals(after) == avals(state)
    assert action.shape == env.action_space.shape


FEW = {"xla_backend_optimization_level": 0}  # programs that run once


@pytest.mark.slow
@pytest.mark.parametrize("name", ["RecurrentPPO, private", "PQN", "SAC", "SHAC"])
def test_every_learner_by_gradients_learns_from_pictures(name):
    """All weights change, also of convolutions, and are finite."""
    env, learner = task(name), LEARNERS[name]

    def learn(key):
        begin = learner.init(env, key, 3)
        return begin, learner.update(env, learner.update(env, begin, key), key)

    begin, state = jax.jit(learn, compiler_options=FEW)(KEY)
    before, after = (jax.tree.leaves_with_path(s.params) for s in (begin, state))
    for (at, a), (_, b) in zip(before, after, strict=True):
        assert np.any(np.asarray(a) != np.asarray(b)), at
        assert np.isfinite(b).all(), at
    assert "eye" not in state.obs_stats.mean or not np.any(state.obs_stats.mean["eye"])


@pytree
class Parted:
    """A pendulum whose observation has two parts; together they are the usual one."""

    env: rl.Pendulum = rl.make("pendulum")

    observation_space = {"a": rl.Box(-1.0, 1.0, (2,)), "b": rl.Box(-9.0, 9.0, (1,))}
    action_space = property(lambda self: self.env.action_space)
    differentiable = True

    def reset(self, key):
        state, seen = self.env.reset(key)
        return state, {"a": seen[:2], "b": seen[2:]}

    def step(self, state, action, key):
        step = self.env.step(state, action, key)
        return step._replace(observation={"a": step.observation[:2], "b": step.observation[2:]})


@pytest.mark.slow
def test_vectors_in_a_dictionary_are_learnt_from_as_the_vector_that_they_make():
    small = rl.PPO(hidden_sizes=(8,), **TINY)
    train = lambda env: jax.jit(lambda key: rl.learn(env, small, key, 4), compiler_options=FEW)(KEY)
    parted, whole = train(Parted()), train(rl.make("pendulum"))
    assert jax.tree.structure(parted[0].params) == jax.tree.structure(whole[0].params)
    for a, b in zip(jax.tree.leaves(parted[0].params), jax.tree.leaves(whole[0].params)):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)  # what is fused otherwise


@pytest.mark.slow
def test_a_goal_that_only_a_picture_shows_is_reached():
    """The actor sees the image and its position; the critic knows the goal."""
    env = Pointer()
    ppo = rl.PPO(
        learning_rate=3e-3,
        gamma=0.9,
        network=CNN,
        **PRIVATE,
        num_envs=32,
        num_steps=32,
        num_minibatches=8,
    )
    state, _ = jax.jit(lambda key: rl.learn(env, ppo, key, 60))(KEY)
    key = jax.random.key(1)
    scores = rl.evaluate(env, ppo.policy(env, state), key, 256, 8)
    place, goal, _ = jax.vmap(lambda key: env.reset(key)[0])(
        jax.random.split(jax.random.split(key)[0], 256)
    )
    best = best_return(np.asarray(place), np.asarray(goal)).mean()
    blind = best_return(np.asarray(place), np.zeros(256)).mean() - 8 * np.mean(np.square(goal))
    assert blind < -2.5 < best + 0.35 * (blind - best) < scores.episode_return.mean()


@pytest.mark.parametrize(
    "change, error, said",
    [
        (
            {"network": None},
            TypeError,
            r"has shape \[8, 8, 1\] at \['eye'\], that of an image; without",
        ),
        ({"network": rl.CNN}, TypeError, "PPO: network=.*; it must be a flax module"),
        ({"actor_keys": ("ear",)}, ValueError, r"has the keys \['eye', 'goal', 'place'\]; actor_k"),
        ({"critic_keys": ()}, ValueError, r"critic_keys=\(\); it must be some of them, or None"),
    ],
)
def test_what_a_network_does_not_take_is_said(change, error, said):
    with pytest.raises(error, match=said):
        replace(LEARNERS["PPO"], **change).init(Pointer(), KEY, 2)
