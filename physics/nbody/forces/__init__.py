"""Gravity: between bodies, with relativistic corrections, and from a galaxy.

Read `pair_sums` first (pair sums that store no value per pair) and `pair_kernels` (their GPU and
TPU kernels). Then read `pairs` (acceleration and jerk), `snaps` (also the snap), `hilo` (the same
in pairs of float32) and `powers` (inverse powers of the distance). These have components first.
`relativity` and `potentials` take positions [..., 3]; `tide` places a cluster in an external field.
"""

from . import hilo, pair_kernels, pair_sums, pairs, potentials, powers, relativity, snaps, tide

__all__ = [
    "hilo",
    "pairs",
    "potentials",
    "powers",
    "relativity",
    "snaps",
    "pair_sums",
    "tide",
    "pair_kernels",
]
