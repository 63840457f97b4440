"""Every locomotion task against gymnasium's, step by step from recorded states."""

from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from api_cases import as_users

from jaxgpu import rl

FILE = np.load(Path(__file__).parents[2] / "locomotion_reference.npz")

# Each objective is a sum of parts of the reward; effort is minus the square of the action.
OBJECTIVES = {
    "half-cheetah": [("reward_forward",), ("reward_ctrl",)],
    "swimmer": [("reward_forward",), ("reward_ctrl",)],
    "walker2d": [("reward_forward", "reward_survive"), ("effort", "reward_survive")],
    "hopper": [
        ("reward_forward", "reward_survive"),
        ("rise", "reward_survive"),
        ("effort", "reward_survive"),
    ],
    "ant": [("reward_forward", "reward_survive"), ("reward_ctrl", "reward_contact")],
    "humanoid": [("reward_forward", "reward_survive"), ("effort", "reward_survive")],
    "humanoid-standup": [("reward_linup",), ("reward_quadctrl",)],
    "reacher": [("reward_dist",), ("reward_ctrl",)],
    "pusher": [("twice near",), ("reward_dist",), ("effort",)],
    "inverted-double-pendulum": [
        ("reward_survive", "distance_penalty"),
        ("reward_survive", "velocity_penalty"),
    ],
}


def load_task(name):
    """Return the recorded arrays of a task by name; those of its start begin with "start/"."""
    return {key.removeprefix(f"{name}/"): FILE[key] for key in FILE if key.startswith(f"{name}/")}


@pytest.mark.slow
@pytest.mark.parametrize("name", OBJECTIVES)
def test_random_steps_and_first_observations_are_those_of_gymnasium(x64, name):
    """Both solve the contact problem to convergence; values agree to 1e-6, relative or absolute.

    The last row is the start: there, contact forces do not exist yet and a quaternion is as
    sampled. Objectives are sums of parts of the reward. One program with few optimizations computes
    all of it, since it runs once.
    """
    want, env = load_task(name), rl.make(name)
    rows = {kind: want[kind] for kind in ("qpos", "qvel", "place", "action")}
    last = {"qpos": want["start/qpos"], "qvel": want["start/qvel"]}
    rows = {kind: np.append(x, [last.get(kind, 0 * x[0])], 0) for kind, x in rows.items()}

    def step(row):
        start = state = env.begin(row["qpos"], row["qvel"])
        if "place" in state.seen:
            state = replace(state, seen=state.seen | {"place": row["place"]})
        out = env.step(state, row["action"], jax.random.key(0))
        objectives = jnp.stack(env._rewards(state, out.state, row["action"])[1])
        return out, objectives, env._observe(start)

    # Without optimizations, the contact forces of a humanoid differ by up to 2 N.
    few = {} if name == "humanoid" else {"xla_backend_optimization_level": 0}
    with as_users():
        out = jax.jit(jax.vmap(step), compiler_options=few)(rows)
    start = out[2][-1]
    out, objectives = jax.tree.map(lambda x: x[:-1], out[:2])
    near = dict(rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(out.observation, want["observation"], **near)
    np.testing.assert_allclose(out.reward, want["reward"], **near)
    np.testing.assert_array_equal(out.terminated, want["terminated"])
    named = [part for part in sorted(out.info) if part.startswith("reward_")]
    for part, column in zip(named, want["parts"].T):
        np.testing.assert_allclose(out.info[part], column, **near)
    assert out.info["success"].dtype == bool and not out.truncated.any()
    assert not out.state.body.overflow.any()
    np.testing.assert_allclose(start, want["start/observation"], rtol=0, atol=1e-9)
    parts = {part: np.asarray(x) for part, x in out.info.items()}
    parts["effort"] = -np.sum(np.square(want["action"]), 1)
    parts["rise"] = 10 * (np.asarray(out.state.body.qpos)[:, 1] - 1.25)
    parts["twice near"] = 2 * parts.get("reward_near", 0.0)
    sums = [sum(parts[part] for part in named) for named in OBJECTIVES[name]]
    np.testing.assert_allclose(objectives, np.transpose(sums), rtol=1e-9, atol=1e-12)
