"""The houses and episodes of a task for which none were given."""

import functools

from .. import houses as drawn
from ..house import House
from . import episodes as made
from .episodes import Episodes

HOUSES, COUNT = 4, 8  # and episodes in each


def standard(kind: str, houses: House | None, episodes: Episodes | None) -> Episodes:
    """The episodes given, or those that are drawn in the houses given, or in four houses.

    Args:
        kind: "fetching", "grasping" or "visiting".
        houses: with a leading axis, or None.
        episodes: or None.

    Raises:
        ValueError: houses and episodes, which have houses of their own.
    """
    if episodes is not None:
        if houses is not None:
            raise ValueError(
                "make: houses and episodes were given; it must be one of these, as episodes have "
                "houses of their own"
            )
        return episodes
    if houses is None:
        return _four(kind)
    return getattr(made, kind)(houses, COUNT)


@functools.cache
def _four(kind: str) -> Episodes:
    return getattr(made, kind)(drawn.generate_many(range(HOUSES)), COUNT)
