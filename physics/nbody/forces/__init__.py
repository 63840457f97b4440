"""Gravity: of bodies on each other, of relativity, and of a galaxy.

Read `sums` first, the sum over pairs that stores none, and `tiles`, its kernels on accelerators;
then `pairs`, acceleration and jerk by it, `snaps`, the snap too, and `hilo`, the same in pairs of
float32; `powers` are those of a distance. These have components first. `relativity` and
`potentials` take places [..., 3]; `tide` holds a cluster in a field.
"""

from . import hilo, pairs, potentials, powers, relativity, snaps, sums, tide, tiles

__all__ = ["hilo", "pairs", "potentials", "powers", "relativity", "snaps", "sums", "tide", "tiles"]
