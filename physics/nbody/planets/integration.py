"""Integration of bodies over a given time, for every spec with a fixed step."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from jax import Array
from jax.sharding import Mesh

from jaxgpu.devices import precision
from jaxgpu.inputs import ranges
from jaxgpu.inputs.explanations import explain_errors, on_host
from jaxgpu.runs import Keep, Resume, Run, run

from .. import sharding


class Integrator[S](Protocol):
    """A spec whose step covers the time `dt`: `Planetary`, `WisdomHolman`, `Leapfrog`, or a user's.

    Its `init(x, v)` returns the state, and takes `tracers` or masses `m` if the spec uses them. A
    spec may have `partition(state, axis)`, which returns the placement of each array on a mesh, if
    the step of a share of the state depends on no other share.
    """

    @property
    def dt(self) -> Array | float:
        """[] time that a step covers."""
        ...

    @property
    def init(self) -> Callable[..., S]:
        """The function `init(x, v) -> state`."""
        ...

    def step(self, state: S) -> S:
        """Advance the state by `dt`."""
        ...


@explain_errors
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
    resume: Resume = False,
    keep: Keep = None,
    guard: bool = False,
) -> Run[S]:
    """Integrate from time 0 to `t` and return the run: final state and history in rows of `dt`.

    Args:
        spec: the integrator and its settings. A second call with other values but the same sizes
            and the same measure reuses the compiled program.
        x: positions [N, 3]; for an `Ensemble` [M, N, 3].
        v: velocities, of the same shape.
        t: a multiple of `spec.dt`, with its sign.
        m: masses [M, N], for an `Ensemble`; other specs store the masses of their bodies.
        tracers: positions and velocities [M, 3] of bodies without mass, for a spec that takes them.
        measure: function of the state for the history; none by default. A method of the spec, such
            as `WisdomHolman.to_inertial`, or a function of the module.
        until: the run ends after the first step whose state makes this true.
        mesh: devices over which the tracers of `Planetary` or the systems of an `Ensemble` are
            distributed; it must divide their number. Massive bodies are replicated. Results are
            bitwise those of one device, without communication in a step.
        out: folder for checkpoints.
        resume: continue from the last checkpoint in `out`:
            True, names of values that may differ, or a `Branch`, as in `jaxgpu.runs.run`.
        keep: checkpoints that stay, counted in steps, as `jaxgpu.runs.run` says.
        guard: stop at the first value that is not finite, with its name, before it is saved.

    The pure version is `jaxgpu.runs.rollout(spec.step, spec.init(x, v), steps, measure=measure)`.

    Raises:
        ValueError: a time that is not a multiple of dt; a mesh for a spec without independent
            bodies, or one that does not divide their number; errors of `spec.init` and `run`.
        TypeError: `mesh` is not a mesh.

    >>> from jaxgpu.physics.nbody.planets.wisdom_holman import WisdomHolman
    >>> spec = WisdomHolman(gm=np.array([1.0, 1e-3]), dt=0.125)
    >>> x, v = np.array([[0.0, 0, 0], [1, 0, 0]]), np.array([[0.0, 0, 0], [0, 1, 0]])
    >>> course = integrate(spec, x, v, 1.0, measure=spec.to_inertial)
    >>> course.history[0].shape
    (9, 2, 3)
    """
    steps, taken = _count_steps(spec.dt, t), inspect.signature(spec.init).parameters
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
            state, step = sharding.shard_state("integrate", spec, state, mesh)
        return run(
            step,
            state,
            steps,
            measure=measure,
            until=until,
            out=out,
            resume=resume,
            keep=keep,
            guard=guard,
        )


def _count_steps(dt: Array | float, t: float) -> int:
    """Return the number of steps in the time `t`."""
    ranges.numbers("integrate: dt", dt, ())
    ranges.numbers("integrate: t", t, ())
    dt, t = float(np.asarray(dt)), float(np.asarray(t))
    steps = t / dt if dt else -1.0
    # the tolerance allows for the rounding of t / dt if dt is not a binary fraction
    if steps < 0 or abs(round(steps) - steps) > 1e-9 * max(steps, 1.0):
        raise ValueError(
            f"integrate: t={t:g}; it must be a multiple of dt={dt:g}, with the same sign; choose "
            "another dt, or the nearest multiple"
        )
    return round(steps)
