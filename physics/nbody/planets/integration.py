"""One call from bodies to where they are at a time, for every spec with a fixed step."""

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from jax import Array
from jax.sharding import Mesh

from jaxgpu.devices import precision
from jaxgpu.inputs import ranges
from jaxgpu.inputs.doors import explained, on_host
from jaxgpu.runs.loop import Run, run

from .. import shares


class Integrator[S](Protocol):
    """A spec whose step covers the time `dt`: `Planetary`, `WisdomHolman`, `Leapfrog`, or a user's.

    Its `init(x, v)` gives the state, and takes `tracers` where it has any, or masses `m`. A
    `partition(state, axis)` says of each array of a state how it lies on a mesh, where a step of
    one share depends on no other.
    """

    @property
    def dt(self) -> Array | float:
        """[] time that a step covers."""
        ...

    @property
    def init(self) -> Callable[..., S]:
        """`init(x, v) -> state`."""
        ...

    def step(self, state: S) -> S:
        """The state `dt` later."""
        ...


@explained
@on_host
def integrate[S](
    spec: Integrator[S],
    x: Array,
    v: Array,
    t: float,
    *,
    m: Array | None = None,
    tracers: tuple[Array, Array] | None = None,
    measure: Callable[[S], Any] | None = None,
    until: Callable[[S], Array] | None = None,
    mesh: Mesh | None = None,
    out: str | Path | None = None,
    resume: bool | Sequence[str] = False,
    guard: bool = False,
) -> Run[S]:
    """The state a time `t` on, and the history from the start in rows of `dt`.

    Args:
        spec: what to integrate, and how; a second call with another of the same sizes, and the same
            measure, compiles nothing.
        x: positions [N, 3]; of an `Ensemble` [M, N, 3].
        v: velocities, alike.
        t: a multiple of `spec.dt`, of its sign.
        m: masses [M, N], for an `Ensemble`; other specs hold those of their bodies.
        tracers: positions and velocities [M, 3] of bodies without mass, for a spec that takes them.
        measure: what of a state the history keeps; nothing by default. A method of the spec, such
            as `WisdomHolman.inertial`, or a function of the module.
        until: the run ends after the first step at whose state this is true.
        mesh: devices to spread the tracers of `Planetary`, or the systems of an `Ensemble`, over;
            their number must divide these. Massive bodies are on all of them. Bits are those of one
            device, and nothing crosses in a step.
        out: folder for checkpoints.
        resume: go on from the last one in `out`:
            True, names of values that may be others, or a `Branch`, as `jaxgpu.runs.run` says.
        guard: stop at the first value that is not finite, with its name, before it is saved.

    Its pure twin is `jaxgpu.runs.rollout(spec.step, spec.init(x, v), steps, measure=measure)`.

    Raises:
        ValueError: a time that is no multiple of dt, a mesh that does not divide what it spreads,
            or for a spec of nothing to spread, and what `spec.init` and `run` refuse.
        TypeError: no mesh.

    >>> from jaxgpu.physics.nbody.planets.wisdom_holman import WisdomHolman
    >>> spec = WisdomHolman(gm=np.array([1.0, 1e-3]), dt=0.125)
    >>> x, v = np.array([[0.0, 0, 0], [1, 0, 0]]), np.array([[0.0, 0, 0], [0, 1, 0]])
    >>> course = integrate(spec, x, v, 1.0, measure=spec.inertial)
    >>> course.history[0].shape
    (9, 2, 3)
    """
    steps, taken = _steps(spec.dt, t), inspect.signature(spec.init).parameters
    if tracers is not None and "tracers" not in taken:
        raise ValueError(
            f"integrate: tracers for {type(spec).__name__}; it must be a spec that takes them, as "
            "Planetary does; or put them among the bodies, with gm = 0"
        )
    if (m is None) == ("m" in taken):
        raise ValueError(
            f"integrate: {'no ' if m is None else ''}m for {type(spec).__name__}; an Ensemble "
            "takes the masses of its systems, and other specs hold those of their bodies"
        )
    given = {name: value for name, value in (("m", m), ("tracers", tracers)) if value is not None}
    with precision.scope((x, v, m, tracers)):
        state, step = spec.init(x, v, **given), spec.step
        if mesh is not None:
            state, step = shares.spread("integrate", spec, state, mesh)
        return run(
            step,
            state,
            steps,
            measure=measure,
            until=until,
            out=out,
            resume=resume,
            guard=guard,
        )


def _steps(dt: Array | float, t: float) -> int:
    """How many steps a time is."""
    ranges.numbers("integrate: dt", dt, ())
    ranges.numbers("integrate: t", t, ())
    dt, t = float(np.asarray(dt)), float(np.asarray(t))
    steps = t / dt if dt else -1.0
    # rounding of t / dt for a dt that is no binary fraction
    if steps < 0 or abs(round(steps) - steps) > 1e-9 * max(steps, 1.0):
        raise ValueError(
            f"integrate: t={t:g}; it must be a multiple of dt={dt:g}, of its sign; choose another "
            "dt, or the nearest multiple"
        )
    return round(steps)
