"""The protocol of every algorithm: `init`, `ask`, `tell`, and the loop above it.

A spec says what to run, a state where the run is. Each algorithm registers its three functions
for its spec type, so `ask(NSGA2(), state, key)` and `ask(CMAES(), state, key)` are the same call,
and anyone can add an algorithm by registering theirs.
"""

from functools import singledispatch
from pathlib import Path
from typing import Any

import jax
from jax import Array

from jaxgpu.evolution.problem import Problem, evaluate
from jaxgpu.run import Run
from jaxgpu.run import run as run_steps


@singledispatch
def init(spec: Any, key: Array, problem: Problem) -> Any:
    """The state before the first generation; nothing has been evaluated yet."""
    raise TypeError(f"init: {type(spec).__name__} is no registered algorithm; pass a spec")


@singledispatch
def ask(spec: Any, state: Any, key: Array) -> Array:
    """The next candidates, [N, D]."""
    raise TypeError(f"ask: {type(spec).__name__} is no registered algorithm; pass a spec")


@singledispatch
def tell(spec: Any, state: Any, x: Array, f: Array, violation: Array) -> Any:
    """The state after the candidates x [N, D] had objectives f [N, m], violations [N]."""
    raise TypeError(f"tell: {type(spec).__name__} is no registered algorithm; pass a spec")


def step(spec: Any, problem: Problem, state: Any, key: Array) -> Any:
    """One generation: ask, evaluate, tell."""
    x = ask(spec, state, key)
    return tell(spec, state, x, *evaluate(problem, x))


def evolve(spec: Any, problem: Problem, key: Array, generations: int | Array) -> Any:
    """The state after some generations, as one pure function: `jit`, `vmap` and shard it.

    Seeds, hyper-parameters and bounds are all batch axes:
    `jax.vmap(lambda key: evolve(spec, problem, key, 250))(jax.random.split(key, 100))`.
    """
    first, rest = jax.random.split(key)

    def generation(i: Array, state: Any) -> Any:
        return step(spec, problem, state, jax.random.fold_in(rest, i))

    return jax.lax.fori_loop(0, generations, generation, init(spec, first, problem))


def run(
    spec: Any,
    problem: Problem,
    key: Array,
    generations: int,
    *,
    measure: Any = None,
    out: str | Path | None = None,
    resume: bool = False,
) -> Run:
    """As `evolve`, from the host: with progress, history, checkpoints and exact resumption.

    Args:
        measure: of the state after each generation, stacked into the history; computed on the
            device.
        out: folder of checkpoints.
        resume: go on from the newest checkpoint in `out`.
    Returns:
        `jaxgpu.run.Run`: the last state (equal to that of `evolve`), the history and the timing.
    """
    first, rest = jax.random.split(key)
    return run_steps(
        lambda state, key: step(spec, problem, state, key),
        jax.jit(init, static_argnums=())(spec, first, problem),
        generations,
        key=rest,
        measure=measure or (lambda state: ()),
        out=out,
        resume=resume,
    )
