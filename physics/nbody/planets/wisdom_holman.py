"""The Wisdom-Holman map for planets: exact Kepler motion, with mutual attraction as kicks.

Wisdom & Holman (1991), doi:10.1086/115978, in Jacobi coordinates, in the order kick, drift, kick,
with the split of WHFast (Rein & Tamayo 2015, doi:10.1093/mnras/stv1257). Each body drifts about the
centre of mass of all bodies before it, with the sum of their masses and its own. The error is of
second order in the step and of first order in the planets' mass over the star's; energy errors do
not grow. Bodies must stay in order, without close encounters. Components come first internally.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu.geometry.vectors import dot
from jaxgpu.inputs import ranges
from jaxgpu.inputs.calls import defer_check
from jaxgpu.inputs.fields import number, pytree

from .. import validation
from ..orbits import kepler


@pytree
class State:
    """State of the system in Jacobi coordinates; body 0 is the centre of mass of all."""

    x: Array  # [N, 3] positions relative to the centre of mass of the preceding bodies
    v: Array  # [N, 3] velocities
    a: Array  # [N, 3] accelerations at x, except the Keplerian part


@pytree
class WisdomHolman:
    """Settings of the Wisdom-Holman map, in any consistent units; G is included in the masses.

    Reverse mode works through `jaxgpu.runs.rollout` of its step. Tracers are bodies of gm 0.

    >>> spec = WisdomHolman(gm=jnp.array([1.0, 1e-3]), dt=0.1)
    >>> x, v = jnp.array([[0.0, 0, 0], [1, 0, 0]]), jnp.array([[0.0, 0, 0], [0, 1, 0]])
    >>> x, v = spec.to_inertial(jax.jit(spec.step)(spec.init(x, v)))
    >>> [round(float(c), 3) for c in x[1]]
    [0.995, 0.1, 0.0]
    """

    gm: Array = number(
        least=0, most=1e100, unit="length^3 / time^2"
    )  # [N] the star first, then the other bodies from the inside out
    dt: Array | float = number(unit="time")  # [] step, a twentieth of the shortest period or less

    def init(self, x: Array, v: Array) -> State:
        """Return the state for positions and velocities [N, 3] in an inertial frame.

        Raises:
            ValueError: inconsistent shapes, values that are not finite, a star without mass, two
                bodies at one position, two floating types, float64 where JAX has it switched off.
        """
        return _start(*_validate(self, x, v))

    def step(self, state: State) -> State:
        """Advance the state by one step."""
        gm, dt = (jnp.asarray(q, state.x.dtype) for q in (self.gm, self.dt))
        x, v, a = state.x.T, state.v.T, state.a.T
        v = v + dt / 2 * a
        # body 0, the centre of mass, moves uniformly; every other body moves on a conic
        x1, v1 = kepler.drift_components(x[:, 1:], v[:, 1:], jnp.cumsum(gm)[1:], dt)
        centre = x[:, :1] + dt * v[:, :1]
        x = jnp.concatenate([centre, x1], 1)
        a = _kicks(gm, x)
        v = jnp.concatenate([v[:, :1], v1], 1) + dt / 2 * a
        return State(x=x.T, v=v.T, a=a.T)

    def to_inertial(self, state: State) -> tuple[Array, Array]:
        """Return positions and velocities [N, 3] in the inertial frame."""
        ranges.check("WisdomHolman.to_inertial", self)
        gm = jnp.asarray(self.gm, state.x.dtype)
        return _from_jacobi(gm, state.x.T).T, _from_jacobi(gm, state.v.T).T


@jax.jit
def _start(gm: Array, x: Array, v: Array) -> State:
    x, v = _to_jacobi(gm, x.T), _to_jacobi(gm, v.T)
    return State(x=x.T, v=v.T, a=_kicks(gm, x).T)


def _validate(spec: WisdomHolman, x: Array, v: Array) -> tuple[Array, Array, Array]:
    """Return the masses [N], positions and velocities [N, 3] after checks."""
    name = "WisdomHolman.init"
    ranges.check(name, spec)
    gm = validation.check_numbers(f"{name}: gm", spec.gm, least=0)
    x, v = validation.check_vectors(f"{name}: x", x), validation.check_vectors(f"{name}: v", v)
    if gm.ndim != 1 or gm.size == 0 or x.shape != (*gm.shape, 3) or v.shape != x.shape:
        shapes = f"gm {list(gm.shape)}, x {list(x.shape)}, v {list(v.shape)}"
        raise ValueError(f"{name}: {shapes}; must be [N] and twice [N, 3], with at least one body")
    if jnp.ndim(spec.dt):
        raise ValueError(f"{name}: dt has shape {list(jnp.shape(spec.dt))}; it must be one number")
    x, v, gm = validation.one_precision(name, x=x, v=v, gm=gm)
    defer_check(partial(_refuse_light_star, name), gm)
    validation.check_distinct(f"{name}: x", x)
    return gm, x, v


def _refuse_light_star(name: str, gm: Array) -> None:
    if np.asarray(gm)[0] == 0:
        raise ValueError(f"{name}: gm of the first body is 0; it must be the star, with gm above 0")


def _to_jacobi(gm: Array, x: Array) -> Array:
    """Return Jacobi coordinates [3, N]; the first is the centre of mass of all bodies."""
    mass = jnp.cumsum(gm)
    centre = jnp.cumsum(gm[None] * x, 1) / mass[None]
    return jnp.concatenate([centre[:, -1:], x[:, 1:] - centre[:, :-1]], 1)


def _from_jacobi(gm: Array, x: Array) -> Array:
    """Return inertial from Jacobi coordinates, the inverse of `_to_jacobi`."""
    share = (gm / jnp.cumsum(gm))[None, 1:]
    # adding body i shifts the centre of the preceding bodies by the mass fraction of body i
    shifts = share * x[:, 1:]
    after = jnp.flip(jnp.cumsum(jnp.flip(shifts, 1), 1), 1)
    centre = x[:, :1] - after  # centre of the bodies before number 1, 2, ...
    return jnp.concatenate([centre[:, :1], x[:, 1:] + centre], 1)


def _kicks(gm: Array, x: Array) -> Array:
    """Return the accelerations of the Jacobi coordinates minus their Keplerian part."""
    # positions are relative to the centre of mass, since far from it differences lose digits
    r = _from_jacobi(gm, x.at[:, 0].set(0))
    d = r[:, None] - r[:, :, None]  # [3, N, N], from the row's body to the column's
    same = np.eye(gm.shape[0], dtype=bool)
    u = jnp.where(same, 0, lax.rsqrt(jnp.where(same, 1, dot(d, d))))
    full = _to_jacobi(gm, jnp.sum((gm[None] * u * u * u)[None] * d, 2))
    own = x[:, 1:]
    rho = lax.rsqrt(dot(own, own))
    towards = (jnp.cumsum(gm)[1:] * rho * rho * rho)[None] * own
    return full + jnp.concatenate([jnp.zeros_like(x[:, :1]), towards], 1)
