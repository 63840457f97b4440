"""Coefficients of the log-Bessel functions, derived in exact arithmetic when first needed.

Uniform expansion: the logarithm of Debye's series (DLMF 10.41.3) is sum_k d_k(p) / v^k, p = v / s,
s = sqrt(v^2 + x^2). With d_k(p) = p^k D_k(p^2) that is sum_k D_k(w) / s^k, w = p^2, without a
division by v; at v = 0 it is Hankel's expansion and at x = 0 Stirling's.
"""

from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.polynomial import Polynomial


@cache
def debye(terms: int) -> list[list[Fraction]]:
    """D_1, ..., D_terms: ascending coefficients in w.

    >>> [str(c) for c in debye(1)[0]]
    ['1/8', '-5/24']
    """
    t = Polynomial([Fraction(0), Fraction(1)])
    a, b = t**2 * (1 - t**2) * Fraction(1, 2), (1 - 5 * t**2) * Fraction(1, 8)
    slopes = [b]  # d_k'; DLMF 10.41.9 makes the logarithm L obey v L' = (a L')' + a L'^2 + b
    for k in range(1, terms):
        square = sum((slopes[j] * slopes[k - 2 - j] for j in range(k - 1)), 0 * t)
        bend = [e * c for e, c in enumerate((a * slopes[-1]).coef)][1:]
        slopes.append(Polynomial(bend) + a * square)
    return [[d.coef[e - 1] / e for e in range(k, 3 * k + 1, 2)] for k, d in enumerate(slopes, 1)]


@cache
def uniform(least: float, accuracy: float) -> list[list[float]]:
    """As many D_k as the expansion needs to have a relative `accuracy` for all s >= `least`."""
    rows = [[float(c) for c in row] for row in debye(16)]
    sizes = [np.abs(np.polyval(row[::-1], np.linspace(0, 1, 65))).max() for row in rows]
    large = [k for k, size in enumerate(sizes) if size > accuracy * float(least) ** (k + 2)]
    return rows[: max(large, default=0) + 1]


@cache
def reciprocal_gamma(degree: int) -> list[float]:
    """Ascending coefficients of P, where 1 / Gamma(1 + t) = 1 + t P(t) for |t| <= 1/2.

    It interpolates at the Chebyshev points, with Gamma from Stirling's expansion at t + 40.

    >>> round(reciprocal_gamma(15)[0], 12)  # Euler's constant
    0.577215664902
    """
    stirling = [Decimal(c.numerator) / c.denominator for c in map(sum, debye(16))]

    def reciprocal(t: Decimal) -> Decimal:
        z = t + 40
        tail = sum(c / z**k for k, c in enumerate(stirling, 1))
        return (z - (z + Decimal("0.5")) * z.ln() + tail).exp() * np.prod(
            [t + j for j in range(1, 41)]
        )

    with localcontext(prec=50):
        nodes = [Decimal(float(c) / 2) for c in np.polynomial.chebyshev.chebpts1(degree + 1)]
        table = [(reciprocal(t) / reciprocal(Decimal(0)) - 1) / t for t in nodes]
        for k in range(1, degree + 1):  # divided differences
            for i in range(degree, k - 1, -1):
                table[i] = (table[i] - table[i - 1]) / (nodes[i] - nodes[i - k])
        fit = Polynomial(table[-1:])
        for t, c in zip(nodes[-2::-1], table[-2::-1]):
            fit = fit * Polynomial([-t, Decimal(1)]) + Polynomial([c])
        return [float(c) for c in fit.coef]
