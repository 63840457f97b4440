"""Pair forces against the direct sum over pairs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.physics.nbody.forces import pairs, powers, snaps


def case(seed, dtype):
    random = np.random.default_rng(seed)
    draw = lambda *shape: random.normal(size=shape).astype(dtype)
    return draw(2, 6, 3), random.uniform(0.1, 1, 6).astype(dtype), draw(2, 3, 5)


of_few, pull = jax.jit(pairs.batched_pull), jax.jit(pairs.pull)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
@pytest.mark.parametrize("seed", range(5))
def test_pull_of_few_is_the_sum_over_pairs(x64, seed, dtype):
    sources, gm, x = case(seed, dtype)
    wide = [np.asarray(q, np.longdouble) for q in (sources, gm, x)]
    want = np.zeros(x.shape, np.longdouble)
    scale = np.zeros((2, 1, 5), np.longdouble)
    for k in range(2):
        for b in range(5):
            for n in range(6):
                d = wide[0][k, n] - wide[2][k, :, b]
                r = np.sqrt((d * d).sum())
                want[k, :, b] += wide[1][n] * d / r**3
                scale[k, 0, b] += wide[1][n] / r**2
    error = np.abs(np.asarray(of_few(sources, gm, x)) - want) / scale
    assert error.max() < 16 * jnp.finfo(dtype).eps  # a dozen roundings a term, and their sum


def test_pull_of_few_is_minus_the_gradient_of_the_potential(x64):
    sources, gm, x = case(1, jnp.float64)
    d = lambda x: jnp.sqrt(jnp.sum((sources[..., None] - x[:, None]) ** 2, 2))  # [K, N, B]
    potential = lambda x: -jnp.sum(gm[None, :, None] / d(x))
    slope = jax.jit(jax.grad(potential))(x)
    np.testing.assert_allclose(of_few(sources, gm, x), -slope, rtol=1e-12, atol=1e-12)


def points(seed, count, dtype=jnp.float64):
    return np.random.default_rng(seed).normal(size=(6, count)).astype(dtype)


def masses(seed, count, dtype=jnp.float64):
    return np.random.default_rng(seed).uniform(0.1, 1, count).astype(dtype)


def pull_by_definition(x, sources, m, softening):
    """Sum pair by pair in extended precision; return the sizes of the terms, too."""
    x, sources, m = (np.asarray(q, np.longdouble) for q in (x, sources, m))
    total, size = np.zeros(x.shape, np.longdouble), np.zeros((2, x.shape[1]), np.longdouble)
    for k in range(x.shape[1]):
        for n in range(sources.shape[1]):
            d, w = sources[:3, n] - x[:3, k], sources[3:, n] - x[3:, k]
            if d @ d == 0:
                continue
            r2 = d @ d + np.longdouble(softening) ** 2
            a = m[n] * d / r2**1.5
            j = m[n] * (w - 3 * (d @ w) * d / r2) / r2**1.5
            total[:, k] += [*a, *j]
            size[:, k] += m[n] / r2, m[n] * np.sqrt(w @ w) / r2**1.5
    return total, np.repeat(size, 3, axis=0)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
@pytest.mark.parametrize("softening", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(5))
def test_pull_is_the_sum_over_pairs(x64, seed, softening, dtype):
    x, m = points(seed, 20, dtype), masses(seed, 20, dtype)
    want, size = pull_by_definition(x, x, m, softening)  # each point is a source as well
    error = np.abs(np.asarray(pull(x, x, m, dtype(softening))) - want) / size
    assert error.max() < 24 * jnp.finfo(dtype).eps  # a score of roundings a term


def test_the_jerk_is_the_rate_of_the_acceleration(x64):
    x, sources, m = points(1, 4), points(2, 6), masses(3, 6)
    drift = lambda p: jnp.concatenate([p[3:], jnp.zeros_like(p[3:])])
    soft_pull = lambda x, s: pairs.pull(x, s, m, 0.1)
    found = jax.jit(lambda x, s: jax.jvp(soft_pull, (x, s), (drift(x), drift(s))))(x, sources)
    np.testing.assert_allclose(found[0][3:], found[1][:3], rtol=1e-12)


@pytest.mark.parametrize("count", [1, 511, 1500])
def test_targets_in_tiles_are_targets(x64, count):
    x, sources, m = points(4, count), points(5, 7), masses(6, 7)
    whole = pull(x, sources, m)
    some = np.array([0, count // 2, count - 1])
    few = pull(x[:, some], sources, m)
    # Compare vectors: a component may be the small difference of its terms.
    off, size = (
        np.linalg.norm(np.reshape(a, (2, 3, -1)), axis=1)
        for a in (np.asarray(whole)[:, some] - few, few)
    )
    assert (off <= 2e-15 * size).all()


def plain_pull(x, sources, m, softening):
    """Compute the same by broadcasting, which JAX differentiates by itself."""
    d, w = (sources[k : k + 3, None] - x[k : k + 3, :, None] for k in (0, 3))
    r2 = jnp.sum(d * d, 0) + softening**2
    p, q = m[None] * r2**-1.5, 3 * jnp.sum(d * w, 0) / r2
    return jnp.concatenate([jnp.sum(p[None] * d, 2), jnp.sum(p[None] * (w - q[None] * d), 2)])


def all_modes(f):
    """Return all derivatives of a pull in its points [6, K], by every mode; compiled once."""
    f = lambda *given, f=f: f(*given, 0.2)
    total = lambda x, *rest: jnp.sum(jnp.sin(f(x, *rest)))
    batch_total = lambda x, *rest: jnp.sum(jax.vmap(total, (0, None, None))(x, *rest))

    def path_total(x, *rest):
        return total(
            jax.lax.scan(lambda x, _: (x + 0.01 * f(x, *rest), None), x, None, length=3)[0], *rest
        )

    def all_ways(args, tangents, ct):
        both = jnp.stack([args[0], 2 * args[0]])
        return [
            jax.jvp(f, args, tangents)[1],
            *jax.vjp(f, *args)[1](ct),
            jax.vmap(jax.grad(total), (0, None, None))(both, *args[1:]),
            jax.grad(batch_total)(both, *args[1:]),
            jax.grad(path_total)(*args),
            jax.hessian(total)(*args),
        ]

    return jax.jit(all_ways, compiler_options={"xla_backend_optimization_level": 0})


OURS, THEIRS = all_modes(pairs.pull), all_modes(plain_pull)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_derivatives_are_those_that_jax_would_find(x64, seed):
    """Test one argument or all, under vmap inside and outside, through a scan, and twice."""
    args = points(seed, 5), points(seed + 10, 7), masses(seed, 7)
    given = args, (points(seed + 1, 5), points(seed + 2, 7), masses(seed + 3, 7))
    for a, b in zip(*(f(*given, points(seed + 4, 5)) for f in (OURS, THEIRS))):
        np.testing.assert_allclose(a, b, atol=1e-12 * np.abs(b).max())


def test_derivatives_of_a_batch_are_those_of_each(x64):
    given = [points(0, 8).reshape(2, 6, 4), points(1, 10).reshape(2, 6, 5), masses(2, 10)]
    given[2] = given[2].reshape(2, 5)
    ways = [q[::-1] for q in given]
    pull_slope = lambda *args: jax.jvp(pairs.pull, args[:3], args[3:])[1]
    together, one = jax.jit(jax.vmap(pull_slope))(*given, *ways), jax.jit(pull_slope)
    for i in range(2):
        alone = one(*(q[i] for q in (*given, *ways)))
        np.testing.assert_allclose(together[i], alone, rtol=1e-11, atol=1e-11)


@pytest.mark.slow
def test_a_point_among_its_sources_has_second_derivatives(x64):
    """Zero distance exerts no force, to any order, also in the mass: central differences agree."""
    x, m, h = points(0, 3), masses(1, 3), 1e-5
    x[:3] = 2 * np.eye(3)
    slope = jax.grad(lambda x, m: jnp.sum(jnp.sin(pairs.pull(x, x, m))), (0, 1))
    way = points(2, 3), masses(3, 3)
    both = jax.jit(lambda *given: jax.jvp(slope, given, way))
    got = both(x, m)[1]
    ends = [both(*(q + s * h * w for q, w in zip((x, m), way)))[0] for s in (1, -1)]
    for a, up, down in zip(got, *ends):
        np.testing.assert_allclose(a, (up - down) / (2 * h), atol=1e-8 * np.abs(a).max())


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_inverse_powers_are_what_they_say_everywhere(x64, dtype):
    tiny, huge = (1e-12, 1e12) if dtype == jnp.float32 else (1e-100, 1e100)
    r = np.array([tiny, 0.3, 1, 7, huge], np.longdouble)
    r2 = np.append(r * r, [0, np.inf]).astype(dtype)
    u2, u3 = jax.jit(powers.inverse_powers)(r2)
    exact = np.asarray(r2[:5], np.longdouble)
    eps = float(jnp.finfo(dtype).eps)
    np.testing.assert_allclose(u2[:5], 1 / exact, rtol=2 * eps)
    np.testing.assert_allclose(u3[:5], exact**-1.5, rtol=4 * eps)
    np.testing.assert_array_equal([u2[5:], u3[5:]], 0)
    slope = jax.jit(jax.vmap(jax.jacfwd(powers.inverse_powers)))(r2[1:6])
    np.testing.assert_allclose(slope[0][:3], -(exact[1:4] ** -2), rtol=8 * eps)
    np.testing.assert_allclose(slope[1][:3], -1.5 * exact[1:4] ** -2.5, rtol=8 * eps)
    assert slope[0][4] == slope[1][4] == 0


def test_a_gradient_keeps_nothing_a_pair(x64):
    x = points(0, 2048)
    m = masses(0, 2048)
    f = jax.jit(jax.grad(lambda x: jnp.sum(pairs.pull(x, x, m))))
    assert f.lower(x).compile().memory_analysis().temp_size_in_bytes < 40 * x.nbytes


@pytest.mark.parametrize("pull, count", [(pairs.pull, 6), (snaps.pull, 9)])
def test_rows_too_many_are_refused_and_never_read_as_masses(pull, count):
    x, m = jnp.zeros((count, 4)), jnp.ones(4)
    more = jnp.zeros((count + 1, 4))
    for given in ((more, x, m), (x, more, m), (x.T, x, m), (tuple(x[1:]), x, m), (x, x, m[1:])):
        with pytest.raises(ValueError, match=r"pull: .* of shape \["):
            pull(*given)
