"""Run loop of the package: many steps in one compiled program, in chunks.

A chunk is a compiled loop whose length is an argument, so that one program serves chunks of any
length, and any split of N steps gives bitwise identical results. Between chunks the host reads the
measures, shows the progress, and passes a copy of the state to a thread that writes the checkpoint.
`run` drives that loop from the host; `rollout` is its pure version.
"""

import contextlib
import html
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from tqdm import tqdm

from jaxgpu.devices import precision, processes
from jaxgpu.inputs import arguments, ranges
from jaxgpu.inputs.type_hints import check_arity

from .fresh_calls import call_as_program
from .interrupt import Interrupt
from .program import MAX_STEPS, Loop, call_checked, refuse_changed
from .saving import experiment, kept_steps
from .saving.branch import Branch, Resume, allowed_names, refuse_same
from .saving.guard import Guard, format_path
from .saving.kept_steps import Keep
from .saving.store import Store

_STEPS = ranges.Range(least=0, whole=True, one=True)
_CHUNK = ranges.Range(least=1, whole=True, one=True, none=True)
_CHUNK_SECONDS = 1.0  # duration of a chunk if the caller does not fix its length
_MAX_LISTED = 5  # arrays of the state and of the history that a summary lists


def measure_nothing(state: Any) -> tuple[()]:
    """Return no measures: the default `measure` of a run.

    >>> measure_nothing({"x": 1.0})
    ()
    """
    return ()


@dataclass(frozen=True)
class Timing:
    """Durations of a run; time before a resume is not included."""

    compile: float  # s
    run: float  # s
    steps: int  # number of steps taken in that time


@dataclass(frozen=True, repr=False)
class Run[S]:
    """Result of a run. One-call forms return it, or a subclass that names its fields.

    `repr` is a summary of at most 15 lines.
    """

    state: S  # as `step` returns it
    # results of `measure`, NumPy arrays and typed keys [1 + steps, ...]; row 0 is the start
    history: Any
    timing: Timing

    def __repr__(self) -> str:
        return "\n".join(self.summary())

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"

    def summary(self) -> list[str]:
        """Return the lines of the summary: steps, durations, and the resulting arrays."""
        t = self.timing
        first = f"{type(self).__name__}: {t.steps} steps in {t.run:.3g} s"
        lines = [f"{first}, compiled in {t.compile:.2g} s"]
        lines += _format_arrays(f"state: {type(self.state).__name__}", self.state, _format_type)
        return lines + _format_arrays("history", self.history, _format_rows)


def _format_arrays(title: str, tree: Any, said: Callable[[Any], str]) -> list[str]:
    leaves = jax.tree.leaves_with_path(tree)
    if not leaves:
        return [f"  {title}: nothing"]
    size = sum(getattr(leaf, "nbytes", 8) for _, leaf in leaves if not arguments.is_key(leaf))
    lines = [f"  {title}, {len(leaves)} arrays, {size / 1e6:.3g} MB"]
    for at, leaf in leaves[:_MAX_LISTED]:
        lines.append(f"    {format_path(at)}: {said(leaf)}")
    return lines + (
        [f"    and {len(leaves) - _MAX_LISTED} more"] if len(leaves) > _MAX_LISTED else []
    )


def _format_type(leaf: Any) -> str:
    leaf = leaf if hasattr(leaf, "dtype") else np.asarray(leaf)
    return f"{leaf.dtype}{list(leaf.shape)}"


def _format_rows(rows: Any) -> str:
    """Return the type of rows [1 + steps, ...], and their first and last value if numeric."""
    told = not arguments.is_key(rows) and rows.ndim == 1 and len(rows)
    ends = f", {rows[0]:.6g} to {rows[-1]:.6g}" if told else ""
    return _format_type(rows) + ends


def run[S](
    step: Callable[..., S],
    state: S,
    steps: int,
    *,
    key: Array | None = None,
    measure: Callable[[S], Any] | None = None,
    until: Callable[[S], Any] | None = None,
    check: Callable[[Any, Any], None] | None = None,
    chunk: int | None = None,
    out: str | Path | None = None,
    resume: Resume = False,
    keep: Keep = None,
    guard: bool = False,
) -> Run[S]:
    """Advance `state` by `steps` steps and record `measure(state)` at the start and after each.

    A program is compiled once per function and shapes, and the next call uses it again: the spec of
    a bound method and the arguments of a `functools.partial` are operands, not parts of it. A
    redefined function with the same code and the same referenced values, such as a lambda in a
    loop, uses it too. All values that the functions read are those at the time of the call. Under
    `jax.disable_jit` there is no program: step, measure and until are called with values, one step
    after the other, for debugging. Last digits may differ.

    Args:
        step: `step(state) -> state`, or `step(state, key)` where `key` is given: the method of a
            spec, a partial or a function. The key of step i is `fold_in(key, i)`, so it does not
            depend on how the run is split.
        state: pytree of arrays; `step` must return the same shapes and dtypes. If the state
            holds 64-bit arrays, the complete run has 64-bit types enabled. A step marked by
            `precision.allow_reassociation` is compiled with its options.
        steps: total number, including those before a resume; the maximum with `until`.
        key: typed key of the complete run.
        measure: `measure(state)` -> pytree of arrays and typed keys, computed on the device; empty
            by default. For a step marked by `program.long` it is a separate program, compiled once.
        until: `until(state)` -> bool [], computed on the device at the start and after each step:
            the run ends when it is True. A resumed run may have a different one.
        check: `check(state, history)` is called after each chunk, before it is saved; an error that
            it raises ends the run.
        chunk: steps per compiled loop, between visits of the host; about a second's by default.
        out: folder for checkpoints, one after each chunk, of which the newest two remain, and for
            the history, which is appended to files and takes no memory. `jaxgpu.load` reads it.
        resume: continue from the last valid checkpoint in `out`, if there is one. It must be of the
            same experiment: the same step with the same numbers in it, start, key and measure. An
            error names the differences, including settings of JAX that change numbers. Other
            versions, other devices or processors and other compiler flags cause a warning. The
            total number of steps may differ. Instead of True, pass the names of values that may
            differ, as the error lists them, or the last part of a name: `resume=("eta",)`. The
            folder records the changes and their steps. With `Branch(folder, step, changed)` the run
            starts at that step of another run, whose folder is only read; `out` must be a new one,
            which receives the history so far.
        keep: checkpoints that remain next to the newest two, for `jaxgpu.load(out, step=...)` and
            for `Branch`: an integer n keeps every n-th step, `Logarithmic()` steps 1, 2, 4, 8 and
            so on, `WallTime(seconds)` the first checkpoint after each interval. They remain when
            the run is resumed, with another rule or none. The rule is not part of the experiment,
            and results stay bitwise identical: a chunk ends at each step that is kept.
        guard: stop after the first chunk that leaves a nan or an infinity in the state or its rows
            of the history, before it is saved, so the previous checkpoint stays the last. Results
            stay bitwise identical; it costs one pass over the state per chunk. A state with
            intentional infinities, such as the best value before any was found, cannot be guarded.

    Returns:
        The last state, the history [1 + steps, ...] and the timing, with compilation separate.

    Raises:
        ValueError, TypeError: an invalid steps, chunk, keep, key, function, state or guard, or a
            branch into its own folder.
        MemoryError: the program does not fit into memory; nothing was started.
        CheckpointError: no checkpoint is usable, or they are of another experiment; the step of a
            branch has none; or another run is active in the folder.
        OSError: the folder cannot be created or written.
        FloatingPointError: with `guard`, a value is not finite; with its name and the steps.
        KeyboardInterrupt: after Ctrl-C, once the current chunk is finished and saved.

    If the state spans several processes (`mesh.shard` over `mesh.make_mesh()` in a job that
    `jaxgpu.distributed` has joined), all of them call `run` with the same arguments. Each writes
    its part of the checkpoints, the first one shows the progress, and all of them return. If one
    of them ends early, the others end within a minute.

    >>> run(lambda x: 2 * x, jnp.float32(1), 10, measure=lambda x: x).history[-3:]
    array([ 256.,  512., 1024.], dtype=float32)
    >>> run(lambda x: 2 * x, jnp.float32(1), 10, until=lambda x: x > 50).state.item()
    64.0
    """
    arguments.arrays("run: state", state)
    steps, chunk = _check_counts(steps, chunk)
    measure = measure_nothing if measure is None else measure
    _check_arguments(key, out, guard, step=step, measure=measure, until=until, check=check)
    keep, allow = kept_steps.check("run: keep", keep), allowed_names(resume)
    branch = resume if isinstance(resume, Branch) else None
    if branch is not None:
        refuse_same(out, branch)
    elif resume and out is None:
        raise ValueError("run: resume without a folder; give out=, the folder of the checkpoints")
    if keep is not None and out is None:
        raise ValueError("run: keep without a folder; give out=, the folder of the checkpoints")
    group = processes.sharding_group(state)
    with precision.scope(state), _open_contexts(out, key, group, keep) as (store, interrupt):
        said = {"resume": str(resume), "keep": str(keep), "out": str(out)}
        group.agree({"steps": steps, "chunk": chunk} | said)
        store.refuse_overwriting(resume)
        loop = Loop(step, measure, until, state, key, min(steps, chunk or steps))
        del state  # frees the memory; the loop has its own copy
        if out is not None or branch is not None:
            named = experiment.describe_run(loop.calls[0], loop.calls[1], loop.state, key)
            store.name_experiment(loop.digests(), named, loop.host_digest)
        store.begin(loop.program.row, steps + 1)
        guarded = Guard(store, loop.whole) if guard else None
        done, saved = (store.load_last(loop.state, allow, branch) if resume else None) or (0, None)
        if done > steps:
            at = out if branch is None else branch.folder
            raise ValueError(f"run: {at} is already at step {done}; give at least as many steps")
        fresh = saved is None or branch is not None
        store.refuse_full(loop.state, done, steps - done if until is None else 0, fresh)
        if saved is None:
            store.start(loop.initial_rows())
        else:
            loop.state = saved
        if branch is not None:
            store.begin_branch(done, loop.state)
        if guarded is not None:
            guarded.check(loop.state, store.rows.tree(), -1, done)
        if done < steps:
            loop.compile()
        began, first, ended = time.perf_counter(), done, False
        hidden = not (group.first and _has_terminal())
        with tqdm(total=steps, initial=done, disable=hidden, desc=store.name, leave=False) as bar:
            pace = _ChunkPace(chunk or loop.capacity, fixed=chunk is not None)
            while done < steps and not ended:
                # clocks and signals differ between processes: one decides, any may request a stop
                kept = store.kept.next_step(done) or steps
                most = min(loop.capacity, steps - done, kept - done)
                count = group.broadcast("run", pace.next(most))
                rows, made, ended = loop.advance(done, count)
                store.rows.add(rows, made)
                done += made
                bar.update(made)
                if guarded is not None:
                    guarded.check(loop.state, rows, done - made, done)
                if check is not None:
                    check(loop.state, store.rows.tree())
                store.save(done, loop.state)
                if group.any_process("run", interrupt.asked):
                    store.wait()
                    raise KeyboardInterrupt(f"run: stopped at step {done} of {steps}{store.hint}")
        store.wait()
        seconds = time.perf_counter() - began
        timing = Timing(loop.compile_time, seconds, done - first)
        return Run(loop.state, store.rows.tree(), timing)


def _has_terminal() -> bool:
    """Return True if a progress bar can be drawn."""
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):  # None in services and after `2>&-`, or closed
        return False


def _check_arguments(key: Any, out: Any, guard: Any, **functions: Any) -> None:
    """Raise if an argument has another type than `run` takes."""
    for name, f in functions.items():
        if f is not None or name == "step":
            arguments.function(f"run: {name}", f)
    if functions["check"] is not None:
        check_arity("run: check", functions["check"], None, None)
    if key is not None:
        arguments.key("run: key", key)
    if out is not None:
        arguments.path("run: out", out)
    arguments.flag("run: guard", guard)


@contextlib.contextmanager
def _open_contexts(
    out: Any, key: Any, group: processes.Group, keep: Keep
) -> Iterator[tuple[Store, Interrupt]]:
    """Open the contexts of a run: the watchdog of its processes, its folder, and Ctrl-C."""
    hint = "nothing was saved" if out is None else "start all processes again with resume=True"
    with (
        processes.Watchdog(group, hint),
        Store(out, key, group, keep) as store,
        Interrupt() as interrupt,
    ):
        yield store, interrupt


def rollout[S](
    step: Callable[..., S],
    state: S,
    steps: int,
    *,
    key: Array | None = None,
    measure: Callable[[S], Any] | None = None,
) -> tuple[S, Any]:
    """Return the last state of `run` and its history [1 + steps, ...], as a pure function.

    It supports `jit`, `vmap` and `grad`; the key of step i is the same as in `run`.

    >>> jax.grad(lambda x: rollout(lambda x: 2 * x, x, 10)[0])(1.0).item()
    1024.0
    """
    ranges.refuse("rollout: steps", steps, _STEPS)
    measure = measure_nothing if measure is None else measure
    for name, f in (("step", step), ("measure", measure)):
        arguments.function(f"rollout: {name}", f)
    if key is not None:
        arguments.key("rollout: key", key)
    return call_as_program(partial(_scan_steps, int(steps)), (step, measure), state, key)


def _scan_steps[S](
    steps: int, functions: Sequence[Callable[..., Any]], state: S, key: Array | None
) -> tuple[S, Any]:
    step, measure = functions

    def body(state: S, i: Array) -> tuple[S, Any]:
        keys = () if key is None else (jax.random.fold_in(key, i),)
        new = call_checked("rollout: step", step, state, *keys)
        refuse_changed("rollout: step", state, new)
        return new, call_checked("rollout: measure", measure, new)

    start = call_checked("rollout: measure", measure, state)
    state, rows = jax.lax.scan(body, state, jnp.arange(steps))
    first = jax.tree.map(lambda row: jnp.asarray(row)[None], start)
    return state, jax.tree.map(lambda *parts: jnp.concatenate(parts), first, rows)


def _check_counts(steps: Any, chunk: Any) -> tuple[int, int | None]:
    """Return the steps of a run and of a chunk, after checking their ranges."""
    ranges.refuse("run: steps", steps, _STEPS)
    ranges.refuse("run: chunk", chunk, _CHUNK)
    if steps > MAX_STEPS:
        raise ValueError(f"run: steps={steps}; it must be at most {MAX_STEPS}; let a step do more")
    return int(steps), None if chunk is None else int(chunk)


class _ChunkPace:
    """Length of the next chunk: as many steps as take `_CHUNK_SECONDS`."""

    def __init__(self, longest: int, fixed: bool):
        self.fixed, self.count, self.began = fixed, longest if fixed else 1, None
        self.taken = self.count  # steps of the last chunk

    def next(self, most: int = MAX_STEPS) -> int:
        """Return the number of steps of the next chunk, at most `most`."""
        now = time.perf_counter()
        if not self.fixed and self.began is not None:
            growth = _CHUNK_SECONDS / max(now - self.began, 1e-6)
            count = max(1, int(self.taken * min(growth, 8.0)))
            # a fast chunk that was limited by `most` must not shorten the next
            cut = self.taken < self.count and growth > 1
            self.count = max(count, self.count) if cut else count
        self.began, self.taken = now, min(self.count, most)
        return self.taken
