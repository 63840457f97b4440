"""Surgery by contact: needle and block are held between two blades by friction alone.

Read `tool` first, the needle driver as a robot, then `task`, what both tasks share; `needle` and
`block` are the tasks.
"""

from .block import PegTransferContact
from .needle import NeedlePickContact
from .task import ContactTask

__all__ = ["ContactTask", "NeedlePickContact", "PegTransferContact"]
