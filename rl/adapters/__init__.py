"""Adapters to other environment libraries, which are imported only when needed.

Read in this order: `gymnax` and `brax` wrap their environments for the protocol of this package;
`gymnasium` wraps an environment of this package, or many copies of it, for Gymnasium.
"""

from .brax import from_brax
from .gymnasium import register_gymnasium, to_gymnasium, to_gymnasium_vector
from .gymnax import from_gymnax

__all__ = [
    "from_brax",
    "from_gymnax",
    "register_gymnasium",
    "to_gymnasium",
    "to_gymnasium_vector",
]
