"""Tensorized evolutionary optimisation, of one objective or many.

Reading order: `variables` and `space` say what is searched, `problem` what is optimised; `protocol`
has the three methods of every algorithm and the loops above it, `solve` the one call that does all.
The algorithms are in `single` and `multi`, on the `population` that they share; dominance is in
`pareto`, quality in `indicators`, test problems in `problems`.
"""

from . import indicators, multi, pareto, problems, single, space
from .problem import Box, Problem, box
from .protocol import Algorithm, Evolution, evolve, run, step
from .solve import Solution, minimize
from .variables import Boolean, Categorical, Integer, Permutation, Real

__all__ = [
    "Algorithm",
    "Boolean",
    "Box",
    "Categorical",
    "Evolution",
    "Integer",
    "Permutation",
    "Problem",
    "Real",
    "Solution",
    "box",
    "evolve",
    "indicators",
    "minimize",
    "multi",
    "pareto",
    "problems",
    "run",
    "single",
    "space",
    "step",
]
