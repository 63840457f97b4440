"""Neuroevolution: policy weights optimized without gradients.

Read `neuroevolution` first (the returns of policies as an objective of their weights), then `es`,
the learner whose updates are generations of a search on this objective.
"""

from .es import ES
from .neuroevolution import ObjectiveState, PolicyObjective

__all__ = ["ES", "ObjectiveState", "PolicyObjective"]
