"""A planetary system with tracers, which have no mass, and relativity.

A step first advances the massive bodies in equal Gauss-Radau steps (order 15, compensated sums to
minimise rounding errors). The tracers then move in the dense output of these steps. The state
contains everything, so a run can stop after any step and resume.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.sharding import PartitionSpec

from jaxgpu.devices import allocation
from jaxgpu.inputs import ranges
from jaxgpu.inputs.calls import defer_check
from jaxgpu.inputs.fields import number, pytree, size

from .. import validation
from ..forces import pairs, relativity
from ..orbits import elements
from ..orbits.elements import Elements
from ..steps import kahan, radau
from ..steps.dense_output import DenseOutput
from . import tracers
from .tracers import Control, Tracers

# Mercury with 19 steps per orbit has 3e-4 and an error of 0.03 km per century; with 10, over 4e-2.
_MASSIVE_CONTROL = Control(tolerance=1e-3, convergence=1e-8)


@pytree
class State:
    """State of the massive bodies and the tracers."""

    x: Array  # [N, 3] position, length
    v: Array  # [N, 3] velocity, length / time
    low_x: Array  # [N, 3] accumulated rounding error of x
    low_v: Array  # [N, 3] accumulated rounding error of v
    a: Array  # [8, N, 3] acceleration at the nodes of the last substep
    coarse: Array  # [] int32: substeps of the massive bodies that missed the tolerance
    tracers: Tracers

    def view(self) -> dict[str, Array]:
        """Return the data for `jaxgpu.show`: massive bodies [N, 3] and tracers [M, 3]."""
        return {"bodies": self.x, "tracers": self.tracers.x}


@pytree
class Planetary:
    """Settings of the integration, in any consistent units; G is included in the masses.

    >>> spec = Planetary(gm=jnp.array([1.0, 1e-3]), dt=0.1, light=jnp.inf)
    >>> x = jnp.array([[0.0, 0, 0], [1, 0, 0]])
    >>> state = jax.jit(spec.step)(spec.init(x, jnp.array([[0.0, 0, 0], [0, 1, 0]])))
    >>> [round(float(c), 3) for c in state.x[1]]
    [0.995, 0.1, 0.0]
    """

    gm: Array = number(
        least=0, most=1e100, unit="length^3 / time^2"
    )  # [N] of each massive body, the heaviest first
    dt: Array | float = number(unit="time")  # [] time of a step; negative: backwards in time
    light: Array | float = number(
        # [] speed of light; inf: Newton's gravity
        default=relativity.SPEED_OF_LIGHT,
        above=0,
        infinite=True,
        unit="length / time",
    )
    control: Control = Control()
    substeps: int = size(default=8, least=1)  # substeps of the massive bodies per step
    iterations: int = size(default=5, least=2)  # iterations of the implicit substep

    def init(self, x: Array, v: Array, tracers: tuple[Array, Array] | None = None) -> State:
        """Return the state at the start.

        Args:
            x: barycentric positions of the massive bodies [N, 3].
            v: their velocities [N, 3].
            tracers: positions and velocities [M, 3] of bodies without mass; none by default.

        Raises:
            ValueError: inconsistent shapes, values that are not finite or out of range, two bodies
                at one position, two floating types, float64 where JAX has it switched off, a
                heaviest body other than the first.
        """
        return _start(self, *_validate(self, x, v, tracers))

    def step(self, state: State) -> State:
        """Advance the state by `dt`."""

        def substep(state: State, _: None) -> tuple[State, tuple[Array, Array, Array]]:
            guess = radau.extrapolate(state.a, jnp.ones((1, 1), state.x.dtype))
            a, change = _solve(self, state.x, state.v, guess, self.iterations)
            dx, dv = radau.increment(state.v, _substep(self, state.x), a)
            x, low_x = kahan.add(state.x, state.low_x, dx)
            v, low_v = kahan.add(state.v, state.low_v, dv)
            coarse = state.coarse + _count_coarse(a, change)
            passed = (state.x, state.v, a)
            return replace(state, x=x, v=v, low_x=low_x, low_v=low_v, a=a, coarse=coarse), passed

        state, passed = lax.scan(substep, state, None, length=self.substeps)
        # with the barrier, the rounding of the massive bodies does not depend on how the compiler
        # optimises the tracers
        x, v, a = lax.optimization_barrier(passed)
        output = DenseOutput(x=x, v=v, a=a, dt=_substep(self, x))
        moved = tracers.advance(partial(_force, self), self.control, output, state.tracers)
        return replace(state, tracers=moved)

    def partition(self, state: State, axis: str) -> State:
        """Return the placement of `state` on a mesh: tracers over `axis`, bodies replicated.

        Every device advances the massive bodies to bitwise identical values, without communication.
        """
        everywhere = jax.tree.map(lambda _: PartitionSpec(), state)
        return replace(everywhere, tracers=tracers.partition(axis))


def error_messages(state: State) -> list[str]:
    """Return messages about inaccurate or failed steps of a run; empty if there were none.

    Call it at the end of a run: `step` never raises, because it is compiled.
    """
    said = []
    if not all(np.isfinite(np.asarray(q)).all() for q in (state.x, state.v)):
        said.append("positions of massive bodies are not finite; two of them collided")
    elif missed := int(state.coarse):
        said.append(
            f"{missed} substeps of the massive bodies missed the tolerance; give more substeps, or "
            "a shorter dt"
        )
    lost = ~np.isfinite(np.asarray(state.tracers.x)).all(1)
    missed = np.asarray(state.tracers.coarse) > 0
    if count := int((lost | missed).sum()):
        said.append(
            f"{count} of the {missed.size} tracers missed the tolerance at the shortest step, "
            "2^-deepest of dt; their positions are unreliable since then; give a deeper control"
        )
    return said


def tracer_orbits(gm: Array | float, state: State) -> Elements:
    """Return osculating elements [M] of the tracers about the first body, of parameter `gm`."""
    return elements.from_state(state.tracers.x - state.x[:1], state.tracers.v - state.v[:1], gm)


@allocation.limit_memory
@jax.jit
def _start(spec: Planetary, x: Array, v: Array, tracer_x: Array, tracer_v: Array) -> State:
    gm, light = _cast_like(x, spec.gm, spec.light)
    a = jnp.repeat(relativity.einstein_infeld_hoffmann(x, v, gm, light)[None], 8, axis=0)
    a, _ = _solve(spec, x, v, a, 20)  # 1 or 2 digits per iteration for the fastest body
    output = DenseOutput(x=x[None], v=v[None], a=a[None], dt=_substep(spec, x))
    # the nodes of the first substep also serve as those of the previous one: only a guess
    return State(
        x=x,
        v=v,
        low_x=jnp.zeros_like(x),
        low_v=jnp.zeros_like(x),
        a=a,
        coarse=jnp.int32(0),
        tracers=tracers.init(partial(_force, spec), output, tracer_x, tracer_v),
    )


def _validate(
    spec: Planetary, x: Array, v: Array, pair: tuple[Array, Array] | None
) -> tuple[Array, ...]:
    name = "Planetary.init"
    ranges.check(name, spec)
    gm = validation.check_numbers(f"{name}: gm", spec.gm, least=0)
    x, v = validation.check_vectors(f"{name}: x", x), validation.check_vectors(f"{name}: v", v)
    if pair is not None and not (isinstance(pair, tuple | list) and len(pair) == 2):
        raise TypeError(f"{name}: tracers={type(pair).__name__}; they must be (x [M, 3], v [M, 3])")
    tracer_x, tracer_v = (np.zeros((0, 3)),) * 2 if pair is None else pair
    tracer_x = validation.check_vectors(f"{name}: tracers, x", tracer_x)
    tracer_v = validation.check_vectors(f"{name}: tracers, v", tracer_v)
    n = gm.shape[0] if gm.ndim == 1 else 0
    if gm.ndim != 1 or x.shape != (n, 3) or v.shape != (n, 3) or n == 0:
        shapes = f"gm {list(gm.shape)}, x {list(x.shape)}, v {list(v.shape)}"
        raise ValueError(f"{name}: {shapes}; must be [N] and twice [N, 3], with at least one body")
    if tracer_x.ndim != 2 or tracer_x.shape != tracer_v.shape:
        shapes = f"x {list(tracer_x.shape)}, v {list(tracer_v.shape)}"
        raise ValueError(f"{name}: tracers, {shapes}; both must be [M, 3], one row per tracer")
    for key, value in (("dt", spec.dt), ("light", spec.light)):
        if jnp.ndim(value):
            raise ValueError(f"{name}: {key} has shape {list(jnp.shape(value))}; it must be []")
    if not tracer_x.size:  # the float64 of zeros((0, 3)) was not chosen by the user
        tracer_x, tracer_v = np.zeros((2, 0, 3), x.dtype)
    given: dict[str, Any] = {
        "x": x,
        "v": v,
        "gm": gm,
        "tracers": tracer_x,
        "velocities of tracers": tracer_v,
    }
    x, v, gm, tracer_x, tracer_v = validation.one_precision(name, **given)
    validation.check_distinct(f"{name}: x", x)
    validation.check_tracers(f"{name}: tracers", tracer_x, x)
    if tracer_x.size:
        defer_check(partial(_refuse_order, name), gm, spec.light)
    return x, v, tracer_x, tracer_v


def _refuse_order(name: str, gm: Array, light: Array | float) -> None:
    """Raise if the heaviest body is not the first, since its relativity acts on the tracers."""
    # numpy, because inside a compiled program jnp traces concrete values, too
    if np.isfinite(light) and (heaviest := np.argmax(np.asarray(gm))):
        raise ValueError(
            f"{name}: body {heaviest} has the largest gm; it must come first, because tracers feel "
            "its relativistic correction"
        )


def _cast_like(x: Array, *values: Array | float) -> tuple[Array, ...]:
    """Return values of the spec in the precision of the state."""
    return tuple(jnp.asarray(value, x.dtype) for value in values)


def _substep(spec: Planetary, x: Array) -> Array:
    """Return the time of one substep of the massive bodies."""
    return jnp.asarray(spec.dt, x.dtype) / spec.substeps


def _solve(
    spec: Planetary, x: Array, v: Array, guess: Array, iterations: int
) -> tuple[Array, Array]:
    gm, light = _cast_like(x, spec.gm, spec.light)
    force = jax.vmap(partial(relativity.einstein_infeld_hoffmann, gm=gm, light=light))
    accelerate = lambda first, x, v: force(x, v)
    return radau.solve(accelerate, x, v, _substep(spec, x), guess, iterations)


def _count_coarse(a: Array, change: Array) -> Array:
    """Return 1 if the error of a substep of the massive bodies exceeds the tolerance, else 0."""
    # with the barrier, compiling this error estimate cannot change the rounding of the bodies
    a, change = lax.optimization_barrier((a, change))
    pull = jnp.max(jnp.sum(a[0] * a[0], -1))
    # a floor, since only rounding is left where forces cancel, and a single body has no force
    least = jnp.where(pull > 0, 1e-8 * jnp.sqrt(pull), 1)
    error = tracers.error(_MASSIVE_CONTROL, jnp.moveaxis(a, -1, 1), change.T, least)
    return jnp.where(jnp.all(error <= 1), 0, 1).astype(jnp.int32)


def _force(spec: Planetary, massive_x: Array, massive_v: Array, x: Array, v: Array) -> Array:
    """Return Newton's pull of all bodies plus the Schwarzschild term of the heaviest, [K, 3, B]."""
    gm, light = _cast_like(x, spec.gm, spec.light)
    a = pairs.batched_pull(massive_x, gm, x)
    r, w = (
        [p[:, k] - q[:, 0, k, None] for k in range(3)] for p, q in ((x, massive_x), (v, massive_v))
    )
    return a + jnp.stack(relativity.schwarzschild(r, w, gm[0], light), 1)
