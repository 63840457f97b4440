"""Tools: rigid shapes that touch matter, and sources that let it in and take it out.

To read: `collide` (contact, and how tools move), `sources` (injectors and collectors).
"""

from .collide import Collider, Soft, Tool
from .sources import Collector, Flow, Injector

__all__ = ["Collector", "Collider", "Flow", "Injector", "Soft", "Tool"]
