"""Default houses and episodes of the tasks."""

import functools

from .. import houses as drawn
from ..house import House
from . import episodes as made
from .episodes import Episodes

NUM_HOUSES, NUM_EPISODES = 4, 8  # houses, and episodes per house


def resolve_episodes(kind: str, houses: House | None, episodes: Episodes | None) -> Episodes:
    """Return the given episodes, or make them in the given houses or in four default ones.

    Args:
        kind: "fetch_episodes", "grasp_episodes" or "visit_episodes".
        houses: with a leading axis, or None.
        episodes: or None.

    Raises:
            ValueError: both houses and episodes are given; episodes have their own houses.
    """
    if episodes is not None:
        if houses is not None:
            raise ValueError(
                "make: houses and episodes were both given; give one of them; episodes contain "
                "their houses"
            )
        return episodes
    if houses is None:
        return _default_episodes(kind)
    return getattr(made, kind)(houses, NUM_EPISODES)


@functools.cache
def _default_episodes(kind: str) -> Episodes:
    return getattr(made, kind)(drawn.generate_many(range(NUM_HOUSES)), NUM_EPISODES)
