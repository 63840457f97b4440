"""Make a table of log I_v(x), log K_v(x), derivatives and ratios to 25 digits, as test points.

    pip install python-flint
    python docs/make/bessel_points.py SEED ROWS > table.csv

The columns are those of tests/numerics/log_bessel.csv.gz; seed 4 and 1500 rows make
tests/numerics/log_bessel_edges.csv.gz. Values are computed by Arb, in ball arithmetic with the
precision doubled until the ball is 95 bits narrow, so that every digit is certain. Derivatives in
the order use a complex step of 2^(-precision / 3).
"""

import sys
from importlib import import_module

import numpy as np

COLUMNS = "v,x,log_iv,log_kv,dlogiv_dv,dlogkv_dv,ratio_i,ratio_k,f32_exact,stratum"


def points(seed: int, rows: int) -> list[tuple[float, float, str]]:
    """Return random points, mostly at branch limits, at special orders and where K is nearly 1."""
    rng = np.random.default_rng(seed)
    n = max(1, rows // 23)
    log_uniform = lambda low, high: np.exp(rng.uniform(np.log(low), np.log(high), n))
    factors_near_one = lambda: 1 + rng.choice([-1, 1], n) * 10 ** -rng.uniform(1, 16, n)
    near_integers = lambda: (
        rng.integers(0, 24, n) + rng.choice([-1, 1], n) * 10 ** -rng.uniform(0.5, 16, n)
    )
    blocks = {
        "wide": (log_uniform(1e-12, 3e3), log_uniform(1e-12, 3e3)),
        "disk": (rng.uniform(0, 24, n), rng.uniform(0, 24, n)),
        "small": (log_uniform(1e-4, 2), log_uniform(1e-3, 2)),
        "zero of log K": (rng.uniform(0, 2, n), rng.uniform(0.1, 1.5, n)),
        "order 0": (np.zeros(n), log_uniform(1e-3, 60)),
        "tiny order": (log_uniform(1e-14, 1e-2), log_uniform(1e-3, 30)),
        "integer": (np.abs(near_integers()), log_uniform(1e-4, 24)),
        "half-integer": (np.abs(near_integers() - 0.5), log_uniform(1e-4, 24)),
        "series edge": (rng.uniform(0, 24, n), 0.375 * factors_near_one()),
    }
    for name, length in (
        ("edge 24", 24 * factors_near_one()),
        ("edge 10", 10 * factors_near_one()),
        ("arc", log_uniform(8, 60)),
    ):
        turn = rng.uniform(0, np.pi / 2, n)
        blocks[name] = length * np.sin(turn), length * np.cos(turn)
    x = log_uniform(1e-3, 30)
    blocks["diagonal"] = x * factors_near_one(), x
    single = {
        f"float32 {name}": tuple(a.astype(np.float32).astype(np.float64) for a in block)
        for name, block in list(blocks.items())[:11]
        if name != "edge 24"
    }
    found = [(v, x, name) for name, block in (blocks | single).items() for v, x in zip(*block)]
    return [(float(v), float(x), name) for v, x, name in found if x > 0]


def row(v: float, x: float, name: str) -> str:
    """Return one line of the table."""
    ctx = import_module("flint").ctx
    for precision in (256, 512, 1024, 2048, 4096, 8192):
        ctx.prec = precision
        values = _arb_values(v, x)
        if all(a.is_finite() and (a == 0 or a.rel_accuracy_bits() > 95) for a in values):
            digits = [a.mid().str(25, radius=False) for a in values]
            exact = int(all(float(np.float32(a)) == a for a in (v, x)))
            return ",".join([repr(v), repr(x), *digits, str(exact), name])
    raise ArithmeticError(
        f"bessel_table: v={v}, x={x}; Arb needs more than 8192 bits; choose another"
    )


def _arb_values(v: float, x: float) -> list:
    flint = import_module("flint")
    acb, arb, ctx = flint.acb, flint.arb, flint.ctx
    order, at = arb(v), arb(x)
    step = arb(2) ** (-(ctx.prec // 3))
    lifted = acb(order, step)
    i, k = at.bessel_i(order, scaled=True), at.bessel_k(order, scaled=True)
    by_order = []
    for lift in (acb(at).bessel_i(lifted), acb(at).bessel_k(lifted)):
        # exact except for terms in step^2, far below the digits that are kept
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
