"""Surgical tasks with contact: only friction holds needle and block between two blades.

Read `tool` first, the needle driver as a robot, then `task`, the base class of both tasks; `needle`
and `block` are the tasks.
"""

from .block import PegTransferContact
from .needle import NeedlePickContact
from .task import ContactTask

__all__ = ["ContactTask", "NeedlePickContact", "PegTransferContact"]
