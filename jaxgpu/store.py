"""Where a run keeps its checkpoints: written by a thread while the next chunk computes.

In a group of processes the thread of each writes what its process holds.
"""

import contextlib
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu import arguments, checkpoint, files
from jaxgpu.checkpoint import parts
from jaxgpu.processes import ALONE, Group, spans

# what makes two runs the same experiment, and what to say where they differ
_SAME = {
    "key": "another key; resume with the same seed",
    "generator": "a key of another kind; resume with jax.random.key(seed, impl=...) of that kind",
    "jax": "another version of jax, whose last digits may differ; install that one",
    "program": "another step: another function, spec, bound or number in it; resume with the same",
    "start": "another start; resume with the same initial state",
    "measure": "another measure; resume with the same",
}


class Store:
    """Checkpoints of a run, written by a thread while the next chunk computes.

    >>> import tempfile
    >>> out = Path(tempfile.mkdtemp())
    >>> with Store(out, None) as store:
    ...     store.save(10, {"x": jnp.arange(3.0)}, [])
    >>> checkpoint.holds_any(out)
    True
    """

    def __init__(self, out: str | Path | None, key: Any, group: Group = ALONE):
        self.group = group
        self.out = None if out is None else Path(out)
        self.name = "run" if self.out is None else self.out.name
        self.hint = "; nothing was saved" if self.out is None else f"; resume from {self.out}"
        self.meta = {"key": None, "generator": None, "jax": jax.__version__}
        if key is not None:
            self.meta["key"] = jax.random.key_data(key).tolist()
            self.meta["generator"] = str(jax.random.key_impl(key))
        self.writing: Future | None = None

    def __enter__(self):
        with contextlib.ExitStack() as entered:
            self._claim(entered)
            self.thread = ThreadPoolExecutor(1, "checkpoint")
            entered.callback(self.thread.shutdown, wait=True)
            self._entered = entered.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self._entered.close()
        if error[0] is None:
            self.wait()

    def _claim(self, entered: contextlib.ExitStack) -> None:
        """Keep the folder for these processes, until `entered` ends, and take away what lay there.

        The first process does it for all.
        """
        fault: OSError | None = None
        if self.out is not None and self.group.first:
            try:
                self.out.mkdir(parents=True, exist_ok=True)
                entered.enter_context(files.locked(self.out))
                files.sweep(self.out, "step-*")
            except OSError as error:
                fault = error
        said = self.group.decided("lock", fault and str(fault.strerror))
        if fault is not None and not isinstance(fault, BlockingIOError):
            raise fault
        if said:
            raise checkpoint.CheckpointError(f"{self.out}: {said}; wait, or give another folder")

    def refuse_overwriting(self, resume: bool) -> None:
        if self.out is None or resume:
            return
        if self.group.somewhere("load", checkpoint.holds_any(self.out)):
            raise checkpoint.CheckpointError(
                f"{self.out}: holds a run already; go on with resume=True, or give another folder"
            )

    def name_experiment(self, digests: dict[str, str]) -> None:
        """Write these digests into every checkpoint, and resume from none that has others.

        Raises:
            ValueError: they are not the same in all processes.
        """
        self.meta |= digests
        self.group.agree(self.meta)

    def last(self, state: Any, rows: Callable[[int], Any]) -> tuple[int, Any, Any] | None:
        """Step, state and history of the last good checkpoint, each array where `state` has it.

        `rows(steps)` gives a history of that length, for its shapes.
        """
        out = self.out or Path()
        found = checkpoint.load_last(out, lambda meta: (state, rows(meta["step"])), self.group)
        if found is None:
            return None
        (saved, history), meta = found
        for name, difference in _SAME.items():
            if meta.get(name) != self.meta.get(name):
                raise checkpoint.CheckpointError(
                    f"{self.out}: written by a run with {difference}, or give another folder"
                )
        return meta["step"], jax.tree.map(_placed, saved, state), history

    def save(self, step: int, state: Any, history: Any) -> None:
        """Copy the state, then write it in the background; at most one write is under way."""
        if self.out is None:
            return
        self.wait()
        if self.group.alone:
            copy = jax.tree.map(_host_copy, state)
            write = (self.out, step, (copy, history), self.meta)
            self.writing = self.thread.submit(checkpoint.save_step, *write)
        else:
            mine = parts.pieces((state, history), self.group)
            write = (self.out, step, mine, self.meta, self.group)
            self.writing = self.thread.submit(checkpoint.save_parts, *write)

    def wait(self) -> None:
        if self.writing is not None:
            self.writing.result()


def _placed(new: Any, old: Array) -> Array:
    """What a checkpoint holds, where `old` is, and a copy: the loop may overwrite it."""
    return jnp.copy(new if spans(new) else jax.device_put(new, old.sharding))


def _host_copy(leaf: Array) -> Any:
    return jnp.copy(leaf) if arguments.is_key(leaf) else np.array(leaf)
