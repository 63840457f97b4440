"""Trainings that start with the critic of another training."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rl_pictures import CNN, LEARNERS, PRIVATE, TINY, Pointer

from jaxgpu import rl
from jaxgpu.rl.learners import normalizer

KNOWN = ("goal", "place")
KEY = jax.random.key(0)
STUDENT = LEARNERS["PPO"]
TEACHER = replace(STUDENT, actor_keys=KNOWN, normalize_reward=True)


@partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
def teacher_pair(key):
    """Return a teacher with normalizers far from 0 and 1, its student, and the values of both."""
    env, keys = Pointer(), jax.random.split(key, 4)
    teacher = TEACHER.init(env, keys[0])
    seen = jax.vmap(env.reset)(jax.random.split(keys[1], 50))[1]
    seen["goal"] = 5 + 3 * seen["goal"]
    sums = normalizer.update(teacher.returns.stats, 7 * jax.random.normal(keys[2], (9, 4)))
    teacher = replace(
        teacher,
        obs_stats=normalizer.update(teacher.obs_stats, seen),
        returns=replace(teacher.returns, stats=sums),
    )
    learner = replace(STUDENT, normalize_reward=True, critic=TEACHER.critic_of(teacher))
    student = learner.init(env, keys[3], 2)

    def values(learner, state):
        scaled = normalizer.apply(state.obs_stats, seen)
        return learner._apply(learner._network(env), state.params, scaled)[1]

    told = values(TEACHER, teacher), values(learner, student)
    return teacher, student, told, learner.policy(env, student)


@pytest.mark.slow
def test_a_training_begins_with_the_values_of_the_critic_that_it_is_given():
    """Values are bitwise equal although the actor has other inputs; reward scales are copied."""
    teacher, student, (theirs, ours), policy = teacher_pair(KEY)
    np.testing.assert_array_equal(ours, theirs)
    assert np.std(theirs) > 1e-3
    assert student.obs_stats.count == 50 and student.returns.stats.count == 36
    np.testing.assert_array_equal(student.returns.stats.square, teacher.returns.stats.square)
    fresh = replace(STUDENT, critic=None)
    actor = jax.eval_shape(lambda key: fresh.init(Pointer(), key), KEY).params["params"]["actor"]
    assert jax.tree.map(jnp.shape, student.params["params"]["actor"]) == jax.tree.map(
        jnp.shape, actor
    )
    assert policy.learner.critic is None  # is not carried about by what acts


def test_a_critic_that_has_lost_its_numbers_is_not_passed_on():
    like = jax.eval_shape(lambda key: TEACHER.init(Pointer(), key), KEY)
    lost = jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), replace(like, env_state=None))
    lost = replace(lost, params=jax.tree.map(lambda x: x * np.float32(np.nan), lost.params))
    with pytest.raises(ValueError, match=r"PPO.critic_of: critic.*=nan at .*must be a finite"):
        TEACHER.critic_of(lost)


def test_a_critic_of_the_whole_state_serves_an_actor_that_feels():
    """The teacher of a tactile task has no tactile field and needs no network for it."""
    keys = ("hand", "privileged")
    make = lambda kind: rl.make("touch/peg-insertion", observation=kind, taxels=(4, 3))
    teacher = rl.PPO(actor_keys=keys, critic_keys=keys, **TINY)

    def init_student(key):
        state = teacher.init(make("reduced"), key)
        student = rl.PPO(
            network=CNN,
            actor_keys=("hand", "field"),
            critic_keys=keys,
            critic=teacher.critic_of(state),
            **TINY,
        )
        return student.init(make("force"), key)

    stats = jax.eval_shape(init_student, KEY).obs_stats
    assert {name: x.shape for name, x in stats.mean.items()} == {
        "hand": (25,),
        "privileged": (31,),
        "field": (4, 3, 6),
    }


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"hidden_sizes": (8,)}, "weights of shapes .* give both learners the same hidden_si"),
        ({"critic_keys": ("goal",)}, "weights of shapes .* and critic observations"),
    ],
)
def test_a_critic_of_another_shape_is_refused(change, said):
    begin = lambda key: replace(STUDENT, critic=TEACHER.critic_of(TEACHER.init(Pointer(), key)))
    with pytest.raises(ValueError, match=f"PPO: the given critic has {said}"):
        jax.eval_shape(lambda key: replace(begin(key), **change).init(Pointer(), key), KEY)


def test_a_critic_that_is_not_finite_is_refused():
    begun = jax.eval_shape(lambda: STUDENT.init(Pointer(), KEY))
    critic = jax.eval_shape(STUDENT.critic_of, begun)
    broken = jax.tree.map(lambda x: np.full(x.shape, np.nan, np.float32), critic)
    with pytest.raises(ValueError, match="PPO: critic.params.*=nan at .*; it must be a finite"):
        broken.put_into("PPO", begun)


def test_a_critic_that_has_not_seen_what_is_observed_is_refused():
    """Inputs that are normalized together need a common count."""
    seen = normalizer.init({"goal": jnp.zeros(1)})
    fresh = normalizer.init({"goal": jnp.zeros(1), "place": jnp.zeros(1)})
    with pytest.raises(
        ValueError,
        match=r"PPO: .* not learned from an observation\['place'\] of shape \[1\]; train",
    ):
        normalizer.transfer_stats("PPO", fresh, seen)
    with pytest.raises(
        ValueError, match=r"PPO: .* not learned from an observation of shape \[2\]; train"
    ):
        normalizer.transfer_stats("PPO", normalizer.init(jnp.zeros(2)), seen)


def test_a_learner_with_a_memory_refuses_a_critic():
    def begin(key):
        ppo = replace(STUDENT, critic=STUDENT.critic_of(STUDENT.init(Pointer(), key)), **PRIVATE)
        return rl.RecurrentPPO(ppo, hidden_size=4).init(Pointer(), key)

    with pytest.raises(ValueError, match="RecurrentPPO: its ppo has a critic of another training"):
        jax.eval_shape(begin, KEY)
