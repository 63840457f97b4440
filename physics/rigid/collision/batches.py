"""Collision of all pairs of a batch: their contacts, and the number of pairs that were skipped."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .convex import hull_hull, plane_hull
from .height_field import ROUND_TYPES, HeightField, collide_heights
from .hull import Hull, hull, rbound
from .kernels import CONVEX_PAIR, KERNELS, PLANE_MESH, num_contacts
from .sdf_contacts import DistanceField, collide_field
from .shape import Collision, Shape


class Batch(NamedTuple):
    """Shape pairs of one batch."""

    kinds: tuple[str, str]  # types of the first and of the second shape
    first: np.ndarray  # [P] indices of shapes
    second: np.ndarray  # [P]
    window: tuple[int, int] = (0, 0)  # cells of a height field that a shape can overlap


class Meshes(NamedTuple):
    """Geometry of shapes other than their pose and size."""

    kinds: tuple[str, ...]  # [G] types
    hull: tuple[int, ...]  # [G] index of its hull, or -1
    points: Array  # [M, N, 3] vertices of the hulls, m
    field: tuple[int, ...]  # [G] index of its field, or -1
    fields: tuple[DistanceField, ...]  # shapes by their signed distance
    ground: tuple[int, ...]  # [G] index of its height field, or -1
    heights: tuple[HeightField, ...]  # height fields


class BatchContacts(NamedTuple):
    """The contacts of a batch."""

    touch: Collision  # C rows
    pair: Array  # [C] index of the pair in the batch
    beyond: Array  # [] number of close pairs that were skipped


def collide_batch(
    batch: Batch, shapes: Shape, meshes: Meshes, margin: Array, most: int
) -> BatchContacts:
    """Return the contacts of a batch of pairs of shapes [G], with margins [P].

    At most `most` convex pairs without a kernel are tested: those with the closest bounding balls.
    """
    select = lambda ends: jax.tree.map(lambda leaf: leaf[ends], shapes)
    pairs = jnp.arange(len(batch.first), dtype=jnp.int32)
    none = jnp.zeros((), jnp.int32)
    if batch.kinds == CONVEX_PAIR:
        near, pairs, none = _select_close_hulls(batch, shapes, meshes, margin, most)
        found = jax.vmap(hull_hull)(*near)
    elif batch.kinds[0] == "hfield":
        found, none = _collide_height_field(batch, shapes, meshes, most)
    elif batch.kinds[1] == "sdf":
        one, two = (meshes.field[int(side[0])] for side in (batch.first, batch.second))
        own = meshes.fields[one] if one >= 0 else None
        collide_pair = lambda a, b: collide_field(batch.kinds[0], a, b, own, meshes.fields[two])
        found = jax.vmap(collide_pair)(select(batch.first), select(batch.second))
    elif batch.kinds == PLANE_MESH:
        ends, where = _make_hulls(batch.second, shapes, meshes)
        found = jax.vmap(plane_hull)(select(batch.first), jax.tree.map(lambda a: a[where], ends))
    else:
        found = jax.vmap(KERNELS[batch.kinds].touch)(select(batch.first), select(batch.second))
    flat = jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:]), found)
    return BatchContacts(flat, jnp.repeat(pairs, found.dist.shape[1]), none)


def max_contacts(batch: tuple[str, str], pairs: int, window: tuple[int, int], most: int) -> int:
    """Return the maximum number of contacts of a batch of pairs."""
    return (num_contacts(batch, window, most) or 0) * (
        min(pairs, most) if batch == CONVEX_PAIR else pairs
    )


def _collide_height_field(
    batch: Batch, shapes: Shape, meshes: Meshes, most: int
) -> tuple[Collision, Array]:
    """Return the contacts of a height field and shapes of one type, and how many were dropped."""
    kind, field = batch.kinds[1], meshes.heights[meshes.ground[int(batch.first[0])]]
    select = lambda ends: jax.tree.map(lambda leaf: leaf[ends], shapes)
    one, two = select(batch.first), select(batch.second)
    collide_pair = lambda a, b, c: collide_heights(kind, a, b, field, c, (*batch.window, most))
    if kind in ROUND_TYPES:
        found, more = jax.vmap(lambda a, b: collide_pair(a, b, None))(one, two)
    else:
        ends, where = _make_hulls(batch.second, shapes, meshes)
        found, more = jax.vmap(collide_pair)(one, two, jax.tree.map(lambda a: a[where], ends))
    return found, jnp.sum(more, dtype=jnp.int32)


def _select_close_hulls(
    batch: Batch, shapes: Shape, meshes: Meshes, margin: Array, most: int
) -> tuple[tuple[Hull, Hull], Array, Array]:
    """Return the hulls of the tested pairs, their indices, and how many close pairs are skipped."""
    ends, where = _make_hulls(np.concatenate([batch.first, batch.second]), shapes, meshes)
    first, second = np.split(where, 2)
    pairs, none = jnp.arange(len(first), dtype=jnp.int32), jnp.zeros((), jnp.int32)
    if len(first) > most:
        radii, pos = lax.stop_gradient((jax.vmap(rbound)(ends), ends.pos))
        apart = jnp.sqrt(jnp.sum((pos[first] - pos[second]) ** 2, 1))
        gap = apart - radii[first] - radii[second] - margin
        _, pairs = lax.top_k(-gap, most)
        none = jnp.maximum(jnp.sum(gap < 0, dtype=jnp.int32) - most, 0)
    select_hulls = lambda side: jax.tree.map(lambda a: a[jnp.asarray(side)[pairs]], ends)
    return (select_hulls(first), select_hulls(second)), pairs, none


def _make_hulls(ends: np.ndarray, shapes: Shape, meshes: Meshes) -> tuple[Hull, np.ndarray]:
    """Return the hulls of all shapes among `ends`, and the index in them of each of `ends`."""
    each, where = np.unique(ends, return_inverse=True)
    # A shape with a signed distance has the hull of its mesh.
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
