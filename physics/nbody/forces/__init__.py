"""Gravity: of bodies on each other, of relativity, and of a galaxy.

Read `sums` first, the sum over pairs that stores none; then `pairs`, acceleration and jerk by it,
`snaps`, the snap too, and `hilo`, the same in pairs of float32. These kernels have components
first. `relativity` and `potentials` take places [..., 3]; `tide` holds a cluster in a field.
"""

from . import hilo, pairs, potentials, relativity, snaps, sums, tide

__all__ = ["hilo", "pairs", "potentials", "relativity", "snaps", "sums", "tide"]
