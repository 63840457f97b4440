"""Store of a run's checkpoints, written by a thread while the next chunk is computed.

In a group of processes each has such a thread, which writes its part.
"""

import contextlib
import dataclasses
import warnings
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.devices import machine, memory
from jaxgpu.devices.processes import ALONE, Group, spans
from jaxgpu.inputs import arguments

from .. import checkpoint, files
from ..checkpoint import binary, folder, parts
from . import experiment, history, structure
from .branch import Branch, Resume
from .kept_steps import Keep, KeptSteps, WallTime

# entries that must be equal in the same experiment, and phrases for a difference
_DIFFERENCE_PHRASES = {
    "key": "another key",
    "generator": "a key of another type",
    "program": "another step",
    "start": "another start",
    "measure": "another measure",
    "called": "another function of the host",
}
# part of the experiment that holds their values
_PARTS = {"program": "step", "generator": "key", "called": "step"}
_MACHINE_FIELDS = (
    "jaxgpu",
    "jax",
    "jaxlib",
    "device",
    "processor",
    "instructions",
    "compiler flags",
)
_NEWEST = 2  # newest checkpoints that remain under any rule
_MAX_NAMED = 3  # differences that a message lists
_UNKNOWN_DIFFERENCE = "differs, but no value shows how"


class Store:
    """Checkpoints of a run, written by a thread while the next chunk is computed.

    >>> import tempfile
    >>> out = Path(tempfile.mkdtemp())
    >>> with Store(out, None) as store:
    ...     store.begin((), 11)
    ...     store.start(())
    ...     store.save(10, {"x": jnp.arange(3.0)})
    >>> checkpoint.holds_any(out)
    True
    """

    def __init__(
        self, out: str | Path | None, key: Any, group: Group = ALONE, keep: Keep = None
    ) -> None:
        self.group, self.kept = group, KeptSteps(keep)
        self.out = None if out is None else Path(out)
        self.name = "run" if self.out is None else self.out.name
        self.hint = "; nothing was saved" if self.out is None else f"; resume from {self.out}"
        self.meta = {"key": None, "generator": None, "called": ["", ""]}
        if key is not None:
            self.meta["key"] = jax.random.key_data(key).tolist()
            self.meta["generator"] = str(jax.random.key_impl(key))
        self.experiment = experiment.EMPTY
        self._called: Callable[[], str] = str
        self._another = ""  # message if the newest checkpoint is of another experiment
        self.rows: history.MemoryHistory | history.Journal = history.MemoryHistory((), 0)
        self._seals = history.Checksum("", 0)  # checksum of the history that was read
        # folder of the checkpoint to resume from, and the argument that allows changes
        self._source, self._resume = self.out or Path(), "resume"
        self._branched = history.Segment(0, "")  # history that a branch copies
        self.writing: Future | None = None

    def __enter__(self):
        with contextlib.ExitStack() as entered:
            self._lock_folder(entered)
            self.thread = ThreadPoolExecutor(1, "checkpoint")
            entered.callback(lambda: self.rows.close())
            entered.callback(self.thread.shutdown, wait=True)
            self._entered = entered.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self._entered.close()
        if error[0] is None:
            self.wait()

    def _lock_folder(self, entered: contextlib.ExitStack) -> None:
        """Lock the folder for these processes until `entered` ends, and remove scratch files.

        The first process does it for all.
        """
        fault: OSError | None = None
        if self.out is not None and self.group.first:
            try:
                self.out.mkdir(parents=True, exist_ok=True)
                entered.enter_context(files.lock_folder(self.out))
                files.remove_scratch(self.out, "step-*")
                files.remove_scratch(self.out, "experiment-*")
            except OSError as error:
                fault = error
        said = self.group.broadcast("lock", fault and str(fault.strerror))
        if fault is not None and not isinstance(fault, BlockingIOError):
            raise fault
        if said:
            raise checkpoint.CheckpointError(f"{self.out}: {said}; wait, or give another folder")

    def refuse_overwriting(self, resume: Resume) -> None:
        """Raise if the folder holds a run that this one must not resume.

        A branch that was killed before its history was written does not count as a run.
        """
        if self.out is None or (resume and not isinstance(resume, Branch)):
            return
        steps = folder.steps_in(self.out)
        begun = isinstance(resume, Branch) and steps == (resume.step,)
        unfinished = begun and not history.has_journal(self.out)
        if self.group.any_process("load", bool(steps) and not unfinished):
            raise checkpoint.CheckpointError(
                f"{self.out}: holds a run already; give resume=True, or give another folder"
            )

    def name_experiment(
        self,
        digests: dict[str, str],
        named: experiment.Experiment,
        called: Callable[[], str] = str,
    ) -> None:
        """Set the digests and the experiment that are saved, and required when resuming.

        Args:
            digests: of the parts of the run.
            named: the experiment, with all values of the run.
            called: returns the current digest of the values that host functions read.

        Raises:
            ValueError: they differ between processes.
        """
        self.experiment = named
        self.meta |= digests | {"experiment": named.digest, "changes": []}
        self.group.agree(self.meta)
        # of the first process only, as values may differ: at the start, and when last saved
        self._called, self.meta["called"] = called, [called()] * 2
        self.meta["machine"] = machine.describe()

    def begin(self, row: Any, most: int) -> None:
        """Prepare a history of `most` rows with these shapes and dtypes."""
        if self.out is not None and self.group.first:
            self.rows = history.Journal(self.out, row)
        else:
            self.rows = history.MemoryHistory(row, most)

    def refuse_full(self, state: Any, done: int, steps: int, fresh: bool) -> None:
        """Raise before the first step if there is not enough space for the files of a run.

        Args:
            state: contents of a checkpoint: space is needed for two, one more while it is written,
                and one per retained step, if these are known.
            done: step that the run resumes from.
            steps: number of steps that are certain to be taken.
            fresh: True if the folder holds no files of the run yet.

        Raises:
            MemoryError: the history does not fit into memory; with a folder it is on disk.
            OSError: the files do not fit on the disk.
        """
        rows = steps + 1 + (done if fresh else 0)  # a branch copies the earlier rows
        need = rows * memory.size(binary.describe(self.rows.row)[1])
        if self.out is not None:
            states = (3 if fresh else 1) + self.kept.count(done, done + steps)
            files.check_space(self.out, need + states * memory.size(state))
        else:
            advice = "take fewer steps, measure less, or give out= to store it on disk"
            memory.check_size(f"run: a history of {steps} steps", need, advice)

    def start(self, row: Any) -> None:
        """Write the first row of a new run."""
        if self.out is not None and self.group.first:
            self.experiment.write(self.out)
        self.rows.begin()
        self.rows.add(row, 1)

    def load_last(
        self, state: Any, allow: tuple[str, ...], branch: Branch | None = None
    ) -> tuple[int, Any] | None:
        """Return step and state of the last valid checkpoint, sharded like `state`.

        The history continues after its rows; for a branch only after `begin_branch`.

        Args:
            state: the start of the run.
            allow: names of values that may differ.
            branch: the checkpoint to use instead, in the folder of another run.
        """
        out = (self.out or Path()) if branch is None else Path(branch.folder)
        self._source, self._resume = out, "resume" if branch is None else "changed"
        self._check_known_names(allow)
        changes: list[str] = []

        def make_template(meta: dict[str, Any]) -> Any:
            """Return the expected structure, after verifying the history and the experiment."""
            if self.group.first:
                self._seals = history.verify(out, history.Segment(**meta["history"]))
            changes[:] = self._find_changes(meta, allow)
            return state

        try:
            step = None if branch is None else int(branch.step)
            found = checkpoint.load_last(out, make_template, self.group, step)
        except checkpoint.CheckpointError:
            self._raise_if_different()
            raise
        self._raise_if_different()  # instead of falling back to an older checkpoint
        if found is None:
            return None
        saved, meta = found
        was, now = meta["machine"], self.meta["machine"]
        other = [
            f"{n} {was.get(n)}, this is {now[n]}" for n in _MACHINE_FIELDS if was.get(n) != now[n]
        ]
        if other and self.group.first:
            said = f"{out}: written under {'; '.join(other)}; last digits may differ"
            warnings.warn(said, stacklevel=3)
        if branch is not None:
            changes.insert(0, f"branched from {out.resolve().name}")
        self.meta["changes"] = [
            *meta["changes"],
            *(f"at step {meta['step']}: {x}" for x in changes),
        ]
        seconds = meta.get("unkept seconds")
        self.kept.restart_clock(seconds if isinstance(seconds, float) else 0.0)
        rows = history.Segment(**meta["history"])
        if branch is not None and isinstance(self.rows, history.Journal):
            self._branched = rows
        elif isinstance(self.rows, history.Journal):
            self.experiment.write(out)
            self.rows.resume(rows, self._seals)
        else:
            self.rows.add([x for *_, x in history.stored_arrays(out, rows.rows)], rows.rows)
        return meta["step"], jax.tree.map(_copy_sharded, saved, state)

    def begin_branch(self, step: int, state: Any) -> None:
        """Write the state that `load_last` took from another run into the folder, and its history.

        The state is written first. If the process is killed before the history is complete, no run
        takes the folder for its own, neither to resume nor to start in.
        """
        if self.out is None:
            return
        if isinstance(self.rows, history.Journal):
            history.remove_journal(self.out)
            self.experiment.write(self.out)
        self._submit_write(step, state, lambda: self._branched)
        self.wait()
        if isinstance(self.rows, history.Journal):
            seals = history.copy(self._source, self.out, self._branched)
            self.rows.resume(self._branched, seals)

    def _raise_if_different(self) -> None:
        """Raise in all processes if one has found that the newest checkpoint does not match."""
        said = [text for text in self.group.exchange("another", self._another) if text]
        if said:
            raise checkpoint.CheckpointError(f"{self._source}: {said[0]}") from None

    def _check_known_names(self, allow: tuple[str, ...]) -> None:
        names = self.experiment.names()
        for word in allow:
            parts = ("step", "start", "measure", "key")
            if word not in parts and not any(
                experiment.is_allowed(name, (word,)) for name in names
            ):
                few = ", ".join(list(names)[:8])
                raise ValueError(
                    f"run: {self._resume}={word!r}; no value has this name; there are {few}"
                )

    def _find_changes(self, meta: dict[str, Any], allow: tuple[str, ...]) -> list[str]:
        """Return the differences from the run that wrote `meta`; raise if one is not allowed."""
        other = [n for n in _DIFFERENCE_PHRASES if n != "called" and meta[n] != self.meta[n]]
        if self.group.first and self.meta["called"][0] not in meta["called"]:
            other.append("called")
        was, now = meta["machine"], self.meta["machine"]
        retraced = any(was.get(name) != now[name] for name in ("jaxgpu", "jax", "python"))
        if not other:
            return []
        was = experiment.read(self._source, meta["experiment"])
        differences = experiment.differences(was, self.experiment)
        changes: dict[str, str] = {}
        refused: dict[str, dict[str, str]] = {}
        for kind in other:
            part = _PARTS.get(kind, kind)
            named = {n: said for n, said in differences.items() if experiment.part_of(n) == part}
            if not named and retraced and kind in ("program", "measure", "called"):
                continue  # another version traces differently
            named = named or {part: _UNKNOWN_DIFFERENCE}
            fresh = {n: said for n, said in named.items() if not experiment.is_allowed(n, allow)}
            if part not in allow and fresh:
                refused[kind] = fresh
            changes |= named
        if refused:
            said = _difference_message(refused, allow, self._resume)
            self._another = self._another or said
            raise checkpoint.CheckpointError(f"{self._source}: {said}")
        return [f"{name} {said}" for name, said in changes.items()]

    def save(self, step: int, state: Any) -> None:
        """Copy the state, then write it and the new rows; at most one write is in progress."""
        if self.out is None:
            return
        self.wait()
        waiting = self.rows.take_pending()
        self._submit_write(step, state, lambda: self._seal_rows(waiting))

    def _seal_rows(self, waiting: Any) -> history.Segment | None:
        return self.rows.seal(waiting) if isinstance(self.rows, history.Journal) else None

    def _submit_write(
        self, step: int, state: Any, seal: Callable[[], history.Segment | None]
    ) -> None:
        """Copy the state, and let the thread write it with the history that `seal` returns."""
        if self.group.alone:
            copy = jax.tree.map(_copy_to_host, state)
        else:
            copy = parts.pieces(state, self.group)
        tree = structure.describe_tree(state)
        self.meta["called"] = [self.meta["called"][0], self._called()]
        due = self.group.broadcast("keep", self.kept.is_due(step))
        if isinstance(self.kept.keep, WallTime):
            if due:
                self.kept.restart_clock()
            self.meta["unkept seconds"] = self.kept.seconds
        self.writing = self.thread.submit(self._write_checkpoint, step, copy, seal, tree, due)

    def _write_checkpoint(
        self,
        step: int,
        copy: Any,
        seal: Callable[[], history.Segment | None],
        tree: Any,
        kept: bool,
    ) -> None:
        rows = seal()
        meta = self.meta | {"tree": tree}
        meta |= {} if rows is None else {"history": dataclasses.asdict(rows)}
        if self.group.alone:
            checkpoint.save_step(self.out or Path(), step, copy, meta, _NEWEST, kept)
        else:
            checkpoint.save_parts(self.out or Path(), step, copy, meta, self.group, kept)

    def wait(self) -> None:
        if self.writing is not None:
            self.writing.result()


def _difference_message(
    refused: dict[str, dict[str, str]], allow: tuple[str, ...], argument: str
) -> str:
    """Return the message for a run that cannot be resumed, with the values that differ."""
    parts, names = [], list(allow)
    told = [kind for kind, named in refused.items() if [*named.values()] != [_UNKNOWN_DIFFERENCE]]
    for kind, named in refused.items():
        said = ", ".join(f"{name} {named[name]}" for name in list(named)[:_MAX_NAMED])
        more = f" and {len(named) - _MAX_NAMED} more" if len(named) > _MAX_NAMED else ""
        if (kind in told or not told) and not (kind == "key" and "generator" in refused):
            parts.append(f"{_DIFFERENCE_PHRASES[kind]}: {said}{more}")
        names += list(named) if len(named) <= _MAX_NAMED else [_PARTS.get(kind, kind)]
    return (
        f"written by a run with {'; '.join(parts)}; resume with the same, give another folder, "
        f"or {argument}={tuple(dict.fromkeys(names))!r}"
    )


def _copy_sharded(new: Any, old: Array) -> Array:
    """Return a copy of a restored array, sharded like `old`: the loop may overwrite it."""
    return jnp.copy(new if spans(new) else jax.device_put(new, old.sharding))


def _copy_to_host(leaf: Array) -> Any:
    return jnp.copy(leaf) if arguments.is_key(leaf) else np.array(leaf)
