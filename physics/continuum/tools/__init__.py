"""Tools: rigid shapes that touch the material, and sources that inject and collect particles.

To read: `collide` (contact, and the motion of tools), `sources` (injectors and collectors).
"""

from .collide import Collider, Soft, Tool
from .sources import Collector, Flow, Injector

__all__ = ["Collector", "Collider", "Flow", "Injector", "Soft", "Tool"]
