"""The map of Wisdom & Holman for planets: Kepler's motion exactly, their mutual pull as kicks.

Wisdom & Holman (1991), doi:10.1086/115978, in Jacobi coordinates, in the order kick, drift, kick,
with the split of WHFast (Rein & Tamayo 2015, doi:10.1093/mnras/stv1257): each body drifts about the
centre of mass of all before it with their common mass and its own. The error is of second order in
the step and of first order in the masses of the planets over that of the star; energy errors do not
grow. Bodies must stay in their order and not meet.
"""

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu.physics.nbody import kepler
from jaxgpu.pytree import pytree


@pytree
class WisdomHolman:
    """What to integrate, in any units in which G is 1 once it is multiplied into the masses."""

    gm: Array  # [N] gravitational parameters: the star, then from the inside out; 0 for massless
    dt: Array | float  # [] step, a twentieth of the shortest period or less


@pytree
class State:
    """Where the system is, in Jacobi coordinates; body 0 is the centre of mass of all."""

    x: Array  # [3, N] positions relative to the centre of mass of the bodies before
    v: Array  # [3, N] velocities
    a: Array  # [3, N] accelerations by all but Kepler's, at x


def init(spec: WisdomHolman, x: Array, v: Array) -> State:
    """The state for positions and velocities [3, N] in an inertial frame."""
    if x.ndim != 2 or x.shape != (3, spec.gm.shape[0]) or v.shape != x.shape:
        shapes = f"x {list(x.shape)}, v {list(v.shape)}"
        raise ValueError(f"wisdom_holman.init: {shapes}; both must be [3, {spec.gm.shape[0]}]")
    x, v = _jacobi(spec.gm, x), _jacobi(spec.gm, v)
    return State(x, v, _kicks(spec.gm, x))


def step(spec: WisdomHolman, state: State) -> State:
    """The state one step later."""
    dt = jnp.asarray(spec.dt, state.x.dtype)
    v = state.v + dt / 2 * state.a
    inner = jnp.cumsum(spec.gm)[1:]
    x1, v1 = kepler.drift(state.x[:, 1:], v[:, 1:], inner, dt)
    centre = state.x[:, :1] + dt * v[:, :1]
    x = jnp.concatenate([centre, x1], 1)
    a = _kicks(spec.gm, x)
    return State(x, jnp.concatenate([v[:, :1], v1], 1) + dt / 2 * a, a)


def walk(spec: WisdomHolman, state: State, steps: int) -> State:
    """The state `steps` steps later; reverse mode runs through."""
    return lax.scan(lambda s, _: (step(spec, s), None), state, None, length=steps)[0]


def inertial(spec: WisdomHolman, state: State) -> tuple[Array, Array]:
    """Positions and velocities [3, N] in the inertial frame."""
    return _inertial(spec.gm, state.x), _inertial(spec.gm, state.v)


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
