"""Values agree with independent implementations; fronts and corners are exact."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance import assert_exports, check_program, gradients_are_finite
from problem_peers import VALUES, assert_like_the_peer, points

from jaxgpu.evolution.multi import das_dennis
from jaxgpu.evolution.problems import bbob_shapes, dtlz, zdt

ANGULAR = [dtlz.dtlz2, dtlz.dtlz3, dtlz.dtlz4, dtlz.dtlz5, dtlz.dtlz6, dtlz.convex_dtlz2]
SEPARATE = [zdt.zdt1, zdt.zdt2, zdt.zdt3, zdt.zdt4, zdt.zdt6]


PEERS = {
    **{f"ZDT{i}": getattr(zdt, f"zdt{i}")() for i in range(1, 7)},
    **{f"DTLZ{i} 5": getattr(dtlz, f"dtlz{i}")(5) for i in range(1, 8)},
    **{
        f"{name.upper().replace('_', '')} {m}": getattr(dtlz, name)(m)
        for name in ("c1_dtlz1", "c1_dtlz3", "c2_dtlz2", "c3_dtlz1", "c3_dtlz4")
        for m in (2, 3, 6)
    },
    "ConvexDTLZ2 3": dtlz.convex_dtlz2(3),
    "InvertedDTLZ1 3": dtlz.inverted_dtlz1(3),
    "ScaledDTLZ2 3": dtlz.scale_objectives(dtlz.dtlz2(3)),
}


def test_values_are_those_of_pymoo(x64):
    assert_like_the_peer(PEERS)
    assert len(PEERS) == sum("DTLZ" in name or "ZDT" in name for name in VALUES)


def test_the_inverted_sphere_is_one_minus_the_sphere(x64):
    both = jax.jit(lambda x: [make(3).evaluate(x)[0] for make in (dtlz.dtlz2, dtlz.inverted_dtlz2)])
    f, turned = map(np.asarray, both(points(dtlz.dtlz2(3))))
    reach = np.sqrt((f * f).sum(1, keepdims=True))  # 1 + g
    np.testing.assert_allclose(turned, reach - f, rtol=1e-14)


def test_no_corner_of_the_box_has_a_negative_objective_in_float32():
    corners = np.stack(np.meshgrid([0.0, 1.0], [0.0, 1.0], indexing="ij"), -1).reshape(-1, 2)
    x = np.float32(np.concatenate([corners, np.full((4, 10), 0.9)], axis=1))
    for f in map(np.asarray, jax.jit(lambda x: [make(3).evaluate(x)[0] for make in ANGULAR])(x)):
        assert f.min() >= 0
        # Where g > 0 the point is not on the front: no objective gains from that.
        assert (f[0] >= 0).all() and f[0].max() > 1


@pytest.mark.parametrize("m", [2, 7])
def test_fronts_are_where_they_should_be(x64, m):
    rng = np.random.default_rng(m)

    def norm(f):
        return np.sqrt((f**2).sum(1))

    makers = dtlz.dtlz1, dtlz.dtlz2, dtlz.dtlz3, dtlz.dtlz4
    problems = [make(m) for make in makers]
    x = [np.full((20, len(problem.box.lower)), 0.5) for problem in problems]
    for rows in x:
        rows[:, : m - 1] = rng.random((20, m - 1))
    f = jax.jit(lambda x: [p.evaluate(rows)[0] for p, rows in zip(problems, x)])(x)
    for values, size in zip(f, (lambda f: f.sum(1) / 0.5, norm, norm, norm)):
        np.testing.assert_allclose(size(np.asarray(values)), 1, rtol=1e-13)


@pytest.mark.slow
def test_conforms():
    for problem in (dtlz.c2_dtlz2(3), zdt.zdt4()):
        x = np.float32(points(problem, 4))
        check_program(problem.evaluate, x)
        assert_exports(problem.evaluate, x)
        gradients_are_finite(problem.evaluate, (x,), (0,))


def test_sizes_are_those_of_the_papers():
    """Check three objectives, and 5, 10 or 20 distance variables after m - 1 positions."""
    makers = {5: ["dtlz1", "inverted_dtlz1", "c1_dtlz1", "c3_dtlz1"], 20: ["dtlz7"]}
    makers[10] = [f"dtlz{i}" for i in range(2, 7)]
    makers[10] += ["convex_dtlz2", "inverted_dtlz2", "c1_dtlz3", "c2_dtlz2", "c3_dtlz4"]
    for count, names in makers.items():
        for name in names:
            for problem, m in ((getattr(dtlz, name)(), 3), (getattr(dtlz, name)(6), 6)):
                assert (problem.objectives, len(problem.box.lower)) == (m, m - 1 + count), name
    sizes = [len(make().box.lower) for make in (zdt.zdt1, zdt.zdt2, zdt.zdt3, zdt.zdt4, zdt.zdt6)]
    assert sizes == [30, 30, 30, 10, 10]


def test_boxes_are_those_of_the_papers():
    """All bounds are 0 and 1, except for all variables of ZDT4 but the first."""
    makers = [zdt.zdt1, zdt.zdt2, zdt.zdt3, zdt.zdt5, zdt.zdt6, dtlz.dtlz1, dtlz.dtlz7]
    for make in (*makers, dtlz.c2_dtlz2):
        problem = make()
        assert not problem.box.lower.any() and (problem.box.upper == 1).all(), make.__name__
    wide = zdt.zdt4().box
    np.testing.assert_array_equal(wide.lower, [0] + 9 * [-5])
    np.testing.assert_array_equal(wide.upper, [1] + 9 * [5])


def test_failed_evaluations_are_infinitely_bad():
    f, violation = zdt.zdt1(3).evaluate(jnp.array([[0.1, 0.2, jnp.nan], [0.1, 0.2, 0.3]]))
    assert np.isinf(f[0]).all() and np.isinf(violation[0])
    assert np.isfinite(f[1]).all() and violation[1] == 0


def test_wrong_sizes_are_named():
    with pytest.raises(ValueError, match="1 objectives, 6 variables"):
        dtlz.dtlz2(1, 6)
    with pytest.raises(ValueError, match="at least|>= 1 division"):
        das_dennis(3)


def test_half_a_variable_is_refused():
    with pytest.raises(TypeError, match="variables=4.5 of type float64; it must be a whole"):
        dtlz.dtlz2(3, variables=4.5)


def test_transformations_of_bbob_are_those_of_its_report(x64):
    """Check T_osz, T_asy and f_pen of Finck et al. (2009) for each variable; T_osz(0) is 0."""
    x = np.array([-3.0, -0.02, 0.0, 1.0, 0.4, 7.0])

    def oscillate(a):
        if a == 0:
            return 0.0
        log, (c1, c2) = np.log(abs(a)), (10, 7.9) if a > 0 else (5.5, 3.1)
        return np.sign(a) * np.exp(log + 0.049 * (np.sin(c1 * log) + np.sin(c2 * log)))

    bends = lambda x: jnp.stack([bbob_shapes.oscillate(x), bbob_shapes.skew(x, 0.3)])
    slope = lambda x: jax.vjp(bends, x)[1](jnp.ones((2, 6)))[0]
    (bent, skew), slopes = jax.jit(lambda x: (bends(x), slope(x)))(x)
    assert np.isfinite(slopes).all() and slopes[2] == 2  # at 0, too
    outside = bbob_shapes.bound_penalty(3 * x)
    np.testing.assert_allclose(bent, [oscillate(a) for a in x], rtol=1e-13)
    skewed = [a ** (1 + 0.3 * i / 5 * a**0.5) if a > 0 else a for i, a in enumerate(x)]
    np.testing.assert_allclose(skew, skewed, rtol=1e-13)
    assert outside == 4.0**2 + 16.0**2  # -9 and 21 are beyond -5 and 5


def test_schwefels_function_of_bbob_is_that_of_its_report(x64):
    """Check function 20 of Finck et al. (2009); its optimum has 420.9687... in every variable."""
    best, rng = 4.2096874637, np.random.default_rng(0)

    def value(x):
        z = np.array(x)
        z[1:] += 0.25 * (np.array(x)[:-1] - best)
        z = 100 * (10 ** (0.5 * np.arange(len(x)) / (len(x) - 1)) * (z - best) + best)
        wave = -np.sum(z * np.sin(np.sqrt(abs(z)))) / (100 * len(x))
        return wave + 4.189828872724339 + 100 * np.sum(np.maximum(0, abs(z / 100) - 5) ** 2)

    schwefel = jax.jit(bbob_shapes.schwefel)
    assert abs(schwefel(np.full(4, best))) < 1e-10
    for x in rng.uniform(-6, 6, (3, 4)):
        np.testing.assert_allclose(schwefel(x), value(x), rtol=1e-12, atol=1e-9)
