"""Invalid arguments of learners, loops and environments: one sentence for each."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases_rearrange import make_task
from rl_probe import Probe

from jaxgpu import rl
from jaxgpu.rl import plan

KEY = jax.random.key(0)
POLE, SWING = rl.make("cartpole"), rl.make("pendulum")
LEARNERS = [
    (POLE, rl.PPO()),
    (SWING, rl.SAC()),
    (POLE, rl.PQN()),
    (SWING, rl.SHAC()),
    (POLE, rl.ES()),
    (POLE, rl.RecurrentPPO(rl.PPO())),
]


@pytest.mark.parametrize("env, learner", LEARNERS, ids=lambda x: type(x).__name__)
def test_every_hyper_parameter_is_checked_before_anything_is_run(env, learner):
    """Test nan everywhere, shares above 1 and below 0, and sizes of 0."""
    spec = learner.ppo if isinstance(learner, rl.RecurrentPPO) else learner
    bad = {"gamma": [1.5, -0.1], "clip_eps": [-1.0, 0.0], "tau": [2.0], "hold": [-0.1]}
    bad |= {name: [-1.0] for name in ("gae_lambda", "q_lambda", "td_lambda", "learning_rate")}
    bad |= {"exploration_fraction": [0.0], "num_envs": [0], "num_steps": [0], "buffer_size": [0]}
    bad |= {"update_epochs": [0], "num_minibatches": [0, 2.5], "critic_iterations": [0]}
    bad |= {"episodes": [0], "max_steps": [0], "gradient_steps": [0], "batch_size": [0]}
    bad |= {"hidden_sizes": [(0,)]}
    for name, value in vars(spec).items():
        values = bad.get(name, [])
        if isinstance(value, float):
            values = [np.nan, *values]
        for x in values:
            wrong = replace(spec, **{name: x})
            wrong = wrong if spec is learner else replace(learner, ppo=wrong)
            with pytest.raises((ValueError, TypeError), match=rf"{name}=.*; it must be"):
                rl.train(env, wrong, KEY, 10_000)
            with pytest.raises((ValueError, TypeError), match=rf"{name}=.*; it must be"):
                rl.learn(env, wrong, KEY, 2)


@pytest.mark.parametrize("name", [n for n in rl.names() if not n.startswith("matter/")])
def test_every_parameter_of_an_environment_is_checked(name):
    env = make_task(name)
    houses = {"episodes": env.episodes} if name.startswith("rearrange/") else {}
    for field, value in vars(env).items():
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            with pytest.raises(
                (ValueError, TypeError), match=rf"make: \w+\.{field}=nan.*; it must"
            ):
                rl.make(name, **houses | {field: np.nan})
    with pytest.raises(ValueError, match=r"max_steps=0; it must be a whole number of at least 1"):
        rl.make(name, max_steps=0, **houses)


def test_parameters_out_of_range_are_refused_by_the_loops_too():
    env = rl.Pendulum(mass=-1.0)
    sentence = r"Pendulum.mass=-1; it must be a finite number above 0, in kg"
    for call in (
        lambda: rl.add_checks(env).reset(KEY),
        lambda: rl.vectorize(env, 2),
        lambda: rl.evaluate(env, lambda x: x[:1], KEY, 2, 2),
        lambda: rl.learn(env, rl.PPO(), KEY, 2),
    ):
        with pytest.raises(ValueError, match=sentence):
            call()
    for name in ("episodes", "max_steps"):
        counts = {"episodes": 2, "max_steps": 2} | {name: 0}
        with pytest.raises(ValueError, match=rf"evaluate: {name}=0; it must be a whole number"):
            rl.evaluate(POLE, lambda x: 0, KEY, **counts)
    with pytest.raises(TypeError, match=r"learn: num_updates=2.5 of type float64; it must be"):
        rl.learn(POLE, rl.PPO(), KEY, 2.5)


class Other(Probe):
    """A probe whose observation or reward has another type."""

    def __init__(self, seen=None, paid=None):
        object.__setattr__(self, "period", 20)
        object.__setattr__(self, "seen", seen)
        object.__setattr__(self, "paid", paid)

    def reset(self, key):
        state, seen = super().reset(key)
        return state, seen if self.seen is None else self.seen

    def step(self, state, action, key):
        step = super().step(state, action, key)
        step = step if self.seen is None else step._replace(observation=self.seen)
        return step if self.paid is None else step._replace(reward=self.paid)


IDLE = rl.DAgger(jax.tree_util.Partial(lambda x: jnp.zeros(1)))
LEARN = [rl.PPO(), rl.SAC(), rl.SHAC(), rl.ES(), rl.RecurrentPPO(rl.PPO()), IDLE]


@pytest.mark.parametrize("learner", LEARN, ids=lambda x: type(x).__name__)
def test_what_no_learner_takes_is_refused(learner):
    """Test images without a network, other shapes of observations, and several objectives."""
    name = type(learner).__name__
    picture, dictionary = jnp.zeros((8, 8, 1)), {"eye": jnp.zeros(3), "hand": jnp.zeros(2)}
    alone = isinstance(learner, rl.ES)  # it takes one vector and nothing else
    vector = "it must be one vector"
    for env, error, sentence in (
        (Other(picture), TypeError, vector if alone else "give the learner network=rl.CNN"),
        (Other(jnp.zeros((8, 8))), TypeError, vector if alone else r"it must be a vector \[N\] or"),
        (Other(dictionary), TypeError if alone else ValueError, vector if alone else "must be the"),
        (Other(paid=jnp.zeros(2)), TypeError, r"of Other has shape \[2\]; it must be one number"),
    ):
        with pytest.raises(error, match=f"{name}: .*{sentence}"):
            learner.init(env, KEY, 2)


class Mute(Probe):
    """A probe that does not report success."""

    def step(self, state, action, key):
        return super().step(state, action, key)._replace(info={})


def test_an_environment_need_not_say_what_a_success_is():
    scores = rl.evaluate(Mute(), lambda x: x, KEY, 3, 30)
    assert not scores.success.any() and (scores.episode_return == 20).all()
    copies = rl.vectorize(Mute(), 2)
    _, out = copies.step(copies.reset(KEY), jnp.zeros((2, 1)), KEY)
    assert out.report()["success"] == 0


def test_actions_of_copies_are_checked():
    copies = rl.vectorize(SWING, 4)
    state = jax.jit(copies.reset)(KEY)
    with pytest.raises(ValueError, match=r"step: action=nan at \[1, 0\]; it must be a finite"):
        copies.step(state, jnp.zeros((4, 1)).at[1].set(jnp.nan), KEY)
    with pytest.raises(ValueError, match=r"step: action has shape \[3, 1\]; it must be \[4"):
        copies.step(state, jnp.zeros((3, 1)), KEY)


def test_planners_are_checked():
    bowl = lambda actions: jnp.sum(actions**2)
    for planner, sentence in (
        (plan.CEM(sigma=np.nan), "CEM.sigma=nan; it must be a finite number above 0"),
        (plan.CEM(keep=1.5), "CEM.keep=1.5; it must be"),
        (plan.MPPI(temperature=0.0), "MPPI.temperature=0; it must be"),
        (plan.MPPI(correlation=1.0), "MPPI.correlation=1; it must be"),
    ):
        with pytest.raises(ValueError, match=sentence):
            plan.plan(bowl, jnp.zeros((3, 1)), planner, 2, key=KEY)
    with pytest.raises(ValueError, match=r"plan: actions=nan at \[0, 0\]"):
        plan.plan(bowl, jnp.full((3, 1), jnp.nan), plan.MPPI(), 2, key=KEY)
    with pytest.raises(ValueError, match=r"plan: actions has shape \[3\]; it must be \[T, A\]"):
        plan.plan(bowl, jnp.zeros(3), plan.MPPI(), 2, key=KEY)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gamma", "learning_rate", "log_std"])
@pytest.mark.parametrize("wrong", [jnp.array([0.5, 0.6]), [0.5, 0.6]])
def test_a_hyper_parameter_that_is_no_one_number_is_named_by_whichever_door_sees_it(name, wrong):
    """Functions inside see tracers and cannot know which value is invalid."""
    learner = rl.PPO(**{name: wrong}, num_envs=4, num_steps=4, num_minibatches=1)
    with pytest.raises(ValueError, match=rf"PPO.{name} has shape \[2\]; it must be one number"):
        rl.train(rl.make("pendulum"), learner, jax.random.key(0), 160)
