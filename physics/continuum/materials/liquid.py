"""Liquids: pressure from the density, and a physical viscosity.

p = K / g ((rho / rho_0)^g - 1), the equation of state of Tait (Monaghan 1994,
doi:10.1006/jcph.1994.1034, eq. 4.1, with K = rho_0 c^2), and sigma = -p I + 2 eta dev D with D
the symmetric velocity gradient and dev in three dimensions. The viscosity eta is that of the
liquid: it does not depend on the time step. In 2-D the flow is plane.
"""

from typing import Any

import jax.numpy as jnp
from jax import Array

from jaxgpu.devices.precision import safe_tiny
from jaxgpu.geometry.vectors import Mat, inner, scale, shift, symmetric, trace
from jaxgpu.inputs import ranges
from jaxgpu.inputs.fields import number, pytree

_MAX_EXPANSION = 1e3  # maximum J: an isolated drop keeps its rate of expansion, which is unphysical


@pytree
class Liquid:
    """A Newtonian, weakly compressible liquid.

    The bulk modulus K sets the relative change of density, (v / c)^2 for flow at speed v with
    c^2 = K / rho; c of ten times the largest speed is enough for 1 %. Water's own 2.2e9 Pa needs
    dt ~ 1 us at centimetre cells.
    """

    bulk_modulus: Array | float = number(default=1e5, above=0, unit="Pa", one=True)  # [] K
    viscosity: Array | float = number(
        default=0.0, least=0, unit="Pa s", one=True
    )  # [] eta; water 1e-3
    # maximum tension before the liquid separates
    tension: Array | float = number(default=0.0, least=0, unit="Pa", one=True)  # []
    exponent: Array | float = number(default=7.0, above=0, one=True)  # [] g; 1 is linear
    # rate of `correct_volume`; 0.01 keeps the volume within 1 %, None for no correction
    volume_correction: Array | float | None = number(
        default=0.01, least=0, one=True, none=True
    )  # []

    def rest(self, like: Array, d: int) -> Array:
        """Return the volume per rest volume, J = 1."""
        return jnp.ones_like(like)

    def stress(self, internal: Array, gradient: Mat, dt) -> tuple[Array, Mat]:
        """Return J after a step at this velocity gradient [1/s], and Kirchhoff stress J sigma [Pa].

        Differentiable in everything; at the tension limit, from the side of the connected liquid.

        >>> still = ((jnp.zeros(()),) * 3,) * 3
        >>> J, tau = Liquid(bulk_modulus=700.0).stress(jnp.asarray(0.5), still, 0.1)
        >>> tau[0][0] / J  # -100 (2^7 - 1)
        Array(-12700., dtype=float32)
        """
        return _advance_liquid(self, internal, gradient, dt, lambda rate: self.viscosity)

    def correct_volume(self, internal: Array, excess: Array, cells: Array | float) -> Array:
        """Relax J towards the density of the grid, in a step that reduces the gap g.

            J <- J / (1 + (1 - exp(-volume_correction cells)) g),   g = min(max(a, 0), max(a, e)),
            a = J (1 + e) - 1

        so that J tends to 1 / (1 + e) at the rate volume_correction c / dx. Liquid whose density is
        between the rest density and the density of its pressure is unchanged.

        Args:
            internal: J.
            excess: e, the mean of `grid.volume.volume_excess` over the particle's spline.
            cells: distance that sound travels in the step, c dt / dx.
        Differentiable in everything, piecewise.

        >>> water = Liquid(volume_correction=0.01)
        >>> J, excess = jnp.array([1.0, 0.99, 0.99]), jnp.array([0.1, 0.0, 0.01])
        >>> J = water.correct_volume(J, excess, 100.0)
        >>> [round(float(a), 4) for a in J]  # the first closes 1 - 1 / e of its gap
        [0.9405, 0.99, 0.99]
        """
        return _correct_volume(self, internal, excess, cells)

    def sound_speed(self, density) -> Array | float:
        """Return the speed of sound at rest, m/s."""
        return jnp.sqrt(self.bulk_modulus / density)

    def kinematic_viscosity(self, density) -> Array | float:
        """Return the largest kinematic viscosity, m^2/s."""
        return self.viscosity / density


@pytree
class HerschelBulkley:
    """A yield-stress liquid: |tau| = yield + consistency * rate^index, in simple shear.

    Bingham at index 1, a power-law liquid at yield 0, shear-thinning below index 1. Below the
    yield stress it creeps with the viscosity yield * growth (Papanastasiou 1987,
    doi:10.1122/1.549926, eq. 4): a larger growth is stiffer and needs smaller steps.
    """

    bulk_modulus: Array | float = number(default=1e5, above=0, unit="Pa", one=True)  # [] K
    yield_stress: Array | float = number(default=10.0, least=0, unit="Pa", one=True)  # []
    consistency: Array | float = number(default=1.0, least=0, unit="Pa s^index", one=True)  # []
    index: Array | float = number(default=1.0, above=0, one=True)  # []
    growth: Array | float = number(
        default=100.0, above=0, unit="s", one=True
    )  # [] m of Papanastasiou
    tension: Array | float = number(default=0.0, least=0, unit="Pa", one=True)  # []
    exponent: Array | float = number(default=7.0, above=0, one=True)  # []
    # see `Liquid.correct_volume`
    volume_correction: Array | float | None = number(
        default=0.01, least=0, one=True, none=True
    )  # []

    def rest(self, like: Array, d: int) -> Array:
        """Return the volume per rest volume, J = 1."""
        return jnp.ones_like(like)

    def viscosity(self, rate: Array | float) -> Array:
        """Return the apparent viscosity [Pa s] at a shear rate [1/s], finite and smooth at rest."""
        rate = jnp.sqrt(rate * rate + 1e-4 / (self.growth * self.growth))
        return -self.yield_stress * jnp.expm1(-self.growth * rate) / rate + (
            self.consistency * rate ** (self.index - 1)
        )

    def stress(self, internal: Array, gradient: Mat, dt) -> tuple[Array, Mat]:
        """Return J after a step, and Kirchhoff stress [Pa]; see `Liquid.stress`."""
        return _advance_liquid(self, internal, gradient, dt, self.viscosity)

    def correct_volume(self, internal: Array, excess: Array, cells: Array | float) -> Array:
        """Relax J towards the density of the grid; see `Liquid.correct_volume`."""
        return _correct_volume(self, internal, excess, cells)

    def sound_speed(self, density) -> Array | float:
        """Return the speed of sound at rest, m/s."""
        return jnp.sqrt(self.bulk_modulus / density)

    def kinematic_viscosity(self, density) -> Array | float:
        """Return the largest kinematic viscosity (at rest, or high rate if thickening), m^2/s."""
        return jnp.maximum(self.viscosity(0.0), self.viscosity(1e3)) / density


def corrects_volume(material: Any) -> bool:
    """Return whether a material's volume is relaxed to the density of the grid."""
    return getattr(material, "volume_correction", None) is not None


def _correct_volume(law, volume: Array, excess: Array, cells) -> Array:
    ranges.check_finite("correct_volume", internal=volume, excess=excess, cells=cells)
    own = volume * (1 + excess) - 1
    gap = jnp.minimum(jnp.maximum(own, 0), jnp.maximum(own, excess))
    return volume / (1 - jnp.expm1(-law.volume_correction * cells) * gap)


def _advance_liquid(law, volume: Array, gradient: Mat, dt, viscosity) -> tuple[Array, Mat]:
    volume = jnp.minimum(volume * (1 + dt * trace(gradient)), _MAX_EXPANSION)
    p = law.bulk_modulus / law.exponent * (volume**-law.exponent - 1)
    # separated liquid fills a part of its volume; the remainder transmits no shear
    filled = jnp.where(p < -law.tension, jnp.minimum(volume, 1), volume)
    p = jnp.maximum(p, -law.tension)
    rate = symmetric(gradient)
    flow = shift(rate, -trace(gradient) / 3)
    # the shear rate is the root of 2 D : D; the floor keeps the root's derivative finite
    shear = jnp.sqrt(jnp.maximum(2 * inner(rate, rate), safe_tiny(p.dtype)))
    return volume, shift(scale(2 * viscosity(shear) * filled, flow), -p * volume)
