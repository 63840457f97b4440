"""Quality of gradients through a fluid simulation, by the length of the window.

A window is some frames of an episode, from an intermediate state, and its gain is the sum of its
rewards. A search needs the gradient of the smoothed gain, E L(a + sigma e) over normal e. Paired
differences are an unbiased estimate of it for any motion:

    z = (L(a + sigma e) - L(a - sigma e)) / (2 sigma) e.

Gradients g(a + sigma e) through the motion are another estimate, valid where L is smooth (Suh,
Simchowitz, Zhang & Tedrake 2022, arXiv:2202.00817). Cosines are relative to the mean of many z,
whose squared norm is the product of two halves of them with independent noise.
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


@pytree
class Probe:
    """Spec of the measurement: each `step` evaluates the next window of the next plan."""

    env: Any
    states: Any  # [P, ...] initial states of the plans
    plans: Array  # [P, T, A]
    windows: Array  # [H] frames
    sigma: Array | float = number(default=0.1, above=0)  # [] of the smoothing
    discount: Array | float = number(default=0.9, least=0, most=1)  # [] of the discounted gradient
    pairs: int = size(default=64, least=2)  # number of paired differences, even
    samples: int = size(default=8, least=2)  # number of gradients at shifted plans

    def init(self) -> "WindowResult":
        """Return the state before the first window."""
        zero = jnp.zeros(self.plans.shape[1:])
        zero_rows = lambda count: jnp.zeros((count, *zero.shape))
        return WindowResult(
            index=jnp.int32(0),
            exact=zero,
            discounted=zero,
            shifted=zero_rows(self.samples),
            differences=zero_rows(self.pairs),
        )

    def step(self, look: "WindowResult", key: Array) -> "WindowResult":
        """Evaluate gradients and paired differences at the next window."""
        plan = look.index // len(self.windows)
        frames = self.windows[look.index % len(self.windows)]
        actions = self.plans[plan]
        where_key, shift_key, pair_key = jax.random.split(key, 3)
        first = jax.random.randint(where_key, (), 0, actions.shape[0] - frames + 1)
        state = self._advance(jax.tree.map(lambda a: a[plan], self.states), actions, first)
        actions = jnp.roll(actions, -first, 0)
        gain = lambda actions, discount: -cost(self.env, state, actions, frames, discount)
        gradient = lambda args: jax.grad(gain)(*args)
        inside = (jnp.arange(actions.shape[0]) < frames)[None, :, None]
        noise = lambda key, count: jnp.where(
            inside, jax.random.normal(key, (count, *actions.shape)), 0.0
        )

        shifts = self.sigma * noise(shift_key, self.samples)
        at = jnp.concatenate([jnp.stack([actions, actions]), actions[None] + shifts])
        discounts = jnp.ones(len(at)).at[1].set(self.discount)
        slopes = lax.map(gradient, (at, discounts))

        e = noise(pair_key, self.pairs)
        sides = jnp.stack([actions[None] + self.sigma * e, actions[None] - self.sigma * e])
        gains = lax.map(lambda a: gain(a, 1.0), sides.reshape(-1, *actions.shape))
        above, below = gains.reshape(2, -1)
        z = ((above - below) / (2 * self.sigma))[:, None, None] * e
        return WindowResult(
            index=look.index + 1,
            exact=slopes[0],
            discounted=slopes[1],
            shifted=slopes[2:],
            differences=z,
        )

    def _advance(self, state: Any, actions: Array, frames: Array) -> Any:
        move = lambda i, state: self.env.step(state, actions[i], jax.random.key(0)).state
        return lax.fori_loop(0, frames, move, state)


@pytree
class WindowResult:
    """Results at a window, zero after its last frame."""

    index: Array  # [] windows evaluated so far
    exact: Array  # [T, A] gradient of the gain
    discounted: Array  # [T, A] the same, discounted
    shifted: Array  # [N, T, A] gradients at shifted plans
    differences: Array  # [K, T, A] paired differences


def run_probe(probe: Probe, key: Array, out: Path | None = None, resume: bool = False) -> Run:
    """Evaluate all windows of all plans; the history has an initial row, then one per window."""
    count = len(probe.plans) * len(probe.windows)
    return run(
        partial(Probe.step, probe),
        probe.init(),
        count,
        key=key,
        measure=_identity,
        out=out,
        resume=resume,
    )


def _identity(look: WindowResult) -> WindowResult:
    return look


def random_plans(env: Any, key: Array, count: int, sigma: float, correlation: float) -> Array:
    """Sample plans [P, T, A] around the first guess, with noise correlated in time."""
    shape = (env.max_steps, count, len(env.controls))
    noise = jax.random.normal(key, shape)

    def mix(e: Array, n: Array) -> tuple[Array, Array]:
        e = correlation * e + jnp.sqrt(1 - correlation**2) * n
        return e, e

    e = lax.scan(mix, noise[0], noise)[1]
    return jnp.clip(sigma * jnp.moveaxis(e, 0, 1), -1, 1)
