"""Masses of newborn stars: piecewise power laws, sampled by inversion.

Salpeter (1955), doi:10.1086/145971; Kroupa (2001), doi:10.1046/j.1365-8711.2001.04022.x, eq. 2.
Masses have the unit of the breaks, solar masses in the published laws.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.devices import allocation
from jaxgpu.inputs import ranges
from jaxgpu.inputs.calls import defer_check
from jaxgpu.inputs.explanations import explain_errors
from jaxgpu.inputs.fields import number, pytree

_KROUPA_BREAKS = (0.01, 0.08, 0.5)
_KROUPA_SLOPES = (0.3, 1.3, 2.3)


@pytree
class MassFunction:
    """Piecewise power law: dN/dm falls as m^-slope between breaks and is continuous there."""

    breaks: Array = number(above=0)  # [K + 1] ascending masses
    slopes: Array = number()  # [K] slope of each piece


@explain_errors
def salpeter(low: float = 0.1, high: float = 100.0) -> MassFunction:
    """Return the Salpeter mass function, a single piece of slope 2.35.

    >>> round(float(mean_mass(salpeter())), 3)
    0.351
    """
    _validate_limits("salpeter", low, high)
    return MassFunction(jnp.array([low, high], float), jnp.array([2.35], float))


@explain_errors
def kroupa(low: float = 0.08, high: float = 100.0) -> MassFunction:
    """Return the Kroupa mass function: slopes 0.3 from 0.01, 1.3 from 0.08 and 2.3 from 0.5."""
    _validate_limits("kroupa", low, high)
    if low < _KROUPA_BREAKS[0]:
        raise ValueError(f"kroupa: low {low}; it begins at 0.01 solar masses; give at least that")
    inner = [b for b in _KROUPA_BREAKS if low < b < high]
    breaks = [low, *inner, high]
    first = np.searchsorted(_KROUPA_BREAKS, breaks[:-1], side="right") - 1
    slopes = [_KROUPA_SLOPES[k] for k in first]
    return MassFunction(jnp.array(breaks, float), jnp.array(slopes, float))


@explain_errors
@allocation.limit_memory
def sample_masses(key: Array, law: MassFunction, count: int) -> Array:
    """Sample masses [count], in the default precision."""
    ranges.numbers("sample_masses: count", count, (), whole=True, least=0)
    law = _validate_law("sample_masses", law)
    return quantile(law, jax.random.uniform(key, (count,), law.breaks.dtype))


@explain_errors
def quantile(law: MassFunction, share: Array) -> Array:
    """Return the mass below which the fraction `share` [...] of all stars lies, 0 to 1.

    >>> float(quantile(kroupa(0.08, 20.0), 0.5)) < 0.3  # half of all stars are lighter
    True
    """
    law = _validate_law("quantile", law)
    share = jnp.asarray(ranges.numbers("quantile: share", share, least=0, most=1))
    share = share.astype(law.breaks.dtype)
    height, amount = _pieces(law, 0)
    below = jnp.concatenate([jnp.zeros_like(amount[:1]), jnp.cumsum(amount)])
    wanted = share * below[-1]
    k = jnp.clip(jnp.searchsorted(below, wanted, side="right") - 1, 0, height.shape[0] - 1)
    a, power = law.breaks[k], 1 - law.slopes[k]
    part = (wanted - below[k]) / height[k]
    flat = jnp.abs(power) < 1e-6
    power = jnp.where(flat, 1, power)
    scaled = part * jnp.where(flat, 1, a ** (-power))
    return jnp.where(flat, a * jnp.exp(scaled), a * (1 + power * scaled) ** (1 / power))


@explain_errors
def mean_mass(law: MassFunction) -> Array:
    """Return the mean mass of a star."""
    law = _validate_law("mean_mass", law)
    return jnp.sum(_pieces(law, 1)[1]) / jnp.sum(_pieces(law, 0)[1])


def _pieces(law: MassFunction, moment: int) -> tuple[Array, Array]:
    """Return each piece's factor before m^-slope, and the integral of m^moment dN over it."""
    low, high = law.breaks[:-1], law.breaks[1:]
    # for continuity the factor changes by b^(difference of slopes) at each inner break b
    jumps = (law.slopes[1:] - law.slopes[:-1]) * jnp.log(law.breaks[1:-1])
    height = jnp.exp(jnp.concatenate([jnp.zeros_like(low[:1]), jnp.cumsum(jumps)]))
    power = moment + 1 - law.slopes
    flat = jnp.abs(power) < 1e-6
    safe = jnp.where(flat, 1, power)
    span = jnp.where(flat, jnp.log(high / low), (high**safe - low**safe) / safe)
    amount = height * span
    defer_check(_refuse_steep, amount, law.slopes)
    return height, amount


def _refuse_steep(amount: Array, slopes: Array) -> None:
    if not np.isfinite(np.asarray(amount)).all():
        raise ValueError(
            f"MassFunction: slopes={np.asarray(slopes).tolist()}; a segment of the mass function "
            f"overflows {amount.dtype}; give slopes nearer to 0"
        )


def _validate_limits(name: str, low: float, high: float) -> None:
    ranges.numbers(f"{name}: low", low, (), above=0)
    ranges.numbers(f"{name}: high", high, (), above=0)
    if not low < high:
        raise ValueError(f"{name}: low {low}, high {high}; must be 0 < low < high")


def _validate_law(name: str, law: MassFunction) -> MassFunction:
    """Return the law after checks, with its values as arrays."""
    ranges.check(name, law)
    pieces = jnp.shape(law.slopes)
    breaks = ranges.numbers(f"{name}: breaks", law.breaks, (pieces[0] + 1 if pieces else 2,))
    slopes = ranges.numbers(f"{name}: slopes", law.slopes, ("K",))
    defer_check(partial(_refuse_order, name), breaks)
    is_integer = lambda a: jnp.issubdtype(a.dtype, jnp.integer)
    return MassFunction(
        *(jnp.asarray(a, float if is_integer(a) else None) for a in (breaks, slopes))
    )


def _refuse_order(name: str, breaks: Array) -> None:
    if (np.diff(np.asarray(breaks)) <= 0).any():
        raise ValueError(f"{name}: breaks={list(np.asarray(breaks))}; they must ascend; sort them")
