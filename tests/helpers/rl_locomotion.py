"""Recorded steps of gymnasium's tasks on MuJoCo's robots, and ours from the same states."""

from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

FILE = np.load(Path(__file__).parents[1] / "rl/locomotion_reference.npz")


def recorded(name):
    """Columns of the steps of a task, by kind; those of its start as "start/..."."""
    return {key.removeprefix(f"{name}/"): FILE[key] for key in FILE if key.startswith(f"{name}/")}


def replay(env, rows):
    """One step of ours from each recorded state."""
    key = jax.random.key(0)

    def step(qpos, qvel, place, action):
        state = env.begin(qpos, qvel)
        if "place" in state.seen:
            state = replace(state, seen=state.seen | {"place": place})
        return env.step(state, action, key)

    columns = (jnp.asarray(rows[kind]) for kind in ("qpos", "qvel", "place", "action"))
    return jax.jit(jax.vmap(step))(*columns)
