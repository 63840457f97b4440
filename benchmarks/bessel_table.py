"""Make a table of log I_v(x), log K_v(x), derivatives and ratios to 25 digits: fresh test points.

    pip install python-flint
    python -m benchmarks.bessel_table SEED ROWS > table.csv

The columns are those of tests/numerics/log_bessel.csv.gz. Values are Arb's, in ball arithmetic with
the precision doubled until the ball is 95 bits narrow, so that every digit is certain; derivatives
in the order are a complex step of 2^(-precision / 3).
"""

import sys
from importlib import import_module

import numpy as np

COLUMNS = "v,x,log_iv,log_kv,dlogiv_dv,dlogkv_dv,ratio_i,ratio_k,f32_exact,stratum"


def points(seed: int, rows: int) -> list[tuple[float, float, str]]:
    """Random points: all magnitudes, the disk, its edge, half-integers, the diagonal, zeros."""
    rng = np.random.default_rng(seed)
    each = max(1, rows // 6)
    wide = np.exp(rng.uniform(np.log(1e-12), np.log(2e3), (each, 2)))
    disk = rng.uniform(0, 24, (each, 2))
    angle = rng.uniform(0, np.pi / 2, each)
    radius = rng.choice([10.0, 24.0], each) * (
        1 + rng.choice([-1, 1], each) * 10 ** -rng.uniform(1, 16, each)
    )
    edge = np.stack([radius * np.sin(angle), radius * np.cos(angle)], 1)
    half = np.stack(
        [
            rng.integers(0, 24, each) + rng.choice([0.0, 0.5, 1e-9, 0.5 - 1e-9], each),
            np.exp(rng.uniform(np.log(1e-6), np.log(30), each)),
        ],
        1,
    )
    v = np.exp(rng.uniform(np.log(1e-3), np.log(2e3), each))
    diagonal = np.stack([v, v * (1 + rng.choice([0.0, 1e-15, 1e-6], each))], 1)
    zero = np.stack([rng.uniform(0, 1.5, each), rng.uniform(0.2, 1.4, each)], 1)
    single = [a.astype(np.float32).astype(np.float64) for a in (wide, disk, edge, half)]
    named = [("wide", wide), ("disk", disk), ("edge", edge), ("half", half), ("diagonal", diagonal)]
    named += [("zero", zero)] + [(f"float32 {i}", a) for i, a in enumerate(single)]
    return [(float(v), float(x), name) for name, block in named for v, x in block]


def row(v: float, x: float, name: str) -> str:
    """One line of the table."""
    ctx = import_module("flint").ctx
    for precision in (256, 512, 1024, 2048, 4096, 8192):
        ctx.prec = precision
        values = _values(v, x)
        if all(a.is_finite() and (a == 0 or a.rel_accuracy_bits() > 95) for a in values):
            digits = [a.mid().str(25, radius=False) for a in values]
            exact = int(all(float(np.float32(a)) == a for a in (v, x)))
            return ",".join([repr(v), repr(x), *digits, str(exact), name])
    raise ArithmeticError(
        f"bessel_table: v={v}, x={x}; Arb needs more than 8192 bits; choose another"
    )


def _values(v: float, x: float) -> list:
    flint = import_module("flint")
    acb, arb, ctx = flint.acb, flint.arb, flint.ctx
    order, at = arb(v), arb(x)
    step = arb(2) ** (-(ctx.prec // 3))
    lifted = acb(order, step)
    i, k = at.bessel_i(order, scaled=True), at.bessel_k(order, scaled=True)
    by_order = []
    for lift in (acb(at).bessel_i(lifted), acb(at).bessel_k(lifted)):
        # exact but for terms in step^2, far below the digits that are kept
        by_order.append(lift.log().imag / step)
    up_i, up_k = at.bessel_i(order + 1, scaled=True), at.bessel_k(order + 1, scaled=True)
    by_k = arb(0) if v == 0 else by_order[1]
    return [i.log() + at, k.log() - at, by_order[0], by_k, up_i / i, up_k / k]


def main() -> None:
    """Print a table."""
    seed, rows = map(int, sys.argv[1:3])
    print(COLUMNS)
    for point in points(seed, rows):
        print(row(*point))


if __name__ == "__main__":
    main()
