"""The synthetic likelihood of tracks: their mean and covariance come of mock data sets.

Wood (2010), doi:10.1038/nature09319; Price et al. (2018), doi:10.1080/10618600.2017.1302882. Near
a fit many stars are made once, the pool; mock data sets are drawn of them, with the errors of
stars, so that what few stars do to a mean, how the means of neighbouring places go together,
and how far they scatter, are counted. The mean is that of the model's stars.
"""

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.linalg import solve_triangular

from jaxgpu.inputs.fields import pytree, size

from .galaxy import of_shares
from .spray import drawn
from .streams import Streams


def student(r: Array, sets: int) -> Array:
    """Log likelihood [] of a whitened residual r [D], up to a constant.

    A covariance from finitely many data sets makes it Student's: Sellentin & Heavens (2016),
    doi:10.1093/mnrasl/slv190.
    """
    return -sets / 2 * jnp.log1p(jnp.sum(r * r) / (sets - 1))


@pytree
class Target:
    """The likelihood of one mock near a fit.

    Coordinates p [4] are where the Galaxy's parameters lie in their prior ranges, 0 to 1.
    """

    streams: Streams
    data: Array  # [D] means of the tracks
    draws: Array  # [S, N, 6] random numbers of the model's stars
    offset: Array  # [D] the mean of mock data sets over that of many stars
    root: Array  # [D, D] Cholesky factor of the covariance, lower
    sets: int = size(default=1000, least=2)  # of mock data that the covariance is from

    @staticmethod
    def bare(streams: Streams, data: Array, draws: Array, sets: int) -> "Target":
        """One whose covariance is not known yet."""
        eye = jnp.eye(len(data), dtype=data.dtype)
        return Target(streams=streams, data=data, draws=draws, offset=0 * data, root=eye, sets=sets)

    def mean(self, p: Array) -> Array:
        """Means [D] of the tracks of the model's stars."""
        return self.streams.tracks(self.stars(p, self.draws)).ravel()

    def stars(self, p: Array, draws: Array) -> Array:
        """What is seen [S, N, 6] of stars without errors, for draws [S, N, 6]."""
        return self.streams.stars(of_shares(p), draws)

    def residual(self, p: Array) -> Array:
        """What the data [D] have over the model, in units in which errors are one and apart."""
        return solve_triangular(self.root, self.data - self.offset - self.mean(p), lower=True)

    def log_density(self, p: Array) -> Array:
        """Log posterior density [] of coordinates, up to a constant; the prior is even."""
        inside = jnp.all((p > 0) & (p < 1))
        held = jnp.clip(p, 0, 1)  # no orbits need be there where it is not inside
        return jnp.where(inside, student(self.residual(held), self.sets), -jnp.inf)


@pytree
class Pool:
    """How mock data sets are made near a fit."""

    stars: int = size(default=4096, least=2)  # of each stream, in the pool
    each: int = size(default=100, least=1)  # of each stream, in a data set
    sets: int = size(default=1000, least=2)  # mock data sets

    def around(self, p: Array, target: Target, key: Array) -> Target:
        """The likelihood for data near coordinates p: its covariance and mean found anew."""
        streams = target.streams
        shape = target.draws.shape[:1]
        first, second = jax.random.split(key)
        draws = jax.vmap(lambda k: drawn(k, self.stars))(jax.random.split(first, shape))
        rows = target.stars(p, draws)
        tracks = jax.lax.map(
            lambda k: streams.tracks(self.data(streams, rows, k)).ravel(),
            jax.random.split(second, self.sets),
            batch_size=50,
        )
        # the model's mean has an error of its own
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
        """What is seen [S, each, 6] of as many stars of a pool [S, N, 6], with errors."""
        which, noise = jax.random.split(key)
        picked = jax.random.randint(which, (len(rows), self.each), 0, rows.shape[1])
        return streams.observed(jnp.take_along_axis(rows, picked[:, :, None], 1), noise)
