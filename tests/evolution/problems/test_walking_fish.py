"""WFG1-9 have pymoo's values and the paper's fronts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance import check_program
from problem_peers import VALUES, assert_like_the_peer, points

from jaxgpu.evolution.problems import walking_fish, wfg


@pytest.mark.slow
def test_values_are_those_of_pymoo(x64):
    names = [name for name in VALUES if name.startswith("WFG")]
    assert len(names) == 27
    sizes = {n: [int(size) for size in n.split()[1:]] for n in names}
    extreme = {n: wfg(int(n[3]), *size) for n, size in sizes.items() if size[0] != 3}
    assert len(extreme) == 18
    assert_like_the_peer(extreme)


def best(number, positions, m, k, distances):
    """Return a Pareto-optimal point (Huband et al., 2006, section X) as fractions of the bounds."""
    y = np.append(positions, np.full(distances, 0.35))
    upper = 2 * np.arange(1, k + distances + 1)
    bias_power = lambda u: (
        0.02 + 49.98 * (0.98 / 49.98 - (1 - 2 * u) * abs(np.floor(0.5 - u) + 0.98 / 49.98))
    )
    if number == 8:
        for i in range(k, k + distances):
            y[i] = 0.35 ** (1 / bias_power(y[:i].mean()))
    if number == 9:
        for i in range(k + distances - 2, k - 1, -1):
            y[i] = 0.35 ** (1 / bias_power(y[i + 1 :].mean()))
    return y * upper


def test_fronts_are_where_they_should_be(x64):
    m, k, distances = 3, 4, 6
    rng = np.random.default_rng(1)
    position = rng.random(k)
    x = {i: jnp.asarray(best(i, position, m, k, distances)) for i in range(1, 10)}
    f = jax.jit(lambda x: {i: wfg(i, m, k, distances).function(x[i]) for i in x})(x)
    share = {i: np.asarray(f[i]) / np.array([2, 4, 6]) for i in f}
    for i in range(4, 10):  # spheres
        np.testing.assert_allclose(np.linalg.norm(share[i]), 1, rtol=1e-9, err_msg=str(i))
    # This is the plane sum x = 1, with the second position fixed at 1/2.
    t = position[:2].mean()
    np.testing.assert_allclose(share[3], [t / 2, t / 2, 1 - t], rtol=1e-12)
    # These are 1 - cosines and sines of quarter turns, then the paper's last-objective shapes.
    p = [position[:2].mean(), position[2:].mean()]
    convex_shape = lambda p: [
        (1 - np.cos(np.pi / 2 * p[0])) * (1 - np.cos(np.pi / 2 * p[1])),
        (1 - np.cos(np.pi / 2 * p[0])) * (1 - np.sin(np.pi / 2 * p[1])),
    ]
    last = 1 - p[0] * np.cos(5 * np.pi * p[0]) ** 2
    np.testing.assert_allclose(share[2], [*convex_shape(p), last], rtol=1e-12)
    w = 2 * np.arange(1, k + 1)
    p = [(w[a] * position[a] ** 0.02).sum() / w[a].sum() for a in (slice(0, 2), slice(2, 4))]
    last = 1 - p[0] - np.cos(10 * np.pi * p[0] + np.pi / 2) / (10 * np.pi)
    # Only the rounding of 0.35 to the power 0.02 remains, equal in all objectives.
    left = np.asarray(f[1]) - np.array([2, 4, 6]) * [*convex_shape(p), last]
    assert np.ptp(left) < 1e-13 and 0 <= left[0] < 0.6


def test_transformations_are_those_of_the_paper(x64):
    """Check Huband et al. (2006), table 11, at points of [0, 1] and at its endpoints."""
    y = np.append(np.random.default_rng(0).random(20), [0.0, 1.0, 0.35])
    d = jnp.asarray(y - 0.35)
    linear = abs(y - 0.35) / abs(np.floor(0.35 - y) + 0.35)
    np.testing.assert_allclose(walking_fish._s_linear(d), linear, atol=1e-14)
    a, b, c = 0.35, 0.001, 0.05
    left = np.floor(y - a + b) * (1 - c + (a - b) / b) / (a - b)
    right = np.floor(a + b - y) * (1 - c + (1 - a - b) / b) / (1 - a - b)
    deceptive = 1 + (abs(y - a) - b) * (left + right + 1 / b)
    np.testing.assert_allclose(walking_fish._s_decept(d), deceptive, atol=1e-10)
    for hills, height in ((30, 10.0), (30, 95.0), (5, 2.0)):
        half = abs(y - 0.35) / (2 * (np.floor(0.35 - y) + 0.35))
        wave = np.cos((4 * hills + 2) * np.pi * (0.5 - half))
        many = (1 + wave + 4 * height * half**2) / (height + 2)
        np.testing.assert_allclose(walking_fish._s_multi(d, hills, height), many, atol=1e-12)
    flat = 0.8 + np.minimum(0, np.floor(y - 0.75)) * 0.8 * (0.75 - y) / 0.75
    flat -= np.minimum(0, np.floor(0.85 - y)) * (1 - 0.8) * (y - 0.85) / (1 - 0.85)
    np.testing.assert_allclose(walking_fish._b_flat(jnp.asarray(y)), flat, atol=1e-14)
    u = y[::-1]
    power = 0.98 / 49.98 - (1 - 2 * u) * abs(np.floor(0.5 - u) + 0.98 / 49.98)
    bent = walking_fish._b_param(jnp.asarray(y), jnp.asarray(u))
    np.testing.assert_allclose(bent, y ** (0.02 + (50 - 0.02) * power), rtol=1e-12)
    for n in (4, 7):  # r_nonsep of degree n
        ahead = sum(abs(y[j] - y[(j + k + 1) % n]) for j in range(n) for k in range(n - 1))
        half = np.ceil(n / 2)
        got = walking_fish._r_nonsep(jnp.asarray(y[:n]))
        np.testing.assert_allclose(got, (y[:n].sum() + ahead) / (half * (1 + 2 * n - 2 * half)))


def test_nothing_in_float32_is_better_than_the_front_or_negative():
    for number in (4, 5, 6, 9):
        problem = wfg(number, 3, 4, 6)
        x = np.random.default_rng(number).integers(0, 2, (64, 10)) * np.asarray(problem.box.upper)
        f = np.asarray(jax.jit(jax.vmap(problem.function))(jnp.float32(x)))
        assert f.min() >= 0
        assert (np.linalg.norm(f / [2, 4, 6], axis=1) > 1 - 1e-6).all()


@pytest.mark.slow
def test_keeps_float32_and_its_gradient():
    problem = wfg(9, 3, 4, 6)
    x = jnp.float32(points(problem)[0])
    assert problem.function(x).dtype == jnp.float32
    assert np.isfinite(jax.jit(jax.jacrev(problem.function))(x)).all()
    check_program(problem.function, x)


def test_sizes_that_do_not_fit_are_named():
    with pytest.raises(ValueError, match="objectives=3, positions=3"):
        wfg(4, 3, 3)
    with pytest.raises(ValueError, match="distances=5; WFG2 needs an even number"):
        wfg(2, 3, 4, 5)
