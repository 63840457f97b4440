"""Coefficients of the log-Bessel functions, derived in exact arithmetic when first needed.

Uniform expansion: with s = sqrt(v^2 + x^2) and w = (v / s)^2 the Debye terms u_k(p) / v^k of
DLMF 10.41.3 are q_k(w) / s^k, without a division by v. The logarithm of that formal series is
sum_k D_k(w) / s^k, with D_k of degree k. The recurrence for q_k is DLMF 10.41.9.

Reciprocal gamma: 1 / Gamma(1 + t) = 1 + t P(t) from its Taylor series at 0 (Euler's constant and
zeta values to 45 digits), economised to a given degree on |t| <= 1/2 by Chebyshev truncation.
"""

from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from typing import NamedTuple

type Rows = tuple[tuple[float, ...], ...]


class Uniform(NamedTuple):
    """Row k - 1 of each table holds ascending coefficients in w of the term s^-k."""

    log: Rows  # D_k of the logarithm
    slope: Rows  # E_k = k D_k + 2 w D_k', of its derivative in x
    order: Rows  # G_k = k D_k - 2 (1 - w) D_k', of its derivative in v


@cache
def uniform(terms: int) -> Uniform:
    """Tables of the expansion up to s^-terms.

    >>> [str(Fraction(c).limit_denominator(100)) for c in uniform(2).log[0]]
    ['1/8', '-5/24']
    """
    q = [[Fraction(1)]]
    for k in range(terms):
        row = [Fraction(0)] * (k + 2)
        for j, c in enumerate(q[-1]):
            e = k + 2 * j
            row[j] += c * (Fraction(e, 2) + Fraction(1, 8 * (e + 1)))
            row[j + 1] -= c * (Fraction(e, 2) + Fraction(5, 8 * (e + 3)))
        q.append(row)
    d: list[list[Fraction]] = []
    for k in range(1, terms + 1):
        row = [k * c for c in q[k]]
        for j in range(1, k):
            for a, da in enumerate(d[j - 1]):
                for b, qb in enumerate(q[k - j]):
                    row[a + b] -= j * da * qb
        d.append([c / k for c in row])
    grow = [[(k + 2 * j) * c for j, c in enumerate(row)] for k, row in enumerate(d, 1)]
    turn = [
        [g - 2 * j * c for j, (g, c) in enumerate(zip(up, [*row[1:], Fraction(0)]), 1)]
        for up, row in zip(grow, d)
    ]
    return Uniform(*(tuple(tuple(map(float, row)) for row in rows) for rows in (d, grow, turn)))


@cache
def reciprocal_gamma(degree: int) -> tuple[float, ...]:
    """Ascending coefficients of P, where 1 / Gamma(1 + t) = 1 + t P(t) for |t| <= 1/2.

    >>> round(reciprocal_gamma(14)[0], 12)  # Euler's constant
    0.577215664902
    """
    taylor = _reciprocal_gamma_taylor(40)[1:]
    chebyshev = [[Fraction(1)], [Fraction(0), Fraction(2)]]  # T_n(2 t) in powers of t
    while len(chebyshev) < len(taylor):
        last = [Fraction(0), *(4 * c for c in chebyshev[-1])]
        chebyshev.append([a - b for a, b in zip(last, [*chebyshev[-2], 0, 0])])
    for n in range(len(taylor) - 1, degree, -1):  # drop T_n, highest first
        drop = taylor[n] / chebyshev[n][n]
        taylor = [a - drop * b for a, b in zip(taylor[:n], chebyshev[n])]
    return tuple(map(float, taylor))


def _reciprocal_gamma_taylor(count: int) -> list[Fraction]:
    """Exponential of ln 1/Gamma(1 + t) = gamma t - sum_{k >= 2} zeta(k) (-t)^k / k, DLMF 5.7.3."""
    with localcontext(prec=50):
        a = [Decimal(0), _zeta(1)] + [(-1) ** (k + 1) * _zeta(k) / k for k in range(2, count)]
    powers, log = [Fraction(1)], [Fraction(c) for c in a]
    for k in range(1, count):
        powers.append(sum((j * log[j] * powers[k - j] for j in range(1, k + 1)), Fraction(0)) / k)
    return powers


def _zeta(s: int, cut: int = 20, terms: int = 20) -> Decimal:
    """Riemann's zeta(s) by Euler-Maclaurin summation; at s = 1 Euler's constant."""
    n = Decimal(cut)
    total = sum((Decimal(j) ** -s for j in range(1, cut)), Decimal(0)) + n**-s / 2
    total += -n.ln() if s == 1 else n ** (1 - s) / (s - 1)
    rising = Decimal(s)  # s (s + 1) ... (s + 2 k - 2) / (2 k)!, times n^(1 - s - 2 k)
    scale = rising / 2 * n ** (-s - 1)
    for k, b in enumerate(_bernoulli(terms), 1):
        total += Decimal(b.numerator) / b.denominator * scale
        scale *= Decimal((s + 2 * k - 1) * (s + 2 * k)) / ((2 * k + 1) * (2 * k + 2)) / n**2
    return total


@cache
def _bernoulli(count: int) -> list[Fraction]:
    """B_2, B_4, ..., B_{2 count} by the Akiyama-Tanigawa triangle."""
    row, out = [], []
    for m in range(2 * count + 1):
        row.append(Fraction(1, m + 1))
        for j in range(m, 0, -1):
            row[j - 1] = j * (row[j - 1] - row[j])
        out.append(row[0])
    return out[2::2]
