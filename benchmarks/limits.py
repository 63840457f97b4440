"""What this machine could do at most, measured beside what it does."""

import time

import numpy as np


def bytes_per_second() -> float:
    """Bytes read a second by the fastest of several sums over an array larger than the caches."""
    x = np.ones(1 << 25)
    return x.nbytes / _fastest(lambda: x.sum())


def flops_per_second() -> float:
    """Float64 operations a second of the fastest of several matrix products."""
    n = 1024
    a = np.ones((n, n))
    return 2 * n**3 / _fastest(lambda: a @ a)


def _fastest(work) -> float:
    seconds = []
    for _ in range(7):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return min(seconds)
