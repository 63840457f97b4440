"""Devices of a program: memory, precision, several devices, several processes.

Read `memory` and `allocation` first (estimates of the memory that a program needs), then
`precision`, `mesh` and `processes` (several devices and processes), `primitive` and `kernels`
(custom derivatives and implementations) and `machine` (versions, processor and flags).
"""

from .processes import distributed

__all__ = ["distributed"]
