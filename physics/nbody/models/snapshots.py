"""The text format that NBODY6 and McLuster begin from: one star a line, m x y z vx vy vz.

Known as `dat.10` or `fort.10`. Values in whatever units the code is told; numbers are written with
17 digits, so that what is read again has the same bits. Massless bodies are lines of mass 0.
"""

from pathlib import Path

import numpy as np

from jaxgpu.files import replacing


def read(file: str | Path) -> tuple[np.ndarray, np.ndarray]:
    """Positions over velocities [6, N] and masses [N].

    Raises:
        ValueError: a line that is not seven finite numbers; it says which.
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
    table = np.array(rows).T
    return table[1:], table[0]


def write(file: str | Path, points: np.ndarray, m: np.ndarray) -> None:
    """Write positions over velocities [6, N] and masses [N], replacing the file as a whole."""
    points, m = np.asarray(points, np.float64), np.asarray(m, np.float64)
    if points.shape != (6, *m.shape):
        shapes = f"points {list(points.shape)}, m {list(m.shape)}"
        raise ValueError(f"write: {shapes}; must be [6, N] and [N]")
    if not (np.isfinite(points).all() and np.isfinite(m).all()):
        raise ValueError("write: a number is not finite; give finite positions and masses")
    rows = np.concatenate([m[None], points]).T
    text = "\n".join(" ".join(f"{x:.17g}" for x in row) for row in rows.tolist()) + "\n"
    with replacing(Path(file)) as out:
        out.write(text)
