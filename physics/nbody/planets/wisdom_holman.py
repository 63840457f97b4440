"""The map of Wisdom & Holman for planets: Kepler's motion exactly, their mutual pull as kicks.

Wisdom & Holman (1991), doi:10.1086/115978, in Jacobi coordinates, in the order kick, drift, kick,
with the split of WHFast (Rein & Tamayo 2015, doi:10.1093/mnras/stv1257): each body drifts about the
centre of mass of all before it with their common mass and its own. The error is of second order in
the step and of first order in the masses of the planets over that of the star; energy errors do not
grow. Bodies must stay in their order and not meet.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu import ranges
from jaxgpu.pytree import number, pytree, static

from .. import bodies, layout
from ..layout import Columns, Rows
from ..orbits import kepler


@pytree
class WisdomHolman:
    """What to integrate, in any units in which G is 1 once it is multiplied into the masses."""

    gm: Array = number(least=0, unit="length^3 / time^2")  # [N] the star, then from the inside out
    dt: Array | float = number(unit="time")  # [] step, a twentieth of the shortest period or less


@pytree
class State:
    """Where the system is, in Jacobi coordinates; body 0 is the centre of mass of all."""

    x: Array  # [3, N] positions relative to the centre of mass of the bodies before
    v: Array  # [3, N] velocities
    a: Array  # [3, N] accelerations by all but Kepler's, at x
    rows: bool = static(default=False)  # `inertial` gives a row a body, for so they were given


def init(spec: WisdomHolman, x: Array | Rows | Columns, v: Array | Rows | Columns) -> State:
    """The state for positions and velocities [3, N] in an inertial frame.

    A row [3] a body, as ephemerides have it, is `layout.Rows(x)`: `inertial` then gives rows too.
    Of three bodies it must be said, also that the components come first: `layout.Columns(x)`.

    Raises:
        ValueError: shapes that do not fit or can be read both ways, values that are not finite, a
            star without mass, two bodies at one place, two floating types, float64 where JAX has
            it switched off.
    """
    rows = isinstance(x, Rows)
    x, v, gm = _checked(spec, x, v)
    x, v = _jacobi(gm, x), _jacobi(gm, v)
    return State(x, v, _kicks(gm, x), rows)


def step(spec: WisdomHolman, state: State) -> State:
    """The state one step later."""
    gm, dt = (jnp.asarray(q, state.x.dtype) for q in (spec.gm, spec.dt))
    v = state.v + dt / 2 * state.a
    x1, v1 = kepler.drift(Columns(state.x[:, 1:]), Columns(v[:, 1:]), jnp.cumsum(gm)[1:], dt)
    centre = state.x[:, :1] + dt * v[:, :1]
    x = jnp.concatenate([centre, x1], 1)
    a = _kicks(gm, x)
    return State(x, jnp.concatenate([v[:, :1], v1], 1) + dt / 2 * a, a, state.rows)


def walk(spec: WisdomHolman, state: State, steps: int) -> State:
    """The state `steps` steps later; reverse mode runs through."""
    ranges.numbers("wisdom_holman.walk: steps", steps, (), whole=True, least=0)
    return lax.scan(lambda s, _: (step(spec, s), None), state, None, length=steps)[0]


def inertial(spec: WisdomHolman, state: State) -> tuple[Array, Array]:
    """Positions and velocities in the inertial frame, [3, N], or [N, 3] if rows were given."""
    gm = jnp.asarray(spec.gm, state.x.dtype)
    x, v = _inertial(gm, state.x), _inertial(gm, state.v)
    return (x.T, v.T) if state.rows else (x, v)


def _checked(spec: WisdomHolman, x: Array, v: Array) -> tuple[Array, Array, Array]:
    """Positions and velocities [3, N] and the masses."""
    name = "wisdom_holman.init"
    ranges.check(name, spec)
    gm = bodies.numbers(f"{name}: gm", spec.gm, least=0)
    x, v = layout.columns(f"{name}: x", x), layout.columns(f"{name}: v", v)
    if gm.ndim != 1 or gm.size == 0 or x.shape != (3, *gm.shape) or v.shape != x.shape:
        shapes = f"gm {list(gm.shape)}, x {list(x.shape)}, v {list(v.shape)}"
        raise ValueError(f"{name}: {shapes}; must be [N] and twice [3, N], with a body or more")
    if jnp.ndim(spec.dt):
        raise ValueError(f"{name}: dt has shape {list(jnp.shape(spec.dt))}; it must be one number")
    x, v, gm = bodies.one_precision(name, x=x, v=v, gm=gm)
    if not isinstance(gm, jax.core.Tracer) and gm[0] == 0:
        raise ValueError(f"{name}: gm is 0 of the first body; it must be the star, above 0")
    bodies.apart(f"{name}: x", x.T)
    return x, v, gm


def _jacobi(gm: Array, x: Array) -> Array:
    """Each body relative to the centre of mass of those before it; first the centre of all."""
    mass = jnp.cumsum(gm)
    centre = jnp.cumsum(gm[None] * x, 1) / mass[None]
    return jnp.concatenate([centre[:, -1:], x[:, 1:] - centre[:, :-1]], 1)


def _inertial(gm: Array, x: Array) -> Array:
    share = (gm / jnp.cumsum(gm))[None, 1:]
    # the centre of the bodies up to i is that of those before, moved by the share of body i
    shifts = share * x[:, 1:]
    after = jnp.flip(jnp.cumsum(jnp.flip(shifts, 1), 1), 1)
    centre = x[:, :1] - after  # of the bodies before number 1, 2, ...
    return jnp.concatenate([centre[:, :1], x[:, 1:] + centre], 1)


def _kicks(gm: Array, x: Array) -> Array:
    """Accelerations of Jacobi coordinates, less Kepler's."""
    # about the centre of mass: far from the origin differences of places would lose digits
    r = _inertial(gm, x.at[:, 0].set(0))
    d = r[:, None] - r[:, :, None]  # [3, N, N], from the row's body to the column's
    r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2]
    same = np.eye(gm.shape[0], dtype=bool)
    u = jnp.where(same, 0, lax.rsqrt(jnp.where(same, 1, r2)))
    full = _jacobi(gm, jnp.sum((gm[None] * u * u * u)[None] * d, 2))
    own = x[:, 1:]
    rho = lax.rsqrt(own[0] * own[0] + own[1] * own[1] + own[2] * own[2])
    towards = (jnp.cumsum(gm)[1:] * rho * rho * rho)[None] * own
    return full + jnp.concatenate([jnp.zeros_like(x[:, :1]), towards], 1)
