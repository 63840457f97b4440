"""The one loop of the package: many steps in one compiled program, in chunks.

A chunk is a compiled loop whose length is an argument, so that one program serves chunks of every
length and any split of N steps gives the same bits. Between chunks the host reads the metrics once,
shows the progress, and hands a copy of the state to a thread that writes the checkpoint.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from tqdm import tqdm

from jaxgpu import arguments, identity, memory, precision, ranges
from jaxgpu.interrupt import Interrupt
from jaxgpu.store import Store

_HISTORY_BYTES = 1 << 26  # the metrics of one chunk, on the device
_STEPS = ranges.Range(least=0, whole=True, one=True)
_CHUNK = ranges.Range(least=1, whole=True, one=True, none=True)
_LONGEST = 2**31 - 1  # steps; they are counted in 32 bits
_CHUNK_SECONDS = 1.0  # between two contacts with the host, where the caller fixes no chunk


@dataclass(frozen=True)
class Timing:
    """Where the seconds of a run went; those before a resume are not in them."""

    compile: float  # s
    run: float  # s
    steps: int


@dataclass(frozen=True)
class Run:
    """What a run returns."""

    state: Any  # as `step` returns it
    history: Any  # what `measure` returned, NumPy arrays [steps, ...]
    timing: Timing


def run(
    step: Callable[..., Any],
    state: Any,
    steps: int,
    *,
    key: Array | None = None,
    measure: Callable[[Any], Any] = lambda state: (),
    check: Callable[[Any, Any], None] = lambda state, history: None,
    chunk: int | None = None,
    out: str | Path | None = None,
    resume: bool = False,
) -> Run:
    """Advance `state` by `steps` steps and record `measure(state)` after each.

    Args:
        step: `step(state) -> state`, or `step(state, key)` where `key` is given. The key of step i
            is `fold_in(key, i)`, so it does not depend on how the run was split.
        state: pytree of arrays; their shapes and dtypes must be those that `step` returns. Where
            it holds 64-bit arrays the whole run has 64-bit types enabled. A step made by
            `precision.reassociated` is compiled with its options.
        steps: how many in all, those of a resumed run counted in.
        key: typed key of the whole run.
        measure: pytree of arrays, computed on the device.
        check: looks at the state and the history so far after each chunk, before it is saved; what
            it raises ends the run.
        chunk: steps between two contacts with the host; about a second's worth by default.
        out: folder for checkpoints, one after each chunk, the newest two kept.
        resume: go on from the last good checkpoint in `out`, where there is one. It must be of the
            same experiment: the same step with the same numbers in it, start, key and measure,
            under the same version of jax. How many steps there are in all may be another number.

    Returns:
        The last state, the history [steps, ...] and the timing, compilation apart.

    Raises:
        ValueError, TypeError: steps or chunk that are no counts, a key, function or state that is
            none.
        MemoryError: the program would not fit; nothing was started.
        CheckpointError: checkpoints are there and none can be used, or they are of another
            experiment.
        KeyboardInterrupt: after Ctrl-C, once the running chunk is done and saved.

    >>> run(lambda x: 2 * x, jnp.float32(1), 10, measure=lambda x: x).history[-3:]
    array([ 256.,  512., 1024.], dtype=float32)
    """
    steps, chunk = _counts(steps, chunk)
    for name, f in (("step", step), ("measure", measure), ("check", check)):
        arguments.function(f"run: {name}", f)
    if key is not None:
        arguments.key("run: key", key)
    if out is not None:
        arguments.path("run: out", out)
    if resume and out is None:
        raise ValueError("run: resume without a folder; give out=, where the checkpoints are")
    arguments.arrays("run: state", state)
    with precision.scope(state), Store(out, key) as store, Interrupt() as interrupt:
        state = jax.tree.map(_own, state)
        loop = _Loop(step, measure, state, key, min(steps, chunk or steps))
        store.refuse_overwriting(resume)
        if out is not None:
            store.name_experiment(loop.digests() | {"start": identity.of_arrays(state)})
        done, state, history = 0, state, loop.rows(0)
        if resume and (found := store.last(state, loop.rows)) is not None:
            done, state, history = found
        if done > steps:
            raise ValueError(f"run: {out} is at step {done} already; ask for as many or more")
        compile_time = loop.compile(state) if done < steps else 0.0
        began, first = time.perf_counter(), done
        with tqdm(total=steps, initial=done, disable=None, desc=store.name, leave=False) as bar:
            pace = _Pace(chunk or loop.capacity, fixed=chunk is not None)
            while done < steps:
                count = min(pace.next(), loop.capacity, steps - done)
                state, rows = loop.advance(state, done, count)
                history = jax.tree.map(lambda *parts: np.concatenate(parts), history, rows)
                done += count
                bar.update(count)
                check(state, history)
                store.save(done, state, history)
                if interrupt.asked:
                    store.wait()
                    raise KeyboardInterrupt(f"run: stopped at step {done} of {steps}{store.hint}")
        return Run(state, history, Timing(compile_time, time.perf_counter() - began, done - first))


def _counts(steps: Any, chunk: Any) -> tuple[int, int | None]:
    """Steps of a run and of a chunk, held against their ranges."""
    ranges.refuse("run: steps", steps, _STEPS)
    ranges.refuse("run: chunk", chunk, _CHUNK)
    if steps > _LONGEST:
        raise ValueError(f"run: steps={steps}; it must be at most {_LONGEST}; let a step do more")
    return int(steps), None if chunk is None else int(chunk)


class _Loop:
    """The compiled chunk: up to `capacity` steps, their number an argument."""

    def __init__(self, step: Any, measure: Any, state: Any, key: Any, longest: int):
        self.step, self.measure, self.key = step, measure, key
        self._check_fixed_point(state)
        self.measured, self.row = jax.make_jaxpr(measure, return_shape=True)(state)
        size = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(self.row))
        self.capacity = max(1, min(longest, _HISTORY_BYTES // max(1, size)))

    def digests(self) -> dict[str, str]:
        """What tells this run's program from another one."""
        programs = {"program": self.stepped, "measure": self.measured}
        return {name: identity.of_program(program) for name, program in programs.items()}

    def compile(self, state: Any) -> float:
        """Compile for `state`, check that it fits, and return the seconds it took."""
        began = time.perf_counter()
        kept = jax.tree.map(lambda leaf: leaf.sharding, state)  # one chunk's output is the next's
        options = getattr(self.step, "compiler_options", None)
        chunk = jax.jit(
            self._chunk, donate_argnums=0, out_shardings=(kept, None), compiler_options=options
        )
        lowered = chunk.lower(state, self.key, jnp.int32(0), jnp.int32(1))
        self.compiled = lowered.compile()
        memory.check(self.compiled, f"run of {getattr(self.step, '__name__', 'a step')}")
        return time.perf_counter() - began

    def advance(self, state: Any, first: int, count: int) -> tuple[Any, Any]:
        """The state `count` steps on, and the rows measured on the way, on the host."""
        state, rows = self.compiled(state, self.key, jnp.int32(first), jnp.int32(count))
        return state, jax.tree.map(lambda leaf: leaf[:count], jax.device_get(rows))

    def rows(self, count: int, new: Any = np.zeros) -> Any:
        """An empty history of `count` steps."""
        return jax.tree.map(lambda leaf: new((count, *leaf.shape), leaf.dtype), self.row)

    def _chunk(self, state: Any, key: Any, first: Array, count: Array) -> tuple[Any, Any]:
        def body(i, carry):
            state, rows = carry
            state = self._step(state, key, first + i)
            rows = jax.tree.map(lambda all, row: all.at[i].set(row), rows, self.measure(state))
            return state, rows

        return jax.lax.fori_loop(0, count, body, (state, self.rows(self.capacity, jnp.zeros)))

    def _step(self, state: Any, key: Any, i: Any) -> Any:
        return self.step(state) if key is None else self.step(state, jax.random.fold_in(key, i))

    def _check_fixed_point(self, state: Any) -> None:
        step = lambda state, key: self._step(state, key, 0)
        self.stepped, new = jax.make_jaxpr(step, return_shape=True)(state, self.key)
        before, after = (
            [f"{jax.tree_util.keystr(at)} {a.dtype}{list(a.shape)}" for at, a in tree]
            for tree in (jax.tree.leaves_with_path(state), jax.tree.leaves_with_path(new))
        )
        changed = [f"{was} to {now}" for was, now in zip(before, after) if was != now]
        if changed or len(before) != len(after):
            what = changed[0] if changed else f"{len(before)} arrays to {len(after)}"
            raise TypeError(f"run: step changes {what}; it must return what it was given")


class _Pace:
    """How many steps the next chunk has: as many as take `_CHUNK_SECONDS`."""

    def __init__(self, longest: int, fixed: bool):
        self.fixed, self.count, self.began = fixed, longest if fixed else 1, None

    def next(self) -> int:
        now = time.perf_counter()
        if not self.fixed and self.began is not None:
            growth = _CHUNK_SECONDS / max(now - self.began, 1e-6)
            self.count = max(1, int(self.count * min(growth, 8.0)))
        self.began = now
        return self.count


def _own(leaf: Any) -> Array:
    """A strongly typed copy on the device, which the loop may overwrite."""
    leaf = jnp.asarray(leaf)
    return jnp.copy(leaf) if arguments.is_key(leaf) else jnp.array(leaf, leaf.dtype)
