"""Peak memory bandwidth and arithmetic rate of this machine, measured."""

import time

import numpy as np


def bytes_per_second() -> float:
    """Return the bytes read per second by the fastest sum over an array beyond the caches."""
    x = np.ones(1 << 25)
    return x.nbytes / _min_seconds(lambda: x.sum())


def flops_per_second() -> float:
    """Return the float64 operations per second of the fastest of several matrix products."""
    n = 1024
    a = np.ones((n, n))
    return 2 * n**3 / _min_seconds(lambda: a @ a)


def _min_seconds(work) -> float:
    seconds = []
    for _ in range(7):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return min(seconds)
