"""The protocol of every algorithm: `init`, `ask`, `tell`, and the loop above it.

A spec says what to run, a state where the run is. Each algorithm registers its three functions
for its spec type, so `ask(NSGA2(), state, key)` and `ask(CMAES(), state, key)` are the same call,
and anyone can add an algorithm by registering theirs, with `init.register` and so on.
"""

from dataclasses import replace
from functools import singledispatch
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu import ranges
from jaxgpu.run import Run
from jaxgpu.run import run as run_steps

from .multi.variation import Variation
from .population import Population
from .problem import Problem, evaluate, floats, ready, sound


def _registering(door: Any) -> Any:
    """The function itself; it is given `register` and `registry` below, which no type says."""
    return door


@_registering
def init(spec: Any, key: Array, problem: Problem) -> Any:
    """The state before the first generation; nothing has been evaluated yet.

    Raises:
        TypeError: the spec is no registered algorithm, the key no key, the problem none.
        ValueError: a number of the spec, or a bound, is outside its range.
    """
    problem = checked("init", spec, key, problem)
    return _init(spec, key, problem)


@_registering
def ask(spec: Any, state: Any, key: Array) -> Array:
    """The next candidates, [N, D]."""
    return _ask(spec, state, key)


@_registering
def tell(spec: Any, state: Any, x: Array, f: Array, violation: Array | None = None) -> Any:
    """The state after the candidates x [N, D], as asked for, had objectives f and violations.

    Args:
        f: [N, m], or [N] of one objective; NaN where an evaluation failed.
        violation: [N] total constraint violations; none where there are no constraints.
    """
    _registered("tell", spec)
    shape = jax.eval_shape(lambda s: _ask(spec, s, jax.random.key(0)), state).shape
    x, f = floats("tell: x", x), floats("tell: f", f)
    if x.shape != shape:
        raise ValueError(f"tell: x has shape {list(x.shape)}; ask gave {list(shape)}")
    f = f[:, None] if f.ndim == 1 else f
    members = getattr(state, "population", None)
    m = members.f.shape[1] if isinstance(members, Population) else f.shape[-1]
    m = 1 if hasattr(state, "best") else m
    if f.shape != (shape[0], m):
        raise ValueError(f"tell: f has shape {list(f.shape)}; it must be {[shape[0], m]}")
    if violation is None:
        violation = jnp.zeros(shape[0], x.dtype)
    violation = floats("tell: violation", violation)
    if violation.shape != shape[:1]:
        raise ValueError(
            f"tell: violation has shape {list(violation.shape)}; it must be {[shape[0]]}, of each "
            "candidate the total"
        )
    f, violation = sound(f.astype(x.dtype), violation.astype(x.dtype))
    return _tell(spec, state, x, f, violation)


@singledispatch
def _init(spec: Any, key: Array, problem: Problem) -> Any:
    raise TypeError(_unknown("init", spec))


@singledispatch
def _ask(spec: Any, state: Any, key: Array) -> Array:
    raise TypeError(_unknown("ask", spec))


@singledispatch
def _tell(spec: Any, state: Any, x: Array, f: Array, violation: Array) -> Any:
    raise TypeError(_unknown("tell", spec))


for door, inner in ((init, _init), (ask, _ask), (tell, _tell)):
    vars(door).update(register=inner.register, registry=inner.registry)


def _unknown(name: str, spec: Any) -> str:
    return f"{name}: {type(spec).__name__} is no registered algorithm; pass a spec"


def _registered(name: str, spec: Any) -> None:
    if _init.dispatch(type(spec)) is _init.dispatch(object):
        raise TypeError(_unknown(name, spec))


def checked(name: str, spec: Any, key: Any, problem: Any) -> Problem:
    """The problem as arrays, after the spec, the key and it have been held against their ranges.

    Values that are being traced are passed over.
    """
    _registered(name, spec)
    ranges.check(type(spec).__name__, spec)
    if not jnp.issubdtype(getattr(key, "dtype", np.dtype(float)), jax.dtypes.prng_key):
        legacy = getattr(key, "dtype", None) == jnp.uint32
        if not legacy:
            raise TypeError(f"{name}: key={key!r}; it must be a key, as jax.random.key(0)")
    problem = ready(name, problem)
    d = problem.box.lower.shape[0]
    for part in vars(spec).values() if hasattr(spec, "__dict__") else ():
        if isinstance(part, Variation):
            ranges.refuse(
                f"{type(spec).__name__}: Variation.mutation",
                part.mutation,
                ranges.Range(least=0, most=d, unit=f"variables of {d}"),
            )
    return problem


def step(spec: Any, problem: Problem, state: Any, key: Array) -> Any:
    """One generation: ask, evaluate, tell."""
    return counted_step(spec, problem, state, key)[0]


def counted_step(spec: Any, problem: Problem, state: Any, key: Array) -> tuple[Any, Array]:
    """One generation, and how many of its evaluations failed, by a NaN or an infinite violation."""
    x = _ask(spec, state, key)
    f, violation = evaluate(problem, x)
    failed = jnp.sum(violation == jnp.inf, dtype=jnp.int32)
    return _tell(spec, state, x, f, violation), failed


def evolve(spec: Any, problem: Problem, key: Array, generations: int | Array) -> Any:
    """The state after some generations, as one pure function: `jit`, `vmap` and shard it.

    Seeds, hyper-parameters and bounds are all batch axes:
    `jax.vmap(lambda key: evolve(spec, problem, key, 250))(jax.random.split(key, 100))`.
    """
    problem = checked("evolve", spec, key, problem)
    ranges.refuse("evolve: generations", generations, ranges.Range(least=0, whole=True, one=True))
    first, rest = jax.random.split(key)

    def generation(i: Array, state: Any) -> Any:
        return step(spec, problem, state, jax.random.fold_in(rest, i))

    return jax.lax.fori_loop(0, generations, generation, _init(spec, first, problem))


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
    problem = checked("run", spec, key, problem)
    ranges.refuse("run: generations", generations, ranges.Range(least=0, whole=True, one=True))
    first, rest = jax.random.split(key)
    done = run_steps(
        lambda state, key: step(spec, problem, state, key),
        jax.jit(_init)(spec, first, problem),
        int(generations),
        key=rest,
        measure=measure or (lambda state: ()),
        out=out,
        resume=resume,
    )
    return replace(done, history=jax.tree.map(lambda rows: rows[1:], done.history))
