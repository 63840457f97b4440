"""Evolution of a star cluster with tracers and escapes, by the function `evolve`.

`Cluster` is the spec behind it: block steps of either order, and the radius outside which bodies
have escaped. Escapes are recorded. Escaped tracers are not advanced any more: they keep the state
at their escape and cost nothing. `jaxgpu.runs.rollout` of `Cluster.step` is the pure version.
"""

from collections.abc import Callable
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
from jaxgpu.devices.precision import allow_reassociation, safe_tiny, with_float64
from jaxgpu.inputs import arguments, ranges
from jaxgpu.inputs.explanations import explain_errors, on_host
from jaxgpu.inputs.fields import number, pytree
from jaxgpu.runs import Keep, Resume
from jaxgpu.runs.fresh_calls import call_fresh
from jaxgpu.runs.loop import Run, run

from ..forces.tide import NoTide
from ..measure import diagnostics
from . import checks, escape, multiples, tracer_sharding
from .blocks import Pairing, norm
from .hermite import Hermite
from .hermite6 import Hermite6
from .scheduler import change_if

_SLOTS, _SPARE = 64, 32  # minimum number of slots for pairs, and of slots that are initially free
_FAR = 20.0  # virial radii; unbound bodies at this distance do not return


@pytree
class State:
    """State of a cluster: its bodies, the escapes so far, and the time."""

    bodies: Any  # the state of the block steps
    points: Array  # [6, N] positions over velocities of all stars, including those in pairs
    stars_gone: escape.Escapes  # escapes of the stars [N]
    gone: escape.Escapes  # escapes of the tracers [M]
    time: Array  # [] since the start

    @property
    def m(self) -> Array:
        """Masses [N] of the stars."""
        return self.bodies.m

    @property
    def x(self) -> Array:
        """Positions [N, 3] of all stars, also of pair members."""
        return self.points[:3].T

    @property
    def v(self) -> Array:
        """Velocities [N, 3] of all stars."""
        return self.points[3:].T

    @property
    def tracer_x(self) -> Array:
        """Positions [M, 3] of the tracers; for escaped ones, at their escape."""
        return self.bodies.tracers.x[:3].T

    @on_host
    def view(self) -> dict[str, np.ndarray]:
        """Return the stars [N, 3] and tracers [M, 3] for `jaxgpu.show`; escaped bodies are nan."""
        hide_escaped = lambda x, gone: np.where(np.asarray(gone)[:, None], np.nan, np.asarray(x))
        seen = {"stars": hide_escaped(self.x, self.stars_gone.gone)}
        return seen | {"tracers": hide_escaped(self.tracer_x, self.gone.gone)}

    @property
    def tracer_v(self) -> Array:
        """Velocities [M, 3] of the tracers; for escaped ones, at their escape."""
        return self.bodies.tracers.x[3:].T


@pytree
class Cluster:
    """A cluster that `steps` integrates and whose bodies escape outside the radius `edge`."""

    steps: Hermite | Hermite6 = Hermite()
    edge: Array | float = number(
        default=np.inf, above=0, infinite=True
    )  # [] escape radius about the centre of mass of the remaining stars; inf: no escapes
    unbound: Array | bool = True  # [] bool: only bodies of positive energy escape; False for a tide

    def init(self, x: Any, v: Any, m: Any, tracers: tuple[Any, Any] | None = None) -> State:
        """Return the initial state of stars [N, 3] and tracers [M, 3], without escapes.

        Arguments and errors are those of `Hermite.init`.
        """
        self._check()
        bodies = self.steps.init(x, v, m, tracers)
        like = bodies.stars.x
        return State(
            bodies=bodies,
            points=checks.to_states("Cluster.init", "", x, v).astype(like.dtype),
            stars_gone=escape.init_escapes(like.shape[1], like),
            gone=escape.init_escapes(bodies.tracers.x.shape[1], like),
            time=jnp.zeros((), like.dtype),
        )

    @allow_reassociation
    def step(self, state: State) -> State:
        """Advance the cluster by one interval and record the escapes.

        A bound pair or multiple is judged as one body, at its centre of mass; a tracer bound to a
        star is judged as that star. The potential is that of a point with the mass of the remaining
        stars. In the tide of a galaxy, from which bodies outside the edge do not return, set
        `unbound=False`.
        """
        self._check()
        bodies = self.steps.step(state.bodies)
        time = state.time + self.steps.interval
        points = self.steps.points(bodies)
        there = jnp.where(state.stars_gone.gone, 0, bodies.m)
        mass = jnp.sum(there)
        centre = jnp.sum(there[None] * points, 1) / mass

        def record(escapes: escape.Escapes, points: Array) -> escape.Escapes:
            d = points - centre[:, None]
            depth = -mass / jnp.maximum(norm(d), safe_tiny(d.dtype))
            x, v = d[:3].T, d[3:].T
            return escape.add_escapes(escapes, time, x, v, depth, self.edge, unbound=self.unbound)

        # if the centre of a pair is outside, so is a member; without one, no pairs need merging
        outside = norm(points[:3] - centre[:3, None]) > self.edge
        judged = jnp.any(outside & ~state.stars_gone.gone)
        join = partial(multiples.merge_bound, softening=self.steps.softening)
        wholes = change_if(judged, join, multiples.singles(points, bodies.m)).body_states()
        gone = record(state.gone, self.steps.tracer_states(bodies, wholes))
        tracers = escape.halt_tracers(bodies.tracers, gone.gone)
        return State(
            bodies=replace(bodies, tracers=tracers),
            points=points,
            stars_gone=record(state.stars_gone, wholes),
            gone=gone,
            time=time,
        )

    def measure(self, state: State) -> dict[str, Array]:
        """Return "kinetic" and "potential" energy, regularised "pairs" and "gone" tracers."""
        kinetic, potential = diagnostics.energy(state.x, state.v, state.m, self.steps.softening)
        return {
            "kinetic": kinetic,
            "potential": potential,
            "pairs": state.bodies.num_pairs,
            "gone": jnp.sum(state.gone.gone, dtype=jnp.int32),
        }

    def check(self, state: State) -> None:
        """Raise if positions became invalid, steps hit the floor, or pairs found no slot.

        The state may be a batch of clusters.

        Raises:
            RuntimeError: one of these.
        """
        bodies, steps = state.bodies, self.steps
        if not np.isfinite(np.asarray(bodies.stars.x)).all():
            raise RuntimeError(
                "evolve: positions of stars became non-finite, an error of the integrator; report "
                "it with the initial stars, and use a softening until then"
            )
        if low := int(np.sum(bodies.floored)):
            other = "" if isinstance(steps, Hermite) else ", or use Hermite, which pairs them"
            raise RuntimeError(
                f"evolve: {low} steps should have been below the minimum, interval / "
                f"2^{steps.shortest}; bodies came too close for these steps; give a "
                f"softening{other}"
            )
        if isinstance(steps, Hermite) and (missed := int(np.sum(bodies.refused))):
            slots = steps.pairing.slots
            raise RuntimeError(
                f"evolve: {missed} times a close pair found none of {slots} slots free; set "
                f"Pairing.slots to {max(2 * slots, _SLOTS)}, or give a softening"
            )

    def _check(self) -> None:
        ranges.refuse("Cluster.edge", self.edge, ranges.Range(above=0, infinite=True, one=True))
        unbound = self.unbound
        if not isinstance(unbound, bool | np.bool_ | Array) or jnp.result_type(unbound).kind != "b":
            found = arguments.format_value(unbound)
            raise TypeError(f"Cluster.unbound={found}; it must be a bool; True if it is isolated")


@dataclass(frozen=True, repr=False)
class Evolution(Run[State]):
    """Result of `evolve`: a `Run` whose state is that of a cluster."""

    spec: Cluster

    @property
    def x(self) -> np.ndarray:
        """Positions [N, 3] of all stars, also of pair members."""
        return np.asarray(self.state.points)[:3].T

    @property
    def v(self) -> np.ndarray:
        """Velocities [N, 3] of all stars, also of pair members."""
        return np.asarray(self.state.points)[3:].T

    @property
    def tracer_x(self) -> np.ndarray:
        """Positions [M, 3] of the tracers; for escaped ones, at their escape.

        `state.gone` has the time, speed and energy of each escape.
        """
        return np.asarray(self.state.bodies.tracers.x)[:3].T

    @property
    def tracer_v(self) -> np.ndarray:
        """Velocities [M, 3] of the tracers; for escaped ones, at their escape."""
        return np.asarray(self.state.bodies.tracers.x)[3:].T


@explain_errors
@on_host
@with_float64
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
    resume: Resume = False,
    keep: Keep = None,
) -> Evolution:
    """Evolve stars and tracers, bodies without mass, for a time t; G = 1.

    Always in float64. The run can be killed at any time and resumed with bitwise identical results.
    Without softening, `Hermite` regularises pairs of stars with a semi-major axis below the virial
    radius over N (for heavy stars, proportionally larger with the pair's mass) (`binary`). Tracers
    within the virial radius over N of a star follow their conic about it (`close_encounters`).

    A bound pair or multiple counts as one body, at its centre of mass, for N, for the virial radius
    and for escapes (`multiples`).

    Args:
        x: positions [N, 3] of the stars; relative to `tide.Tide.origin`, if there is a galaxy.
        v: velocities [N, 3].
        m: masses [N], positive.
        t: a multiple of the interval of the steps, 1/8 by default.
        tracers: their positions and velocities, (x [M, 3], v [M, 3]); none by default.
        spec: the integrator: `Hermite` of fourth order, the default, or `Hermite6` of sixth order
            for energy errors below 1e-9; or a `Cluster`, which adds the rule for escapes. By
            default, unbound bodies outside 20 virial radii escape from an isolated cluster, and
            none escape in a galaxy. By default, `Hermite.pairing.close` is the virial radius over
            N; `slots` has room for the initial pairs and 32 more, at least 64.
        tolerance: maximum change of the energy since the start, in units of the cluster's energy
            M^2 / 4 R_v without the orbits of bound pairs; inf for any. A run with a larger change
            ends there, as in NBODY6. 1e-3 by default for an isolated cluster. A galaxy does work on
            the cluster, so no tolerance can be given there.
        measure: more entries for the history, by name, from a state: `lambda s: {"x": s.x}`.
        until: ends the run when it holds for a state.
        mesh: devices over which the tracers are distributed; it must divide their number. Stars are
            replicated. Every device computes the blocks of the stars and of its own tracers,
            without communication in a step. Stars are bitwise those of one device; tracers are as
            accurate, but rounded differently. The number of blocks is the maximum over the devices.
        out: folder for checkpoints.
        resume: continue from the last checkpoint there:
            True, names of values that may differ, or a `Branch`, as in `jaxgpu.runs.run`.
        keep: checkpoints that stay, counted in intervals, as `jaxgpu.runs.run` says.

    Returns:
        the last stars and tracers, the escapes, and as `history`, for the start and after each
        interval, the "kinetic" and "potential" energy of the stars, without the galaxy's, the
        numbers of regularised "pairs" and of "gone" tracers, and the results of `measure`.

    Raises:
        ValueError: bodies at the same position, masses that are not positive, values that are not
            finite, a mesh without tracers or one that does not divide their number.
        TypeError: `mesh` is not a mesh.
        RuntimeError: an encounter required steps below the floor, 2^-40 of an interval; there were
            more close pairs than slots; the energy error exceeded its tolerance; or the stars'
            positions became invalid. It is raised when that happens, not at the end.

    >>> m = np.array([0.7, 0.3])  # a binary whose apocentre is where it is
    >>> part = np.array([[-m[1]], [m[0]]])
    >>> done = evolve(part * [1.0, 0.2, 0.1], part * [0.3, 0.8, 0.1], m, 1.0)
    >>> energy = done.history["kinetic"] + done.history["potential"]
    >>> energy.shape, abs(energy / energy[0] - 1).max() < 1e-13
    ((9,), np.True_)
    >>> np.abs(m @ done.x).max() < 1e-12
    np.True_
    """
    stars, m, followed = checks.check_bodies("evolve", x, v, m, tracers)
    ranges.check("evolve", spec)
    count, radius = count_systems(jnp.asarray(stars), jnp.asarray(m))
    spec = _fill_defaults(spec, m.size, int(count), radius)
    interval = float(spec.steps.interval)
    steps = checks.num_intervals("evolve", interval, t)
    limit = _energy_tolerance(spec.steps, tolerance)
    tracers = followed[:3].T, followed[3:].T
    start = call_fresh(_init, spec, stars[:3].T, stars[3:].T, m, tracers)
    spec.check(start)
    unit = float(m.sum() ** 2 / (4 * radius))

    def check(state: State, history: dict[str, np.ndarray]) -> None:
        spec.check(state)
        checks.check_energy(history, limit, unit, interval)

    step, added = spec.step, _measure_with_user
    if mesh is not None:
        start, step = tracer_sharding.shard_state(spec, start, mesh)
        added, until = _measure_sharded, until and partial(tracer_sharding.measure_sharded, until)
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
        keep=keep,
    )
    state = done.state if mesh is None else tracer_sharding.merge_counters(done.state)
    return Evolution(state=state, history=done.history, timing=done.timing, spec=spec)


_init = allocation.limit_memory(jax.jit(Cluster.init))


def _measure_with_user(
    spec: Cluster, measure: Callable[[State], dict[str, Array]], state: State
) -> dict[str, Array]:
    return spec.measure(state) | measure(state)


def _measure_sharded(
    spec: Cluster, measure: Callable[[State], dict[str, Array]], state: State
) -> dict[str, Array]:
    return spec.measure(state) | measure(tracer_sharding.merge_counters(state))


@jax.jit
def count_systems(points: Array, m: Array) -> tuple[Array, Array]:
    """Return the number of bodies, each pair or multiple being one, and their virial radius.

    For stars at `points` [6, N], positions over velocities, with masses m [N].
    """
    bodies = multiples.merge_bound(multiples.singles(points, m))
    return bodies.count, multiples.virial_radius(bodies)


def _fill_defaults(
    spec: Hermite | Hermite6 | Cluster | None, stars: int, count: int, radius: Array
) -> Cluster:
    """Return the spec for a cluster of `count` bodies with all defaults filled in, in float64."""
    if not isinstance(spec, Cluster):
        steps = Hermite() if spec is None else spec
        if not isinstance(steps, Hermite | Hermite6):
            raise TypeError(
                f"evolve: spec={steps!r:.40}; it must be a Hermite, a Hermite6 or a Cluster"
            )
        alone = isinstance(steps.tide, NoTide)
        spec = Cluster(steps, edge=_FAR * radius if alone else np.inf, unbound=alone)
    steps = jax.tree.map(lambda q: jnp.asarray(q, jnp.float64), spec.steps)
    if isinstance(steps, Hermite) and not float(steps.softening) and not float(steps.pairing.close):
        rule = make_pairing(stars, count, radius, steps.pairing.slots)
        steps = replace(steps, pairing=replace(steps.pairing, close=rule.close, slots=rule.slots))
    edge = jnp.asarray(spec.edge, jnp.float64)
    return Cluster(steps, edge=edge, unbound=jnp.asarray(spec.unbound))


def make_pairing(stars: int, count: int, radius: Array, slots: int = 0) -> Pairing:
    """Return the settings for pairs down to 3 kT, for `stars` points that form `count` bodies.

    slots: number of slots; 0 to estimate it.
    """
    room = slots or max(_SLOTS, stars - count + _SPARE)
    return Pairing(close=radius / count, slots=min(stars // 2, room))


def _energy_tolerance(steps: Hermite | Hermite6, tolerance: float | None) -> float:
    """Return the energy tolerance, inf if the tide of a galaxy does work on the cluster."""
    alone = isinstance(steps.tide, NoTide)
    if tolerance is not None and not alone:
        raise ValueError(
            f"evolve: tolerance={tolerance}; a cluster in a galaxy does not conserve its energy; "
            "leave it out"
        )
    among = ranges.Range(above=0, infinite=True, none=True, one=True)
    ranges.refuse("evolve: tolerance", tolerance, among)
    return (checks.TOLERANCE if alone else np.inf) if tolerance is None else tolerance
