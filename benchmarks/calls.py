"""Calls outside `jit` compared with the same calls under `jit`: the overhead of a Python loop.

The compile column is the first call. Specs are constructed again in each call, as scripts do.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.harness import Contender, Entry
from jaxgpu import rl
from jaxgpu.evolution import Real, box, minimize
from jaxgpu.evolution.problem import Problem
from jaxgpu.evolution.single import CMAES
from jaxgpu.numerics import VonMisesFisher, log_iv
from jaxgpu.physics.nbody import Planetary

CALLS = 100
KEY = jax.random.key(0)


def entries() -> list[Entry]:
    """Return calls of a function or method of each domain, and of `minimize` with a new lambda."""
    x = jnp.linspace(0.1, 25.0, 1000)
    north, up = jnp.array([0.0, 0.0, 1.0]), jnp.tile(jnp.array([0.0, 0.6, 0.8]), (1000, 1))
    sphere = Problem(box(-5.0, 5.0, 8), lambda x: jnp.sum(x * x, keepdims=True))
    state = jax.jit(CMAES(16).init)(KEY, sphere)
    asked = jax.jit(CMAES(16).ask)(state, KEY)
    f = jnp.sum(asked**2, 1, keepdims=True)
    gm, places = jnp.array([1.0, 1e-3]), jnp.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    system = jax.jit(Planetary(gm, 0.1).init)(places, places[:, ::-1])
    cases: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
        "log_iv of 1,000 points": (log_iv, (2.5, x)),
        "VonMisesFisher.log_prob of 1,000 points": (
            lambda k, up: VonMisesFisher(north, k).log_prob(up),
            (5.0, up),
        ),
        "CMAES.tell of 16 points": (lambda s, x, f: CMAES(16).tell(s, x, f), (state, asked, f)),
        "Planetary.step of 2 bodies": (lambda s: Planetary(gm, 0.1).step(s), (system,)),
        "cartpole's step": _step_call("cartpole"),
        "hopper's step": _step_call("hopper"),
    }
    return [*(_entry(name, *case) for name, case in cases.items()), _lambda_entry()]


def _step_call(name: str) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    env = rl.make(name)
    return env.step, (jax.jit(env.reset)(KEY)[0], env.action_space.sample(KEY), KEY)


def _entry(name: str, call: Callable[..., Any], given: tuple[Any, ...]) -> Entry:
    """Return an entry that makes the same calls one after the other and waits for each."""

    def contender(label: str, call: Callable[..., Any]) -> Contender:
        def run() -> dict[str, float]:
            for _ in range(CALLS - 1):
                jax.block_until_ready(call(*given))
            result = jax.block_until_ready(call(*given))
            leaves = [leaf for leaf in jax.tree.leaves(result) if leaf.dtype == jnp.float32]
            return {"sum": float(sum(jnp.sum(leaf) for leaf in leaves))}

        return Contender(label, run)

    return Entry(
        name=f"calls: {name}",
        work=f"{CALLS} calls, each waited for",
        contenders=[contender("outside of jit", call), contender("under jit", jax.jit(call))],
        amount=CALLS,
        unit="calls",
    )


def _lambda_entry() -> Entry:
    """Return an entry of a search that creates its lambda again in each run."""

    def run() -> dict[str, float]:
        return {"best": float(minimize(lambda x: jnp.sum(x * x), Real(-5.0, 5.0, (5,)), 400).f)}

    return Entry(
        name="calls: minimize of a new lambda",
        work="a parabola of 5 variables, 400 evaluations; each search has a lambda of its own",
        contenders=[Contender("jaxgpu", run)],
    )
