"""Leapfrogs of order 2, 4, 6 and 8: symplectic, reversible steps of fixed length.

The second order is drift, kick, drift (Verlet). The higher ones are symmetric chains of it: order 4
of five steps (Suzuki 1990, doi:10.1016/0375-9601(90)90962-N), order 6 of nine and order 8 of
seventeen (Kahan & Li 1997, doi:10.1090/S0025-5718-97-00873-9, s9odr6a and s17odr8a), which err
10 to 100 times less at the same cost than the shortest chains of Yoshida (1990),
doi:10.1016/0375-9601(90)90092-3. Drifts that meet are one drift: a step costs 1, 5, 9 or 17 forces.

The number of steps is static, so gradients run through in both modes.
"""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu import ranges

from .. import bodies

_HALVES = {
    2: (1.0,),
    # x + x + (1 - 4 x) + x + x, where 4 x^3 + (1 - 4 x)^3 = 0
    4: (1 / (4 - 4 ** (1 / 3)), 1 / (4 - 4 ** (1 / 3)), 1 - 4 / (4 - 4 ** (1 / 3))),
    6: (
        0.39216144400731413928,
        0.33259913678935943860,
        -0.70624617255763935981,
        0.08221359629355080023,
        0.79854399093482996340,
    ),
    8: (
        0.13020248308889008088,
        0.56116298177510838456,
        -0.38947496264484728641,
        0.15884190655515560090,
        -0.39590389413323757734,
        0.18453964097831570709,
        0.25837438768632204729,
        0.29501172360931029887,
        -0.60550853383003451170,
    ),
}
CHAINS = {order: np.array([*half, *half[-2::-1]]) for order, half in _HALVES.items()}

# (time, positions) -> accelerations of their shape
Force = Callable[[Array, Array], Array]


def walk(
    force: Force, x: Array, v: Array, time: tuple, steps: int, order: int = 2
) -> tuple[Array, Array]:
    """Positions and velocities after `steps` equal steps between two times.

    Args:
        force: `force(t, x)`, the acceleration at positions x of any shape.
        x: positions at the start.
        v: velocities there, of the same shape.
        time: start and end; the end may be the earlier.
        steps: how many.
        order: 2, 4, 6 or 8.

    Differentiable in x, v, time and whatever `force` closes over; reverse mode keeps every stage.

    >>> pull = lambda t, x: -x
    >>> x, v = walk(pull, jnp.ones(1), jnp.zeros(1), (0.0, jnp.pi), 20, order=8)
    >>> x.round(5).tolist()
    [-1.0]
    """
    if not isinstance(order, int) or order not in CHAINS:
        raise ValueError(f"walk: order {order}; must be one of {', '.join(map(str, CHAINS))}")
    ranges.numbers("walk: steps", steps, (), whole=True, least=1)
    start, end = time
    for moment in time:
        ranges.numbers("walk: time", moment, ())
    x, v = bodies.numbers("walk: x", x), bodies.numbers("walk: v", v)
    if x.shape != v.shape:
        raise ValueError(f"walk: x {list(x.shape)}, v {list(v.shape)}; must be of one shape")
    x, v = bodies.one_precision("walk", x=x, v=v)
    dt = jnp.asarray((end - start) / steps, x.dtype)
    kicks = CHAINS[order]
    # half of the chain's neighbours on either side of a kick; the first and last half are apart
    drifts = np.concatenate([(kicks[1:] + kicks[:-1]) / 2, [(kicks[-1] + kicks[0]) / 2]])
    places = np.cumsum(np.concatenate([[kicks[0] / 2], drifts[:-1]]))

    def step(carry: tuple[Array, Array], k: Array) -> tuple[tuple[Array, Array], None]:
        x, v = carry
        for kick, drift, place in zip(kicks.tolist(), drifts.tolist(), places.tolist()):
            v = v + dt * kick * force(start + (k + place) * dt, x)
            x = x + dt * drift * v
        return (x, v), None

    first = float(kicks[0] / 2)
    index = jnp.arange(steps, dtype=x.dtype)
    (x, v), _ = lax.scan(step, (x + dt * first * v, v), index)
    return x - dt * first * v, v
