"""Random numbers of the BBOB instances, identical to COCO's.

Hansen, Finck, Ros & Auger (2009), INRIA report RR-6829, and the generator of their C program: a
linear congruential generator (Park & Miller) with a shuffle table of 32. float64 NumPy.
"""

import numpy as np

_MODULUS = 2147483647


def instance_seed(function: int, instance: int) -> int:
    """Return the seed of an instance; functions 3 and 4 (Rastrigin) share it, as do 17 and 18."""
    return {4: 3, 18: 17}.get(function, function) + 10000 * instance


def uniform(count: int, seed: int) -> np.ndarray:
    """Return numbers in (0, 1), [count]."""
    state = max(1, abs(seed))
    drawn = []
    for _ in range(40):
        state = _next_state(state)
        drawn.append(state)
    table = drawn[:7:-1]  # the last 32, the latest first
    last, out = table[0], np.zeros(count)
    for i in range(count):
        state = _next_state(state)
        slot = last // 67108865
        last, table[slot] = table[slot], state
        out[i] = last / 2.147483647e9
    return np.where(out == 0, 1e-99, out)


def _next_state(state: int) -> int:
    high = state // 127773
    state = 16807 * (state - high * 127773) - 2836 * high
    return state + _MODULUS if state < 0 else state


def normal(count: int, seed: int) -> np.ndarray:
    """Return standard normal numbers (Box & Muller), [count]."""
    u = uniform(2 * count, seed)
    g = np.sqrt(-2 * np.log(u[:count])) * np.cos(2 * np.pi * u[count:])
    return np.where(g == 0, 1e-99, g)


def optimum(dimension: int, seed: int) -> np.ndarray:
    """Return a point [D] of [-4, 4] with four decimals."""
    x = 8 * np.floor(1e4 * uniform(dimension, seed)) / 1e4 - 4
    return np.where(x == 0, -1e-5, x)


def rotation(dimension: int, seed: int) -> np.ndarray:
    """Return a random orthogonal matrix [D, D]: normal columns, orthogonalised from the left."""
    columns = normal(dimension * dimension, seed).reshape(dimension, dimension)
    for i, column in enumerate(columns):
        for before in columns[:i]:
            column -= (column @ before) * before
        column /= np.sqrt(column @ column)
    return columns.T


def optimal_value(function: int, instance: int) -> float:
    """Return the optimal value that COCO adds to the function, a multiple of 0.01 in [-1000, 1000].

    >>> optimal_value(1, 1)
    79.48
    """
    s = instance_seed(function, instance)
    ratio = normal(1, s)[0] / normal(1, s + 1)[0]
    return float(np.clip(np.floor(100 * 100 * ratio + 0.5) / 100, -1000, 1000))


def peaks(dimension: int, count: int, seed: int) -> tuple[np.ndarray, ...]:
    """Return Gallagher's peaks: heights [P], unrotated positions [P, D], squared scales [P, D]."""
    first, spread, shift = {101: (1000**0.5, 10.0, 5.0), 21: (1000.0, 9.8, 4.9)}[count]
    share = np.arange(count - 1) / (count - 2)
    lot = np.argsort(uniform(count - 1, seed), kind="stable")
    condition = np.append(first, 1000.0 ** share[lot])
    heights = np.append(10.0, 1.1 + 8 * share)
    scales = np.stack(
        [
            c ** (np.argsort(uniform(dimension, seed + 1000 * i)) / (dimension - 1) - 0.5)
            for i, c in enumerate(condition)
        ]
    )
    places = spread * uniform(count * dimension, seed).reshape(count, dimension) - shift
    places[0] *= 0.8
    return heights, places, scales
