"""Elastic solids: stress from the deformation gradient F, which is the internal variable.

F_new = (I + dt grad v) F. Kirchhoff stresses follow Bonet & Wood (2008), doi:10.1017/
CBO9780511755446, eq. 6.28 (neo-Hookean), and Stomakhin, Howes, Schroeder & Teran (2012),
doi:10.2312/SCA/SCA12/025-032 (fixed corotated). In 2-D strain is plane: F_33 = 1.
"""

import jax.numpy as jnp
from jax import Array

from jaxgpu.geometry.vectors import Mat, add, det, gram, identity, matmul, scale, shift
from jaxgpu.inputs import ranges
from jaxgpu.inputs.explanations import explain_errors
from jaxgpu.inputs.fields import number, pytree

from .polar import stretch


@explain_errors
def lame(young, poisson):
    """Return Lame's mu and lambda [Pa] from Young's modulus [Pa] and Poisson's ratio in (-1, 1/2).

    >>> lame(10.0, 0.25)
    (4.0, 4.0)
    """
    ranges.refuse("lame: young", young, ranges.Range(above=0, unit="Pa"))
    ranges.refuse("lame: poisson", poisson, ranges.Range(above=-1, below=0.5))
    mu = young / (2 * (1 + poisson))
    return mu, 2 * mu * poisson / (1 - 2 * poisson)


def deform(f: Mat, gradient: Mat, dt) -> Mat:
    """Return F after a step dt with this velocity gradient."""
    return add(f, scale(dt, matmul(gradient, f)))


def p_wave_speed(young, poisson, density):
    """Return the speed of pressure waves, sqrt((lambda + 2 mu) / rho), m/s."""
    mu, lam = lame(young, poisson)
    return jnp.sqrt((lam + 2 * mu) / density)


@pytree
class NeoHookean:
    """Compressible neo-Hookean solid: tau = mu (F F^T - I) + lambda ln(J) I.

    Stiffens without bound as J -> 0; the stress of an inverted particle is NaN.
    """

    young: Array | float = number(default=1e5, above=0, unit="Pa", one=True)  # [] E
    poisson: Array | float = number(default=0.3, above=-1, below=0.5, one=True)  # []

    def rest(self, like: Array, d: int) -> Mat:
        """Return F = I."""
        return identity(like, d)

    def stress(self, internal: Mat, gradient: Mat, dt) -> tuple[Mat, Mat]:
        """Return F after a step with this velocity gradient [1/s], and Kirchhoff stress [Pa].

        Differentiable in everything, to any order.
        """
        mu, lam = lame(self.young, self.poisson)
        f = deform(internal, gradient, dt)
        b = gram(f)
        return f, shift(scale(mu, b), lam * jnp.log(det(f)) - mu)

    def sound_speed(self, density) -> Array | float:
        """Return the speed of pressure waves at rest, m/s."""
        return p_wave_speed(self.young, self.poisson, density)

    def kinematic_viscosity(self, density) -> Array | float:
        """Return zero: there is no viscosity."""
        return 0.0


@pytree
class Corotated:
    """Fixed corotated solid: tau = 2 mu (F - R) F^T + lambda (J - 1) J I, F = R S.

    Linear in the stretches, and finite through inversion.
    """

    young: Array | float = number(default=1e5, above=0, unit="Pa", one=True)  # [] E
    poisson: Array | float = number(default=0.3, above=-1, below=0.5, one=True)  # []

    def rest(self, like: Array, d: int) -> Mat:
        """Return F = I."""
        return identity(like, d)

    def stress(self, internal: Mat, gradient: Mat, dt) -> tuple[Mat, Mat]:
        """Return F after a step with this velocity gradient [1/s], and Kirchhoff stress [Pa].

        Differentiable in everything, to any order, exactly also at rest.
        """
        mu, lam = lame(self.young, self.poisson)
        f = deform(internal, gradient, dt)
        v, b, j = stretch(f)  # R F^T = V
        return f, shift(scale(2 * mu, add(b, scale(-1, v))), lam * (j - 1) * j)

    def sound_speed(self, density) -> Array | float:
        """Return the speed of pressure waves at rest, m/s."""
        return p_wave_speed(self.young, self.poisson, density)

    def kinematic_viscosity(self, density) -> Array | float:
        """Return zero: there is no viscosity."""
        return 0.0
