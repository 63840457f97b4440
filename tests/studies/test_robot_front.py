"""The study `robot-front`: equal steps, one network for all, and its report."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu import rl
from jaxgpu.evolution.problem import box
from jaxgpu.inputs.fields import pytree
from jaxgpu.rl.learners import normalizer
from jaxgpu.rl.learners.evolved.neuroevolution import ObjectiveState
from jaxgpu.runs.loop import Run, Timing
from jaxgpu.studies import robot_front
from jaxgpu.studies.robot_front import races, task
from jaxgpu.studies.robot_front.races import Budget, RandomSearch

KEY = jax.random.key(0)


@pytree
class Cart:
    """A mass that is pushed; its rewards are its velocity and minus the squared push."""

    observation_space = property(lambda self: rl.Box(-np.inf, np.inf, (2,)))
    action_space = property(lambda self: rl.Box(-1.0, 1.0, (1,)))
    differentiable = property(lambda self: True)

    def reset(self, key):
        """Start almost at rest."""
        v = 0.1 * jax.random.normal(key)
        return (v, jnp.int32(0)), jnp.stack([v, v**2])

    def step(self, state, action, key):
        """Push the mass."""
        v, t = 0.9 * state[0] + action[0], state[1] + 1
        reward = jnp.stack([v, -0.5 * action[0] ** 2])
        return rl.Step((v, t), jnp.stack([v, v**2]), reward, jnp.bool_(False), t >= 8, {})


def test_a_policy_of_ppo_is_the_same_one_with_what_others_know_of_observations():
    env, ppo = rl.make("pendulum"), rl.PPO(num_envs=2, num_steps=4, hidden_sizes=(16,))
    state = ppo.init(env, KEY, 10)
    rows = jax.random.normal(KEY, (2, 50, 3)) * jnp.array([1.0, 3.0, 0.2])[None, None] + 0.5
    stats = [normalizer.update(state.obs_stats, a) for a in (rows[0], 1.5 * rows[1] - 1)]
    known = ObjectiveState(stats[1], {})
    policies = rl.PolicyObjective(env, (16,), max_weight=20.0)
    x = task.convert_weights(policies, task.Actor(state.params["params"]["actor"], stats[0]), known)
    wanted = ppo.policy(env, state.__class__(**{**vars(state), "obs_stats": stats[0]}))
    one = jnp.array([0.3, -0.8, 0.4])
    assert np.abs(x).max() < 1 and x.shape == (policies.weights,)
    np.testing.assert_allclose(policies.policy(x, known)(one), wanted(one), rtol=1e-4, atol=1e-6)


def test_all_ways_spend_as_many_steps():
    for sizes in ((24, 24, 80), (64, 100, 200), (65536, 100, 1000)):
        budget = Budget(*sizes)
        ppo = len(races.SHARES) * budget.updates * budget.ppo.steps_per_update
        share = len(races.SHARES) * races.CANDIDATES * budget.searches
        cma = budget.max_steps * (budget.members + share)
        for spent in (ppo, cma):
            assert 0.85 * budget.steps < spent <= budget.steps


def test_steps_are_told_as_they_were_trained_and_policies_are_those_of_each_weight(
    monkeypatch, tmp_path
):
    """A fake training records its weight of velocity, its key, and its steps so far."""
    seen, folders = [], []

    def give_sweep(env, learner, keys, parts, every, measure, out, resume):
        assert measure == task.Actor.from_state and resume
        folders.append(out)
        steps = np.arange(parts + 1) * every * learner.steps_per_update
        told = np.zeros((parts + 1, len(keys), 3), np.float32)
        told[..., 0], told[..., 1] = env.share, steps[:, None]
        told[..., 2] = jax.random.uniform(keys[0]), jax.random.uniform(keys[1])
        seen.append(told)
        return Run(None, task.Actor(told, ()), Timing(1.0, 2.0, 3))

    monkeypatch.setattr(races, "sweep", give_sweep)
    monkeypatch.setattr(
        races, "convert_weights", lambda policies, actor, known: actor.weights + known
    )
    budget = Budget(24, 24, 80)
    field = SimpleNamespace(
        budget=budget,
        policies=SimpleNamespace(env=Cart()),
        keys=jax.random.split(KEY, 2),
        known=jnp.zeros((2, 3)),
    )
    found = races.weighted_ppo(field, tmp_path, True)
    assert found.x.shape == found.halfway.shape == (2, len(races.SHARES), 3)
    for x, steps in ((found.x, found.steps), (found.halfway, found.steps / 2)):
        np.testing.assert_allclose(x[..., 0], [races.SHARES] * 2, rtol=1e-6)
        np.testing.assert_array_equal(x[..., 1].sum(1), steps)
    assert 0.8 * budget.steps < found.steps <= budget.steps
    assert len(np.unique(found.x[..., 2])) == 2 * len(races.SHARES)  # every training has its key
    assert len(set(folders)) == len(races.SHARES) and found.volumes is None
    assert found.timing == Timing(5.0, 10.0, 15)


def test_random_search_asks_for_points_of_the_whole_box():
    spec = RandomSearch(400)
    problem = robot_front.races.NoisyProblem(box(-2.0, 6.0, 2), None, 2).to_problem()
    state = spec.init(KEY, problem)
    x = np.asarray(spec.ask(state, jax.random.key(1)))
    assert x.min() > -2 and x.max() < 6
    np.testing.assert_allclose(x.mean(0), 2, atol=4 * 8 / np.sqrt(12 * 400))


def test_the_ends_of_a_front_swim_ahead():
    f = np.array([[-3.0, 2.0], [-1.0, 1.0], [0.5, 0.0], [-2.0, 3.0]], np.float32)
    ends, said = robot_front.extreme_policies(f, np.arange(4)[:, None])
    assert ends.ravel().tolist() == [0, 1]
    assert said[0] == "summed speed 3 m/s, effort 2"
    np.testing.assert_array_equal(robot_front.front(f), f[:2])


def test_every_way_begins_with_populations_of_one_size():
    budget = Budget(8, 24, 8)
    policies = rl.PolicyObjective(Cart(), (16,), max_steps=8, settled=1.0)
    for name, spec in races.make_algorithms(budget).items():
        state = jax.eval_shape(
            lambda key, spec=spec: spec.init(key, policies.problem().to_problem()), KEY
        )
        assert state.population.x.shape[0] == 8, name


@pytest.mark.slow
@pytest.mark.release
def test_the_study_runs_and_is_resumed_on_a_cart(monkeypatch, tmp_path):
    def carts(max_steps):
        return rl.PolicyObjective(Cart(), (16,), max_steps=max_steps, settled=1.0)

    ways = {"NSGA-III", "random search"}
    select = lambda budget: {name: way for name, way in every(budget).items() if name in ways}
    every = races.make_algorithms
    monkeypatch.setattr(races, "make_algorithms", select)  # each is a program
    monkeypatch.setattr(races, "swimmer_policies", carts)
    monkeypatch.setattr(robot_front.pictures, "make_frames", lambda *a: np.zeros((3, 8, 8, 3)))
    options = robot_front.Options(members=8, generations=24, max_steps=8, seeds=2)
    made = robot_front.study(options, tmp_path, False)
    rows = {row[0]: row for row in made.tables[0].rows}
    assert len(rows) == 5 and all(0 <= row[1] <= 1 for row in rows.values())
    assert rows["NSGA-III"][1] > rows["random search"][1]
    assert all(row[6] <= 8 * 24 * 8 for row in rows.values())
    assert len(made.figures) == 3 and len(made.headlines) == 3
    again = robot_front.study(options, tmp_path, True)
    assert again.tables[0].rows == made.tables[0].rows
