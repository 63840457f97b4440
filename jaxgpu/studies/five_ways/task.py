"""Task of all five methods: pouring with initial sloshing, by corrections of one first guess.

All differences between episodes are sampled at reset: the water's velocity along the glass, and the
positions of particles. An action is added to that of the first guess, the same tilt and back
rotation for all, so that a policy with zero output equals a plan of zeros. Time is observed,
because a plan depends on it, too (Pardo, Tavakoli, Levdik & Kormushev 2018, arXiv:1712.00378).
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import number, pytree
from jaxgpu.rl import Box, Step
from jaxgpu.rl.environment import Wrapper
from jaxgpu.rl.envs.matter import MatterTask
from jaxgpu.rl.envs.matter.task import State


@pytree
class Sloshing(MatterTask):
    """Fluid task whose actions correct its first guess, and whose last body moves initially.

    >>> from jaxgpu import rl
    >>> env = sloshing(rl.make("matter/pouring", size="coarse"))
    >>> env.initial_actions().shape, float(abs(env.initial_actions()).max())
    ((75, 3), 0.0)
    """

    slosh: Array | float = number(default=0.4, least=0, unit="m/s")  # [] maximum initial speed

    @property
    def observation_space(self) -> Box:
        """Observation space of the task plus the elapsed fraction of the episode."""
        inner = super().observation_space
        return Box(inner.low, inner.high, (inner.shape[0] + 1,))

    def first_guess(self) -> Array:
        """Return the actions [max_steps, A] that are corrected."""
        return MatterTask.initial_actions(self)

    def initial_actions(self) -> Array:
        """Return zero corrections, [max_steps, A]."""
        return 0 * self.first_guess()

    def reset(self, key: Array) -> tuple[State, Array]:
        """Reset with a uniformly random x velocity of the last body and perturbed particles."""
        speed_key, key = jax.random.split(key)
        *bodies, last = self.simulation.bodies
        axes = last.x.shape[1]
        speed = self.slosh * jax.random.uniform(speed_key, (), last.x.dtype, -1, 1)
        last = dataclasses.replace(last, v=speed * jnp.eye(axes, dtype=last.x.dtype)[0])
        scene = dataclasses.replace(self.simulation, bodies=(*bodies, last))
        return MatterTask.reset(dataclasses.replace(self, simulation=scene), key)

    def step(self, state: State, action: Array, key: Array) -> Step:
        """Advance one frame with the first guess plus `action`, clipped to the bounds."""
        guess = self.first_guess()[state.t]
        return super().step(state, guess + action.astype(guess.dtype), key)

    def _observe(self, state: State) -> Array:
        seen = super()._observe(state)
        return jnp.concatenate([seen, (state.t / self.max_steps).astype(seen.dtype)[None]])


def sloshing(env: MatterTask, **parameters: Any) -> Sloshing:
    """Return a fluid task with random initial velocity and observed time.

    >>> from jaxgpu import rl
    >>> float(sloshing(rl.make("matter/pouring", size="coarse"), slosh=0.1).slosh)
    0.1
    """
    fields = {field.name: getattr(env, field.name) for field in dataclasses.fields(env)}
    return Sloshing(**fields, **parameters)


@pytree
class ScaledReward(Wrapper):
    """Wrapper that scales rewards, for a learner whose critic needs them near 1.

    >>> from jaxgpu import rl
    >>> env = ScaledReward(rl.make("pendulum"), 0.1)
    >>> float(env.step(env.reset(jax.random.key(0))[0], jnp.ones(1), jax.random.key(0)).reward) > -2
    True
    """

    scale: Array | float = number(default=1.0, above=0)  # [] factor

    def step(self, state: Any, action: Array, key: Array) -> Step:
        """Take a step of the environment, with the reward multiplied by `scale`."""
        step = self.env.step(state, action, key)
        return step._replace(reward=self.scale * step.reward)
