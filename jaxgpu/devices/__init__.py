"""What a program meets on its devices: memory, precision, several devices, several processes.

Read `memory` and `allocation` first (what a program will need, and refusals), then `precision`,
`mesh` and `processes` (many devices, many processes), `primitive` and `kernels` (functions with a
derivative or an implementation of their own) and `machine` (versions, processor and flags).
"""

from .processes import distributed

__all__ = ["distributed"]
