"""Leapfrogs of order 2, 4, 6 and 8: symplectic, reversible steps of fixed length.

The second order is drift, kick, drift (Verlet). The higher ones are symmetric chains of it: order 4
of five steps (Suzuki 1990, doi:10.1016/0375-9601(90)90962-N), order 6 of nine and order 8 of
seventeen (Kahan & Li 1997, doi:10.1090/S0025-5718-97-00873-9, s9odr6a and s17odr8a), which err
10 to 100 times less at the same cost than the shortest chains of Yoshida (1990),
doi:10.1016/0375-9601(90)90092-3. Drifts that meet within a step are one drift: a step costs 1, 5, 9
or 17 forces.

Gradients run through `jaxgpu.runs.rollout` of the step in both modes; the reverse one keeps every
step.
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import Partial

from jaxgpu.inputs import ranges
from jaxgpu.inputs.fields import number, pytree, size

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


@pytree
class State:
    """Where the bodies are; x and v are of one moment."""

    x: Array  # [...] positions
    v: Array  # [...] velocities
    start: Array  # [] time at which the first step began
    steps: Array  # [] int32: steps taken since


@pytree
class Leapfrog:
    """A force and how to step in it.

    `force(t, x)` is the acceleration at positions x of any shape. What a `functools.partial` or
    `jax.tree_util.Partial` of it carries are leaves, so other numbers are the same program, and
    gradients run through them; a function alone is compiled in.

    >>> spec = Leapfrog(lambda t, x: -x, dt=jnp.pi / 20, order=8)
    >>> state = spec.init(jnp.ones(1), jnp.zeros(1))
    >>> for _ in range(20):
    ...     state = spec.step(state)
    >>> state.x.round(4).tolist(), round(float(spec.time(state)), 4)
    ([-1.0], 3.1416)
    """

    force: Force  # (time, x) -> acceleration, in the shape of x
    dt: Array | float = number(unit="time")  # [] step; negative: backwards
    order: int = size(default=2, least=2, most=8)  # 2, 4, 6 or 8

    def __post_init__(self) -> None:
        if callable(self.force) and jax.tree.structure(self.force).num_nodes == 1:
            object.__setattr__(self, "force", _as_pytree(self.force))

    def init(self, x: Array, v: Array, t: Array | float = 0.0) -> State:
        """The state at time `t`, for positions and velocities of one shape.

        Raises:
            ValueError: an order that there is not, values that are not finite, unlike shapes, two
                floating types.
            TypeError: a force that cannot be called.
        """
        name = "Leapfrog.init"
        if not callable(self.force):
            raise TypeError(f"{name}: force={self.force!r:.40}; it must be a function of t and x")
        ranges.check(name, self)
        if self.order not in CHAINS:
            orders = ", ".join(map(str, CHAINS))
            raise ValueError(f"{name}: order={self.order}; it must be one of {orders}")
        ranges.numbers(f"{name}: dt", self.dt, ())
        t = ranges.numbers(f"{name}: t", t, ())
        x, v = bodies.numbers(f"{name}: x", x), bodies.numbers(f"{name}: v", v)
        if x.shape != v.shape:
            raise ValueError(f"{name}: x {list(x.shape)}, v {list(v.shape)}; must be of one shape")
        x, v = bodies.one_precision(name, x=x, v=v)
        return State(x=x, v=v, start=jnp.asarray(t, x.dtype), steps=jnp.int32(0))

    def step(self, state: State) -> State:
        """The state `dt` later."""
        kicks = CHAINS[self.order]
        # half of the chain's neighbours on either side of a kick; the last half stands alone
        drifts = np.append((kicks[1:] + kicks[:-1]) / 2, kicks[-1] / 2)
        places = np.cumsum(np.append(kicks[0] / 2, drifts[:-1]))  # of the kicks, in steps
        dt = jnp.asarray(self.dt, state.x.dtype)
        # counted, not summed: the time of the last of many steps is as good as that of the first
        k = state.steps.astype(dt.dtype)
        v = state.v
        x = state.x + dt * float(kicks[0] / 2) * v
        for kick, drift, place in zip(kicks.tolist(), drifts.tolist(), places.tolist()):
            v = v + dt * kick * self.force(state.start + (k + place) * dt, x)
            x = x + dt * drift * v
        return State(x=x, v=v, start=state.start, steps=state.steps + 1)

    def time(self, state: State) -> Array:
        """The time [] of a state."""
        dt = jnp.asarray(self.dt, state.start.dtype)
        return state.start + state.steps.astype(dt.dtype) * dt


def _as_pytree(force: Force) -> Partial:
    """The force with what a partial carries as leaves, and its function as structure."""
    if isinstance(force, functools.partial):
        return Partial(force.func, *force.args, **force.keywords)
    return Partial(force)
