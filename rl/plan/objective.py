"""Cost of an action sequence in an environment, and biased gradients that are better behaved.

`EpisodeCost` is the loss that planners minimize. Its gradient can be discounted backwards in time
(`discount_gradient`), or averaged over the particles of a body (`average_gradient`).
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.inputs.explanations import explain_errors
from jaxgpu.inputs.fields import number, pytree

from ..environment import Environment

type Loss = Callable[[Array], Array]


@pytree
class BestPlan:
    """Best actions so far, and their loss.

    >>> start = BestPlan(jnp.zeros((3, 1)), jnp.float32(jnp.inf), jnp.float32(jnp.inf))
    >>> start.actions.shape
    (3, 1)
    """

    actions: Array  # [T, A]
    loss: Array  # [] infinite before the first update
    latest: Array  # [] loss of the latest update; the minimum over its samples

    @classmethod
    def empty(cls, actions: Array) -> "BestPlan":
        """Return an instance with infinite losses; `actions` [T, A] gives the shape only."""
        unknown = jnp.asarray(jnp.inf, actions.dtype)
        return cls(actions, unknown, unknown)

    def update(self, actions: Array, loss: Array) -> "BestPlan":
        """Return the better of this and `actions`; a NaN loss is never better."""
        wins = loss < self.loss
        return BestPlan(
            jnp.where(wins, actions, self.actions), jnp.where(wins, loss, self.loss), loss
        )


@pytree
class EpisodeCost:
    """Loss of actions: minus the sum of the rewards from a state.

    It is a pytree, so other states or parameters of the environment reuse the compiled program.

    >>> import jax
    >>> from jaxgpu import rl
    >>> env = rl.make("pendulum")
    >>> state, _ = env.reset(jax.random.key(0))
    >>> bool(EpisodeCost(env, state)(jnp.zeros((5, 1))) > 0)
    True
    """

    env: Environment
    state: Any  # initial state of the episode
    gradient_discount: Array | float = number(default=1.0, least=0, most=1)  # [] factor per step

    def __call__(self, actions: Array, frames: Array | int | None = None) -> Array:
        """Return the `cost` [] of the first `frames` of the actions [T, A]."""
        return cost(self.env, self.state, actions, frames, self.gradient_discount)


@explain_errors
def cost(
    env: Environment,
    state: Any,
    actions: Array,
    frames: Array | int | None = None,
    gradient_discount: Array | float = 1.0,
) -> Array:
    """Return minus the sum of rewards [] over the actions [T, A], from `state`.

    Only the first `frames` steps are taken, all of them by default. The cost is differentiable if
    the environment is; reverse mode stores one state per step and recomputes each step once. A
    `gradient_discount` below 1 limits the horizon of the gradient, see `discount_gradient`.

    >>> import jax
    >>> from jaxgpu import rl
    >>> env = rl.make("pendulum")
    >>> state, _ = env.reset(jax.random.key(0))
    >>> actions = jnp.zeros((5, 1))
    >>> bool(cost(env, state, actions) > 0), jax.grad(lambda a: cost(env, state, a))(actions).shape
    (True, (5, 1))
    """
    steps = actions.shape[0]
    frames = jnp.int32(steps if frames is None else frames)
    key = jax.random.key(0)

    def move(state: Any, action: Array) -> tuple[Any, Array]:
        step = env.step(discount_gradient(state, gradient_discount), action, key)
        return step.state, step.reward

    def step_or_skip(carry: tuple[Any, Array], action: Array) -> tuple[tuple[Any, Array], Array]:
        state, t = carry
        skip_step = lambda state, action: (state, jnp.zeros_like(reward.reward))
        reward = jax.eval_shape(env.step, state, action, key)
        state, gain = lax.cond(t < frames, jax.checkpoint(move), skip_step, state, action)
        return (state, t + 1), gain

    _, gains = lax.scan(step_or_skip, (state, jnp.int32(0)), actions)
    return -jnp.sum(gains)


@explain_errors
def trajectory(env: Environment, state: Any, actions: Array) -> tuple[Any, Any]:
    """Return the states, rewards and measurements along the actions [T, A]; leaves [T, ...].

    >>> import jax
    >>> from jaxgpu import rl
    >>> env = rl.make("pendulum")
    >>> state, _ = env.reset(jax.random.key(0))
    >>> steps = trajectory(env, state, jnp.zeros((5, 1)))
    >>> jax.tree.leaves(steps)[0].shape[0]
    5
    """

    def take_step(state: Any, action: Array) -> tuple[Any, Any]:
        step = env.step(state, action, jax.random.key(0))
        return step.state, (step.state, {"reward": step.reward} | step.info)

    return lax.scan(take_step, state, actions)[1]


@explain_errors
def discount_gradient(tree: Any, discount: Array | float) -> Any:
    """Return the tree unchanged, with the gradient through its float leaves times `discount`.

    Derivatives through t frames are products of t Jacobians. Where the motion is chaotic, as in a
    splash, they grow without bound and are unrelated to the mean slope (Metz, Freeman, Schoenholz &
    Kachman 2021, arXiv:2111.05803). With a discount at each frame they look 1 / (1 - discount)
    frames ahead. The gradient is biased; it is exact at discount = 1.

    >>> jax.grad(lambda x: discount_gradient(x, 0.25) ** 2)(3.0)
    Array(1.5, dtype=float32, weak_type=True)
    """

    def scale_leaf(x: Array) -> Array:
        if not jnp.issubdtype(jnp.result_type(x), jnp.floating):
            return x
        constant = lax.stop_gradient(x)
        return constant + discount * (x - constant)

    return jax.tree.map(scale_leaf, tree)


@explain_errors
def average_gradient(x: Array, share: Array | float) -> Array:
    """Return x unchanged, with each entry's gradient replaced by a mix of its own and the mean.

    y = x, dy = (1 - share) dx + share <dx>. Where most particles do not affect a goal, such as
    those deep in a glass, the few that do lead the others (the attraction of FluidLab, Xian et al.
    2023, arXiv:2303.02346). The gradient is biased: use it for early updates, not for convergence.

    >>> jax.grad(lambda x: average_gradient(x, 0.5)[0])(jnp.zeros(4))
    Array([0.625, 0.125, 0.125, 0.125], dtype=float32)
    """
    constant, mean = lax.stop_gradient(x), jnp.mean(x)
    return constant + (1 - share) * (x - constant) + share * (mean - lax.stop_gradient(mean))
