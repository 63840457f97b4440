"""Dominance: exact ranks for any number of objectives, and crowding distances.

Reading order: `domination` defines the fronts and selects one of `fronts2` (two objectives),
`fronts3` (three, many points) and `chains` (all other cases). `order` has the sorts that they
share; `crowding` is NSGA-II's distance within a front.
"""

from .crowding import crowding_distance
from .domination import dominates, is_non_dominated, ranks

__all__ = ["crowding_distance", "dominates", "is_non_dominated", "ranks"]
