"""The contact of any two convex shapes: the normal along which they overlap least.

The overlap along a unit normal n is h(n) = max (a - b) n, and the contact's normal minimises h: the
distance is -h, also where the shapes are separated. The polytope tells which points of the shapes
are involved. From them h is expressed again, for a face, an edge or a corner of the points plus the
ellipsoid and ball that thicken them, and minimised by Newton's method. Its last iteration carries
the derivatives, by the implicit function theorem.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from .expansion import NearestFace, nearest_face
from .flat_faces import FACE_CONTACTS, flat_contacts, lowest_points
from .hull import HIGHEST, Hull, bulge, curvature_radii, dot_rows, support_index, tangents, to_world
from .shape import FAR, Collision, Shape, collision

FACE_EXTENT = (
    8  # how far a face may extend outside three of its corners, in sides of their triangle
)
ITERATIONS = 10  # iterations of Newton's method on the sphere; the last one has derivatives


class Candidate(NamedTuple):
    """A candidate for the normal of least overlap of two shapes."""

    normal: Array  # [3]
    one: Array  # [3] point on the first shape without its ball, about its centre
    two: Array  # [3] likewise on the second, about the centre of the first
    valid: Array  # []


def hull_hull(one: Hull, two: Hull) -> Collision:
    """Return the contacts of two convex shapes, four rows: several between flat faces."""
    dist, middle, normal = deepest_contact(one, two)
    flat = flat_contacts(one, two, normal)
    many = jnp.sum(flat.dist < FAR) > 1
    first = jnp.arange(FACE_CONTACTS) == 0
    dists = jnp.where(many, flat.dist, jnp.where(first, dist, FAR))
    pos = jnp.where(many, flat.pos + one.pos[None], middle[None])
    return collision(dists, tuple(pos.T), tuple(normal))


def deepest_contact(one: Hull, two: Hull) -> tuple[Array, Array, Array]:
    """Return distance, position [3] and normal [3] of the deepest contact of convex shapes."""
    least = _best_candidate(one, two, nearest_face(one, two))
    dist = dot_rows(least.normal, least.two - least.one) - one.radius - two.radius
    middle = least.one + least.normal * (one.radius + dist / 2)
    return dist, middle + one.pos, least.normal


def plane_hull(plane: Shape, two: Hull) -> Collision:
    """Return the contacts of a plane and a mesh, four rows: its lowest and other low vertices."""
    normal, at = plane.rot[:, 2], to_world(two.rot, two.points) + (two.pos - plane.pos)[None]
    height = dot_rows(at, normal[None])
    keep = lowest_points(*lax.stop_gradient((at, height, normal)))
    dist, place = height[keep.rows], at[keep.rows]
    pos = plane.pos[None] + place - normal[None] * dist[:, None] / 2
    return collision(jnp.where(keep.there, dist, FAR), tuple(pos.T), tuple(normal))


def overlap(one: Hull, two: Hull, n: Array) -> Array:
    """Return h(n) of the shapes without their balls, m."""
    a = to_world(one.rot, one.points[support_index(one, n)]) + bulge(one, n)
    b = to_world(two.rot, two.points[support_index(two, -n)]) + bulge(two, -n)
    return dot_rows(n, a - b - (two.pos - one.pos))


def _best_candidate(one: Hull, two: Hull, found: NearestFace) -> Candidate:
    """Return the best candidate from the face, an edge and a corner of it, and cylinder caps."""
    a = to_world(one.rot, one.points[found.one])
    b = to_world(two.rot, two.points[found.two]) + (two.pos - one.pos)[None]
    ways = [
        way(one, two, a, b, found) for way in (_face_candidate, _edge_candidate, _corner_candidate)
    ]
    ways += [
        _cap_candidate(one, two, found.normal),
        _swap_shapes(_cap_candidate(two, one, -found.normal), one, two),
    ]
    all_of = jax.tree.map(lambda *parts: jnp.stack(parts), *ways)
    one, two, normal = lax.stop_gradient((one, two, all_of.normal))
    value = jax.vmap(lambda n: overlap(one, two, n))(normal)
    best = jnp.argmin(jnp.where(all_of.valid, value, jnp.inf))
    return jax.tree.map(lambda parts: parts[best], all_of)


def _face_candidate(one: Hull, two: Hull, a: Array, b: Array, found: NearestFace) -> Candidate:
    """Return the candidate for the normal of the points' own triangle."""
    u = a - b
    e, f = u[1] - u[0], u[2] - u[0]
    area = jnp.cross(e, f)
    ee, ff, ef = dot_rows(e, e), dot_rows(f, f), dot_rows(e, f)
    square = dot_rows(area, area)
    wide = square > 1e3 * jnp.finfo(u.dtype).eps * ee * ff
    area = jnp.where(wide, area, found.normal)
    normal = area / jnp.sqrt(dot_rows(area, area))
    normal = normal * jnp.where(dot_rows(normal, found.normal) < 0, -1, 1).astype(u.dtype)
    a0, b0 = a + bulge(one, normal)[None], b + bulge(two, -normal)[None]
    q = -(a0[0] - b0[0])
    qe, qf = dot_rows(q, e), dot_rows(q, f)
    share = jnp.where(wide, 1 / jnp.where(wide, square, 1), 0)
    s, t = (ff * qe - ef * qf) * share, (ee * qf - ef * qe) * share
    # A face can have more corners than three, so the point may be outside the triangle.
    s, t = jnp.clip(s, -FACE_EXTENT, FACE_EXTENT), jnp.clip(t, -FACE_EXTENT, FACE_EXTENT)
    mix = lambda v: v[0] + s * (v[1] - v[0]) + t * (v[2] - v[0])
    return Candidate(normal, mix(a0), mix(b0), wide)


def _edge_candidate(one: Hull, two: Hull, a: Array, b: Array, found: NearestFace) -> Candidate:
    """Return the best normal across the edge most perpendicular to the polytope's normal."""
    u = a - b
    sides = jnp.roll(u, -1, 0) - u
    length = dot_rows(sides, sides)
    lean = dot_rows(sides, found.normal[None]) ** 2 / jnp.where(length > 0, length, 1)
    k = jnp.argmin(lax.stop_gradient(jnp.where(length > 0, lean, jnp.inf)))
    a, b = jnp.roll(a, -k, 0)[:2], jnp.roll(b, -k, 0)[:2]
    e, ee = sides[k], length[k]
    long = ee > 0
    e, ee = jnp.where(long, e, jnp.asarray([1.0, 0, 0], e.dtype)), jnp.where(long, ee, 1)

    def project_normal(n: Array) -> Array:
        out = n - e * dot_rows(n, e) / ee
        square = dot_rows(out, out)
        return jnp.where(square > 1e-6, out / jnp.sqrt(jnp.where(square > 1e-6, square, 1)), n)

    tangent = lambda n: jnp.cross(e, n)[None] / jnp.sqrt(ee)
    n, fit = _refine_normal(one, two, a[0] - b[0], project_normal, tangent, found.normal)
    sound = long & fit & (jnp.abs(dot_rows(n, e)) < 1e-3 * jnp.sqrt(ee))
    a0, b0 = a + bulge(one, n)[None], b + bulge(two, -n)[None]
    t = jnp.clip(dot_rows(-(a0[0] - b0[0]), e) / ee, 0, 1)
    mix = lambda v: v[0] + t * (v[1] - v[0])
    return Candidate(n, mix(a0), mix(b0), sound)


def _corner_candidate(one: Hull, two: Hull, a: Array, b: Array, found: NearestFace) -> Candidate:
    """Return the best normal about the pair of points that is farthest along the polytope's."""
    k = jnp.argmax(lax.stop_gradient(dot_rows(a - b, found.normal[None])))
    a, b = a[k], b[k]
    n, sound = _refine_normal(one, two, a - b, lambda n: n, tangents, found.normal)
    return Candidate(n, a + bulge(one, n), b + bulge(two, -n), sound)


def _cap_candidate(one: Hull, two: Hull, towards: Array) -> Candidate:
    """Return the axis of the first shape as normal, valid if it is a cylinder, for its flat cap."""
    axis = one.rot[:, 2]
    n = axis * jnp.where(dot_rows(axis, towards) < 0, -1, 1).astype(axis.dtype)
    a = to_world(one.rot, one.points[support_index(one, n)])
    b = to_world(two.rot, two.points[support_index(two, -n)]) + bulge(two, -n) + (two.pos - one.pos)
    out = b - a
    out = out - dot_rows(out, n) * n
    square = dot_rows(out, out)
    beyond = square > one.radii[0] ** 2
    share = jnp.where(beyond, one.radii[0] / jnp.sqrt(jnp.where(beyond, square, 1)), 1)
    return Candidate(n, a + share * out, b, (one.radii[0] > 0) & (one.radii[2] == 0))


def _swap_shapes(least: Candidate, one: Hull, two: Hull) -> Candidate:
    """Convert a candidate that was found with the shapes in the other order."""
    apart = two.pos - one.pos
    return Candidate(-least.normal, least.two + apart, least.one + apart, least.valid)


def _refine_normal(
    one: Hull,
    two: Hull,
    at: Array,
    allowed: Callable[[Array], Array],
    ways: Callable[[Array], Array],
    n: Array,
) -> tuple[Array, Array]:
    """Return the normal near `n` of least overlap about the point `at`, and if it is a minimum.

    allowed: maps a normal to an allowed one; ways: returns the tangents along which it may move.
    """
    still = lax.stop_gradient((one, two, at))
    iterate = lambda _, n: _newton_step(*still, n, lax.stop_gradient(ways(n)))[0]
    settled = lax.fori_loop(1, ITERATIONS, iterate, lax.stop_gradient(allowed(n)))
    start = allowed(lax.stop_gradient(settled))  # rotates with an edge
    return _newton_step(one, two, at, start, ways(start))


def _newton_step(one: Hull, two: Hull, at: Array, n: Array, basis: Array) -> tuple[Array, Array]:
    """Return a normal closer to the minimum of h along tangents [1 or 2, 3], and if h has one.

    The gradient of h on the sphere follows from the closest points, and its Hessian from their
    radii of curvature minus the depth, without differentiation.
    """
    w = at + bulge(one, n) - bulge(two, -n)
    slope = jnp.einsum("kj,j->k", basis, w, precision=HIGHEST)
    rows, normal, depth = lax.stop_gradient((basis, n, dot_rows(n, w)))
    radii = lax.stop_gradient(curvature_radii(one, normal) + curvature_radii(two, -normal))
    H = jnp.einsum("ki,ij,lj->kl", rows, radii, rows, precision=HIGHEST)
    H = H - depth * jnp.eye(len(rows), dtype=n.dtype)
    # Where h is concave, the Hessian is lifted so that the step still descends.
    least = H[0, 0] if len(rows) == 1 else _least_curvature(H)
    fit = least > 0
    lift = jnp.where(fit, 0, 1e-2 * jnp.abs(depth) - least)
    H = H + lift * jnp.eye(len(rows), dtype=n.dtype)
    if len(rows) == 1:
        step = slope / jnp.where(H[0, 0] > 0, H[0, 0], 1)
    else:
        (a, b), (_, d) = H
        det = a * d - b * b
        step = jnp.stack([d * slope[0] - b * slope[1], a * slope[1] - b * slope[0]])
        step = step / jnp.where(det > 0, det, 1)
    step = jnp.clip(step, -0.5, 0.5)
    moved = n - jnp.einsum("k,kj->j", step, basis, precision=HIGHEST)
    return moved / jnp.sqrt(dot_rows(moved, moved)), fit


def _least_curvature(H: Array) -> Array:
    """Return the smaller eigenvalue of a symmetric matrix [2, 2]."""
    (a, b), (_, d) = H
    half = (a - d) / 2
    return (a + d) / 2 - jnp.sqrt(half * half + b * b)
