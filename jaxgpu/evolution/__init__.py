"""Tensorized evolutionary optimisation, of one objective or many.

Reading order: `variables` and `space` define the search space, `problem` the objective function and
`stochastic` random objectives. `protocol` has the three methods of every algorithm and the loops
over generations, `solve` the single call that does everything. The algorithms are in `single` and
`multi`, on the `population` that they share; dominance is in `pareto`, quality indicators in
`indicators`, test problems in `problems`.
"""

from . import indicators, multi, pareto, problems, single, space
from .problem import Box, Problem, box
from .protocol import Algorithm, Evolution, SearchState, evolve, run, search, step
from .solve import Solution, minimize
from .stochastic import NoisyFunction, NoisyProblem, Objective
from .variables import Boolean, Categorical, Integer, Permutation, Real

__all__ = [
    "Algorithm",
    "Boolean",
    "Box",
    "Categorical",
    "NoisyFunction",
    "Evolution",
    "Integer",
    "Objective",
    "Permutation",
    "Problem",
    "Real",
    "SearchState",
    "Solution",
    "NoisyProblem",
    "box",
    "evolve",
    "indicators",
    "minimize",
    "multi",
    "pareto",
    "problems",
    "run",
    "search",
    "single",
    "space",
    "step",
]
