"""Contacts of all pairs that may touch, their parameters, and the cones they are in the problem."""

from dataclasses import dataclass
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu.pytree import pytree, size

from ..collision.batches import Batch, Meshes, count, meet
from ..collision.shape import Shape, Touch
from ..models.layout import Layout, PairGroup
from ..models.model import Mechanism
from ..motion.inertia import HIGHEST, Motion
from ..motion.poses import Poses, matrices
from . import compliant, impedance
from .cones import Cone

_LEAST_FRICTION = 1e-5
_SLIPPERY = 30  # roots of eps: edges of a pyramid are no harder than at this friction
_TINY = impedance.TINY


@pytree
class Contacts:
    """C contacts of one dimension of friction; those with dist >= margin do not act."""

    condim: int = size(least=1, most=6)  # dimension of friction
    geoms: Array  # [C, 2]
    dist: Array  # [C] m, negative where shapes overlap
    pos: Array  # [C, 3] m, midway between the surfaces
    frame: Array  # [C, 3, 3] rows: normal from the first to the second, two tangents
    friction: Array  # [C, 5]
    solref: Array  # [C, 2]
    solreffriction: Array  # [C, 2]
    solimp: Array  # [C, 5]
    margin: Array  # [C] m
    beyond: Array  # [] contacts that were not kept


@dataclass(frozen=True)
class Sides:
    """Of all pairs of a dimension, in order of their contacts."""

    groups: tuple[PairGroup, ...]
    first: np.ndarray  # [P] geoms
    second: np.ndarray  # [P]
    named: np.ndarray  # [P] pair of the file, or -1
    candidates: int  # contacts that there may be


@lru_cache(maxsize=64)
def sides(layout: Layout, condim: int) -> Sides:
    """The pairs of one dimension."""
    groups = tuple(group for group in layout.groups if group.condim == condim)
    join = lambda field: np.concatenate([getattr(group, field) for group in groups]).astype(int)
    each = [count(group.kinds, len(group.first), group.window, layout.contacts) for group in groups]
    return Sides(
        groups=groups,
        first=join("first"),
        second=join("second"),
        named=join("named"),
        candidates=sum(each),
    )


def dimensions(layout: Layout) -> tuple[int, ...]:
    """Of friction, that contacts of the mechanism have."""
    return tuple(sorted({group.condim for group in layout.groups}))


def contacts(model: Mechanism, where: Poses) -> tuple[Contacts, ...]:
    """The contacts of each dimension, the deepest if there are more than the layout keeps."""
    layout, geoms = model.layout, model.geoms
    if not layout.groups:
        return ()
    place, turn = where.of(np.array(layout.geom_body), geoms.pos, geoms.quat)
    shapes = Shape(place.T, jnp.moveaxis(matrices(turn), 2, 0), geoms.size)
    return tuple(_of_dimension(model, shapes, condim) for condim in dimensions(layout))


def _of_dimension(model: Mechanism, shapes: Shape, condim: int) -> Contacts:
    all_of = sides(model.layout, condim)
    friction, solref, slip, solimp, margin = _mixed(model, all_of)
    touch, pair, beyond = _met(model, shapes, all_of, margin)
    dist, pos, frame = touch.dist, touch.pos, touch.frame
    most = min(model.layout.contacts, all_of.candidates)
    depth = dist - margin[pair]
    beyond = beyond + jnp.maximum(jnp.sum(depth < 0, dtype=jnp.int32) - most, 0)
    if most < all_of.candidates:
        _, kept = lax.top_k(-lax.stop_gradient(depth), most)
        pair, dist, pos, frame = pair[kept], dist[kept], pos[kept], frame[kept]
    ends = jnp.asarray(np.stack([all_of.first, all_of.second], 1))
    return Contacts(
        condim=condim,
        geoms=ends[pair],
        dist=dist,
        pos=pos,
        frame=frame,
        friction=friction[pair],
        solref=solref[pair],
        solreffriction=slip[pair],
        solimp=solimp[pair],
        margin=margin[pair],
        beyond=beyond,
    )


def _met(
    model: Mechanism, shapes: Shape, all_of: Sides, margin: Array
) -> tuple[Touch, Array, Array]:
    """The candidates of all groups, their pairs, and the pairs that were not looked at."""
    layout = model.layout
    geoms = model.geoms
    meshes = Meshes(
        kinds=layout.geom_kind,
        hull=layout.geom_hull,
        points=geoms.hulls,
        field=layout.geom_field,
        fields=geoms.fields,
        ground=layout.geom_ground,
        heights=geoms.heights,
    )
    start, found = 0, []
    for group in all_of.groups:
        end = start + len(group.first)
        batch = Batch(group.kinds, np.array(group.first), np.array(group.second), group.window)
        met = meet(batch, shapes, meshes, margin[start:end], layout.contacts)
        found.append(met._replace(pair=met.pair + start))
        start = end
    joined = jax.tree.map(lambda *parts: jnp.concatenate(parts), *[met[:2] for met in found])
    return *joined, jnp.sum(jnp.stack([met.beyond for met in found]), dtype=jnp.int32)


def _mixed(model: Mechanism, all_of: Sides) -> tuple[Array, ...]:
    """Friction, solref, solreffriction, solimp and margin of pairs [P], by MuJoCo's rules."""
    geoms, a, b = model.geoms, all_of.first, all_of.second
    priority = np.array(model.layout.geom_priority)
    lead = np.sign(priority[a] - priority[b])[:, None]
    mixes = geoms.solmix[a], geoms.solmix[b]
    weighty = [mix >= _TINY for mix in mixes]
    even = weighty[0] & weighty[1]
    share = jnp.where(even, mixes[0] / jnp.where(even, mixes[0] + mixes[1], 1), 0.5)
    share = jnp.where(even | (~weighty[0] & ~weighty[1]), share, jnp.where(weighty[0], 1.0, 0.0))[
        :, None
    ]
    share = jnp.where(lead > 0, 1, jnp.where(lead < 0, 0, share))
    mixed = lambda x: share * x[a] + (1 - share) * x[b]
    times = geoms.solref[a][:, :1] > 0, geoms.solref[b][:, :1] > 0
    lower = jnp.minimum(geoms.solref[a], geoms.solref[b])
    solref = jnp.where((times[0] & times[1]) | (lead != 0), mixed(geoms.solref), lower)
    rough = jnp.maximum(geoms.friction[a], geoms.friction[b])
    rough = jnp.where(lead > 0, geoms.friction[a], jnp.where(lead < 0, geoms.friction[b], rough))
    friction = rough[:, np.array([0, 0, 1, 2, 2])]
    slip = jnp.zeros_like(solref)
    solimp, margin = mixed(geoms.solimp), geoms.margin[a] + geoms.margin[b]
    if (all_of.named >= 0).any():
        own, named = np.maximum(all_of.named, 0), all_of.named >= 0
        pairs = model.pairs
        pick = lambda mine, theirs: jnp.where(
            named.reshape(-1, *(1,) * (theirs.ndim - 1)), mine[own], theirs
        )
        friction, solref = pick(pairs.friction, friction), pick(pairs.solref, solref)
        slip, solimp = pick(pairs.solreffriction, slip), pick(pairs.solimp, solimp)
        margin = pick(pairs.margin, margin)
    return jnp.maximum(friction, _LEAST_FRICTION), solref, slip, solimp, margin


def cone(model: Mechanism, m: Motion, qvel: Array, c: Contacts) -> Cone:
    """The rows of contacts in the problem."""
    layout, d = model.layout, c.condim
    body = np.array(layout.geom_body)
    moves = jnp.asarray(layout.moves.astype(np.int8))
    sign = moves[jnp.asarray(body)[c.geoms]].astype(qvel.dtype)  # [C, 2, V]
    shift, turn = m.jacobian(layout, c.pos.T, sign[:, 1] - sign[:, 0])
    into = lambda a: jnp.einsum("cij,jcv->civ", c.frame, a, precision=HIGHEST)
    J = into(shift) if d <= 3 else jnp.concatenate([into(shift), into(turn)], 1)
    J = J[:, :d]
    acts = c.dist < c.margin
    k, b = impedance.spring(model, c.solref, c.solimp)
    r = c.dist - c.margin
    stretch = k * impedance.impedance(c.solimp, r) * r
    speed = jnp.einsum("ckv,v->ck", J, qvel, precision=HIGHEST)
    t = jnp.sum(model.bodies.invweight[:, 0][jnp.asarray(body)[c.geoms]], 1)
    if layout.compliant:
        parameters = c.friction, c.solref, c.solimp
        return compliant.cone(model, parameters, c.dist - c.margin, J, speed, t)
    elliptic = layout.cone == "elliptic"
    drag = jnp.broadcast_to(b[:, None], speed.shape)
    if elliptic and d > 1:
        slip = jnp.any(c.solreffriction != 0, 1)
        own = impedance.spring(
            model, jnp.where(slip[:, None], c.solreffriction, c.solref), c.solimp
        )
        drag = drag.at[:, 1:].set(jnp.where(slip, own[1], b)[:, None])
    aref = (-drag * speed).at[:, 0].add(-stretch)
    friction, ratio = c.friction[:, : d - 1], model.option.impratio
    if d > 1 and not elliptic:
        # the edges of a pyramid see the normal and friction, and are as soft as friction is
        slide = jnp.maximum(c.friction[:, 0], _SLIPPERY * float(jnp.finfo(qvel.dtype).eps) ** 0.5)
        t = 2 * slide**2 / ratio * t * (1 + slide**2)
    D = jnp.where(acts, impedance.weight(c.solimp, r, t), 0)
    return Cone(
        elliptic=elliptic,
        J=J,
        aref=aref,
        D=D,
        friction=friction,
        mu=c.friction[:, 0] / jnp.sqrt(ratio),
    )
