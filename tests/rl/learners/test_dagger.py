"""DAgger: who acts, which rows are stored, what the student learns, and invalid inputs."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu import rl
from jaxgpu.inputs.fields import pytree

KEY = jax.random.key(0)
FEW = {"xla_backend_optimization_level": 0}  # programs that run once
BALANCE = jax.tree_util.Partial(lambda x: (x[2] + 0.5 * x[3] > 0).astype(int))


@pytree
class Ledge:
    """A line on which each step is as long as the action; the episode ends after 8 steps."""

    action_space = rl.Box(-1.0, 1.0, (1,))
    observation_space = rl.Box(-9.0, 9.0, (1,))
    differentiable = True

    def reset(self, key):
        return (jnp.zeros(()), jnp.int32(0)), jnp.zeros(1)

    def step(self, state, action, key):
        x, t = state[0] + action[0], state[1] + 1
        return rl.Step((x, t), x[None], x, jnp.bool_(False), t >= 8, {})


# The teacher always moves one step ahead; its untrained student hardly moves.
AHEAD = rl.DAgger(
    jax.tree_util.Partial(lambda x: jnp.ones(1)),
    learning_rate=0.0,
    num_envs=64,
    num_steps=8,
    gradient_steps=1,
    buffer_size=1536,  # three updates
    hidden_sizes=(4,),
)
DECAYS = np.array([0.0, 0.5, 1.0], np.float32)


@pytest.fixture(scope="module")
def buffers():
    """Return the replay buffers after three and four updates for each decay, [2, 3, 3, T, B]."""

    def learn_decay(decay):
        learner = replace(AHEAD, decay=decay)
        return rl.learn(Ledge(), learner, KEY, 4, measure=lambda state: state.replay)[1]

    kept = jax.device_get(jax.jit(jax.vmap(learn_decay), compiler_options=FEW)(DECAYS))
    assert kept.size.tolist() == [[0, 512, 1024, 1536, 1536]] * 3
    return jax.tree.map(lambda x: np.swapaxes(x[:, 3:], 0, 1).reshape(2, 3, 3, 8, 64), kept.rows)


@pytest.mark.slow
def test_the_teacher_plays_a_share_of_the_steps_that_falls_as_it_is_told(buffers):
    """The teacher takes all steps of the first update; its advice is recorded in all steps."""
    assert (buffers["action"] == 1).all()
    steps = np.diff(buffers["observation"][0], axis=2)  # [3, 3, 7, 64]
    assert np.isin(np.round(steps, 1), [0, 1]).all()
    np.testing.assert_array_equal(steps[:, 0], 1)
    for i, decay in enumerate(DECAYS):
        for update in (1, 2):
            taught = np.mean(steps[i, update] > 0.5)
            assert taught == pytest.approx(decay**update, abs=4 * 0.5 / np.sqrt(448))


@pytest.mark.slow
def test_all_that_was_seen_is_kept_until_there_is_no_room(buffers):
    """Rows are aggregated: the newest rows replace only the oldest."""
    three, four = buffers["observation"]
    np.testing.assert_array_equal(three[:, 1:], four[:, 1:])
    assert (three[0, 0, -1] == 7).all() and (np.abs(four[0, 0, -1]) < 0.5).all()


@pytest.mark.slow
def test_a_teacher_that_is_at_a_loss_spoils_nothing():
    """The teacher gives nan beyond a position, where no row is stored; its 9 is clipped to 1."""
    odd = jax.tree_util.Partial(lambda x: jnp.where(x < 3.5, 9.0, jnp.nan))
    learner = replace(AHEAD, teacher=odd, decay=1.0, learning_rate=1e-3)
    state, reports = jax.jit(lambda key: rl.learn(Ledge(), learner, key, 2), compiler_options=FEW)(
        KEY
    )
    size, rows = int(state.replay.size), state.replay.rows
    assert (np.asarray(rows["action"][:size]) == 1).all()
    assert 256 <= size < 1024 and (np.asarray(rows["observation"][:size]) < 3.5).all()
    assert all(np.isfinite(x).all() for x in jax.tree.leaves((state.params, reports)))


@pytest.mark.slow
def test_a_student_of_choices_balances_the_pole_as_its_teacher_does():
    env = rl.make("cartpole")
    learner = rl.DAgger(BALANCE, 3e-3, num_envs=16, hidden_sizes=(16,))
    done = rl.train(env, learner, KEY, 8192)
    scores = rl.evaluate(env, done.policy, jax.random.key(1), 32, 500)
    assert jnp.median(scores.episode_return) == 500
    assert done.history["error"][-1] < 0.5 * done.history["error"][1]


WRONG = {
    "teacher=None; it must be a learnt policy": (None, {}),
    "teacher=a value of type function; it must be a learnt policy": (lambda x: x, {}),
    "teacher returns float32.3.; actions of Pendulum": (jax.tree_util.Partial(lambda x: x), {}),
    "teacher returns int32..; actions of Pendulum": (BALANCE, {}),
    "teacher=a function that cannot be called with 1": (jax.tree_util.Partial(lambda: 1), {}),
    r"teacher.*nan": (jax.tree_util.Partial(lambda w, x: w * x[:1], jnp.nan), {}),
    "buffer_size=10; an update has 1024": (BALANCE, {"buffer_size": 10}),
}


@pytest.mark.slow
@pytest.mark.parametrize("sentence", WRONG)
def test_teachers_that_cannot_be_asked_are_refused(sentence):
    teacher, sizes = WRONG[sentence]
    with pytest.raises((TypeError, ValueError), match=f"DAgger: {sentence}"):
        rl.DAgger(teacher, **sizes).init(rl.make("pendulum"), KEY)
