"""Test problems, checked against independent implementations.

Reading order: `zdt` and `dtlz` define a problem in a few lines each. `walking_fish` (WFG) and
`large_scale` (LSMOP) build problems from parts, on the shared `front_shapes`, with differences by
`float_pairs` of floats. `real_world` (RE, CRE) uses `mechanics` and `fitted_models`; `black_box`
(BBOB) has a single objective; `bits` has knapsacks and landscapes.
"""

from .bits import KnapsackData, Landscape, knapsack, knapsack_data, landscape, mnk
from .black_box import bbob
from .dtlz import (
    c1_dtlz1,
    c1_dtlz3,
    c2_dtlz2,
    c3_dtlz1,
    c3_dtlz4,
    convex_dtlz2,
    dtlz1,
    dtlz2,
    dtlz3,
    dtlz4,
    dtlz5,
    dtlz6,
    dtlz7,
    inverted_dtlz1,
    inverted_dtlz2,
    scale_objectives,
)
from .large_scale import lsmop
from .real_world import car_cab, engineering
from .walking_fish import wfg
from .zdt import zdt1, zdt2, zdt3, zdt4, zdt5, zdt6

__all__ = [
    "Landscape",
    "KnapsackData",
    "bbob",
    "c1_dtlz1",
    "c1_dtlz3",
    "c2_dtlz2",
    "c3_dtlz1",
    "c3_dtlz4",
    "car_cab",
    "convex_dtlz2",
    "dtlz1",
    "dtlz2",
    "dtlz3",
    "dtlz4",
    "dtlz5",
    "dtlz6",
    "dtlz7",
    "engineering",
    "inverted_dtlz1",
    "inverted_dtlz2",
    "knapsack",
    "landscape",
    "lsmop",
    "mnk",
    "knapsack_data",
    "scale_objectives",
    "wfg",
    "zdt1",
    "zdt2",
    "zdt3",
    "zdt4",
    "zdt5",
    "zdt6",
]
