"""Streams as sprays: stars leave a cluster on its orbit, and each falls through the Galaxy alone.

Fardal, Huang & Weinberg (2015), doi:10.1093/mnras/stv1198: a star leaves near the tidal radius, on
the inner or the outer side, at a time that is even over the stream's age. Stars have no mass, the
cluster's own pull ends where they leave.
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

# means and deviations, in tidal radii and in the speed of the orbit's turn at one of these
RADIAL, RADIAL_SPREAD, TURN, TURN_SPREAD, OUT_OF_PLANE = 2.0, 0.5, 0.3, 0.5, 0.5
YOUNGEST = 0.02  # of the age: stars that left later are still at the cluster


@pytree
class Spray:
    """How a stream is made; the cluster is where it is seen today."""

    gm: Array | float = number(above=0, unit="kpc (km/s)^2")  # [] of the cluster, kpc (km/s)^2
    age: Array | float = number(above=0, unit="kpc / (km/s)")  # [] of the oldest stars
    steps: int = size(default=1000, least=1)  # of a star's orbit, however long it is
    dtype: str = static(default="float32")  # of the orbits; the sky is in that of what is given

    def stars(self, theta: Array, here: Array, draws: Array) -> Array:
        """Places and velocities [N, 6] today, kpc and km/s.

        Args:
            theta: [4] of the Galaxy.
            here: [6] of the cluster today.
            draws: [N, 6] from `drawn`: what is by chance of each star.
        """
        field = galaxy(theta.astype(self.dtype))
        here, draws = here.astype(self.dtype), draws.astype(self.dtype)
        shares = YOUNGEST + (1 - YOUNGEST) * draws[:, 0]
        when = jnp.round(shares * self.steps)  # they leave on a step of the cluster's orbit
        orbit = self._fallen(field, here, -jnp.asarray(self.age, self.dtype))[1]
        left = jax.vmap(partial(released, field, jnp.asarray(self.gm, self.dtype)))(
            orbit[when.astype(int)], draws[:, 1:]
        )
        fall = lambda start, time: self._fallen(field, start, time)[0]
        times = jnp.asarray(self.age, self.dtype) * when / self.steps
        return jax.vmap(fall)(left, times)

    def _fallen(self, field: Field, start: Array, time: Array) -> tuple[Array, Array]:
        """Where a body [6] is after a time, and all its steps on the way [1 + steps, 6]."""
        spec = Leapfrog(partial(_pull, field), time / self.steps)
        joined = lambda state: jnp.concatenate([state.x, state.v])
        end, way = rollout(spec.step, spec.init(start[:3], start[3:]), self.steps, measure=joined)
        return joined(end), way


def _pull(field: Field, t: Array, x: Array) -> Array:
    return field.pull(x)


def drawn(key: Array, count: int) -> Array:
    """What is by chance of stars [N, 6]: the share of the age, the side and four normal numbers."""
    when, side, rest = jax.random.split(key, 3)
    shares = jax.random.uniform(when, (count, 1))
    sides = jnp.where(jax.random.bernoulli(side, shape=(count, 1)), 1.0, -1.0)
    return jnp.concatenate([shares, sides, jax.random.normal(rest, (count, 4))], 1)


def even(points: Array, key: Array) -> Array:
    """As `drawn`, but spread evenly, so that sums over stars scatter less.

    Args:
        points: [N, 6] of a low-discrepancy sequence, `sobol`.
        key: of the shift of all, modulo one (Cranley & Patterson 1976, doi:10.1137/0713071).
    """
    u = (points + jax.random.uniform(key, (1, 6))) % 1
    sides = jnp.where(u[:, 1:2] < 0.5, 1.0, -1.0)
    return jnp.concatenate([u[:, :1], sides, ndtri(jnp.clip(u[:, 2:], 1e-6, 1 - 1e-6))], 1)


def sobol(count: int) -> np.ndarray:
    """The first points [count, 6] of Sobol's sequence; a power of two is spread best."""
    from scipy.stats import qmc

    levels = max(count - 1, 1).bit_length()
    return qmc.Sobol(6, scramble=False).random_base2(levels)[:count]


def released(field: Field, gm: Array, cluster: Array, noise: Array) -> Array:
    """Place and velocity [6] of a star that leaves a cluster.

    The tidal radius is (GM / (w^2 - d^2 Phi / dr^2))^(1/3), w the rate at which the orbit turns.

    Args:
        field: of the Galaxy.
        gm: of the cluster.
        cluster: [6] its place and velocity.
        noise: [5] the side, 1 or -1, and four normal numbers.
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
