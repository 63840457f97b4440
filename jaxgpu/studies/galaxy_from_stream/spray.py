"""Particle-spray streams: stars leave a cluster along its orbit and move as test particles.

Fardal, Huang & Weinberg (2015), doi:10.1093/mnras/stv1198: a star leaves near the tidal radius, on
the inner or the outer side, at a time that is uniform over the stream's age. Stars are massless,
and the cluster's gravity is ignored after they leave.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import ndtri

from jaxgpu.inputs.fields import number, pytree, size, static
from jaxgpu.physics.nbody.forces.potentials import Field
from jaxgpu.physics.nbody.steps import Leapfrog
from jaxgpu.runs.loop import rollout

from .galaxy import galaxy

# means and deviations, in tidal radii and in the orbit's angular velocity times a tidal radius
RADIAL, RADIAL_SPREAD, TURN, TURN_SPREAD, OUT_OF_PLANE = 2.0, 0.5, 0.3, 0.5, 0.5
YOUNGEST = 0.02  # fraction of the age; stars that left later are still at the cluster


@pytree
class Spray:
    """Particle-spray model of a stream; the cluster has its present position."""

    gm: Array | float = number(above=0, unit="kpc (km/s)^2")  # [] of the cluster, kpc (km/s)^2
    age: Array | float = number(above=0, unit="kpc / (km/s)")  # [] age of the oldest stars
    steps: int = size(default=1000, least=1)  # per orbit, regardless of its duration
    dtype: str = static(default="float32")  # of the orbits; observations have the inputs' dtype

    def stars(self, theta: Array, here: Array, draws: Array) -> Array:
        """Return present positions and velocities [N, 6], kpc and km/s.

        Args:
            theta: [4] parameters of the Galaxy.
            here: [6] present position and velocity of the cluster.
            draws: [N, 6] random numbers of each star, from `sample_draws`.
        """
        field = galaxy(theta.astype(self.dtype))
        here, draws = here.astype(self.dtype), draws.astype(self.dtype)
        shares = YOUNGEST + (1 - YOUNGEST) * draws[:, 0]
        when = jnp.round(shares * self.steps)  # they leave at steps of the cluster's orbit
        orbit = self._integrate(field, here, -jnp.asarray(self.age, self.dtype))[1]
        left = jax.vmap(partial(release_star, field, jnp.asarray(self.gm, self.dtype)))(
            orbit[when.astype(int)], draws[:, 1:]
        )
        fall = lambda start, time: self._integrate(field, start, time)[0]
        times = jnp.asarray(self.age, self.dtype) * when / self.steps
        return jax.vmap(fall)(left, times)

    def _integrate(self, field: Field, start: Array, time: Array) -> tuple[Array, Array]:
        """Integrate a body [6] for a time; return its final state and all steps [1 + steps, 6]."""
        spec = Leapfrog(partial(_pull, field), time / self.steps)
        to_phase_space = lambda state: jnp.concatenate([state.x, state.v])
        end, way = rollout(
            spec.step, spec.init(start[:3], start[3:]), self.steps, measure=to_phase_space
        )
        return to_phase_space(end), way


def _pull(field: Field, t: Array, x: Array) -> Array:
    return field.pull(x)


def sample_draws(key: Array, count: int) -> Array:
    """Sample the random numbers [N, 6] of stars: age fraction, side and four normal variates."""
    when, side, rest = jax.random.split(key, 3)
    shares = jax.random.uniform(when, (count, 1))
    sides = jnp.where(jax.random.bernoulli(side, shape=(count, 1)), 1.0, -1.0)
    return jnp.concatenate([shares, sides, jax.random.normal(rest, (count, 4))], 1)


def sobol_draws(points: Array, key: Array) -> Array:
    """Return low-discrepancy `sample_draws`, so that sums over stars have less variance.

    Args:
        points: [N, 6] of a low-discrepancy sequence, `sobol`.
        key: random key of the common shift modulo one (Cranley & Patterson 1976,
            doi:10.1137/0713071).
    """
    u = (points + jax.random.uniform(key, (1, 6))) % 1
    sides = jnp.where(u[:, 1:2] < 0.5, 1.0, -1.0)
    return jnp.concatenate([u[:, :1], sides, ndtri(jnp.clip(u[:, 2:], 1e-6, 1 - 1e-6))], 1)


def sobol(count: int) -> np.ndarray:
    """Return the first points [count, 6] of Sobol's sequence; a power of two is most uniform."""
    from scipy.stats import qmc

    levels = max(count - 1, 1).bit_length()
    return qmc.Sobol(6, scramble=False).random_base2(levels)[:count]


def release_star(field: Field, gm: Array, cluster: Array, noise: Array) -> Array:
    """Return the position and velocity [6] of a star that leaves a cluster.

    The tidal radius is (GM / (w^2 - d^2 Phi / dr^2))^(1/3), with w the orbit's angular velocity.

    Args:
        field: potential of the Galaxy.
        gm: GM of the cluster.
        cluster: [6] its position and velocity.
        noise: [5] the side, 1 or -1, and four normal variates.
    """
    x, v = cluster[:3], cluster[3:]
    r = jnp.sqrt(jnp.sum(x * x))
    out = x / r
    spin = jnp.cross(x, v) / r**2
    rate = jnp.sqrt(jnp.sum(spin * spin))
    pole = spin / rate
    ahead = jnp.cross(pole, out)
    _, change = jax.jvp(field.pull, (x,), (out,))
    edge = jnp.cbrt(gm / (rate**2 + jnp.sum(change * out)))
    side, far, turn, above, rise = noise
    reach = side * (RADIAL + RADIAL_SPREAD * far)
    place = reach * out + OUT_OF_PLANE * above * pole
    push = reach * (TURN + TURN_SPREAD * turn) * ahead + OUT_OF_PLANE * rise * pole
    return jnp.concatenate([x + edge * place, v + edge * rate * push])
