"""What mechanisms are.

Read `layout` first (what is where), then `model` (its numbers), `source` and `read` (how they come
from MuJoCo), `pairs` (which shapes may touch), `hulls` (of meshes) and `refusals`.
"""

from .layout import Layout, PairGroup
from .model import Mechanism

__all__ = ["Layout", "Mechanism", "PairGroup"]
