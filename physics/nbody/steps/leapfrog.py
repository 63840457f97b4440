"""Leapfrogs of order 2, 4, 6 and 8: symplectic, reversible steps of fixed length.

The second order is drift, kick, drift (Verlet). The higher ones are symmetric chains of it: order 4
with five steps (Suzuki 1990, doi:10.1016/0375-9601(90)90962-N), order 6 with nine and order 8 with
seventeen (Kahan & Li 1997, doi:10.1090/S0025-5718-97-00873-9, s9odr6a and s17odr8a). Their errors
are 10 to 100 times smaller at the same cost than those of the shortest chains of Yoshida (1990),
doi:10.1016/0375-9601(90)90092-3. Adjacent drifts within a step are merged: a step evaluates the
force 1, 5, 9 or 17 times.

`jaxgpu.runs.rollout` of the step is differentiable in both modes; reverse mode stores every step.
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

from .. import validation

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
KICK_WEIGHTS = {order: np.array([*half, *half[-2::-1]]) for order, half in _HALVES.items()}

# (time, positions) -> accelerations of their shape
Force = Callable[[Array, Array], Array]


@pytree
class State:
    """Positions and velocities at the same time, and the number of steps so far."""

    x: Array  # [...] positions
    v: Array  # [...] velocities
    start: Array  # [] time at which the first step began
    steps: Array  # [] int32: number of steps since then


@pytree
class Leapfrog:
    """Integrator for a given force.

    `force(t, x)` returns the acceleration at positions x of any shape. The arguments stored in a
    `functools.partial` or `jax.tree_util.Partial` are pytree leaves: other values reuse the
    compiled program and can be differentiated. A bare function is compiled in as a constant.

    >>> spec = Leapfrog(lambda t, x: -x, dt=jnp.pi / 20, order=8)
    >>> state = spec.init(jnp.ones(1), jnp.zeros(1))
    >>> for _ in range(20):
    ...     state = spec.step(state)
    >>> state.x.round(4).tolist(), round(float(spec.time(state)), 4)
    ([-1.0], 3.1416)
    """

    force: Force  # (time, x) -> acceleration, in the shape of x
    dt: Array | float = number(unit="time")  # [] step; negative: backwards in time
    order: int = size(default=2, least=2, most=8)  # 2, 4, 6 or 8

    def __post_init__(self) -> None:
        if callable(self.force) and jax.tree.structure(self.force).num_nodes == 1:
            object.__setattr__(self, "force", _as_pytree(self.force))

    def init(self, x: Array, v: Array, t: Array | float = 0.0) -> State:
        """Return the state at time `t`, for positions and velocities of one shape.

        Raises:
            ValueError: an unknown order, values that are not finite, different shapes, two floating
                types.
            TypeError: a force that cannot be called.
        """
        name = "Leapfrog.init"
        if not callable(self.force):
            raise TypeError(f"{name}: force={self.force!r:.40}; it must be a function of t and x")
        ranges.check(name, self)
        if self.order not in KICK_WEIGHTS:
            orders = ", ".join(map(str, KICK_WEIGHTS))
            raise ValueError(f"{name}: order={self.order}; it must be one of {orders}")
        ranges.numbers(f"{name}: dt", self.dt, ())
        t = ranges.numbers(f"{name}: t", t, ())
        x, v = validation.check_numbers(f"{name}: x", x), validation.check_numbers(f"{name}: v", v)
        if x.shape != v.shape:
            raise ValueError(f"{name}: x {list(x.shape)}, v {list(v.shape)}; must have one shape")
        x, v = validation.one_precision(name, x=x, v=v)
        return State(x=x, v=v, start=jnp.asarray(t, x.dtype), steps=jnp.int32(0))

    def step(self, state: State) -> State:
        """Advance the state by `dt`."""
        kicks = KICK_WEIGHTS[self.order]
        # a drift merges the adjacent halves of two chain steps; the last half drift is not merged
        drifts = np.append((kicks[1:] + kicks[:-1]) / 2, kicks[-1] / 2)
        places = np.cumsum(np.append(kicks[0] / 2, drifts[:-1]))  # times of the kicks, in steps
        dt = jnp.asarray(self.dt, state.x.dtype)
        # the time is computed from the step count, so its error does not accumulate
        k = state.steps.astype(dt.dtype)
        v = state.v
        x = state.x + dt * float(kicks[0] / 2) * v
        for kick, drift, place in zip(kicks.tolist(), drifts.tolist(), places.tolist()):
            v = v + dt * kick * self.force(state.start + (k + place) * dt, x)
            x = x + dt * drift * v
        return State(x=x, v=v, start=state.start, steps=state.steps + 1)

    def time(self, state: State) -> Array:
        """Return the time [] of a state."""
        dt = jnp.asarray(self.dt, state.start.dtype)
        return state.start + state.steps.astype(dt.dtype) * dt


def _as_pytree(force: Force) -> Partial:
    """Return the force with the arguments of a partial as leaves and its function as structure."""
    if isinstance(force, functools.partial):
        return Partial(force.func, *force.args, **force.keywords)
    return Partial(force)
