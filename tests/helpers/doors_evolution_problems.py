"""API cases of `jaxgpu.evolution.problems`."""

import jax.numpy as jnp
import numpy as np
from doors import Door

from jaxgpu.evolution import problems


def sacks_of(profit, weight, capacity):
    problem = problems.knapsack(problems.Sacks(profit, weight, capacity))
    return problem.function(jnp.ones(problem.box.lower.shape))


def told(problem):
    """Return the objectives at the center of the box."""
    return problem.function((problem.box.lower + problem.box.upper) / 2)


DOORS = [
    Door(
        "evolution.problems.knapsack, Sacks",
        sacks_of,
        {
            "profit": np.ones((2, 3), np.float32),
            "weight": np.ones((2, 3), np.float32),
            "capacity": np.ones(2, np.float32),
        },
        right=("profit: zero",),
    ),
    Door(
        "evolution.problems.car_cab",
        lambda noise: problems.car_cab(noise).function(jnp.ones(7)),
        {"noise": np.array([0.5, -1.0, 0.2, 0.1], np.float32)},
        right=("noise: zero", "noise: negative"),
    ),
    Door(
        "evolution.problems.engineering",
        lambda name: told(problems.engineering(name)),
        {"name": "RE21"},
    ),
    Door(
        "evolution.problems.scaled",
        lambda base: told(problems.scaled(problems.dtlz2(2), base)),
        {"base": 10.0},
    ),
    Door(
        "evolution.problems.mnk, landscape, Landscape",
        lambda bits, interactions: told(problems.mnk(problems.landscape(bits, interactions))),
        {"bits": 4, "interactions": 1},
        right=("interactions: zero",),
    ),
    Door(
        "evolution.problems.sacks",
        lambda items, objectives: told(problems.knapsack(problems.sacks(items, objectives))),
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
DOORS += [Door(f"evolution.problems.{of}", call, {name: good}) for of, call, name, good in SIZES]
