"""Height fields: heights in metres, and the number of cells that a geom can overlap."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from jax import Array

from ..collision.height_field import HeightField
from ..collision.kernels import GEOM_TYPES
from .layout import PairGroup


def field_indices(m: Any, groups: tuple[PairGroup, ...]) -> tuple[int, ...]:
    """Return the height-field index of each geom; -1 unless it is one that can collide."""
    ends = {i for group in groups for side in (group.first, group.second) for i in side}
    own = [GEOM_TYPES[kind] == "hfield" and i in ends for i, kind in enumerate(m.geom_type)]
    field = [int(data) if is_field else -1 for data, is_field in zip(m.geom_dataid, own)]
    used = sorted({data for data in field if data >= 0})
    return tuple(used.index(data) if data >= 0 else -1 for data in field)


def read_heights(
    m: Any, which: tuple[int, ...], cast: Callable[[Any], Array]
) -> tuple[HeightField, ...]:
    """Return the height fields, in the order of their indices."""
    number = {at: int(m.geom_dataid[i]) for i, at in enumerate(which) if at >= 0}
    found = []
    for _, field in sorted(number.items()):
        rows, columns, at = (int(a[field]) for a in (m.hfield_nrow, m.hfield_ncol, m.hfield_adr))
        x, y, up, base = np.array(m.hfield_size[field])
        z = np.array(m.hfield_data[at : at + rows * columns], float).reshape(rows, columns)
        found.append(HeightField(z=cast(up * z), half=cast([x, y]), base=cast(base)))
    return tuple(found)


def window(m: Any, pairs: Iterable[tuple[int, int, int]]) -> tuple[int, int]:
    """Return the rows and columns of cells that cover each second geom at any position."""
    most = [1, 1]
    for ground, shape, named in pairs:
        field = int(m.geom_dataid[ground])
        margin = m.pair_margin[named] if named >= 0 else np.sum(m.geom_margin[[ground, shape]])
        grid = (m.hfield_nrow[field], m.hfield_ncol[field])
        for axis, cells in enumerate(int(n) - 1 for n in grid):
            # A ball w cells wide overlaps up to w + 1 cells, and rounding may add one.
            wide = float((m.geom_rbound[shape] + margin) * cells / m.hfield_size[field, 1 - axis])
            most[axis] = max(most[axis], min(int(wide) + 2, cells))
    return most[0], most[1]
