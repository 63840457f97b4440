"""The data of a mechanism: its static structure and its parameters.

Read `layout` first (structure), then `model` (parameters), `source` and `read` (conversion from
MuJoCo), `pairs` (geom pairs that can collide), `hulls` (of meshes) and `refusals`.
"""

from .layout import Layout, PairGroup
from .model import Mechanism

__all__ = ["Layout", "Mechanism", "PairGroup"]
