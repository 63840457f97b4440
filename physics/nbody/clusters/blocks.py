"""Bodies with steps of their own: the block structure of time, and the driver of all orders.

Steps are powers of two of an interval and commensurate with the time (McMillan 1986), so that the
bodies that are due are those whose time is equal to the bit. Makino & Aarseth (1992), PASJ 44, 141.

A block brings all bodies that are due to one moment: stars first, for what happens to them depends
on stars alone, then tracers. `BlockSteps.step` is the loop over the blocks of an interval; what a
block does is said by the order (`hermite`, `hermite6`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu.devices.precision import reassociated
from jaxgpu.inputs.fields import number, pytree
from jaxgpu.inputs.fields import size as whole

from ..forces import pairs
from ..forces.tide import Alone, Origin, Tide
from . import at_once, scheduler
from .at_once import Motion
from .rows import Vector, each, joined
from .scheduler import Packing, Schedule


@pytree
class Population:
    """Bodies with their last known state, each at a time of its own."""

    x: Vector  # [6, N] position and velocity
    a: Vector  # [D, N] acceleration and jerk, D = 6; with snap and crackle, D = 12
    t: Array  # [N] time of that state, as a part of the interval: a dyadic number, exactly
    dt: Array  # [N] step to take next, as a part of the interval: a power of two, exactly


@pytree
class BlockState:
    """Where bodies are; all are at the same time between two calls of `step`."""

    stars: Population
    tracers: Any  # bodies without mass, as the order has them
    origin: Origin  # in the galaxy, of what positions are relative to
    blocks: Array  # [] int32: block steps so far
    steps: Array  # [2] float: steps of stars and of tracers so far
    floored: Array  # [] int32: steps that should have been shorter than the shortest

    def rewound(self) -> "BlockState":
        """The same with times counted from the beginning of an interval."""
        return replace(self, stars=rewound(self.stars), tracers=rewound(self.tracers))


@pytree
class BlockSteps(ABC):
    """How to integrate. Lengths, times and masses in units in which G is 1."""

    eta: Array | float = number(
        default=0.02, above=0
    )  # [] accuracy of the steps: dt = sqrt(eta ...)
    softening: Array | float = number(default=0.0, least=0)  # [] length; 0 for none
    interval: Array | float = number(
        default=0.125, above=0
    )  # [] time that one call of `step` covers
    tide: Tide | Alone = Alone()  # of a galaxy
    longest: int = whole(default=2, least=0)  # steps are at most interval / 2^longest
    shortest: int = whole(default=40, least=1)  # and at least interval / 2^shortest; 23 in float32
    tile: int = whole(default=16, least=1)  # bodies advanced together, on a CPU
    bulk: int = whole(default=256, least=1)  # tracers advanced together where many are due

    @abstractmethod
    def block(
        self,
        state: Any,
        packing: Packing[Any],
        schedule: Schedule,
        path: Any,
        now: Array,
    ) -> tuple[Any, Schedule]:
        """All bodies that are due brought to `now`, and their steps counted."""

    @abstractmethod
    def motion(self) -> Motion:
        """How bodies that are all single are moved at once, on NVIDIA's GPUs."""

    def at_once(self, path: Any, begin: Any) -> Any:
        """The state at the end of the interval, all bodies evaluated in each block."""
        return singles_at_once(self, path, begin)

    def moves_at_once(self, state: Any) -> bool:
        """Whether `at_once` is worth it, and serves such a state."""
        return scheduler.all_at_once(state.stars.t.size, state.tracers.t.size)

    @reassociated
    def step(self, state: Any) -> Any:
        """The state one interval later."""
        path = self.tide.path(state.origin, self.interval)
        begin = state.rewound()
        in_turn = partial(self.in_turn, path)
        if self.moves_at_once(begin):
            whole = partial(self.at_once, path)
            end = lax.platform_dependent(begin, cuda=whole, default=in_turn)
        else:
            end = in_turn(begin)
        return replace(end, origin=self.tide.moved(path, state.origin))

    def in_turn(self, path: Any, begin: Any, now: Array | float = 0.0) -> Any:
        """The state at the end of the interval, each block after `now` that of who is due."""
        packing = Packing(begin.tracers)
        schedule = scheduler.open_schedule(packing, begin.tracers, (self.tile, self.bulk))
        # the tracers are in the schedule meanwhile
        start = replace(begin, tracers=jax.tree.map(lambda q: q[..., :0], begin.tracers))

        def unfinished(carry: tuple[Any, Schedule, Any]) -> Array:
            return carry[2] < 1

        def one_block(carry: tuple[Any, Schedule, Any]) -> tuple[Any, Schedule, Any]:
            state, schedule, _ = carry
            # steps divide the interval, so that the last block is that of all bodies, at 1
            now = jnp.min(state.stars.t + state.stars.dt)
            now = jnp.minimum(now, jnp.min(schedule.soonest, initial=jnp.inf))
            now = lax.stop_gradient(now)  # a table's entry; the least of no tracers has no slope
            return *self.block(state, packing, schedule, path, now), now

        end, schedule, _ = lax.while_loop(unfinished, one_block, (start, schedule, now))
        return replace(end, tracers=packing.group(schedule.rows))


@pytree
class Pairing:
    """Which close pairs are regularised, and how; see `binary`. No slots, no pairs.

    >>> from jaxgpu.physics.nbody import Hermite
    >>> Hermite(pairing=Pairing(close=1e-3, slots=8)).pairing.slots
    8
    """

    close: Array | float = number(
        default=0.0, least=0
    )  # [] length: semi-major axis of a pair of mean stars at most
    weak: Array | float = number(
        default=1e-6, above=0
    )  # [] perturbation below which a pair is slowed down, seen as a point
    strong: Array | float = number(
        default=0.05, above=0
    )  # [] perturbation above which it is a pair no more
    kicks: Array | float = number(
        default=32.0, above=0
    )  # [] by the others in an orbit; more if it is disturbed
    slots: int = whole(default=0, least=0)  # how many pairs at a time


@pytree
class PairedSteps(BlockSteps):
    """Block steps of fourth order with regularised pairs, as all parts of `hermite` know them."""

    pairing: Pairing = Pairing()  # which close pairs are regularised; none by default


def singles_at_once(spec: BlockSteps, path: Any, begin: Any, gate: Array | None = None) -> Any:
    """The state after the last block that all bodies made alone: at the end of the interval.

    With a `gate` [N], steps, it is that in which a star which was due has a shorter one.
    """
    (stars, tracers), blocks, steps, floored = at_once.interval(
        spec.motion(), begin.stars, begin.tracers, begin.m, path, gate
    )
    return replace(
        begin,
        stars=stars,
        tracers=tracers,
        blocks=begin.blocks + blocks,
        steps=begin.steps + steps.astype(begin.steps.dtype),
        floored=begin.floored + floored,
    )


def rewound[T: Any](group: T) -> T:
    """Bodies whose times are counted from the beginning of an interval, where they all are."""
    return replace(group, t=jnp.zeros_like(group.t))


def due_at(group: Population, now: Array) -> Array:
    """[N] bool: whose steps end `now`, to the bit."""
    return group.t + group.dt == now


def advance_stars(
    spec: BlockSteps,
    stars: Population,
    due: Array,
    sources: Array,
    force: Callable[[Array, Array], Array],
    corrected: Callable[[Population, Array], tuple[Population, Array]],
) -> tuple[Population, Array]:
    """The stars with those that are `due` [N] corrected, and how many steps were floored.

    Args:
        spec: how to integrate.
        stars: all of them.
        due: which are corrected.
        sources: predicted states [D, N] of all stars.
        force: on the stars of an index [K], predicted at [D, K].
        corrected: stars [K] by the forces at the ends of their steps.
    """

    def move(index: Array, old: Population) -> tuple[Population, Array]:
        # a star must find itself among the sources to the bit, or it would pull on itself
        guess = lax.optimization_barrier(jnp.take(sources, index, axis=-1, mode="clip"))
        return corrected(old, force(index, guess))

    move_all = lambda index, old: corrected(old, force(index, sources))
    return scheduler.advance_group(stars, due, move, spec.tile, move_all)


def no_blocks_yet(dtype: Any) -> dict[str, Array]:
    """Return what a state counts before the first block."""
    zero = jnp.zeros((), jnp.int32)
    return {"blocks": zero, "steps": jnp.zeros(2, dtype), "floored": jnp.zeros((), jnp.int32)}


def counted(state: Any, due: Array, tracers: Array, floored: Array) -> dict[str, Array]:
    """What a state counts after a block: fields `blocks`, `steps` and `floored`.

    Args:
        state: before the block.
        due: [N] bool, which stars were advanced.
        tracers: [] how many tracers were.
        floored: [] how many steps should have been shorter than the shortest.
    """
    count = jnp.stack([jnp.sum(due, dtype=jnp.int32), tracers])
    return {
        "blocks": state.blocks + 1,
        "steps": state.steps + count.astype(state.steps.dtype),
        "floored": state.floored + floored,
    }


def predicted(spec: BlockSteps, group: Population, now: Array) -> Vector:
    """Positions and velocities [6, N] at `now`, by Taylor series to the jerk."""
    h = spec.interval * (now - group.t)

    def taylor(h: Array, x: Array, v: Array, a: Array, j: Array) -> tuple[Array, Array]:
        return x + h * (v + h / 2 * (a + h / 3 * j)), v + h * (a + h / 2 * j)

    return joined(*each(taylor, (h,), group.x[:3], group.x[3:], group.a[:3], group.a[3:]))


def first_step(spec: BlockSteps, a: Array, snap: Array) -> Array:
    """The step [N] of bodies with acceleration and jerk [6, N] and `snap` [3, N], of the interval.

    Aarseth's criterion as for a circular orbit, whose crackle is to the snap as that to the jerk;
    with no more than acceleration and jerk, a body at rest would take any step.
    """
    a, j, s = size(a[:3]), size(a[3:]), size(snap)
    free = s == 0
    wanted = jnp.sqrt(spec.eta * (a * s + j * j) / jnp.where(free, 1, 2 * s * s))
    return quantised(spec, jnp.where(free, jnp.inf, wanted) / spec.interval)


def pull_and_snap(
    spec: BlockSteps, x: Array, sources: Array, a: Array, m: Array
) -> tuple[Array, Array]:
    """Acceleration and jerk [6, K] at `x` by `sources`, and snap [3, K].

    a: acceleration [3, N] of the sources.
    """
    pull = lambda x, sources: pairs.pull(x, sources, m, spec.softening)
    f = pull(x, sources)
    along = lambda x, a: jnp.concatenate([x[3:], a])
    ways = along(x, f[:3]), along(sources, a)
    return f, jax.jvp(pull, (x, sources), ways)[1][3:]


def next_step(spec: BlockSteps, dt: Array, wanted: Array, now: Array) -> tuple[Array, Array]:
    """The next steps: shorter at once, longer by one power where the block structure allows."""
    wanted = wanted / spec.interval
    twice = jnp.minimum(2 * dt, 2.0**-spec.longest)
    fits = jnp.floor(now / twice) * twice == now
    longer = jnp.where((wanted >= twice) & fits, twice, dt)
    dt = jnp.where(wanted < dt, quantised(spec, wanted), longer)
    return dt, ~(wanted >= 2.0 ** -_deepest(spec, wanted))


def fitting_step(spec: BlockSteps, dt: Array, now: Array) -> Array:
    """The largest power of two up to `dt` [] that divides `now`, where bodies begin anew."""
    steps = _powers(spec, dt)
    fits = (steps <= dt) & (jnp.floor(now / steps) * steps == now)
    return jnp.max(jnp.where(fits, steps, steps[-1]))


def quantised(spec: BlockSteps, wanted: Array) -> Array:
    """The largest allowed power of two that is not longer than `wanted`, part of an interval."""
    deepest = _deepest(spec, wanted)
    depth = jnp.ceil(-jnp.log2(wanted))
    depth = jnp.where(jnp.isnan(depth), deepest, depth)
    depth = jnp.clip(depth, spec.longest, deepest).astype(jnp.int32)
    # from a table, because XLA's exp2 is not exact and a block is found by equal times
    return _powers(spec, wanted)[depth]


def _deepest(spec: BlockSteps, like: Array) -> int:
    """How often an interval is halved at most: a shorter step would not move the time."""
    return min(spec.shortest, jnp.finfo(like.dtype).nmant)


def _powers(spec: BlockSteps, like: Array) -> Array:
    return jnp.asarray(0.5 ** np.arange(_deepest(spec, like) + 1), like.dtype)


def size(vector: Vector) -> Array:
    """Euclidean length [...] of a vector [3, ...], or of a tuple of its rows."""
    return jnp.sqrt(vector[0] * vector[0] + vector[1] * vector[1] + vector[2] * vector[2])
