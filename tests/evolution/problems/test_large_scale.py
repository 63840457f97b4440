"""LSMOP1-9 against their formulas, written variable by variable."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance import check_program
from problem_peers import points

from jaxgpu.evolution.problems.large_scale import group_sizes, lsmop


def ackley(z):
    n = len(z)
    root = math.sqrt(sum(v * v for v in z) / n)
    waves = sum(math.cos(2 * math.pi * v) for v in z) / n
    return 20 - 20 * math.exp(-0.2 * root) - math.exp(waves) + math.e


BASIC = {
    "sphere": lambda z: sum(v * v for v in z),
    "schwefel": lambda z: max(abs(v) for v in z),
    "rosenbrock": lambda z: sum(
        100 * (a * a - b) ** 2 + (a - 1) ** 2 for a, b in zip(z[:-1], z[1:])
    ),
    "rastrigin": lambda z: sum(v * v - 10 * math.cos(2 * math.pi * v) + 10 for v in z),
    "griewank": lambda z: (
        sum(v * v for v in z) / 4000
        - math.prod(math.cos(v / math.sqrt(i)) for i, v in enumerate(z, 1))
        + 1
    ),
    "ackley": ackley,
}
# Table III of Cheng et al. (2017): the basic functions of odd and of even groups.
PAIRS = """sphere sphere, griewank schwefel, rastrigin rosenbrock, ackley griewank, sphere sphere,
rosenbrock schwefel, ackley rosenbrock, griewank sphere, sphere ackley"""


def lsmop_formula(number, m, x):
    """Evaluate LSMOP with x_1 ... x_D as x[1] ... x[D]."""
    d, x = len(x), [None, *x]
    first, second = PAIRS.split(",")[number - 1].split()
    link = (lambda i: i / d) if number <= 4 else (lambda i: math.cos(math.pi / 2 * i / d))
    s = {i: (1 + link(i)) * x[i] - 10 * x[1] for i in range(m, d + 1)}
    c = [3.8 * 0.1 * 0.9]
    while len(c) < m:
        c.append(3.8 * c[-1] * (1 - c[-1]))
    g, at = [], m
    for i in range(m):
        size = math.floor(c[i] / sum(c) * (d - m + 1) / 5)
        total = 0.0
        for _ in range(5):
            total += BASIC[second if i % 2 else first]([s[j] for j in range(at, at + size)])
            at += size
        g.append(total / size / 5)
    if number == 9:
        top = 1 + (1 + sum(g))
        h = m - sum(x[i] / top * (1 + math.sin(3 * math.pi * x[i])) for i in range(1, m))
        return [*x[1:m], top * h]
    f = []
    for j in range(1, m + 1):
        out = 1 + g[j - 1] + (g[j] if number >= 5 and j < m else 0)
        turn = math.pi / 2
        for i in range(1, m - j + 1):
            out *= x[i] if number <= 4 else math.cos(turn * x[i])
        if j > 1:
            out *= 1 - x[m - j + 1] if number <= 4 else math.sin(turn * x[m - j + 1])
        f.append(out)
    return f


def test_values_are_those_of_the_formulas(x64):
    sizes = [(i, 4 if i % 2 else 2) for i in range(1, 10)]
    problems = {(i, m): lsmop(i, m, 60 + 17 * m) for i, m in sizes}
    x = {key: points(problem) for key, problem in problems.items()}
    value = jax.jit(lambda x: {key: jax.vmap(problems[key].function)(x[key]) for key in x})
    for (number, m), f in value(x).items():
        want = [lsmop_formula(number, m, row) for row in x[number, m].tolist()]
        np.testing.assert_allclose(f, want, rtol=1e-12, err_msg=f"{number} {m}")


def test_the_front_is_reached_where_the_links_are_undone():
    m, d = 3, 120
    share = np.arange(m, d + 1) / d
    y = np.array([0.3, 0.6])
    for number, link in ((1, 1 + share), (5, 1 + np.cos(np.pi / 2 * share))):
        x = np.append(y, 10 * y[0] / link)
        assert (x <= lsmop(number, m, d).box.upper).all()
        f = np.asarray(jax.jit(lsmop(number, m, d).function)(jnp.float32(x)))
        # float32 leaves an error of an ulp of 3 in each linked variable: squares of 1e-6.
        np.testing.assert_allclose((f if number == 1 else f**2).sum(), 1, rtol=1e-6)


@pytest.mark.slow
def test_keeps_float32_and_its_gradient_at_the_optimum():
    problem = lsmop(4, 2, 80)
    x = jnp.zeros(80)  # linked variables of 0: the middle of every basic function
    assert problem.function(x).dtype == jnp.float32
    assert np.isfinite(jax.jit(jax.jacrev(problem.function))(x)).all()
    check_program(problem.function, x)


def test_sizes_that_do_not_fit_are_named():
    assert sum(group_sizes(3, 300)) * 5 <= 298
    with pytest.raises(ValueError, match="variables=30 for 3 objectives"):
        lsmop(1, 3, 30)
    with pytest.raises(ValueError, match="number=10"):
        lsmop(10)
