"""Environments to and from other libraries, which are imported only where they are needed.

`from_gymnax` and `from_brax` put an environment of theirs under the protocol of this package,
`to_gymnasium` one of ours under theirs.
"""

from .from_brax import from_brax
from .from_gymnax import from_gymnax
from .to_gymnasium import to_gymnasium, to_gymnasium_vector

__all__ = ["from_brax", "from_gymnax", "to_gymnasium", "to_gymnasium_vector"]
