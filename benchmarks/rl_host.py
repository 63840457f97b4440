"""CartPole stepped from the host, one call per step: jaxgpu's adapter and gymnasium's vectors."""

from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np

from benchmarks.harness import Contender, Entry
from jaxgpu.rl import adapters

SIZES = 1, 16, 64, 1024, 16384
COPY_STEPS, MOST = 400_000, 2000  # total steps of all copies, maximum steps of each
SLOW = 32  # the vector that steps its copies one by one does a 32nd of the work


def _run_vector(envs: Any, actions: np.ndarray) -> dict[str, float]:
    """Return the mean |observation| of a vector of environments."""
    total = 0.0
    for action in actions:
        total += np.abs(envs.step(action)[0]).mean()
    return {"mean |observation|": total / len(actions)}


def _run_single(env: Any, actions: np.ndarray) -> dict[str, float]:
    """Return the mean |observation| of a single environment, reset by the host."""
    total = 0.0
    for action in actions:
        observation, _, terminated, truncated, _ = env.step(action)
        total += np.abs(observation).mean()
        if terminated or truncated:
            env.reset()
    return {"mean |observation|": total / len(actions)}


def _vector_entry(size: int) -> Entry:
    """Return an entry of a vector of `size` copies, with each library's own resets."""
    gymnasium, steps = import_module("gymnasium"), max(32, min(MOST, COPY_STEPS // size))
    actions = np.random.default_rng(0).integers(0, 2, (steps, size))
    few = max(1, steps // SLOW)
    ours = gymnasium.make_vec("jaxgpu/cartpole", size)
    own = gymnasium.make_vec("CartPole-v1", size, vectorization_mode="vector_entry_point")
    sync = gymnasium.make_vec("CartPole-v1", size, vectorization_mode="sync")
    for envs in (ours, own, sync):
        envs.reset(seed=0)
    name = f"gymnasium {version('gymnasium')}"
    contenders = [
        Contender("jaxgpu", lambda: _run_vector(ours, actions)),
        Contender(f"{name}, its NumPy vector", lambda: _run_vector(own, actions)),
        Contender(f"{name}, sync", lambda: _run_vector(sync, actions[:few]), part=few / steps),
    ]
    work = f"make_vec, {size} copies, {steps} random actions, a call each"
    return Entry(f"from the host {size}", work, contenders, float(steps * size), "steps")


def _single_entry() -> Entry:
    """Return an entry of one environment of `gym.make`."""
    gymnasium = import_module("gymnasium")
    actions = np.random.default_rng(0).integers(0, 2, MOST)
    ours, own = gymnasium.make("jaxgpu/cartpole"), gymnasium.make("CartPole-v1")
    for env in (ours, own):
        env.reset(seed=0)
    contenders = [
        Contender("jaxgpu", lambda: _run_single(ours, actions)),
        Contender(f"gymnasium {version('gymnasium')}", lambda: _run_single(own, actions)),
    ]
    work = f"make, {MOST} random actions, a call each"
    return Entry("from the host alone", work, contenders, float(MOST), "steps")


def host_entries() -> list[Entry]:
    """Return entries of vectors of several sizes, and of a single environment."""
    adapters.register_gymnasium()
    return [*(_vector_entry(size) for size in SIZES), _single_entry()]
