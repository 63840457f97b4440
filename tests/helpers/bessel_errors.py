"""Largest errors of the log-Bessel functions in each region of the plane.

Errors of logarithms are in units of u times the condition number (`bessel_table`), others in u
times their size or max(1, size).
"""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from bessel_table import Table, evaluate, family, load_tables

DTYPES = (np.float64, np.float32)


class Quantity(NamedTuple):
    """A quantity to measure, and the promised bounds of its error."""

    name: str
    kind: str  # i or k
    column: str  # column of the table
    bars: tuple[float, float]  # bounds in float64 and float32


QUANTITIES = [
    Quantity("log_iv", "i", "log_iv", (2, 2)),
    Quantity("log_kv", "k", "log_kv", (4, 3)),
    Quantity("d log_iv / dx", "i", "slope_i", (16, 16)),
    Quantity("d log_kv / dx", "k", "slope_k", (16, 16)),
    Quantity("d log_iv / dv", "i", "dlogiv_dv", (64, 64)),
    Quantity("d log_kv / dv", "k", "dlogkv_dv", (64, 64)),
    Quantity("iv_ratio", "i", "ratio_i", (8, 8)),
    Quantity("kv_ratio", "k", "ratio_k", (8, 8)),
]


@cache
def values(kind: str, dtype: type, table: Table) -> dict[str, np.ndarray]:
    """Return the values of the I or K functions at the points of a table, by its columns."""
    return evaluate(family(kind), table["v"], table["x"], dtype)


@cache
def errors(quantity: Quantity, dtype: type, table: Table) -> tuple[np.ndarray, np.ndarray]:
    """Return the error at every point of the table, and a mask of the points that count."""
    info = np.finfo(dtype)
    got = values(quantity.kind, dtype, table)[quantity.column]
    exact, rows = table[quantity.column], table.points(dtype)
    if quantity.column.startswith("ratio"):
        size = np.abs(exact)
        rows &= (size > info.tiny) & (size < info.max)
    elif quantity.column.startswith("log"):
        size = table.condition(quantity.column)
    else:
        size = np.maximum(1, np.abs(exact))
        rows &= size < info.max
    return table.error(quantity.column, got, size, dtype), rows


def regions(dtype: type, table: Table) -> dict[str, np.ndarray]:
    """Return masks of the parts of the plane, by the formula that is used there."""
    edge = 24 if dtype == np.float64 else 10
    v, x = table["v"], table["x"]
    with np.errstate(over="ignore"):
        s = np.hypot(v, x)
    inside, far = s < edge, s >= 1e3
    return {
        "s < edge, x < 3/8": inside & (x < 0.375),
        "s < edge, x >= 3/8": inside & (x >= 0.375),
        "edge <= s < 1000": ~inside & ~far,
        "s >= 1000": far,
    }


def rows(table: Table) -> list[list[str]]:
    """Return the table's cells: name, bound, number of points, and one error per region."""
    found = []
    for quantity in QUANTITIES:
        for dtype, bar in zip(DTYPES, quantity.bars):
            error, known = errors(quantity, dtype, table)
            worst = [error[known & part].max() for part in regions(dtype, table).values()]
            name = f"{quantity.name}, {np.dtype(dtype).name}"
            found.append([name, f"{bar:g}", f"{known.sum()}", *(f"{e:.1f}" for e in worst)])
    return found


def markdown(cells: Sequence[Sequence[str]]) -> str:
    """Return the rows as the Markdown table of the page."""
    head = ["", "bound", "points", *regions(np.float64, load_tables())]
    lines = [head, ["---"] * len(head), *cells]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
