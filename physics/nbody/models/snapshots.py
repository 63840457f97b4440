"""The text format of initial conditions of NBODY6 and McLuster: per star a line m x y z vx vy vz.

Known as `dat.10` or `fort.10`. Values are in any units; numbers are written with 17 digits, so that
reading returns the same bits. Tracers are lines of mass 0.
"""

from pathlib import Path

import numpy as np

from jaxgpu.runs.files import replace_file


def read(file: str | Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Read positions [N, 3], velocities [N, 3] and masses [N] from a file.

    Raises:
        ValueError: a line that is not seven finite numbers; the message names the line.
    """
    rows = []
    for number, line in enumerate(Path(file).read_text().splitlines(), 1):
        if not line.strip():
            continue
        # Fortran writes exponents with D
        words = line.replace("D", "E").replace("d", "e").split()
        try:
            row = [float(word) for word in words]
        except ValueError:
            row = []
        if len(row) != 7 or not np.isfinite(row).all() or row[0] < 0:
            raise ValueError(
                f"{file}, line {number}: {line.strip()[:60]!r}; "
                "must be m x y z vx vy vz, finite numbers with m not negative"
            )
        rows.append(row)
    if not rows:
        raise ValueError(f"{file}: no stars; must hold lines of m x y z vx vy vz")
    table = np.array(rows)
    return table[:, 1:4], table[:, 4:], table[:, 0]


def write(file: str | Path, x: np.ndarray, v: np.ndarray, m: np.ndarray) -> None:
    """Write positions [N, 3], velocities [N, 3] and masses [N]; replace the file atomically."""
    x, v, m = (np.asarray(q, np.float64) for q in (x, v, m))
    if m.ndim != 1 or not x.shape == v.shape == (*m.shape, 3):
        shapes = f"x {list(x.shape)}, v {list(v.shape)}, m {list(m.shape)}"
        raise ValueError(f"write: {shapes}; must be [N, 3], [N, 3] and [N]")
    if not all(np.isfinite(q).all() for q in (x, v, m)):
        raise ValueError("write: a number is not finite; give finite positions and masses")
    rows = np.concatenate([m[:, None], x, v], 1)
    text = "\n".join(" ".join(f"{x:.17g}" for x in row) for row in rows.tolist()) + "\n"
    with replace_file(Path(file)) as out:
        out.write(text)
