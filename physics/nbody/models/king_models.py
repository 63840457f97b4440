"""King models of star clusters with an edge: lowered isothermal spheres.

King (1966), doi:10.1086/109857; Binney & Tremaine (2008), Galactic Dynamics, sect. 4.3.3(c). The
density at depth W of the potential, in units of the velocity dispersion, is proportional to
e^W P(5/2, W) with the regularised incomplete gamma function. Poisson's equation is solved for the
square of the radius as a function of W, which is regular in the centre and at the edge.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.scipy.special import erf, gammainc

from jaxgpu.devices import allocation
from jaxgpu.inputs import ranges
from jaxgpu.inputs.explanations import explain_errors
from jaxgpu.inputs.fields import pytree

from .spheres import center, directions

_STEPS = 2000  # Runge-Kutta steps in W; halved steps change the radii of W0 = 12 by at most 4e-8


@pytree
class Profile:
    """A King model at K depths, from the centre to the edge; lengths in King's core radius r0."""

    depth: Array  # [K] potential W, from W0 to 0
    r: Array  # [K] radius
    mass: Array  # [K] enclosed mass, in units of rho0 r0^3

    @property
    def concentration(self) -> Array:
        """King concentration, log10 of the tidal over the core radius."""
        return jnp.log10(self.r[-1])

    @property
    def virial_radius(self) -> Array:
        """Virial radius -M^2 / (2 U), with U the potential energy and G = 1."""
        # U = -integral of M dM / r is computed by the trapezium rule in M
        inverse = jnp.concatenate([jnp.zeros_like(self.r[:1]), 1 / self.r[1:]])
        pull = self.mass * inverse
        energy = jnp.sum((self.mass[1:] - self.mass[:-1]) * (pull[1:] + pull[:-1])) / 2
        return self.mass[-1] ** 2 / (2 * energy)


def profile(depth: Array | float) -> Profile:
    """Compute the King model of central depth W0, 0.1 to 16; differentiable in W0."""
    depth = jnp.asarray(ranges.numbers("king: depth", depth, (), least=0.1, most=16), float)
    # steps in W become finer towards the edge, where the radius grows like 1 / (W + const)
    u = jnp.asarray(np.linspace(1, 0, _STEPS + 1) ** 2, depth.dtype)
    w = depth * u
    first = depth * (1 - u[1])
    slope = jax.grad(_log_density)(depth)
    begin = jnp.stack([2 / 3 * first + slope / 5 * first**2, -2 / 3 - 2 / 5 * slope * first])

    def step(y: Array, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        y = _runge_kutta(depth, y, *ends)
        return y, y

    _, rest = lax.scan(step, begin, (w[1:-1], w[2:]))
    x = jnp.concatenate([jnp.zeros(1, w.dtype), begin[:1], rest[:, 0]])
    slopes = jnp.concatenate([jnp.full(1, -2 / 3, w.dtype), begin[1:], rest[:, 1]])
    r = jnp.where(x > 0, jnp.sqrt(jnp.where(x > 0, x, 1)), 0)
    # M = -r^2 (dW/dr) 4 pi / 9, and dW/dr = 2 r / (dx/dW)
    return Profile(w, r, -8 * np.pi / 9 * r**3 / slopes)


@explain_errors
@allocation.limit_memory
def king(key: Array, count: int, depth: Array | float) -> tuple[Array, Array]:
    """Sample positions and velocities [count, 3] of equal bodies in a King model, centred.

    In N-body units: G = M = 1 and total energy -1/4, so that the virial radius is 1.

    Args:
        key: JAX random key.
        count: number of bodies; the precision is the default one.
        depth: central potential W0, 0.1 to 16: about 3 for loose clusters, 8 for dense ones.
    """
    ranges.numbers("king: count", count, (), whole=True, least=1)
    by_mass, by_speed, by_place, by_course = jax.random.split(key, 4)
    model = profile(depth)
    total, unit = model.mass[-1], model.virial_radius
    r = jnp.interp(jax.random.uniform(by_mass, (count,)) * total, model.mass, model.r)
    w = jnp.interp(r, model.r, model.depth)
    speed = _speeds(w, jax.random.uniform(by_speed, (count,)))
    # velocities are in units of sigma, and 4 pi G rho0 r0^2 = 9 sigma^2
    sigma = jnp.sqrt(4 * np.pi / 9 / total * unit)
    x = r[None] / unit * directions(by_place, count)
    return center(x, speed[None] * sigma * directions(by_course, count))


def _runge_kutta(depth: Array, y: Array, start: Array, end: Array) -> Array:
    def rate(w: Array, y: Array) -> Array:
        x, slope = y[0], y[1]
        density = jnp.exp(_log_density(w) - _log_density(depth))
        return jnp.stack([slope, slope * slope / (4 * x) * (6 + 9 * density * slope)])

    h = end - start
    k1 = rate(start, y)
    k2 = rate(start + h / 2, y + h / 2 * k1)
    k3 = rate(start + h / 2, y + h / 2 * k2)
    k4 = rate(end, y + h * k3)
    return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def _log_density(w: Array) -> Array:
    """Return the logarithm of the density up to a constant; -inf at the edge."""
    inside = w > 0
    share = gammainc(jnp.full_like(w, 2.5), jnp.where(inside, w, 1))
    return jnp.where(inside, w + jnp.log(share), -jnp.inf)


def _speeds(w: Array, share: Array) -> Array:
    """Invert the distribution (e^(W - v^2/2) - 1) v^2 of speeds over sigma by bisection."""

    def cumulative(v: Array) -> Array:
        gauss = np.sqrt(np.pi / 2) * erf(v / np.sqrt(2)) - v * jnp.exp(-v * v / 2)
        return gauss - jnp.exp(-w) * v**3 / 3

    top = jnp.sqrt(2 * w)
    wanted = share * cumulative(top)

    def halve(_, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = (low + high) / 2
        early = cumulative(middle) < wanted
        return jnp.where(early, middle, low), jnp.where(early, high, middle)

    low, high = lax.fori_loop(0, 50, halve, (jnp.zeros_like(w), top))
    return (low + high) / 2
