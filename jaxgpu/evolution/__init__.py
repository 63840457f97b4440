"""Tensorized evolutionary optimisation, of one objective or many.

Reading order: `variables` and `space` say what is searched, `problem` what is optimised and
`stochastic` what is so on average; `protocol` has the three methods of every algorithm and the
loops above it, `solve` the one call that does all.
The algorithms are in `single` and `multi`, on the `population` that they share; dominance is in
`pareto`, quality in `indicators`, test problems in `problems`.
"""

from . import indicators, multi, pareto, problems, single, space
from .problem import Box, Problem, box
from .protocol import Algorithm, Evolution, Search, evolve, run, search, step
from .solve import Solution, minimize
from .stochastic import Drawn, Objective, Stochastic
from .variables import Boolean, Categorical, Integer, Permutation, Real

__all__ = [
    "Algorithm",
    "Boolean",
    "Box",
    "Categorical",
    "Drawn",
    "Evolution",
    "Integer",
    "Objective",
    "Permutation",
    "Problem",
    "Real",
    "Search",
    "Solution",
    "Stochastic",
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
