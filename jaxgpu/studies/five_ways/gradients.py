"""How much a gradient through matter tells of where to go, by the length of its window.

A window is some frames of an episode, from a state on the way, and its gain the sum of their
rewards. What a search needs is the slope of the smoothed gain, E L(a + sigma e) over normal e.
Differences of noisy pairs are an unbiased estimate of it, whatever the motion does:

    z = (L(a + sigma e) - L(a - sigma e)) / (2 sigma) e.

Gradients g(a + sigma e) through the motion are another, right where L is smooth (Suh, Simchowitz,
Zhang & Tedrake 2022, arXiv:2202.00817). The slope is known by the mean of many z, its square by the
product of two halves of them, which share no noise; cosines are those to it.
"""

from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.inputs.fields import number, pytree, size
from jaxgpu.rl.plan import cost
from jaxgpu.runs.loop import Run, run

DRAWS = 2000  # of the plans, for intervals


@pytree
class Probe:
    """What is measured: `step` looks at the next window of the next plan."""

    env: Any
    states: Any  # [P, ...] where the plans begin
    plans: Array  # [P, T, A]
    windows: Array  # [H] frames
    sigma: Array | float = number(default=0.1, above=0)  # [] of the smoothing
    discount: Array | float = number(default=0.9, least=0, most=1)  # [] of one kind of gradient
    pairs: int = size(default=64, least=2)  # of differences, an even number
    samples: int = size(default=8, least=2)  # of gradients at shifted plans

    def init(self) -> "Look":
        """Before the first window."""
        zero = jnp.zeros(self.plans.shape[1:])
        few = lambda count: jnp.zeros((count, *zero.shape))
        return Look(
            index=jnp.int32(0),
            exact=zero,
            discounted=zero,
            shifted=few(self.samples),
            differences=few(self.pairs),
        )

    def step(self, look: "Look", key: Array) -> "Look":
        """The next window: gradients there, and differences about it."""
        plan = look.index // len(self.windows)
        frames = self.windows[look.index % len(self.windows)]
        actions = self.plans[plan]
        where_key, shift_key, pair_key = jax.random.split(key, 3)
        first = jax.random.randint(where_key, (), 0, actions.shape[0] - frames + 1)
        state = self._later(jax.tree.map(lambda a: a[plan], self.states), actions, first)
        actions = jnp.roll(actions, -first, 0)
        gain = lambda actions, discount: -cost(self.env, state, actions, frames, discount)
        slope = lambda args: jax.grad(gain)(*args)
        inside = (jnp.arange(actions.shape[0]) < frames)[None, :, None]
        noise = lambda key, count: jnp.where(
            inside, jax.random.normal(key, (count, *actions.shape)), 0.0
        )

        shifts = self.sigma * noise(shift_key, self.samples)
        at = jnp.concatenate([jnp.stack([actions, actions]), actions[None] + shifts])
        discounts = jnp.ones(len(at)).at[1].set(self.discount)
        slopes = lax.map(slope, (at, discounts))

        e = noise(pair_key, self.pairs)
        sides = jnp.stack([actions[None] + self.sigma * e, actions[None] - self.sigma * e])
        gains = lax.map(lambda a: gain(a, 1.0), sides.reshape(-1, *actions.shape))
        above, below = gains.reshape(2, -1)
        z = ((above - below) / (2 * self.sigma))[:, None, None] * e
        return Look(
            index=look.index + 1,
            exact=slopes[0],
            discounted=slopes[1],
            shifted=slopes[2:],
            differences=z,
        )

    def _later(self, state: Any, actions: Array, frames: Array) -> Any:
        move = lambda i, state: self.env.step(state, actions[i], jax.random.key(0)).state
        return lax.fori_loop(0, frames, move, state)


@pytree
class Look:
    """What was found at a window; beyond its frames all are zero."""

    index: Array  # [] windows looked at so far
    exact: Array  # [T, A] gradient of the gain
    discounted: Array  # [T, A] the same, discounted
    shifted: Array  # [N, T, A] gradients at shifted plans
    differences: Array  # [K, T, A] of pairs


def looked(probe: Probe, key: Array, out: Path | None = None, resume: bool = False) -> Run:
    """All windows of all plans; its history holds the findings of each, after an empty row."""
    count = len(probe.plans) * len(probe.windows)
    return run(
        partial(Probe.step, probe),
        probe.init(),
        count,
        key=key,
        measure=_all,
        out=out,
        resume=resume,
    )


def _all(look: Look) -> Look:
    return look


def random_plans(env: Any, key: Array, count: int, sigma: float, correlation: float) -> Array:
    """Plans [P, T, A] about the first guess, of noise that is correlated in time."""
    shape = (env.max_steps, count, len(env.controls))
    noise = jax.random.normal(key, shape)

    def mix(e: Array, n: Array) -> tuple[Array, Array]:
        e = correlation * e + jnp.sqrt(1 - correlation**2) * n
        return e, e

    e = lax.scan(mix, noise[0], noise)[1]
    return jnp.clip(sigma * jnp.moveaxis(e, 0, 1), -1, 1)
