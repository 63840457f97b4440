"""A planetary system and a swarm of massless bodies in it, relativity included.

One step is one stretch of time: first the massive bodies cross it in equal Gauss-Radau steps
(order 15, compensated sums, so that rounding grows as slowly as it can), then the swarm crosses the
film they left behind. Everything is in one state, so a run can stop after any step and go on.
"""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu import ranges
from jaxgpu.pytree import number, pytree, size

from .. import bodies, layout
from ..forces import pairs, relativity
from ..orbits import elements
from ..orbits.elements import Elements
from ..steps import radau
from ..steps.film import Film
from . import swarm
from .swarm import Control, Swarm

# Mercury in 19 steps a revolution has 3e-4 and misses by 0.03 km in a century; in 10, 4e-2 and more
_MASSIVE = Control(tolerance=1e-3, convergence=1e-8)


@pytree
class Planetary:
    """What to integrate, in any units in which G is 1 once it is multiplied into the masses."""

    gm: Array = number(least=0, unit="length^3 / time^2")  # [N] of each, the heaviest first
    stretch: Array | float = number(unit="time")  # [] that one step covers; negative: backwards
    light: Array | float = number(
        # [] speed of light; inf: Newton's gravity
        default=relativity.LIGHT,
        above=0,
        infinite=True,
        unit="length / time",
    )
    control: Control = Control()
    pieces: int = size(default=8, least=1)  # steps of the massive bodies in a stretch
    iterations: int = size(default=5, least=2)  # of the implicit step


@pytree
class State:
    """Where the system is."""

    x: Array  # [N, 3] position, length
    v: Array  # [N, 3] velocity, length / time
    low_x: Array  # [N, 3] what rounding has kept out of x so far
    low_v: Array  # [N, 3] what rounding has kept out of v so far
    a: Array  # [8, N, 3] acceleration at the nodes of the last step
    coarse: Array  # [] int32: steps of the massive bodies that missed the tolerance
    swarm: Swarm


def init(spec: Planetary, x: Array, v: Array, swarm_x: Array, swarm_v: Array) -> State:
    """The state at the start.

    Args:
        spec: the system.
        x: barycentric positions of the massive bodies [N, 3].
        v: their velocities [N, 3].
        swarm_x: positions of the massless bodies [3, M]; M may be 0.
        swarm_v: their velocities [3, M].

    Of three bodies say which way they lie: `layout.Rows(x)` or `layout.Columns(x)`.

    Raises:
        ValueError: shapes that do not fit or can be read both ways, values that are not finite or
            out of range, two bodies at one place, two floating types, float64 where JAX has it
            switched off, another body than the first the heaviest.
    """
    x, v, swarm_x, swarm_v = _checked(spec, x, v, swarm_x, swarm_v)
    gm, light = _like(x, spec.gm, spec.light)
    rows = layout.Rows(x), layout.Rows(v)
    a = jnp.repeat(relativity.einstein_infeld_hoffmann(*rows, gm, light)[None], 8, axis=0)
    a, _ = _solve(spec, x, v, a, 20)  # from a constant, the fastest body gains a digit or two each
    film = Film(x[None], v[None], a[None], _piece(spec, x))
    columns = layout.Columns(swarm_x), layout.Columns(swarm_v)
    tracers = swarm.init(partial(_force, spec), film, *columns)
    # the nodes of the first step stand for those of a step before it: only a first guess
    none = jnp.zeros_like(x)
    return State(x=x, v=v, low_x=none, low_v=none, a=a, coarse=jnp.int32(0), swarm=tracers)


def step(spec: Planetary, state: State) -> State:
    """The state one stretch of time later."""
    dt = _piece(spec, state.x)

    def piece(state, _):
        guess = radau.extrapolated(state.a, jnp.ones((1, 1), state.x.dtype))
        a, change = _solve(spec, state.x, state.v, guess, spec.iterations)
        dx, dv = radau.increment(state.v, dt, a)
        x, low_x = _add(state.x, state.low_x, dx)
        v, low_v = _add(state.v, state.low_v, dv)
        coarse = state.coarse + _coarse(a, change)
        seen = (state.x, state.v, a)
        return replace(state, x=x, v=v, low_x=low_x, low_v=low_v, a=a, coarse=coarse), seen

    state, seen = lax.scan(piece, state, None, length=spec.pieces)
    # the barrier keeps the compiler from rounding the massive bodies otherwise for the swarm's sake
    film = Film(*lax.optimization_barrier(seen), dt)
    tracers = swarm.advance(partial(_force, spec), spec.control, film, state.swarm)
    return replace(state, swarm=tracers)


def faults(state: State) -> list[str]:
    """What a run has missed, a sentence each; empty where every step was within its tolerance.

    To be asked at the end of a run: `step` goes on whatever happens, as a compiled program must.
    """
    said = []
    if not all(np.isfinite(np.asarray(q)).all() for q in (state.x, state.v)):
        said.append("places of massive bodies are not finite; two of them met, or began so")
    elif missed := int(state.coarse):
        said.append(
            f"{missed} steps of the massive bodies missed the tolerance; give more pieces, or a "
            "shorter stretch"
        )
    lost = ~np.isfinite(np.asarray(state.swarm.x)).all(0)
    missed = np.asarray(state.swarm.coarse) > 0
    if count := int((lost | missed).sum()):
        said.append(
            f"{count} of the {missed.size} massless bodies missed the tolerance at the shortest "
            "step, 2^-deepest of the stretch; their places mean little since; give a deeper control"
        )
    return said


def swarm_orbits(gm: Array, state: State) -> Elements:
    """Osculating elements [M] of the swarm about the first body, whose parameter is `gm`."""
    x, v = state.x[0][:, None], state.v[0][:, None]
    away = layout.Columns(state.swarm.x - x), layout.Columns(state.swarm.v - v)
    return elements.from_state(*away, gm)


def _checked(spec: Planetary, x: Array, v: Array, swarm_x: Array, swarm_v: Array) -> tuple:
    name = "planetary.init"
    ranges.check(name, spec)
    gm = bodies.numbers(f"{name}: gm", spec.gm, least=0)
    x, v = layout.rows(f"{name}: x", x), layout.rows(f"{name}: v", v)
    swarm_x = layout.columns(f"{name}: swarm_x", swarm_x)
    swarm_v = layout.columns(f"{name}: swarm_v", swarm_v)
    n = gm.shape[0] if gm.ndim == 1 else 0
    if gm.ndim != 1 or x.shape != (n, 3) or v.shape != (n, 3) or n == 0:
        shapes = f"gm {list(gm.shape)}, x {list(x.shape)}, v {list(v.shape)}"
        raise ValueError(f"{name}: {shapes}; must be [N] and twice [N, 3], with a body or more")
    if swarm_x.ndim != 2 or swarm_x.shape != swarm_v.shape:
        shapes = f"swarm_x {list(swarm_x.shape)}, swarm_v {list(swarm_v.shape)}"
        raise ValueError(f"{name}: {shapes}; both must be [3, M], components first")
    for key, value in (("stretch", spec.stretch), ("light", spec.light)):
        if jnp.ndim(value):
            raise ValueError(f"{name}: {key} has shape {list(jnp.shape(value))}; it must be one")
    given = {"x": x, "v": v, "gm": gm, "swarm_x": swarm_x, "swarm_v": swarm_v}
    if not swarm_x.size:  # zeros((3, 0)) has a type that nobody meant
        given["swarm_x"], given["swarm_v"] = np.zeros((2, *swarm_x.shape), x.dtype)
    x, v, gm, swarm_x, swarm_v = bodies.one_precision(name, **given)
    bodies.apart(f"{name}: x", x)
    bodies.clear(f"{name}: swarm_x", swarm_x, x)
    seen = not any(isinstance(q, jax.core.Tracer) for q in (gm, spec.light))
    if seen and swarm_x.size and np.isfinite(spec.light) and gm[0] < jnp.max(gm):
        heaviest = int(jnp.argmax(gm))
        raise ValueError(
            f"{name}: gm is largest of body {heaviest}; the heaviest must come first, for the "
            "massless bodies feel its relativity"
        )
    return x, v, swarm_x, swarm_v


def _like(x: Array, *values: Array | float) -> tuple[Array, ...]:
    """Numbers of the spec in the precision of the state."""
    return tuple(jnp.asarray(value, x.dtype) for value in values)


def _piece(spec: Planetary, x: Array) -> Array:
    """The step of the massive bodies."""
    return jnp.asarray(spec.stretch, x.dtype) / spec.pieces


def _solve(
    spec: Planetary, x: Array, v: Array, guess: Array, iterations: int
) -> tuple[Array, Array]:
    gm, light = _like(x, spec.gm, spec.light)
    force = jax.vmap(partial(relativity.einstein_infeld_hoffmann, gm=gm, light=light))
    accelerate = lambda first, x, v: force(x, v)
    return radau.solve(accelerate, x, v, _piece(spec, x), guess, iterations)


def _coarse(a: Array, change: Array) -> Array:
    """1 where a step of the massive bodies is not to be trusted, else 0: by the swarm's measure."""
    # what the compiler makes of this must not touch the rounding of the bodies
    a, change = lax.optimization_barrier((a, change))
    pull = jnp.max(jnp.sum(a[0] * a[0], -1))
    # where pulls balance, what is left is rounding; and a body alone is not pulled
    least = jnp.where(pull > 0, 1e-8 * jnp.sqrt(pull), 1)
    error = swarm.error(_MASSIVE, jnp.moveaxis(a, -1, 1), change.T, least)
    return jnp.where(jnp.all(error <= 1), 0, 1).astype(jnp.int32)


def _force(spec: Planetary, bodies_x: Array, bodies_v: Array, x: Array, v: Array) -> Array:
    """Newton's pull of all bodies and Schwarzschild's correction of the heaviest, [K, 3, B]."""
    gm, light = _like(x, spec.gm, spec.light)
    a = pairs.pull_of_few(bodies_x, gm, x)
    r, w = (
        [p[:, k] - q[:, 0, k, None] for k in range(3)] for p, q in ((x, bodies_x), (v, bodies_v))
    )
    return a + jnp.stack(relativity.schwarzschild(r, w, gm[0], light), 1)


def _add(high: Array, low: Array, term: Array) -> tuple[Array, Array]:
    """high + low + term as a rounded sum and what the rounding left (Kahan's compensated sum)."""
    term = term + low
    total = high + term
    return total, term - (total - high)
