"""The study `galaxy-from-stream`: sky, spray, derivatives, samples and report."""

from dataclasses import field, replace
from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import binomtest

from jaxgpu import report
from jaxgpu.inputs.fields import pytree
from jaxgpu.physics.nbody.forces.potentials import PointMass
from jaxgpu.runs.loop import Run, Timing, run
from jaxgpu.studies import galaxy_from_stream
from jaxgpu.studies.galaxy_from_stream import findings, sky
from jaxgpu.studies.galaxy_from_stream.findings import make_report
from jaxgpu.studies.galaxy_from_stream.fit import Fit, LevenbergMarquardt, fit_at
from jaxgpu.studies.galaxy_from_stream.galaxy import from_fractions
from jaxgpu.studies.galaxy_from_stream.inference import Inference, starts_near
from jaxgpu.studies.galaxy_from_stream.likelihood import Pool, Target
from jaxgpu.studies.galaxy_from_stream.posterior import Sampler
from jaxgpu.studies.galaxy_from_stream.spray import release_star, sample_draws, sobol, sobol_draws
from jaxgpu.studies.galaxy_from_stream.streams import Errors, two_streams


@pytest.fixture(autouse=True)
def use_float64():
    with jax.enable_x64(True):
        yield


def test_what_is_seen_is_how_places_change():
    """Proper motions and radial velocities are differences of angles and distances over time."""
    random = np.random.default_rng(0)
    here = np.concatenate([random.normal(size=3) * 8, random.normal(size=3) * 100])
    axes = sky.frame(here[:3], here[3:])
    stars = here + random.normal(size=(50, 6)) * np.array([2.0, 2, 2, 30, 30, 30])
    still = np.concatenate([np.zeros(3), sky.MOTION])
    after, before = (
        np.asarray(sky.observe(jnp.asarray(axes), jnp.asarray(stars + h * shift(stars - still))))
        for h in (1e-7, -1e-7)
    )
    change = (after - before) / 2e-7  # in kpc / (km/s), 977.8 million years
    rows = np.asarray(sky.observe(jnp.asarray(axes), jnp.asarray(stars)))
    np.testing.assert_allclose(change[:, 2], rows[:, 3], rtol=1e-6)
    mas = np.deg2rad(change[:, :2]) / sky.PER_MAS
    np.testing.assert_allclose(mas[:, 0] * np.cos(np.deg2rad(rows[:, 1])), rows[:, 4], rtol=1e-5)
    np.testing.assert_allclose(mas[:, 1], rows[:, 5], rtol=1e-5, atol=1e-7)


def shift(rows):
    """Return positions that move with their velocities, which are constant."""
    return np.concatenate([rows[:, 3:], np.zeros_like(rows[:, 3:])], 1)


def test_the_track_of_stars_on_a_line_is_that_line():
    along = jnp.linspace(-10, 10, 401)
    rows = jnp.stack(
        [along, *(a + b * along for a, b in ((1, 2), (0, 1), (3, 0), (1, 1), (0, 5)))], 1
    )
    places = jnp.array([-4.0, 0.0, 3.0])
    seen = sky.track(rows, places, jnp.float64(1.0))
    np.testing.assert_allclose(seen[:, 0], 1 + 2 * places, rtol=1e-6)
    np.testing.assert_allclose(seen[:, 2], 3, rtol=1e-12)


def test_stars_leave_beside_two_tidal_radii():
    """The tidal radius on a circle about a point mass is R (m / 3 M)^(1/3)."""
    cluster = jnp.array([10.0, 0, 0, 0, 200.0, 0])
    gm, edge = 4e5 * 3e-6, 10 * 1e-2
    draws = sample_draws(jax.random.key(0), 4000)
    point = PointMass(4e5)
    stars = jax.vmap(lambda noise: release_star(point, jnp.float64(gm), cluster, noise))(
        draws[:, 1:]
    )
    away = (np.asarray(stars) - np.asarray(cluster)) / edge
    side = np.asarray(draws[:, 1])
    np.testing.assert_allclose(np.mean(side * away[:, 0]), 2, atol=4 * 0.5 / np.sqrt(4000))
    np.testing.assert_allclose(np.std(away[:, 2]), 0.5, rtol=0.05)
    # The mean is 0.3 of the offset of 2, in units of the rotation, 20 (km/s) / kpc.
    np.testing.assert_allclose(np.mean(side * away[:, 4]) / 20, 0.6, atol=4 * 1.1 / np.sqrt(4000))


def test_even_draws_are_drawn_from_the_same_and_scatter_less():
    points = jnp.asarray(sobol(256))
    keys = jax.random.split(jax.random.key(0), 30)
    many = np.asarray(jax.jit(jax.vmap(lambda key: sobol_draws(points, key)))(keys))
    spread = np.array([1 / np.sqrt(12), 1, 1, 1, 1, 1])  # an even number, a side, normal ones
    np.testing.assert_allclose(many.std((0, 1)), spread, rtol=0.02)
    assert (many.mean(1).std(0) < 0.5 * spread / np.sqrt(256)).all()


@pytest.mark.slow
def test_derivatives_through_orbits_are_those_of_differences():
    streams = two_streams(60, Errors(), "float64")
    draws = jax.vmap(lambda key: sample_draws(key, 12))(jax.random.split(jax.random.key(1), 2))

    @jax.jit
    def tracks(p):
        rows = streams.stars(from_fractions(p), draws)
        return streams.tracks(rows).ravel()

    p = jnp.array([0.4, 0.5, 0.3, 0.6])
    jacobian = np.asarray(jax.jit(jax.jacfwd(tracks))(p))
    steps = 1e-7 * np.eye(len(p))
    measured = np.stack([(tracks(p + e) - tracks(p - e)) / 2e-7 for e in steps], 1)
    scale = np.abs(jacobian).max(1, keepdims=True)
    assert (scale > 1e-3).all()
    np.testing.assert_allclose(measured / scale, jacobian / scale, atol=1e-5)


@pytree
class Line(Target):
    """A likelihood whose mean is linear in its coordinates, with a known covariance."""

    slope: jax.Array = field(kw_only=True)  # [D, P]

    def mean(self, p):
        return self.slope @ p


def test_a_turn_of_a_fit_solves_the_curve_with_its_damped_diagonal():
    slope = np.random.default_rng(2).normal(size=(30, 4)) * np.array([3.0, 6, 5, 8])
    start = np.array([0.4, 0.5, 0.6, 0.5])
    known = Target.initial(
        two_streams(1, Errors()), slope @ (start + 0.05), jnp.zeros((2, 1, 6)), 9
    )
    fit = fit_at(Line(**vars(known), slope=slope), start)
    turned, eased = LevenbergMarquardt(Pool())._iterate(fit, 0.5)
    curve = slope.T @ slope
    want = start + np.linalg.solve(curve + 0.5 * np.diag(np.diag(curve)), curve @ np.full(4, 0.05))
    np.testing.assert_allclose(turned.p, want, rtol=1e-9)
    assert turned.value < fit.value and eased == pytest.approx(0.1)


@pytest.mark.slow
def test_samples_of_a_straight_problem_cover_as_often_as_they_say():
    """Truths are random, data have normal errors, and the fit is biased and too narrow."""
    random = np.random.default_rng(3)
    slope = random.normal(size=(100, 30, 4)) * np.array([3.0, 6, 5, 8])
    truth = random.uniform(0.3, 0.7, (100, 4))
    data = np.einsum("kdp,kp->kd", slope, truth) + random.normal(size=(100, 30))
    curve = np.einsum("kdp,kdq->kpq", slope, slope)
    mean = np.linalg.solve(curve, np.einsum("kdp,kd->kp", slope, data)[..., None])[..., 0]
    spread = np.sqrt(np.diagonal(np.linalg.inv(curve), axis1=1, axis2=2))

    streams, draws = two_streams(1, Errors()), jnp.zeros((2, 1, 6))

    def sample_fit(slope, data, curve, mean, spread, key):
        zero = jnp.zeros(())
        known = Target.initial(streams, data, draws, 1_000_000)
        fit = Fit(
            target=Line(**vars(known), slope=slope),
            p=mean + 0.7 * spread,
            value=zero,
            residual=0 * data,
            slope=0 * mean,
            curve=1.5 * curve,
        )
        return Sampler(simulations=16, walkers=64, turns=150).samples(fit, key)

    keys = jax.random.split(jax.random.key(0), 100)
    samples, amiss = jax.jit(jax.vmap(sample_fit))(slope, data, curve, mean, spread, keys)
    samples = np.asarray(samples)
    assert np.max(amiss) < 0.05  # a straight line is one of its polynomials
    # The mean of 64 samples has a standard error of 0.13.
    assert np.all(np.abs((samples.mean(1) - mean) / spread).mean(0) < 0.2)
    assert np.all(np.abs((samples.std(1) / spread).mean(0) - 1) < 0.05)
    rank = np.mean(samples < truth[:, None], 1)
    for level in (0.68, 0.95):
        covered = np.mean(np.abs(rank - 0.5) < level / 2)
        assert abs(covered - level) < 4 * np.sqrt(level * (1 - level) / 400)


@pytest.mark.slow
@pytest.mark.release
def test_a_mock_is_weighed_and_a_stopped_run_resumes_to_the_same_bits(tmp_path):
    sampler = Sampler(rounds=2, simulations=16, walkers=64, turns=20)
    spec = Inference(
        streams=two_streams(60, Errors()),
        fine=two_streams(120, Errors()),
        fits=LevenbergMarquardt(Pool(stars=128, each=50, sets=100), turns=3),
        sampler=sampler,
        points=jnp.asarray(sobol(64)),
        few=32,
        attempts=2,
    )
    weigh = partial(run, spec.step, spec.init(2), key=jax.random.key(0), chunk=1)
    whole = weigh(2).state
    weigh(1, out=tmp_path)
    again = weigh(2, out=tmp_path, resume=True).state
    for one, other in zip(jax.tree.leaves(whole), jax.tree.leaves(again)):
        assert np.isfinite(one).all()
        np.testing.assert_array_equal(one, other)
    assert int(whole.done) == 2
    assert not np.array_equal(whole.truth[0], whole.truth[1])
    assert np.all((whole.samples > 0) & (whole.samples < 1))
    # The samples are around the fit, by its own errors.
    spread = np.asarray(whole.samples).std(1) / np.asarray(whole.error)
    assert np.all((spread > 0.1) & (spread < 10))


def test_starts_are_off_by_a_tenth_to_three():
    share = jnp.array([0.5, 0.5, 0.5, 0.5])
    starts = starts_near(share, 200, jax.random.key(0))
    off = np.asarray(from_fractions(starts)) / np.asarray(from_fractions(share)) - 1
    assert np.all((np.abs(off) < 0.3001) & (np.abs(off) > 0.0999))


def test_every_number_of_the_report_follows_from_samples_and_truths(monkeypatch):
    """The four numbers replace velocities at 5 to 8 kpc; the halo's is the best known."""
    monkeypatch.setattr(findings, "figures", lambda *told: [])
    monkeypatch.setattr(findings, "circular_speeds", lambda theta: theta)
    random = np.random.default_rng(4)
    mocks, draws = 40, 64
    shares = 0.5 + 0.1 * random.normal(size=(mocks, 1 + draws, 4))
    values = np.tile([5.0, 6.9, 7.1], (mocks, 1))  # two of three fits are within 2
    chi2, amiss = random.uniform(50, 70, mocks), random.permutation(np.linspace(0.1, 0.5, mocks))
    found = SimpleNamespace(
        truth=shares[:, 0],
        samples=shares[:, 1:],
        values=values,
        data=np.zeros((mocks, 60)),
        chi2=chi2,
        amiss=amiss,
    )
    options = galaxy_from_stream.Options(mocks=mocks)
    told = make_report(options, None, Run(found, (), Timing(0.0, 0.0, 1)))

    low, high = np.array([120, 8, 0.75, 0.5]), np.array([190, 32, 1.25, 1.5])  # as documented
    truth, samples = ((low + (high - low) * q) for q in (shares[:, 0], shares[:, 1:]))
    error = samples.std(1)
    pull = (samples.mean(1) - truth) / error
    # Of 64 samples, 11 to 53, and 2 to 62, may be below the truth.
    rows = np.sort(samples, 1)
    inside = [
        (rows[:, first] < truth) & (truth < rows[:, last]) for first, last in ((10, 53), (1, 62))
    ]
    coverage, mocked = told.tables
    assert all(len(row) == len(table.columns) for table in told.tables for row in table.rows)
    rounding = 0.501, 0.0501, 0.000501, 0.00501
    for j, row in enumerate(coverage.rows[:4]):
        assert row[1] == f"{low[j]:g} to {high[j]:g}"
        check(row[2], [np.median(error[:, j])], rounding[j])
        check(row[3], [pull[:, j].mean(), pull[:, j].std(ddof=1) / mocks**0.5])
        check(row[4], [pull[:, j].std(ddof=1)])
        for i, count in enumerate(int(a[:, j].sum()) for a in inside):
            ends = binomtest(count, mocks).proportion_ci(0.95, "exact")
            assert row[5 + 2 * i] == f"{count} of {mocks}"
            check(row[6 + 2 * i], ends)
    whole = coverage.rows[4]
    check(whole[3], [pull.mean()])
    check(whole[4], [pull.std()])
    for i, held in enumerate(inside):
        assert whole[5 + 2 * i] == f"{held.sum()} of 160" and told.headlines[i].value == held.sum()
        check(whole[6 + 2 * i], [held.mean(), held.mean(1).std(ddof=1) / mocks**0.5])
    for k, row in enumerate(mocked.rows):
        assert row[0] == k + 1
        for j, atol in enumerate(rounding):
            check(row[1 + 2 * j], [truth[k, j]], atol)
            check(row[2 + 2 * j], [samples[k, :, j].mean(), error[k, j]], atol)
        check(row[9], [chi2[k]], 0.501)
        check(row[10], [amiss[k]])
    fits, speeds, fitted, emulated = told.findings[:4]
    assert "Of 120 first fits" in fits and "80 end within 2" in fits
    share = 100 * np.median(error[:, 0] / samples.mean(1)[:, 0])
    assert f"at 5 kpc: to {share:.1f} % (median)" in speeds
    assert f"a width of {pull[:, 0].std(ddof=1):.2f}." in speeds
    assert f"is {chi2.mean():.0f} on average for 60 data" in fitted
    assert "0.30 in the median mock and of 0.50" in emulated


def check(text, numbers, atol=0.00501):
    """Compare the numbers in a cell with `numbers`, which it shows rounded."""
    cell = text.replace("±", " ").replace("to", " ").split()
    np.testing.assert_allclose([float(part) for part in cell], numbers, atol=atol)


@pytest.mark.slow
def test_right_posteriors_are_reported_as_right(tmp_path):
    """If truths are distributed as samples are, two thirds and 95 % are in the intervals."""
    options = galaxy_from_stream.Options(mocks=150, stars=50)
    fine = two_streams(100, Errors())
    spec = Inference(
        fine, fine, LevenbergMarquardt(Pool(each=50)), Sampler(), jnp.asarray(sobol(64))
    )
    blank = spec.init(options.mocks)
    random = np.random.default_rng(0)
    rows = 0.1 * random.normal(size=blank.samples.shape) + 0.5
    made = replace(
        blank,
        truth=0.1 * random.normal(size=blank.truth.shape) + 0.5,
        samples=rows,
        rows=random.normal(size=blank.rows.shape) * np.array([9.0, 1, 1, 1, 1, 1]),
        scatter=blank.scatter + 1,
    )
    found = make_report(options, spec, Run(made, (), Timing(0.0, 0.0, 1)))
    narrow, wide = (headline.value / 600 for headline in found.headlines)
    assert abs(narrow - 0.68) < 0.06 and abs(wide - 0.95) < 0.03
    report.save(tmp_path, "galaxy-from-stream", options, found)
    assert "image/svg+xml" in report.write(tmp_path).read_text()
