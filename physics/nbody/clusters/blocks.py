"""Block time steps: individual steps of bodies, and the driver of all integration orders.

Steps are powers of two of an interval and commensurate with the time (McMillan 1986), so the due
bodies are those whose step ends at exactly the block time. Makino & Aarseth (1992), PASJ 44, 141.

A block advances all due bodies to one time: first the stars, which depend only on stars, then the
tracers. `BlockSteps.step` is the loop over the blocks of an interval; the orders implement a block
(`hermite`, `hermite6`).
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

from jaxgpu.devices.precision import allow_reassociation
from jaxgpu.inputs.fields import number, pytree
from jaxgpu.inputs.fields import size as whole

from ..forces import pairs
from ..forces.tide import NoTide, Origin, Tide
from . import full_blocks, scheduler
from .full_blocks import Scheme
from .rows import Vector, concat, map_rows
from .scheduler import Packing, Schedule


@pytree
class Population:
    """Bodies with their last computed state, each at its individual time."""

    x: Vector  # [6, N] position and velocity
    a: Vector  # [D, N] acceleration and jerk, D = 6; with snap and crackle, D = 12
    t: Array  # [N] time of that state as a fraction of the interval: an exact dyadic number
    dt: Array  # [N] next step as a fraction of the interval: an exact power of two


@pytree
class BlockState:
    """State of bodies and counters; between two calls of `step` all bodies have the same time."""

    stars: Population
    tracers: Any  # bodies without mass, in the class of the integration order
    origin: Origin  # origin of the positions, in the galaxy
    blocks: Array  # [] int32: block steps so far
    steps: Array  # [2] float: steps of stars and of tracers so far
    floored: Array  # [] int32: steps that the floor limited, which should have been shorter

    def rebase_times(self) -> "BlockState":
        """Count times from the start of a new interval."""
        return replace(self, stars=rebase_times(self.stars), tracers=rebase_times(self.tracers))


@pytree
class BlockSteps(ABC):
    """Settings common to all integration orders, in units in which G is 1."""

    eta: Array | float = number(default=0.02, above=0)  # [] accuracy parameter: dt = sqrt(eta ...)
    softening: Array | float = number(default=0.0, least=0)  # [] softening length; 0 for none
    interval: Array | float = number(
        default=0.125, above=0
    )  # [] time that one call of `step` covers
    tide: Tide | NoTide = NoTide()  # field of a galaxy
    longest: int = whole(default=2, least=0)  # the longest step is interval / 2^longest
    shortest: int = whole(default=40, least=1)  # the floor is interval / 2^shortest; 23 in float32
    tile: int = whole(default=16, least=1)  # bodies advanced together, on a CPU
    bulk: int = whole(default=256, least=1)  # tracers advanced together if many are due

    @abstractmethod
    def advance_block(
        self,
        state: Any,
        packing: Packing[Any],
        schedule: Schedule,
        path: Any,
        now: Array,
    ) -> tuple[Any, Schedule]:
        """Advance all due bodies to `now` and count their steps."""

    @abstractmethod
    def motion(self) -> Scheme:
        """Return the functions that move single bodies simultaneously, on NVIDIA GPUs."""

    def advance_all(self, path: Any, begin: Any) -> Any:
        """Advance to the end of the interval, with all bodies evaluated in each block."""
        return advance_singles(self, path, begin)

    def can_advance_all(self, state: Any) -> bool:
        """Return whether `full_blocks` is worthwhile and supports the state."""
        return scheduler.evaluates_all(state.stars.t.size, state.tracers.t.size)

    @allow_reassociation
    def step(self, state: Any) -> Any:
        """Advance the state by one interval."""
        path = self.tide.path(state.origin, self.interval)
        begin = state.rebase_times()
        in_turn = partial(self.advance_due, path)
        if self.can_advance_all(begin):
            whole = partial(self.advance_all, path)
            end = lax.platform_dependent(begin, cuda=whole, default=in_turn)
        else:
            end = in_turn(begin)
        return replace(end, origin=self.tide.move_origin(path, state.origin))

    def advance_due(self, path: Any, begin: Any, now: Array | float = 0.0) -> Any:
        """Advance to the end of the interval, evaluating only the due bodies of each block."""
        packing = Packing(begin.tracers)
        schedule = scheduler.open_schedule(packing, begin.tracers, (self.tile, self.bulk))
        # during the interval the tracers are in the schedule
        start = replace(begin, tracers=jax.tree.map(lambda q: q[..., :0], begin.tracers))

        def is_unfinished(carry: tuple[Any, Schedule, Any]) -> Array:
            return carry[2] < 1

        def one_block(carry: tuple[Any, Schedule, Any]) -> tuple[Any, Schedule, Any]:
            state, schedule, _ = carry
            # steps divide the interval, so all bodies are due in the last block, at 1
            now = jnp.min(state.stars.t + state.stars.dt)
            now = jnp.minimum(now, jnp.min(schedule.soonest, initial=jnp.inf))
            now = lax.stop_gradient(now)  # from a table; the minimum over no tracers is constant
            return *self.advance_block(state, packing, schedule, path, now), now

        end, schedule, _ = lax.while_loop(is_unfinished, one_block, (start, schedule, now))
        return replace(end, tracers=packing.group(schedule.rows))


@pytree
class Pairing:
    """Settings of the regularisation of close pairs; see `binary`. Without slots, no pairs form.

    >>> from jaxgpu.physics.nbody import Hermite
    >>> Hermite(pairing=Pairing(close=1e-3, slots=8)).pairing.slots
    8
    """

    close: Array | float = number(
        default=0.0, least=0
    )  # [] length: maximum semi-major axis of a pair of mean stars
    weak: Array | float = number(
        default=1e-6, above=0
    )  # [] perturbation below which a pair is slowed down and acts as a point
    strong: Array | float = number(
        default=0.05, above=0
    )  # [] perturbation above which a pair is dissolved
    kicks: Array | float = number(
        default=32.0, above=0
    )  # [] kicks by other bodies per orbit; more if it is perturbed
    slots: int = whole(default=0, least=0)  # maximum number of simultaneous pairs


@pytree
class PairedSteps(BlockSteps):
    """Fourth-order block steps with regularised pairs, the settings for all parts of `hermite`."""

    pairing: Pairing = Pairing()  # which close pairs are regularised; none by default


def advance_singles(spec: BlockSteps, path: Any, begin: Any, gate: Array | None = None) -> Any:
    """Advance single bodies simultaneously to the end of the interval.

    With thresholds `gate` [N], stop after the block in which a due star gets a shorter step.
    """
    (stars, tracers), blocks, steps, floored = full_blocks.advance_interval(
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


def rebase_times[T: Any](group: T) -> T:
    """Reset the times of bodies to 0 at the start of an interval."""
    return replace(group, t=jnp.zeros_like(group.t))


def due_at(group: Population, now: Array) -> Array:
    """Return a mask [N] of bodies whose steps end at exactly `now`."""
    return group.t + group.dt == now


def advance_stars(
    spec: BlockSteps,
    stars: Population,
    due: Array,
    sources: Array,
    force: Callable[[Array, Array], Array],
    corrected: Callable[[Population, Array], tuple[Population, Array]],
) -> tuple[Population, Array]:
    """Correct the `due` [N] stars; also return the number of floored steps.

    Args:
        spec: settings of the integrator.
        stars: all stars.
        due: mask of stars to correct.
        sources: predicted states [D, N] of all stars.
        force: returns the force on the stars of an index [K], predicted at [D, K].
        corrected: corrects stars [K] with the forces at the ends of their steps.
    """

    def move(index: Array, old: Population) -> tuple[Population, Array]:
        # a star must be bitwise identical to its source, or it would pull on itself
        guess = lax.optimization_barrier(jnp.take(sources, index, axis=-1, mode="clip"))
        return corrected(old, force(index, guess))

    move_all = lambda index, old: corrected(old, force(index, sources))
    return scheduler.advance_group(stars, due, move, spec.tile, move_all)


def init_counters(dtype: Any) -> dict[str, Array]:
    """Return the counters of a state before the first block."""
    zero = jnp.zeros((), jnp.int32)
    return {"blocks": zero, "steps": jnp.zeros(2, dtype), "floored": jnp.zeros((), jnp.int32)}


def count_block(state: Any, due: Array, tracers: Array, floored: Array) -> dict[str, Array]:
    """Return the counters of a state after a block: `blocks`, `steps` and `floored`.

    Args:
        state: the state before the block.
        due: [N] bool, stars that were advanced.
        tracers: [] number of tracers that were advanced.
        floored: [] number of steps that the floor limited.
    """
    count = jnp.stack([jnp.sum(due, dtype=jnp.int32), tracers])
    return {
        "blocks": state.blocks + 1,
        "steps": state.steps + count.astype(state.steps.dtype),
        "floored": state.floored + floored,
    }


def predict(spec: BlockSteps, group: Population, now: Array) -> Vector:
    """Predict positions and velocities [6, N] at `now` by Taylor series to the jerk."""
    h = spec.interval * (now - group.t)

    def taylor(h: Array, x: Array, v: Array, a: Array, j: Array) -> tuple[Array, Array]:
        return x + h * (v + h / 2 * (a + h / 3 * j)), v + h * (a + h / 2 * j)

    return concat(*map_rows(taylor, (h,), group.x[:3], group.x[3:], group.a[:3], group.a[3:]))


def first_step(spec: BlockSteps, a: Array, snap: Array) -> Array:
    """Return the first step [N] from acceleration and jerk [6, N] and `snap` [3, N], in intervals.

    Aarseth's criterion for a circular orbit, where crackle / snap equals snap / jerk. With only
    acceleration and jerk, a body at rest would take any step.
    """
    a, j, s = norm(a[:3]), norm(a[3:]), norm(snap)
    free = s == 0
    wanted = jnp.sqrt(spec.eta * (a * s + j * j) / jnp.where(free, 1, 2 * s * s))
    return quantize_step(spec, jnp.where(free, jnp.inf, wanted) / spec.interval)


def pull_and_snap(
    spec: BlockSteps, x: Array, sources: Array, a: Array, m: Array
) -> tuple[Array, Array]:
    """Return acceleration and jerk [6, K] at `x` due to `sources`, and snap [3, K].

    a: acceleration [3, N] of the sources.
    """
    pull = lambda x, sources: pairs.pull(x, sources, m, spec.softening)
    f = pull(x, sources)
    path_tangent = lambda x, a: jnp.concatenate([x[3:], a])
    ways = path_tangent(x, f[:3]), path_tangent(sources, a)
    return f, jax.jvp(pull, (x, sources), ways)[1][3:]


def next_step(spec: BlockSteps, dt: Array, wanted: Array, now: Array) -> tuple[Array, Array]:
    """Return the next steps: shorter immediately, longer by one power of two if commensurate."""
    wanted = wanted / spec.interval
    twice = jnp.minimum(2 * dt, 2.0**-spec.longest)
    fits = jnp.floor(now / twice) * twice == now
    longer = jnp.where((wanted >= twice) & fits, twice, dt)
    dt = jnp.where(wanted < dt, quantize_step(spec, wanted), longer)
    return dt, ~(wanted >= 2.0 ** -_max_halvings(spec, wanted))


def commensurate_step(spec: BlockSteps, dt: Array, now: Array) -> Array:
    """Return the largest power of two up to `dt` [] that divides `now`, for restarted bodies."""
    steps = _allowed_steps(spec, dt)
    fits = (steps <= dt) & (jnp.floor(now / steps) * steps == now)
    return jnp.max(jnp.where(fits, steps, steps[-1]))


def quantize_step(spec: BlockSteps, wanted: Array) -> Array:
    """Return the largest allowed power of two not above `wanted`, a fraction of an interval."""
    deepest = _max_halvings(spec, wanted)
    depth = jnp.ceil(-jnp.log2(wanted))
    depth = jnp.where(jnp.isnan(depth), deepest, depth)
    depth = jnp.clip(depth, spec.longest, deepest).astype(jnp.int32)
    # from a table, because XLA's exp2 is inexact and blocks are found by comparing times
    return _allowed_steps(spec, wanted)[depth]


def _max_halvings(spec: BlockSteps, like: Array) -> int:
    """Return the maximum number of halvings of an interval: smaller steps would not change t."""
    return min(spec.shortest, jnp.finfo(like.dtype).nmant)


def _allowed_steps(spec: BlockSteps, like: Array) -> Array:
    return jnp.asarray(0.5 ** np.arange(_max_halvings(spec, like) + 1), like.dtype)


def norm(vector: Vector) -> Array:
    """Return the Euclidean length [...] of a vector [3, ...], or of a tuple of its rows."""
    return jnp.sqrt(vector[0] * vector[0] + vector[1] * vector[1] + vector[2] * vector[2])
