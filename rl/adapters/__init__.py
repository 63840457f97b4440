"""Environments to and from other libraries, which are imported only where they are needed.

To be read in this order: `gymnax` and `brax` put an environment of theirs under the protocol of
this package, `gymnasium` puts one of ours, or many copies of it, under theirs.
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
