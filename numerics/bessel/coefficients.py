"""Coefficients of the log-Bessel functions, derived in exact arithmetic on first use.

Uniform expansion: the logarithm of Debye's series (DLMF 10.41.3) is sum_k d_k(p) / v^k, p = v / s,
s = sqrt(v^2 + x^2). With d_k(p) = p^k D_k(p^2) it becomes sum_k D_k(w) / s^k, w = p^2, without a
division by v. At v = 0 it is Hankel's expansion, and at x = 0 Stirling's.
"""

from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.polynomial import Polynomial
from numpy.polynomial.chebyshev import chebpts1


@cache
def debye(terms: int) -> list[list[Fraction]]:
    """Return D_1, ..., D_terms, each as ascending coefficients in w.

    >>> [str(c) for c in debye(1)[0]]
    ['1/8', '-5/24']
    """
    t = Polynomial([Fraction(0), Fraction(1)])
    a, b = t**2 * (1 - t**2) * Fraction(1, 2), (1 - 5 * t**2) * Fraction(1, 8)
    slopes = [b]  # d_k'; by DLMF 10.41.9 the logarithm L satisfies v L' = (a L')' + a L'^2 + b
    for k in range(1, terms):
        square = sum((slopes[j] * slopes[k - 2 - j] for j in range(k - 1)), 0 * t)
        bend = [e * c for e, c in enumerate((a * slopes[-1]).coef)][1:]
        slopes.append(Polynomial(bend) + a * square)
    return [[d.coef[e - 1] / e for e in range(k, 3 * k + 1, 2)] for k, d in enumerate(slopes, 1)]


@cache
def uniform_terms(least: float, accuracy: float) -> list[list[float]]:
    """Return enough D_k for the expansion to have a relative `accuracy` for all s >= `least`."""
    rows = [[float(c) for c in row] for row in debye(16)]
    sizes = [np.abs(np.polyval(row[::-1], np.linspace(0, 1, 65))).max() for row in rows]
    least = min(float(least), 1e18)  # one term suffices far below 1e18, whose powers are finite
    large = [k for k, size in enumerate(sizes) if size > accuracy * least ** (k + 2)]
    return rows[: max(large, default=0) + 1]


@cache
def reciprocal_gamma(degree: int) -> list[float]:
    """Return ascending coefficients of P in 1 / Gamma(1 + t) = 1 + t P(t) for |t| <= 1/2.

    They are Taylor coefficients, from the series of the digamma function (DLMF 5.7.1-4).

    >>> round(reciprocal_gamma(15)[0], 12)  # Euler's constant
    0.577215664902
    """
    from scipy.special import zeta

    digamma = [np.euler_gamma, *((-1) ** k * zeta(k + 1) for k in range(1, degree + 1))]
    terms = [1.0]
    for k in range(1, degree + 2):
        terms.append(float(np.dot(digamma[:k], terms[::-1])) / k)
    return terms[1:]


@cache
def low_order_k(low: float, high: float, shape: tuple[int, int]) -> list[list[float]]:
    """Return ascending coefficients in z, each ascending in 4 t^2, of the polynomial G in

        sqrt(2 x / pi) e^x K_t(x) = 1 + (t^2 - 1/4) G,    low <= x <= high, |t| <= 1/2,

    where z = log(x^2 / (low high)) / log(high / low) lies between -1 and 1. G interpolates, at
    Chebyshev points, the trapezoidal rule for DLMF 10.32.9, which converges geometrically.

    >>> table = low_order_k(0.5, 8.0, (29, 8))
    >>> round(1 - table[0][0] / 4, 8)  # at z = 0, x = 2, t = 0: 2 exp(2) K_0(2) / sqrt(pi)
    0.94960804
    """
    with localcontext(prec=40):
        z, w = (np.array([Decimal(c) for c in chebpts1(count)]) for count in shape)
        w, ends = (w + 1) / 2, np.array([Decimal(low).ln(), Decimal(high).ln()])
        x = np.exp((ends.sum() + (ends[1] - ends[0]) * z) / 2)
        r = np.array([k * Decimal("0.08") for k in range(80)])
        weights = np.exp(-np.outer(x, _cosh(r) - 1)) * np.where(r == 0, 1, 2)
        k, half = weights @ _cosh(np.outer(r, np.sqrt(w) / 2)), weights @ _cosh(r / 2)
        values = 4 * (k / half[:, None] - 1) / (w - 1)  # K_{1/2} is the case without G
        return _interpolate(w, _interpolate(z, values).T).T.astype(float).tolist()


def _cosh(a: np.ndarray) -> np.ndarray:
    return (np.exp(a) + np.exp(-a)) / 2


def _interpolate(nodes: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return ascending coefficients [n, m] of polynomials with `values` [n, m] at `nodes` [n]."""
    table = values.copy()
    for k in range(1, len(nodes)):  # divided differences
        table[k:] = (table[k:] - table[k - 1 : -1]) / (nodes[k:] - nodes[:-k])[:, None]
    fit = table[-1:]
    for node, value in zip(nodes[-2::-1], table[-2::-1]):  # expand Newton's form
        fit = np.vstack([value, fit]) - node * np.vstack([fit, 0 * value])
    return fit
