"""All pairs of a batch at a time: where they touch, and which of them were looked at."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .convex import convex, plane_hull
from .fields import Field, touch_field
from .heights import ROUND, Heights, touch_heights
from .hull import Hull, hull, reach
from .kernels import ANY, FLOOR, KERNELS, rows
from .shape import Shape, Touch


class Batch(NamedTuple):
    """Pairs of one batch."""

    kinds: tuple[str, str]  # of the first and of the second shape
    first: np.ndarray  # [P] shapes
    second: np.ndarray  # [P]
    window: tuple[int, int] = (0, 0)  # cells of a height field that a shape may reach


class Meshes(NamedTuple):
    """What is known of shapes beside where they are and how large."""

    kinds: tuple[str, ...]  # [G]
    hull: tuple[int, ...]  # [G] which of the hulls, or -1
    points: Array  # [M, N, 3] of the hulls, m
    field: tuple[int, ...]  # [G] which of the fields, or -1
    fields: tuple[Field, ...]  # shapes by their signed distance
    ground: tuple[int, ...]  # [G] which of the height fields, or -1
    heights: tuple[Heights, ...]  # height fields


class Met(NamedTuple):
    """The contacts of a batch."""

    touch: Touch  # of C rows
    pair: Array  # [C] of the batch
    beyond: Array  # [] pairs that were near, and not looked at


def meet(batch: Batch, shapes: Shape, meshes: Meshes, margin: Array, most: int) -> Met:
    """The contacts of a batch of pairs of shapes [G], whose margins are [P].

    Of convex pairs without a kernel of their own `most` are looked at: those whose balls are
    nearest to one another.
    """
    at = lambda ends: jax.tree.map(lambda leaf: leaf[ends], shapes)
    pairs = jnp.arange(len(batch.first), dtype=jnp.int32)
    none = jnp.zeros((), jnp.int32)
    if batch.kinds == ANY:
        near, pairs, none = _near(batch, shapes, meshes, margin, most)
        found = jax.vmap(convex)(*near)
    elif batch.kinds[0] == "hfield":
        found, none = _over(batch, shapes, meshes, most)
    elif batch.kinds[1] == "sdf":
        one, two = (meshes.field[int(side[0])] for side in (batch.first, batch.second))
        own = meshes.fields[one] if one >= 0 else None
        met = lambda a, b: touch_field(batch.kinds[0], a, b, own, meshes.fields[two])
        found = jax.vmap(met)(at(batch.first), at(batch.second))
    elif batch.kinds == FLOOR:
        ends, where = _hulls(batch.second, shapes, meshes)
        found = jax.vmap(plane_hull)(at(batch.first), jax.tree.map(lambda a: a[where], ends))
    else:
        found = jax.vmap(KERNELS[batch.kinds].touch)(at(batch.first), at(batch.second))
    flat = jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:]), found)
    return Met(flat, jnp.repeat(pairs, found.dist.shape[1]), none)


def count(batch: tuple[str, str], pairs: int, window: tuple[int, int], most: int) -> int:
    """The contacts that a batch of pairs may have."""
    return (rows(batch, window, most) or 0) * (min(pairs, most) if batch == ANY else pairs)


def _over(batch: Batch, shapes: Shape, meshes: Meshes, most: int) -> tuple[Touch, Array]:
    """The contacts of a height field and shapes of one kind, and how many were left out."""
    kind, field = batch.kinds[1], meshes.heights[meshes.ground[int(batch.first[0])]]
    at = lambda ends: jax.tree.map(lambda leaf: leaf[ends], shapes)
    one, two = at(batch.first), at(batch.second)
    met = lambda a, b, c: touch_heights(kind, a, b, field, c, (*batch.window, most))
    if kind in ROUND:
        found, more = jax.vmap(lambda a, b: met(a, b, None))(one, two)
    else:
        ends, where = _hulls(batch.second, shapes, meshes)
        found, more = jax.vmap(met)(one, two, jax.tree.map(lambda a: a[where], ends))
    return found, jnp.sum(more, dtype=jnp.int32)


def _near(
    batch: Batch, shapes: Shape, meshes: Meshes, margin: Array, most: int
) -> tuple[tuple[Hull, Hull], Array, Array]:
    """The hulls of the pairs that are looked at, which they are, and how many more are near."""
    ends, where = _hulls(np.concatenate([batch.first, batch.second]), shapes, meshes)
    first, second = np.split(where, 2)
    pairs, none = jnp.arange(len(first), dtype=jnp.int32), jnp.zeros((), jnp.int32)
    if len(first) > most:
        radii, pos = lax.stop_gradient((jax.vmap(reach)(ends), ends.pos))
        apart = jnp.sqrt(jnp.sum((pos[first] - pos[second]) ** 2, 1))
        gap = apart - radii[first] - radii[second] - margin
        _, pairs = lax.top_k(-gap, most)
        none = jnp.maximum(jnp.sum(gap < 0, dtype=jnp.int32) - most, 0)
    pick = lambda side: jax.tree.map(lambda a: a[jnp.asarray(side)[pairs]], ends)
    return (pick(first), pick(second)), pairs, none


def _hulls(ends: np.ndarray, shapes: Shape, meshes: Meshes) -> tuple[Hull, np.ndarray]:
    """The hulls of all shapes among `ends`, and where each of `ends` is in them."""
    each, where = np.unique(ends, return_inverse=True)
    # a field has the hull of its mesh
    kinds = np.array(["mesh" if meshes.hull[i] >= 0 else meshes.kinds[i] for i in each])
    own = [len(meshes.points[0])] if "mesh" in kinds else []
    most = max([8 if kind == "box" else 2 for kind in kinds if kind != "mesh"] + own)
    parts, order = [], []
    for kind in sorted(set(kinds)):
        of = each[kinds == kind]
        at = jax.tree.map(lambda leaf, of=of: leaf[of], shapes)
        if kind == "mesh":
            points = meshes.points[np.array([meshes.hull[i] for i in of])]
            parts.append(jax.vmap(lambda s, p: hull("mesh", s, p, most))(at, points))
        else:
            parts.append(jax.vmap(lambda s, kind=kind: hull(kind, s, count=most))(at))
        order.append(np.flatnonzero(kinds == kind))
    back = np.argsort(np.concatenate(order))
    join = lambda *leaves: jnp.concatenate(leaves)[back]
    return jax.tree.map(join, *parts), where.reshape(-1)
