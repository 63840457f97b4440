"""Synthetic likelihood of tracks, whose mean and covariance come from mock data sets.

Wood (2010), doi:10.1038/nature09319; Price et al. (2018), doi:10.1080/10618600.2017.1302882. Near a
fit a large pool of stars is simulated once. Mock data sets with observational errors are sampled
from it, so that the covariance includes the small numbers of stars, the correlations of
neighbouring positions, and the scatter. The mean is that of the model's stars.
"""

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.linalg import solve_triangular

from jaxgpu.inputs.fields import pytree, size

from .galaxy import from_fractions
from .spray import sample_draws
from .streams import Streams


def student_t(r: Array, sets: int) -> Array:
    """Return the log likelihood [] of a whitened residual r [D], up to a constant.

    With a covariance from finitely many data sets it is Student's t: Sellentin & Heavens (2016),
    doi:10.1093/mnrasl/slv190.
    """
    return -sets / 2 * jnp.log1p(jnp.sum(r * r) / (sets - 1))


@pytree
class Target:
    """Likelihood of one mock near a fit.

    Coordinates p [4] are the Galaxy's parameters as fractions of their prior ranges, 0 to 1.
    """

    streams: Streams
    data: Array  # [D] the observed tracks
    draws: Array  # [S, N, 6] random numbers of the model's stars
    offset: Array  # [D] mean of mock data sets minus that of many stars
    root: Array  # [D, D] Cholesky factor of the covariance, lower
    sets: int = size(default=1000, least=2)  # mock data sets behind the covariance

    @staticmethod
    def initial(streams: Streams, data: Array, draws: Array, sets: int) -> "Target":
        """Return a target with a unit covariance, before the first estimate."""
        eye = jnp.eye(len(data), dtype=data.dtype)
        return Target(streams=streams, data=data, draws=draws, offset=0 * data, root=eye, sets=sets)

    def mean(self, p: Array) -> Array:
        """Return the tracks [D] of the model's stars."""
        return self.streams.tracks(self.stars(p, self.draws)).ravel()

    def stars(self, p: Array, draws: Array) -> Array:
        """Return observed coordinates [S, N, 6] of stars without errors, for draws [S, N, 6]."""
        return self.streams.stars(from_fractions(p), draws)

    def residual(self, p: Array) -> Array:
        """Return the whitened residual [D] of the data."""
        return solve_triangular(self.root, self.data - self.offset - self.mean(p), lower=True)

    def log_density(self, p: Array) -> Array:
        """Return the log posterior [] of coordinates, up to a constant; the prior is uniform."""
        inside = jnp.all((p > 0) & (p < 1))
        held = jnp.clip(p, 0, 1)  # orbits outside the prior may not exist
        return jnp.where(inside, student_t(self.residual(held), self.sets), -jnp.inf)


@pytree
class Pool:
    """Settings of the mock data sets near a fit."""

    stars: int = size(default=4096, least=2)  # per stream, in the pool
    each: int = size(default=100, least=1)  # per stream, in a data set
    sets: int = size(default=1000, least=2)  # mock data sets

    def target_near(self, p: Array, target: Target, key: Array) -> Target:
        """Return the likelihood near coordinates p, with newly estimated covariance and mean."""
        streams = target.streams
        shape = target.draws.shape[:1]
        first, second = jax.random.split(key)
        draws = jax.vmap(lambda k: sample_draws(k, self.stars))(jax.random.split(first, shape))
        rows = target.stars(p, draws)
        tracks = jax.lax.map(
            lambda k: streams.tracks(self.data(streams, rows, k)).ravel(),
            jax.random.split(second, self.sets),
            batch_size=50,
        )
        # The model's mean and the pool have sampling errors, too.
        model = target.draws.shape[1]
        scatter = jnp.cov(tracks.T) * (1 + self.each / model + self.each / self.stars)
        return Target(
            streams=streams,
            data=target.data,
            draws=target.draws,
            offset=jnp.mean(tracks, 0) - streams.tracks(rows).ravel(),
            root=jnp.linalg.cholesky(scatter),
            sets=self.sets,
        )

    def data(self, streams: Streams, rows: Array, key: Array) -> Array:
        """Sample observed coordinates [S, each, 6] from a pool [S, N, 6] of stars, with errors."""
        which, noise = jax.random.split(key)
        picked = jax.random.randint(which, (len(rows), self.each), 0, rows.shape[1])
        return streams.add_errors(jnp.take_along_axis(rows, picked[:, :, None], 1), noise)
