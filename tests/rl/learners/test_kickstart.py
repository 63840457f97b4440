"""Kickstarted PPO: the teacher's part of the loss, its duration, and invalid teachers."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu import rl
from jaxgpu.rl.learners.networks import Categorical, Normal

KEY = jax.random.key(0)
FEW = {"xla_backend_optimization_level": 0}  # programs that run once
SWING, POLE = rl.make("pendulum"), rl.make("cartpole")
BRAKE = jax.tree_util.Partial(lambda x: -0.2 * x[2:])
BALANCE = jax.tree_util.Partial(lambda x: (x[2] + 0.5 * x[3] > 0).astype(int))
TINY: dict[str, Any] = {"num_envs": 4, "num_steps": 4, "update_epochs": 2, "num_minibatches": 2}
STUDENT = rl.KickstartedPPO(teacher=BRAKE, hidden_sizes=(4,), **TINY)
ALONE = rl.PPO(hidden_sizes=(4,), **TINY)


def teacher_loss(pi, advice, action):
    """Return the teacher's part of the loss of two rows with weights 1 and 2, and PPO's part."""
    part = {
        "advantage": jnp.array([1.0, -1.0]),
        "target": jnp.zeros(2),
        "log_prob": jnp.zeros(2),
        "action": action,
    }
    more = part | {"weight": jnp.array([1.0, 2.0]), "advice": advice}
    value = jnp.zeros(2)
    return STUDENT.surrogate(pi, value, more) - ALONE.surrogate(pi, value, part)


def test_the_loss_has_how_unlikely_the_teachers_actions_are():
    """Continuous actions count in deviations of a fixed spread, discrete ones in nats."""
    advice = jnp.array([[0.3, -1.0], [0.5, 2.0]])

    def student_loss(mean, log_std):
        pi = Normal(mean, jnp.broadcast_to(log_std, (2, 2)))
        return teacher_loss(pi, advice, jnp.zeros((2, 2)))

    mean, log_std = jnp.array([[0.0, 1.0], [-1.0, 0.25]]), jnp.array([-0.5, 0.75])
    value, (by_mean, by_spread) = jax.value_and_grad(student_loss, (0, 1))(mean, log_std)
    m, a, s = np.asarray(mean), np.asarray(advice), np.exp(np.asarray(log_std))
    w = np.array([1.0, 2.0])
    density = np.exp(-0.5 * ((a - m) / s) ** 2) / (s * np.sqrt(2 * np.pi))
    np.testing.assert_allclose(value, np.mean(-w * np.log(density).sum(1)), rtol=1e-5)
    np.testing.assert_allclose(by_mean, w[:, None] * (m - a) / s**2 / 2, rtol=1e-5)
    np.testing.assert_array_equal(by_spread, 0)

    logits, choice = jnp.array([[0.0, 1.0, -2.0], [0.5, 0.5, 3.0]]), jnp.array([2, 0])
    share = np.exp(np.asarray(logits)) / np.exp(np.asarray(logits)).sum(1, keepdims=True)
    found = teacher_loss(Categorical(logits), choice, jnp.array([0, 1]))
    np.testing.assert_allclose(found, -np.mean(w * np.log(share[[0, 1], [2, 0]])), rtol=1e-5)


@pytest.mark.slow
def test_the_weight_falls_to_zero_over_its_share_of_the_training():
    """The advice is the teacher's action for the student's observation, clipped to the bounds."""
    learner = replace(STUDENT, teacher_coef=2.0, teacher_share=0.5)

    def batch(update):
        at = replace(learner.init(SWING, KEY, 8), update=update)
        return learner._rollout(SWING, at, KEY)[1]

    updates = np.arange(0, 8, 2, dtype=np.int32)
    batches = jax.jit(jax.vmap(batch), compiler_options=FEW)(updates)
    each = np.broadcast_to(np.array([2.0, 1.0, 0.0, 0.0])[:, None, None], (4, 4, 4))
    np.testing.assert_allclose(batches["weight"], each)
    speed = batches["observation"][..., 2:]
    np.testing.assert_allclose(batches["advice"], np.clip(-0.2 * speed, -1, 1), rtol=1e-6)


@pytest.mark.slow
def test_a_teacher_that_is_at_a_loss_says_nothing():
    odd = jax.tree_util.Partial(lambda x: jnp.where(x[2:] > 0, 9.0, jnp.nan))
    learner = replace(STUDENT, teacher=odd)

    def play(key):
        batch = learner._rollout(SWING, learner.init(SWING, key, 4), key)[1]
        return batch, rl.learn(SWING, learner, key, 2)[0].params

    batch, params = jax.jit(play, compiler_options=FEW)(KEY)
    told = np.asarray(batch["observation"][..., 2] > 0)
    assert 0 < told.sum() < told.size
    np.testing.assert_array_equal(batch["weight"], np.where(told, 1.0, 0.0))
    assert (np.asarray(batch["advice"])[told] == 1).all()  # the bound
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(params))


@pytest.mark.slow
def test_a_teacher_without_weight_leaves_ppo_as_it_is():
    learn = lambda learner: jax.jit(
        lambda key: rl.learn(SWING, learner, key, 3)[0], compiler_options=FEW
    )(KEY)
    told, alone = learn(replace(STUDENT, teacher_coef=0.0)), learn(ALONE)
    assert_near = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    jax.tree.map(assert_near, told.params, alone.params)


@pytest.mark.slow
def test_a_kickstarted_student_balances_the_pole_long_before_one_alone():
    sizes: dict[str, Any] = {
        "num_envs": 16,
        "num_steps": 32,
        "hidden_sizes": (16,),
        "update_epochs": 8,
    }

    def median(learner):
        done = rl.train(POLE, learner, KEY, 8192)
        scores = rl.evaluate(POLE, done.policy, jax.random.key(1), 32, 500)
        return float(jnp.median(scores.episode_return))

    assert median(rl.KickstartedPPO(teacher=BALANCE, learning_rate=3e-3, **sizes)) == 500
    assert median(rl.PPO(learning_rate=3e-3, **sizes)) < 400


WRONG = {
    "teacher=None; it must be a learnt policy": None,
    "teacher=a value of type function; it must be a learnt policy": lambda x: x,
    "teacher returns float32.3.; actions of Pendulum": jax.tree_util.Partial(lambda x: x),
    "teacher returns int32..; actions of Pendulum": BALANCE,
    "teacher cannot act on an observation of Pendulum, which is an array of shape": ALONE,
    r"teacher.*nan": jax.tree_util.Partial(lambda w, x: w * x[:1], jnp.nan),
}


@pytest.mark.parametrize("sentence", WRONG)
def test_teachers_that_cannot_be_asked_are_refused(sentence):
    teacher = WRONG[sentence]
    if teacher is ALONE:  # learnt of the pole
        like = jax.eval_shape(lambda key: ALONE.init(POLE, key), KEY)
        teacher = ALONE.policy(POLE, jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), like))
    with pytest.raises((TypeError, ValueError), match=f"KickstartedPPO: {sentence}"):
        rl.KickstartedPPO(teacher=teacher).init(SWING, KEY)


def test_a_learner_with_a_memory_refuses_a_teacher():
    with pytest.raises(TypeError, match="RecurrentPPO: its ppo has a teacher"):
        rl.RecurrentPPO(STUDENT).init(SWING, KEY)
