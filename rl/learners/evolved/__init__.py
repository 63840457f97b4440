"""Weights of a policy found by evolution.

Read `neuroevolution` first (the returns of policies as an objective of their weights), then `es`,
the learner whose updates are steps of a search by it.
"""

from .es import ES
from .neuroevolution import Experience, Policies

__all__ = ["ES", "Experience", "Policies"]
