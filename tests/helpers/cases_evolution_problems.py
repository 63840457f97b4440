"""API cases of `jaxgpu.evolution.problems`."""

import jax.numpy as jnp
import numpy as np
from api_cases import ApiCase

from jaxgpu.evolution import problems


def sacks_of(profit, weight, capacity):
    problem = problems.knapsack(problems.KnapsackData(profit, weight, capacity))
    return problem.function(jnp.ones(problem.box.lower.shape))


def center_value(problem):
    """Return the objectives at the center of the box."""
    return problem.function((problem.box.lower + problem.box.upper) / 2)


CASES = [
    ApiCase(
        "evolution.problems.knapsack, Sacks",
        sacks_of,
        {
            "profit": np.ones((2, 3), np.float32),
            "weight": np.ones((2, 3), np.float32),
            "capacity": np.ones(2, np.float32),
        },
        right=("profit: zero",),
    ),
    ApiCase(
        "evolution.problems.car_cab",
        lambda noise: problems.car_cab(noise).function(jnp.ones(7)),
        {"noise": np.array([0.5, -1.0, 0.2, 0.1], np.float32)},
        right=("noise: zero", "noise: negative"),
    ),
    ApiCase(
        "evolution.problems.engineering",
        lambda name: center_value(problems.engineering(name)),
        {"name": "RE21"},
    ),
    ApiCase(
        "evolution.problems.scale_objectives",
        lambda base: center_value(problems.scale_objectives(problems.dtlz2(2), base)),
        {"base": 10.0},
    ),
    ApiCase(
        "evolution.problems.mnk, landscape, Landscape",
        lambda bits, interactions: center_value(
            problems.mnk(problems.landscape(bits, interactions))
        ),
        {"bits": 4, "interactions": 1},
        right=("interactions: zero",),
    ),
    ApiCase(
        "evolution.problems.knapsack_data",
        lambda items, objectives: center_value(
            problems.knapsack(problems.knapsack_data(items, objectives))
        ),
        {"items": 3, "objectives": 2},
    ),
]
VARIABLES = ("zdt1", "zdt2", "zdt3", "zdt4", "zdt6")
OBJECTIVES = """dtlz1 dtlz2 dtlz3 dtlz4 dtlz5 dtlz6 dtlz7 convex_dtlz2 inverted_dtlz1 inverted_dtlz2
    c1_dtlz1 c1_dtlz3 c2_dtlz2 c3_dtlz1 c3_dtlz4""".split()
SIZES = (
    *((name, getattr(problems, name), "variables", 5) for name in VARIABLES),
    *((name, getattr(problems, name), "objectives", 3) for name in OBJECTIVES),
    ("wfg", lambda objectives: problems.wfg(1, objectives), "objectives", 3),
    ("lsmop", problems.lsmop, "number", 3),
    ("bbob", lambda dimension: problems.bbob(1, dimension), "dimension", 3),
)
CASES += [ApiCase(f"evolution.problems.{of}", call, {name: good}) for of, call, name, good in SIZES]
