"""A star cluster and its tracers, and who leaves it: `evolve`, the one call for clusters.

`Cluster` is the spec behind it: block steps of either order, and the edge beyond which bodies have
escaped. Bodies that leave are noted; tracers that do are then left alone: they keep the state they
were seen with and cost nothing. `jaxgpu.runs.rollout` of `Cluster.step` is the pure twin.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh

from jaxgpu.devices import allocation
from jaxgpu.devices.precision import in_float64, reassociated, smallest
from jaxgpu.inputs import arguments, ranges
from jaxgpu.inputs.doors import explained, on_host
from jaxgpu.inputs.fields import number, pytree
from jaxgpu.runs.fresh_calls import call_fresh
from jaxgpu.runs.loop import Run, run

from ..forces.tide import Alone
from ..measure import diagnostics
from . import centres, checks, escape, spread
from .blocks import Pairing, size
from .hermite import Hermite
from .hermite6 import Hermite6
from .scheduler import change_if

_SLOTS, _SPARE = 64, 32  # pairs at a time at least, and beyond those of the start
_FAR = 20.0  # virial radii; what is unbound there does not come back


@pytree
class State:
    """A cluster on its way."""

    bodies: Any  # the state of the block steps
    points: Array  # [6, N] positions over velocities of all stars, those in pairs too
    stars_gone: escape.Escapes  # of the stars [N]
    gone: escape.Escapes  # of the tracers [M]
    time: Array  # [] since the beginning

    @property
    def m(self) -> Array:
        """Masses [N] of the stars."""
        return self.bodies.m

    @property
    def x(self) -> Array:
        """Positions [N, 3] of all stars, those in pairs too."""
        return self.points[:3].T

    @property
    def v(self) -> Array:
        """Velocities [N, 3] of all stars."""
        return self.points[3:].T

    @property
    def tracer_x(self) -> Array:
        """Positions [M, 3] of the tracers; of the escaped, when they did."""
        return self.bodies.tracers.x[:3].T

    @on_host
    def view(self) -> dict[str, np.ndarray]:
        """What `jaxgpu.show` shows: stars [N, 3] and tracers [M, 3], nan where one has escaped."""
        here = lambda x, gone: np.where(np.asarray(gone)[:, None], np.nan, np.asarray(x))
        seen = {"stars": here(self.x, self.stars_gone.gone)}
        return seen | {"tracers": here(self.tracer_x, self.gone.gone)}

    @property
    def tracer_v(self) -> Array:
        """Velocities [M, 3] of the tracers; of the escaped, when they did."""
        return self.bodies.tracers.x[3:].T


@pytree
class Cluster:
    """A cluster, as `steps` integrates it, whose bodies escape beyond an edge."""

    steps: Hermite | Hermite6 = Hermite()
    edge: Array | float = number(
        default=np.inf, above=0, infinite=True
    )  # [] about the centre of mass of the stars that are still there; inf: nobody escapes
    unbound: Array | bool = True  # [] bool: only those of positive energy do; False for a tide

    def init(self, x: Any, v: Any, m: Any, tracers: tuple[Any, Any] | None = None) -> State:
        """The state of stars [N, 3] and tracers [M, 3], from which nobody has escaped yet.

        Arguments and errors are those of `Hermite.init`.
        """
        self._check()
        bodies = self.steps.init(x, v, m, tracers)
        like = bodies.stars.x
        return State(
            bodies=bodies,
            points=checks.states("Cluster.init", "", x, v).astype(like.dtype),
            stars_gone=escape.none_yet(like.shape[1], like),
            gone=escape.none_yet(bodies.tracers.x.shape[1], like),
            time=jnp.zeros((), like.dtype),
        )

    @reassociated
    def step(self, state: State) -> State:
        """The cluster an interval later, and who left it.

        A bound pair or multiple is judged as one body, at its centre of mass; a tracer that is
        bound to a star, as that star. Energies are those in the field of a point of the mass of the
        stars that are still there. In the tide of a galaxy, which does not give back what is
        beyond the edge, say `unbound=False`.
        """
        self._check()
        bodies = self.steps.step(state.bodies)
        time = state.time + self.steps.interval
        points = self.steps.points(bodies)
        there = jnp.where(state.stars_gone.gone, 0, bodies.m)
        mass = jnp.sum(there)
        centre = jnp.sum(there[None] * points, 1) / mass

        def noted(escapes: escape.Escapes, points: Array) -> escape.Escapes:
            d = points - centre[:, None]
            depth = -mass / jnp.maximum(size(d), smallest(d.dtype))
            x, v = d[:3].T, d[3:].T
            return escape.noted(escapes, time, x, v, depth, self.edge, unbound=self.unbound)

        # where the centre of a pair is beyond the edge one of its members is: else none is asked
        outside = size(points[:3] - centre[:3, None]) > self.edge
        judged = jnp.any(outside & ~state.stars_gone.gone)
        join = partial(centres.joined, softening=self.steps.softening)
        wholes = change_if(judged, join, centres.singles(points, bodies.m)).of_stars()
        gone = noted(state.gone, self.steps.followed(bodies, wholes))
        tracers = escape.halted(bodies.tracers, gone.gone)
        return State(
            bodies=replace(bodies, tracers=tracers),
            points=points,
            stars_gone=noted(state.stars_gone, wholes),
            gone=gone,
            time=time,
        )

    def measure(self, state: State) -> dict[str, Array]:
        """The "kinetic" and "potential" energy of stars, regularised "pairs", tracers "gone"."""
        kinetic, potential = diagnostics.energy(state.x, state.v, state.m, self.steps.softening)
        return {
            "kinetic": kinetic,
            "potential": potential,
            "pairs": state.bodies.regularised,
            "gone": jnp.sum(state.gone.gone, dtype=jnp.int32),
        }

    def check(self, state: State) -> None:
        """Raise where places were lost, steps floored or pairs refused on the way to `state`.

        The state may be that of many clusters.

        Raises:
            RuntimeError: one of these.
        """
        bodies, steps = state.bodies, self.steps
        if not np.isfinite(np.asarray(bodies.stars.x)).all():
            raise RuntimeError(
                "evolve: the stars' places are not finite any more, a fault of the integrator; "
                "report it with the stars at the start, and give a softening meanwhile"
            )
        if low := int(np.sum(bodies.floored)):
            other = "" if isinstance(steps, Hermite) else ", or use Hermite, which pairs them"
            raise RuntimeError(
                f"evolve: {low} steps should have been shorter than the floor, interval / "
                f"2^{steps.shortest}; bodies came too close for these steps; give a softening"
                f"{other}"
            )
        if isinstance(steps, Hermite) and (missed := int(np.sum(bodies.refused))):
            slots = steps.pairing.slots
            raise RuntimeError(
                f"evolve: {missed} times a close pair found none of {slots} slots free; "
                f"make Pairing.slots larger, {max(2 * slots, _SLOTS)}, or give a softening"
            )

    def _check(self) -> None:
        ranges.refuse("Cluster.edge", self.edge, ranges.Range(above=0, infinite=True, one=True))
        unbound = self.unbound
        if not isinstance(unbound, bool | np.bool_ | Array) or jnp.result_type(unbound).kind != "b":
            found = arguments.shown(unbound)
            raise TypeError(f"Cluster.unbound={found}; it must be a bool; True where it is alone")


@dataclass(frozen=True, repr=False)
class Evolution(Run[State]):
    """What `evolve` returns: a `Run` whose state is that of a cluster."""

    spec: Cluster

    @property
    def x(self) -> np.ndarray:
        """Positions [N, 3] of all stars, those in pairs too."""
        return np.asarray(self.state.points)[:3].T

    @property
    def v(self) -> np.ndarray:
        """Velocities [N, 3] of all stars, those in pairs too."""
        return np.asarray(self.state.points)[3:].T

    @property
    def tracer_x(self) -> np.ndarray:
        """Positions [M, 3] of the tracers; of the escaped, when they did.

        When that was, how fast and with what energy stands in `state.gone`.
        """
        return np.asarray(self.state.bodies.tracers.x)[:3].T

    @property
    def tracer_v(self) -> np.ndarray:
        """Velocities [M, 3] of the tracers; of the escaped, when they did."""
        return np.asarray(self.state.bodies.tracers.x)[3:].T


@explained
@on_host
@in_float64
def evolve(
    x: Any,
    v: Any,
    m: Any,
    t: float,
    *,
    tracers: tuple[Any, Any] | None = None,
    spec: Hermite | Hermite6 | Cluster | None = None,
    tolerance: float | None = None,
    measure: Callable[[State], dict[str, Array]] | None = None,
    until: Callable[[State], Array] | None = None,
    mesh: Mesh | None = None,
    out: str | Path | None = None,
    resume: bool | Sequence[str] = False,
) -> Evolution:
    """Evolve stars and tracers, bodies without mass, for a time t; G = 1.

    In float64, whatever the global precision. The run can be killed at any moment and resumed to
    the same bits. Without softening, `Hermite` regularises pairs of stars with a semi-major axis
    below the virial radius over N (of heavy stars, longer in proportion to the pair's mass)
    (`binary`), and tracers within the virial radius over N of a star follow their conic about it
    (`close_encounters`).

    A bound pair or multiple counts as one body, at its centre of mass, in N, in the virial radius
    and where it is judged who has escaped (`centres`).

    Args:
        x: positions [N, 3] of the stars; relative to `tide.Tide.origin`, where there is a galaxy.
        v: velocities [N, 3].
        m: masses [N], positive.
        t: a multiple of the interval of the steps, 1/8 by default.
        tracers: their positions and velocities, (x [M, 3], v [M, 3]); none by default.
        spec: how to integrate: `Hermite` to fourth order, the default, or `Hermite6` to sixth for
            energy errors below 1e-9; and in a `Cluster`, who escapes. By default, that is in a
            cluster that is alone who is unbound beyond 20 virial radii, and in a galaxy nobody.
            Where `Hermite.pairing` says nothing of `close` it is the virial radius over N, and
            where it says nothing of `slots` there is room for the pairs of the start and 32 more,
            and for 64 at least.
        tolerance: how far the energy may go from that of the start, as a part of the cluster's own,
            M^2 / 4 R_v, in which the orbits of bound pairs do not count; inf for any. A run that
            goes farther ends there, as in NBODY6. 1e-3 by default where the cluster is alone; a
            galaxy works on it, and none can be given there.
        measure: more rows for the history, by name, of a state: `lambda s: {"x": s.x}`.
        until: ends the run where it holds of a state.
        mesh: devices to spread the tracers over, whose number must divide theirs. Stars are on all
            of them, and every device takes the blocks of the stars and of its own tracers: nothing
            crosses in a step. Stars have the bits of one device, tracers its accuracy, for they are
            rounded otherwise; of blocks, the most of any device are counted.
        out: folder for checkpoints.
        resume: go on from the last one there:
            True, names of values that may be others, or a `Branch`, as `jaxgpu.runs.run` says.

    Returns:
        the last stars and tracers, the escapes, and as `history`, for the start and after each
        interval, the "kinetic" and "potential" energy of the stars, without the galaxy's, how many
        "pairs" are regularised, how many tracers are "gone", and what `measure` adds.

    Raises:
        ValueError: bodies at the same place, masses that are not positive, anything not finite, a
        mesh without tracers or that does not divide them.
        TypeError: no mesh.
        RuntimeError: an encounter wanted steps below the floor, 2^-40 of an interval; there were
        more close pairs than slots; the energy left its tolerance; or the stars' places are not
        finite any more. It is raised where that happens, and not at the end.

    >>> m = np.array([0.7, 0.3])  # a binary whose apocentre is where it is
    >>> part = np.array([[-m[1]], [m[0]]])
    >>> done = evolve(part * [1.0, 0.2, 0.1], part * [0.3, 0.8, 0.1], m, 1.0)
    >>> energy = done.history["kinetic"] + done.history["potential"]
    >>> energy.shape, abs(energy / energy[0] - 1).max() < 1e-13
    ((9,), np.True_)
    >>> np.abs(m @ done.x).max() < 1e-12
    np.True_
    """
    stars, m, followed = checks.bodies("evolve", x, v, m, tracers)
    ranges.check("evolve", spec)
    count, radius = systems(jnp.asarray(stars), jnp.asarray(m))
    spec = _with_defaults(spec, m.size, int(count), radius)
    interval = float(spec.steps.interval)
    steps = checks.intervals("evolve", interval, t)
    limit = _tolerance(spec.steps, tolerance)
    tracers = followed[:3].T, followed[3:].T
    start = call_fresh(_init, spec, stars[:3].T, stars[3:].T, m, tracers)
    spec.check(start)
    unit = float(m.sum() ** 2 / (4 * radius))

    def check(state: State, history: dict[str, np.ndarray]) -> None:
        spec.check(state)
        checks.energy_kept(history, limit, unit, interval)

    step, added = spec.step, _measured
    if mesh is not None:
        start, step = spread.begun(spec, start, mesh)
        added, until = _measured_shares, until and partial(spread.seen, until)
    rows = spec.measure if measure is None else partial(added, spec, measure)
    done = run(
        step,
        start,
        steps,
        measure=rows,
        until=until,
        check=check,
        out=out,
        resume=resume,
    )
    state = done.state if mesh is None else spread.summed(done.state)
    return Evolution(state=state, history=done.history, timing=done.timing, spec=spec)


_init = allocation.bounded(jax.jit(Cluster.init))


def _measured(
    spec: Cluster, measure: Callable[[State], dict[str, Array]], state: State
) -> dict[str, Array]:
    return spec.measure(state) | measure(state)


def _measured_shares(
    spec: Cluster, measure: Callable[[State], dict[str, Array]], state: State
) -> dict[str, Array]:
    return spec.measure(state) | measure(spread.summed(state))


@jax.jit
def systems(points: Array, m: Array) -> tuple[Array, Array]:
    """How many bodies there are, a pair or a multiple one of them, and their virial radius.

    Of stars at `points` [6, N], positions over velocities, of masses m [N].
    """
    bodies = centres.joined(centres.singles(points, m))
    return bodies.count, centres.virial_radius(bodies)


def _with_defaults(
    spec: Hermite | Hermite6 | Cluster | None, stars: int, count: int, radius: Array
) -> Cluster:
    """The spec of a cluster of `count` bodies, with what was left open decided, in float64."""
    if not isinstance(spec, Cluster):
        steps = Hermite() if spec is None else spec
        if not isinstance(steps, Hermite | Hermite6):
            raise TypeError(
                f"evolve: spec={steps!r:.40}; it must be a Hermite, a Hermite6 or a Cluster"
            )
        alone = isinstance(steps.tide, Alone)
        spec = Cluster(steps, edge=_FAR * radius if alone else np.inf, unbound=alone)
    steps = jax.tree.map(lambda q: jnp.asarray(q, jnp.float64), spec.steps)
    if isinstance(steps, Hermite) and not float(steps.softening) and not float(steps.pairing.close):
        rule = pairing(stars, count, radius, steps.pairing.slots)
        steps = replace(steps, pairing=replace(steps.pairing, close=rule.close, slots=rule.slots))
    edge = jnp.asarray(spec.edge, jnp.float64)
    return Cluster(steps, edge=edge, unbound=jnp.asarray(spec.unbound))


def pairing(stars: int, count: int, radius: Array, slots: int = 0) -> Pairing:
    """Slots for pairs of down to 3 kT, of `stars` that are points and form `count` bodies.

    slots: how many; 0 for as many as are likely to be needed.
    """
    room = slots or max(_SLOTS, stars - count + _SPARE)
    return Pairing(close=radius / count, slots=min(stars // 2, room))


def _tolerance(steps: Hermite | Hermite6, tolerance: float | None) -> float:
    """The tolerance of the energy; none is kept where a galaxy works on the cluster."""
    alone = isinstance(steps.tide, Alone)
    if tolerance is not None and not alone:
        raise ValueError(
            f"evolve: tolerance={tolerance}; a galaxy works on the cluster, whose energy is not "
            "kept; leave it out"
        )
    among = ranges.Range(above=0, infinite=True, none=True, one=True)
    ranges.refuse("evolve: tolerance", tolerance, among)
    return (checks.TOLERANCE if alone else np.inf) if tolerance is None else tolerance
