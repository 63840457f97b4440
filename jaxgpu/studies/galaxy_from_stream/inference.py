"""Mock streams in galaxies sampled from the prior, and inference of each galaxy's parameters."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.devices import allocation
from jaxgpu.inputs.fields import pytree, size

from .fit import Fit, LevenbergMarquardt
from .galaxy import from_fractions
from .likelihood import Target
from .posterior import Sampler
from .spray import sample_draws, sobol_draws
from .streams import Streams

OFFSETS = 0.1, 0.3  # relative offsets of the starts from the truth, up or down


@pytree
class Mock:
    """A galaxy and the observations of its streams."""

    truth: Array  # [4] fractions of the prior ranges
    rows: Array  # [S, N, 6] observed coordinates of the stars
    data: Array  # [D] their tracks


@pytree
class MockResults:
    """Results of all mocks; rows of future mocks are zero."""

    truth: Array  # [K, 4]
    rows: Array  # [K, S, N, 6]
    data: Array  # [K, D]
    starts: Array  # [K, A, 4] initial fractions of the fit attempts
    values: Array  # [K, A] their final values of minus the log posterior
    fit: Array  # [K, 4]
    error: Array  # [K, 4] Gauss-Newton standard errors
    mean: Array  # [K, D] tracks at the fit
    scatter: Array  # [K, D] standard deviations of the data there
    chi2: Array  # [K] of the data at the fit
    samples: Array  # [K, M, 4] posterior samples
    amiss: Array  # [K] standard deviation of the true minus the emulated log density
    done: Array  # [] int32: completed mocks


@pytree
class Inference:
    """Spec of the inference: each step makes and fits one mock."""

    streams: Streams
    fine: Streams  # the same with shorter steps, for the data
    fits: LevenbergMarquardt
    sampler: Sampler
    points: Array  # [N, 6] low-discrepancy points for the model's N stars of each stream
    few: int = size(default=512, least=16)  # number of these in the first rounds of fits
    attempts: int = size(default=3, least=1)  # fits, of which the best is continued

    @allocation.limit_memory
    def init(self, mocks: int) -> MockResults:
        """Return the empty results for this number of mocks."""
        streams, stars = self.fine.places.shape[0], self.fits.pool.each
        width, count = 5 * self.fine.places.size, 4
        kept = self.sampler.walkers
        zeros = lambda *shape: jnp.zeros((mocks, *shape), self.fine.places.dtype)
        return MockResults(
            truth=zeros(count),
            rows=zeros(streams, stars, 6),
            data=zeros(width),
            starts=zeros(self.attempts, 4),
            values=zeros(self.attempts),
            fit=zeros(count),
            error=zeros(count),
            mean=zeros(width),
            scatter=zeros(width),
            chi2=zeros(),
            samples=zeros(kept, count),
            amiss=zeros(),
            done=jnp.int32(0),
        )

    def step(self, found: MockResults, key: Array) -> MockResults:
        """Make, fit and sample one more mock."""
        keys = jax.random.split(key, 5)
        mock = self.mock(keys[0])
        count = len(self.streams.age)
        draws = jax.vmap(partial(sobol_draws, self.points))(jax.random.split(keys[1], count))
        target = Target.initial(self.streams, mock.data, draws, self.fits.pool.sets)
        starts = starts_near(mock.truth, self.attempts, keys[2])
        fit, values = self.fit_mock(target, starts, keys[3])
        samples, amiss = self.sampler.samples(fit, keys[4])
        one = {
            "truth": mock.truth,
            "rows": mock.rows,
            "data": mock.data,
            "starts": starts,
            "values": values,
            "fit": fit.p,
            "error": jnp.sqrt(jnp.diag(jnp.linalg.inv(fit.curve))),
            "mean": mock.data - jnp.matmul(fit.target.root, fit.residual, precision="highest"),
            "scatter": jnp.sqrt(jnp.sum(fit.target.root**2, 1)),
            "chi2": jnp.sum(fit.residual**2),
            "samples": samples,
            "amiss": amiss,
        }
        i = found.done
        kept = {name: getattr(found, name).at[i].set(value) for name, value in one.items()}
        return replace(found, **kept, done=i + 1)

    def mock(self, key: Array) -> Mock:
        """Return a galaxy from the prior with its data."""
        where, luck, noise = jax.random.split(key, 3)
        count, each = len(self.streams.age), self.fits.pool.each
        share = jax.random.uniform(where, (4,))
        draws = jax.vmap(lambda k: sample_draws(k, each))(jax.random.split(luck, count))
        rows = self.fine.add_errors(self.fine.stars(from_fractions(share), draws), noise)
        return Mock(truth=share, rows=rows, data=self.fine.tracks(rows).ravel())

    def fit_mock(self, target: Target, starts: Array, key: Array) -> tuple[Fit, Array]:
        """Return the best fit from starts [A, 4], and the value that each reached [A].

        Each attempt has two rounds; the best one is continued for two more.
        """
        first, last = jax.random.split(key)
        begun = replace(target, draws=target.draws[:, : self.few])
        attempt = lambda each: self._rounds(begun, each[0], jax.random.split(each[1], 2))
        each = starts, jax.random.split(first, len(starts))
        fits = lax.map(attempt, each)
        best = fits.p[jnp.nanargmin(fits.value)]
        return self._rounds(target, best, jax.random.split(last, 2)), fits.value

    def _rounds(self, target: Target, p: Array, keys: Array) -> Fit:
        """Return the fit after one round per key."""
        begun = self.fits.init(target, p)
        round_ = lambda fit, key: (self.fits.round(target, fit.p, key), None)
        return lax.scan(round_, begun, keys)[0]


def starts_near(share: Array, count: int, key: Array) -> Array:
    """Return starts [count, 4] that differ from the truth by 10 to 30 %, within the prior ranges.

    Args:
        share: [4] the truth, as fractions of the ranges.
        count: number of starts.
        key: random key.
    """
    far, side = jax.random.split(key)
    off = jax.random.uniform(far, (count, 4), minval=OFFSETS[0], maxval=OFFSETS[1])
    off = jnp.where(jax.random.bernoulli(side, shape=off.shape), off, -off)
    low, high = from_fractions(jnp.zeros((1, 4))), from_fractions(jnp.ones((1, 4)))
    moved = (from_fractions(share)[None] * (1 + off) - low) / (high - low)
    return jnp.clip(moved, 0.03, 0.97)
