"""Pictures and films of tasks.

Read `film` first: it draws the episodes of any environment that has a method `scene`. `stage`
(classic tasks), `links` (robots) and `arms` (surgical tasks) say for the built-in tasks what stands
where.
"""

# `arms` builds on the tasks of arms, which build on this room: it is imported by name
from . import film, links, stage

__all__ = ["film", "links", "stage"]
