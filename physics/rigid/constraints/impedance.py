"""Softness of constraints: from solref and solimp to the spring of a constraint row.

A row with the violation r has the reference acceleration aref = -b J v - k d(r) (pos - margin) and
the weight D = d(r) / ((1 - d(r)) A), with A its inverse inertia at qpos0: see the section
"Constraint parameters" of MuJoCo's documentation.
"""

import jax.numpy as jnp
from jax import Array

from ..models.mechanism import Mechanism

TINY = 1e-15
_LEAST, _MOST = 1e-4, 1 - 1e-4


def safe_reference(model: Mechanism, solref: Array) -> Array:
    """Return `solref` [..., 2]; unless refsafe is disabled, timeconst is at least two steps."""
    time, ratio = solref[..., 0], solref[..., 1]
    mixed = (time > 0) != (ratio > 0)
    time, ratio = jnp.where(mixed, 0.02, time), jnp.where(mixed, 1.0, ratio)
    if "refsafe" not in model.layout.disabled:
        time = jnp.where(time > 0, jnp.maximum(time, 2 * model.option.timestep), time)
    return jnp.stack([time, ratio], -1)


def impedance(solimp: Array, r: Array) -> Array:
    """Return d(r) [...] of `solimp` [..., 5]: its first value at r = 0, the second at the width."""
    low, high, width, middle, power = _clip_solimp(solimp)
    flat = (low == high) | (width <= TINY)
    x = jnp.abs(r) / jnp.where(width <= TINY, 1, width)
    inside = jnp.clip(x, 0, 1)
    left = inside <= middle
    # Only positive bases are raised to the power, so the derivative at zero is finite for power 1.
    base = jnp.where(left, inside, 1 - inside)
    edge = jnp.where(left, middle, 1 - middle)
    rises = base > 0
    bent = jnp.where(rises, base, 1) ** power / edge ** (power - 1)
    bent = jnp.where(rises, bent, 0)
    y = jnp.where(left, bent, 1 - bent)
    y = jnp.where(power == 1, inside, y)
    return jnp.where(flat, 0.5 * (low + high), low + y * (high - low))


def spring(model: Mechanism, solref: Array, solimp: Array) -> tuple[Array, Array]:
    """Return stiffness k and damping b [...] of rows with these parameters."""
    solref = safe_reference(model, solref)
    high = _clip_solimp(solimp)[1]
    time, ratio = solref[..., 0], solref[..., 1]
    direct = time <= 0
    time, damp = jnp.where(direct, 1, time), jnp.where(ratio <= 0, 1, ratio)
    k = jnp.where(direct, -solref[..., 0] / high**2, 1 / (high * time * damp) ** 2)
    b = jnp.where(ratio <= 0, -ratio / high, 2 / (high * time))
    return k, b


def weight(solimp: Array, r: Array, inverse: Array) -> Array:
    """Return the weights D [...] of rows with the inverse inertia `inverse`."""
    d = impedance(solimp, r)
    return 1 / jnp.maximum((1 - d) / d * inverse, TINY)


def _clip_solimp(solimp: Array) -> tuple[Array, ...]:
    low, high, width, middle, power = (solimp[..., i] for i in range(5))
    keep = lambda x: jnp.clip(x, _LEAST, _MOST)
    return keep(low), keep(high), jnp.maximum(width, 0), keep(middle), jnp.maximum(power, 1)
