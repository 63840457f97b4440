"""Pairs of geoms that can collide, by MuJoCo's rules, grouped by type into few batches."""

from typing import Any

import numpy as np

from ..collision.kernels import GEOM_TYPES, batch_types
from . import height_fields
from .layout import PairGroup

# These types do not collide in MuJoCo either.
EXCLUDED = (("plane", "hfield"), ("hfield", "hfield"))


def group_pairs(m: Any, field: tuple[int, ...]) -> tuple[PairGroup, ...]:
    """Return groups of geom pairs with the same batch, the same fields and the same condim.

    `field` has the index of each geom's signed distance, or -1.
    """
    kind = geom_types(m, field)
    named = {tuple(sorted((int(a), int(b)))): i for i, (a, b) in enumerate(_explicit_pairs(m))}
    found: dict[tuple[str, str, int, int, int], list[tuple[int, int, int]]] = {}
    for a in range(m.ngeom):
        for b in range(a + 1, m.ngeom):
            pair = named.get((a, b), -1)
            if pair < 0 and not _can_collide(m, a, b):
                continue
            one, two = (a, b) if GEOM_TYPES.index(kind[a]) <= GEOM_TYPES.index(kind[b]) else (b, a)
            condim = int(m.pair_dim[pair]) if pair >= 0 else _contact_dimension(m, a, b)
            batch = batch_types(kind[one], kind[two])
            if batch in EXCLUDED:
                continue
            first, second = (field[one], field[two]) if batch[1] == "sdf" else (-1, -1)
            if batch[0] == "hfield":
                first = int(m.geom_dataid[one])
            key = (*batch, condim, first, second)
            found.setdefault(key, []).append((one, two, pair))
    place = {kind: i for i, kind in enumerate((*GEOM_TYPES, "convex"))}
    order = sorted(found, key=lambda k: (k[2], place[k[0]], place[k[1]], k[3:]))
    groups = []
    for key in order:
        one, two, condim = key[:3]
        first, second, pairs = zip(*found[key])
        window = height_fields.window(m, found[key]) if one == "hfield" else (0, 0)
        groups.append(
            PairGroup(
                kinds=(one, two),
                condim=condim,
                first=first,
                second=second,
                named=pairs,
                window=window,
            )
        )
    return tuple(groups)


def geom_types(m: Any, field: tuple[int, ...]) -> list[str]:
    """Return the type of each geom: `sdf` if it collides by its signed distance."""
    return [GEOM_TYPES[i] if at < 0 else "sdf" for i, at in zip(m.geom_type, field)]


def _explicit_pairs(m: Any) -> Any:
    return zip(m.pair_geom1, m.pair_geom2)


def _contact_dimension(m: Any, a: int, b: int) -> int:
    one, two = m.geom_priority[a], m.geom_priority[b]
    if one == two:
        return int(max(m.geom_condim[a], m.geom_condim[b]))
    return int(m.geom_condim[a if one > two else b])


def _can_collide(m: Any, a: int, b: int) -> bool:
    masks_match = lambda x, y: bool(m.geom_contype[x] & m.geom_conaffinity[y])
    if not (masks_match(a, b) or masks_match(b, a)):
        return False
    body = m.geom_bodyid[[a, b]]
    weld = m.body_weldid[body]
    if weld[0] == weld[1]:
        return False
    if (
        not m.body_dofnum[weld].any()
        and not (m.body_mocapid[body] >= 0).any()
        and _is_static(m, weld)
    ):
        return False
    signature = (int(min(body)) << 16) + int(max(body))
    if signature in m.exclude_signature:
        return False
    above = m.body_weldid[m.body_parentid[weld]]
    filtered = not m.opt.disableflags & (1 << 10)
    related = (weld[0] == above[1] and weld[0] != 0) or (weld[1] == above[0] and weld[1] != 0)
    return not (filtered and related)


def _is_static(m: Any, weld: np.ndarray) -> bool:
    """Return whether both bodies are static, as they belong to no kinematic tree."""
    return all(m.body_treeid[i] < 0 for i in weld)
