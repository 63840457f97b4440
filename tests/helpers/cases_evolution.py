"""API cases of `jaxgpu.evolution`."""

import jax
import jax.numpy as jnp
import numpy as np
from api_cases import ApiCase

from jaxgpu.evolution import (
    Integer,
    NoisyFunction,
    NoisyProblem,
    Real,
    indicators,
    multi,
    pareto,
    search,
    single,
    space,
)
from jaxgpu.evolution.multi import associate, das_dennis, layers_for, partitions_for
from jaxgpu.evolution.problem import Box, Problem, box

KEY = jax.random.key(0)
F = np.array([[0.1, 0.9], [0.5, 0.4], [0.9, 0.1]], np.float32)
FRONT = np.array([[0.0, 1.0], [1.0, 0.5]], np.float32)
TWO = np.array([1.5, 2.5], np.float32)
# fewer points, and points that do not dominate the reference, are also valid sets
SETS = ("f: zero", "f: negative", "f: wrong length", "f: inf")
FRONTS = ("front: transposed", "front: zero", "front: negative", "front: wrong length")
LINES = das_dennis(2, 7)
SPECS = {"RVEA": multi.RVEA(LINES), "MOEAD": multi.MOEAD(LINES, 3)}
# inconsistent sizes raise an error when a spec is constructed
SIZED = {
    "NSGA2": multi.NSGA2,
    "NSGA3": lambda pop_size: multi.NSGA3(LINES, pop_size),
    "HypE": lambda pop_size: multi.HypE(pop_size, rays=64),
}


def start(spec, lower, upper):
    return spec.init(KEY, Problem(Box(lower, upper), lambda x: x[:2], 2)).population.x


def start_with(crossover, mutation):
    spec = multi.NSGA2(8, crossover, mutation)
    return spec.init(KEY, PROBLEM).population.x


def values(x):
    return Problem(box(0.0, 1.0, 2), lambda x: x, 2).evaluate(x)


def noisy_values(x):
    """Return the values of all points under one random sample."""
    noisy = NoisyFunction(lambda x, key: x + jax.random.normal(key, x.shape, x.dtype))
    return NoisyProblem(box(0.0, 1.0, 2), noisy, 2).evaluate(x, KEY, ())[:2]


def noisy_search(lower, upper):
    noisy = NoisyFunction(lambda x, key: jnp.sum(x * x) + jax.random.normal(key, (), x.dtype))
    return search(single.PSO(4), NoisyProblem(Box(lower, upper), noisy), KEY, 2).state.best.x


def point(low, high, shape=None):
    """Return the center of a real variable."""
    variable = Real(low, high, shape)
    return space.decode(variable, jnp.full(space.dimension(variable), 0.5))


def read_integer(low, high):
    variable = Integer(low, high)
    return space.decode(variable, jnp.full(space.dimension(variable), 0.5))


PROBLEM = Problem(box(0.0, 1.0, 3), lambda x: x[:2], 2)

CASES = [
    *(
        ApiCase(
            f"evolution.indicators.{name}",
            getattr(indicators, name),
            {"f": F, "front": FRONT},
            right=(*SETS, *FRONTS, "f: nan", "front: nan", "front: inf"),
            limits=("f: inf", "front: inf", "f: nan", "front: nan"),
        )
        for name in ("igd", "igd_plus", "gd", "gd_plus", "epsilon")
    ),
    ApiCase(
        "evolution.indicators.epsilon_ratio",
        indicators.epsilon_ratio,
        {"f": F + 1, "front": FRONT + 1},
        right=(
            "f: wrong length",
            "front: wrong length",
            "front: transposed",
            "f: inf",
            "f: nan",
            "front: inf",
        ),
        limits=("f: inf", "f: nan", "front: inf"),
    ),
    ApiCase(
        "evolution.indicators.hypervolume",
        indicators.hypervolume,
        {"f": F, "reference": TWO},
        right=(*SETS, "reference: zero", "reference: negative"),
    ),
    ApiCase(
        "evolution.indicators.hypervolume_by_rays",
        lambda f, reference: indicators.hypervolume_by_rays(f, reference, KEY, 512),
        {"f": F, "reference": TWO},
        right=(*SETS, "reference: zero", "reference: negative"),
    ),
    ApiCase(
        "evolution.indicators.spacing",
        indicators.spacing,
        {"f": F},
        right=(*SETS, "f: nan", "f: narrow", "f: transposed"),
        limits=("f: inf", "f: nan"),
    ),
    ApiCase(
        "evolution.indicators.r2",
        indicators.r2,
        {"f": F, "weights": FRONT, "ideal": np.zeros(2, np.float32)},
        right=(
            *SETS,
            "weights: zero",
            "weights: wrong length",
            "ideal: zero",
            "ideal: negative",
            "weights: transposed",
        ),
    ),
    ApiCase(
        "evolution.indicators.expected_utility",
        lambda f, low, high: indicators.expected_utility(f, KEY, low, high, 100),
        {"f": F, "low": np.zeros(2, np.float32), "high": TWO},
        right=(*SETS, "low: zero", "low: negative"),
        limits=("f: inf",),
        pairs=(("low", "high"),),
    ),
    *(
        ApiCase(f"evolution.pareto.{f.__name__}", f, {"f": F}, right=("f: *",))
        for f in (pareto.ranks, pareto.is_non_dominated)
    ),
    ApiCase(
        "evolution.pareto.dominates",
        pareto.dominates,
        {"a": F, "b": F + 1},
        right=("a: *", "b: *"),
    ),
    ApiCase(
        "evolution.pareto.crowding_distance",
        pareto.crowding_distance,
        {"f": F, "rank": np.zeros(3, np.int32)},
        right=("f: *", "rank: *"),
        limits=("f: *", "rank: *"),
    ),
    ApiCase(
        "evolution.multi.associate",
        lambda f: associate(das_dennis(2, 3), f),
        {"f": F},
        right=("f: zero", "f: wrong length", "f: empty", "f: inf"),
        limits=("f: inf",),
    ),
    ApiCase("evolution.multi.das_dennis", das_dennis, {"objectives": 3}, refusals=True),
    *(
        ApiCase(name, f, {"x": F}, right=("x: *",), limits=("x: nan", "x: inf", "x: -inf"))
        for name, f in (
            ("evolution.Problem.evaluate", values),
            ("evolution.NoisyFunction, NoisyProblem.evaluate", noisy_values),
        )
    ),
    ApiCase(
        "evolution.search",
        noisy_search,
        {"lower": -TWO, "upper": TWO},
        right=("lower: zero", "lower: negative", "upper: zero", "upper: negative"),
        pairs=(("lower", "upper"),),
    ),
    ApiCase(
        "evolution.Real, evolution.space",
        point,
        {"low": -1.0, "high": 1.0},
        right=("low: zero", "high: zero", "low: negative", "high: negative"),
        pairs=(("low", "high"),),
    ),
    ApiCase(
        "evolution.Integer",
        read_integer,
        {"low": -2, "high": 9},
        right=("low: zero", "high: zero", "low: negative"),
        pairs=(("low", "high"),),
    ),
    *(
        ApiCase(
            f"evolution.multi.{name}.init",
            start,
            {"spec": spec, "lower": -TWO, "upper": TWO},
            right=("lower: zero", "lower: negative", "upper: zero", "upper: negative"),
            pairs=(("lower", "upper"),),
        )
        for name, spec in SPECS.items()
    ),
    *(
        ApiCase(
            f"evolution.multi.{name}.init",
            lambda pop_size, of=of: start(of(pop_size=pop_size), -TWO, TWO),
            {"pop_size": 8},
            right=("pop_size: None",) if name == "NSGA3" else (),
        )
        for name, of in SIZED.items()
    ),
    ApiCase(
        "evolution.multi.SBX, PolynomialMutation",
        start_with,
        {"crossover": multi.SBX(), "mutation": multi.PolynomialMutation()},
        refusals=True,
    ),
]
SIZES = (
    ("box", lambda count: box(0.0, 1.0, count), "count", 3),
    ("multi.partitions_for", lambda count: partitions_for(3, count), "count", 30),
    ("multi.layers_for", layers_for, "objectives", 7),
)
CASES += [ApiCase(f"evolution.{of}", call, {name: good}) for of, call, name, good in SIZES]
