"""Tools: rigid shapes that touch the material, and sources that inject and collect particles.

To read: `contact` (contact, and the motion of tools), `sources` (injectors and collectors).
"""

from .contact import Collider, SoftContact, Tool
from .sources import Collector, Injector, SourceCounts

__all__ = ["Collector", "Collider", "SourceCounts", "Injector", "SoftContact", "Tool"]
