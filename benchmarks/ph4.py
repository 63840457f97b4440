"""ph4 of AMUSE, a fourth-order Hermite code with block steps, called in this process without MPI.

No package of ph4 installs by pip, so it must be built by hand, and the variable `PH4` must hold the
path of the library. Compile its interface and the sources in the same folder, except grape.cc and
the programs, together with AMUSE's stopping conditions: `g++ -O3 -march=native -ffast-math -DNOMPI
-fPIC -shared`. If `PH4` is not set, the entries have one contender less.
"""

import ctypes
import os
from collections.abc import Callable
from functools import cache

import numpy as np

from benchmarks.harness import Contender

# names as mangled by g++
_NEW, _STATE = "_Z12new_particlePiddddddddi", "_Z9get_stateiPdS_S_S_S_S_S_S_"


def contenders(
    stars: np.ndarray,
    span: float,
    softening: float,
    error: Callable[[np.ndarray], dict[str, float]],
    etas: tuple[float, ...],
) -> list[Contender]:
    """Return a contender per eta if ph4 is installed; stars [6, N] of equal mass, total 1."""
    if "PH4" not in os.environ:
        return []
    run = lambda eta: error(_evolve(stars, span, softening, eta))
    return [Contender(f"ph4 of AMUSE, eta = {eta}", lambda eta=eta: run(eta)) for eta in etas]


@cache
def _load_library() -> ctypes.CDLL:
    return ctypes.CDLL(os.environ["PH4"])


def _evolve(stars: np.ndarray, span: float, softening: float, eta: float) -> np.ndarray:
    """Return the stars [6, N] at the end."""
    ph4, real = _load_library(), ctypes.c_double
    ph4._Z15initialize_codev()
    ph4._Z8set_eps2d(real(softening**2))
    ph4._Z7set_etad(real(eta))
    ph4._Z21set_manage_encountersi(0)
    ph4._Z14set_force_synci(1)  # all stars are advanced exactly to the end
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
