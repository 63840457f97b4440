"""Terminal display of active runs, from the contents of their folders."""

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from jaxgpu.inputs import arguments

from ..checkpoint import CheckpointError, binary
from ..checkpoint.untrusted_data import printable
from . import history

_WIDTH, _HEIGHT = 56, 4  # characters of a plot
_MAX_PLOTS = 4  # arrays of a run that are plotted
_MAX_ATTEMPTS = 20  # attempts: a journal may be replaced while it is read
# bits of the dots of a braille character by row and column, from the top left
_BRAILLE_BITS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))


def plot_runs(folder: str | Path) -> str:
    """Plot each run in a folder or below it: its step, and its measures over time.

    For an array with several numbers per step their mean is plotted. Only the plotted rows are
    read, so the cost does not depend on the length of a history.

    Raises:
        CheckpointError: there is no run.

    >>> import tempfile, jax.numpy as jnp
    >>> from jaxgpu.runs.loop import run
    >>> folder = tempfile.mkdtemp()
    >>> done = run(jnp.cos, jnp.zeros(2), 20, measure=lambda x: {"x": x[0]}, out=folder)
    >>> print(plot_runs(folder).splitlines()[1].strip())
    ['x'] = 0.738938
    """
    folder = arguments.path("watch: folder", folder)
    found = sorted(folder.glob(f"**/{history.FOLDER}/{history.JOURNAL}"))
    if not found:
        raise CheckpointError(f"{folder}: there is no run in it; give the folder of a run, or wait")
    lines = [printable(line) for journal in found for line in _plot_run(journal)]
    if not lines:
        raise CheckpointError(f"{folder}: its runs were removed; give another folder")
    return "\n".join(lines)


def _plot_run(journal: Path) -> list[str]:
    """Return the lines for a run, all from the same moment; none if it was removed."""
    state = _journal_state(journal)
    for _ in range(_MAX_ATTEMPTS):
        try:
            return [*_format_run(journal)]
        except (CheckpointError, FileNotFoundError):
            before, state = state, _journal_state(journal)
            if state is None:
                return []
            if state == before:
                raise
    return [*_format_run(journal)]


def _journal_state(journal: Path) -> tuple[int, ...] | None:
    """Return a value that changes when a journal is written; None if there is none."""
    try:
        found = journal.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _format_run(journal: Path) -> Iterator[str]:
    out = journal.parents[1]
    leaves, rows = history.stored_arrays(out), history.count_rows(out)
    ago = max(0.0, time.time() - journal.stat().st_mtime)
    yield f"{out}: step {rows - 1}, saved {ago:.0f} s ago" if rows else f"{out}: no rows yet"
    for name, kind, leaf in leaves[: _MAX_PLOTS if rows else 0]:
        if kind in binary.DTYPES:
            yield from _plot_array(name or "history", leaf)
        else:
            yield f"  {name or 'history'}: {kind}"
    if rows and len(leaves) > _MAX_PLOTS:
        yield f"  and {len(leaves) - _MAX_PLOTS} more"


def _plot_array(name: str, leaf: np.ndarray) -> Iterator[str]:
    at = np.unique(np.linspace(0, len(leaf) - 1, min(len(leaf), 2 * _WIDTH)).astype(int))
    y = np.asarray(leaf[at], float).reshape(len(at), -1)
    y = y.mean(axis=1) if y.shape[1] else np.zeros(len(at))
    what = name if leaf.ndim == 1 else f"mean of {name} {list(leaf.shape[1:])}"
    yield f"  {what} = {y[-1]:.6g}"
    finite = y[np.isfinite(y)]
    low, high = (finite.min(), finite.max()) if len(finite) else (0.0, 0.0)
    ends = [f"{high:.4g}", *[""] * (_HEIGHT - 2), f"{low:.4g}"]
    for label, line in zip(ends, _plot_braille(y, low, high)):
        yield f"{label:>12} |{line}"


def _plot_braille(y: np.ndarray, low: float, high: float) -> list[str]:
    """Return numbers as lines of characters, one dot per number; none if it is not finite."""
    cells = np.zeros((_HEIGHT, _WIDTH), int)
    x = np.linspace(0, 2 * _WIDTH - 1, len(y)).astype(int)
    for column, value in zip(x, y):
        if np.isfinite(value):
            part = (value - low) / (high - low) if high > low else 0.5
            row = round((1 - part) * (4 * _HEIGHT - 1))
            cells[row // 4, column // 2] |= _BRAILLE_BITS[row % 4][column % 2]
    return ["".join(chr(0x2800 + int(cell)) for cell in row).rstrip("\u2800") for row in cells]
