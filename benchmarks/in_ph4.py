"""ph4 of AMUSE, Hermite steps of order four in blocks, called in this process without MPI.

No package of it installs by pip alone, so it is built by hand and named by the variable `PH4`:
compile its interface and what lies beside it, but for grape.cc and the programs, together with
AMUSE's stopping conditions, `g++ -O3 -march=native -ffast-math -DNOMPI -fPIC -shared`. Where `PH4`
is not set the entries have one contender less.
"""

import ctypes
import os
from collections.abc import Callable
from functools import cache

import numpy as np

from benchmarks.harness import Contender

# names as g++ writes them
_NEW, _STATE = "_Z12new_particlePiddddddddi", "_Z9get_stateiPdS_S_S_S_S_S_S_"


def contenders(
    stars: np.ndarray,
    span: float,
    softening: float,
    error: Callable[[np.ndarray], dict[str, float]],
    etas: tuple[float, ...],
) -> list[Contender]:
    """One for each eta, where ph4 is at hand; stars [6, N] of equal mass and total mass 1."""
    if "PH4" not in os.environ:
        return []
    run = lambda eta: error(_evolved(stars, span, softening, eta))
    return [Contender(f"ph4 of AMUSE, eta = {eta}", lambda eta=eta: run(eta)) for eta in etas]


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(os.environ["PH4"])


def _evolved(stars: np.ndarray, span: float, softening: float, eta: float) -> np.ndarray:
    """The stars [6, N] at the end."""
    ph4, real = _library(), ctypes.c_double
    ph4._Z15initialize_codev()
    ph4._Z8set_eps2d(real(softening**2))
    ph4._Z7set_etad(real(eta))
    ph4._Z21set_manage_encountersi(0)
    ph4._Z14set_force_synci(1)  # all stars to the end, and not beyond it
    ph4._Z17commit_parametersv()
    count, one = stars.shape[1], ctypes.c_int()
    names = []
    for star in stars.T:
        numbers = map(real, (1 / count, *star, 0.0))
        getattr(ph4, _NEW)(ctypes.byref(one), *numbers, -1)
        names.append(one.value)
    ph4._Z16commit_particlesv()
    ph4._Z12evolve_modeld(real(span))
    end, row = np.empty((8, count)), (real * 8)()
    for i, name in enumerate(names):
        getattr(ph4, _STATE)(name, *(ctypes.byref(row, 8 * k) for k in range(8)))
        end[:, i] = row
    ph4._Z12cleanup_codev()
    return end[1:7]
