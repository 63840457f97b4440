"""Gravity: between bodies, with relativistic corrections, and from a galaxy.

Read `sums` first (pair sums that store no value per pair) and `tiles` (their GPU and TPU kernels).
Then read `pairs` (acceleration and jerk), `snaps` (also the snap), `hilo` (the same in pairs of
float32) and `powers` (inverse powers of the distance). These have components first. `relativity`
and `potentials` take positions [..., 3]; `tide` places a cluster in an external field.
"""

from . import hilo, pairs, potentials, powers, relativity, snaps, sums, tide, tiles

__all__ = ["hilo", "pairs", "potentials", "powers", "relativity", "snaps", "sums", "tide", "tiles"]
