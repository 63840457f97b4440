"""The data of a mechanism: its static structure and its parameters.

Read `layout` first (structure), then `mechanism` (parameters), `source` and `conversion`
(conversion from MuJoCo), `pairs` (geom pairs that can collide), `hulls` (of meshes) and
`feature_checks`.
"""

from .layout import Layout, PairGroup
from .mechanism import Mechanism

__all__ = ["Layout", "Mechanism", "PairGroup"]
