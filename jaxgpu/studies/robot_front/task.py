"""The task of all ways: to swim far, and to spend little effort on it.

Three links in a liquid, driven at two joints, which touch nothing: of gymnasium's robots the
cheapest to simulate. Here its steps are Euler's, with three turns for the limits of its joints. The
two objectives are those of MoRobtrol's swimmer; effort weighs 0.05, so that both are of one order.
Every policy is the same network, and is scored on the same episodes.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree

from jaxgpu import rl
from jaxgpu.evolution import Objective, Stochastic
from jaxgpu.evolution.indicators import hypervolume
from jaxgpu.inputs.fields import number, pytree
from jaxgpu.rl import Step
from jaxgpu.rl.environment import Wrapped
from jaxgpu.rl.learners.evolved.neuroevolution import Experience

SCALE = 40.0, 8.0  # of a sum of speeds, m/s, and of an effort: the box of the hypervolume
EFFORT = 0.05  # weight of the squares of controls
HIDDEN = (16,)
TESTS = 4  # new episodes on which what was found is scored


def swimming(max_steps: int) -> rl.Policies:
    """Policies of the swimmer whose knowledge of observations is settled once there is any.

    >>> swimming(5).weights
    178
    """
    env: Any = rl.make("swimmer", vector=True, ctrl_cost_weight=EFFORT, max_steps=max_steps)
    layout = replace(env.model.layout, integrator="euler", iterations=3)
    env = replace(env, model=replace(env.model, layout=layout))
    return rl.Policies(env, hidden_sizes=HIDDEN, max_steps=max_steps, settled=1.0)


@pytree
class Weighted(Wrapped):
    """The task for a learner of one reward: the sum of both objectives by their weights."""

    share: Array | float = number(default=0.5, least=0, most=1)  # [] weight of speed

    def step(self, state: Any, action: Array, key: Array) -> Step:
        """That of the task, both rewards in one."""
        step = self.env.step(state, action, key)
        return step._replace(reward=summed(step.reward, self.share))


@pytree
class Mixed(Objective):
    """The objective of a search for one weight: both objectives in one."""

    policies: rl.Policies
    share: Array | float = number(default=0.5, least=0, most=1)  # [] weight of speed

    def init(self) -> Experience:
        """That of the policies."""
        return self.policies.init()

    def evaluate(self, x: Array, key: Array, state: Experience) -> tuple[Array, Any, Any]:
        """The sum of both objectives by their weights."""
        f, violation, seen = self.policies.evaluate(x, key, state)
        return summed(f, self.share), violation, seen

    def update(self, state: Experience, seen: Any) -> Experience:
        """That of the policies."""
        return self.policies.update(state, seen)


def summed(values: Array, share: Array | float) -> Array:
    """Two objectives [2] in one, [].

    >>> float(summed(jnp.array([20.0, 4.0]), 0.5))
    0.5
    """
    return share * values[0] / SCALE[0] + (1 - share) * values[1] / SCALE[1]


def volume(f: Array) -> Array:
    """The share of the box that objectives f [N, 2] dominate: from rest and an effort of 8.

    >>> float(volume(jnp.array([[-20.0, 4.0], [1.0, 0.0]])))
    0.25
    """
    scaled = f / jnp.asarray(SCALE, f.dtype)[None]
    return hypervolume(scaled, jnp.array([0.0, 1.0], f.dtype))


@jax.jit
def warmed(problem: Stochastic, x: Array, key: Array) -> Experience:
    """What is known of observations after random policies x [N, D] have played."""
    return problem.evaluate(x, key, problem.init())[2]


@partial(jax.jit, static_argnames="episodes")
def scored(policies: rl.Policies, x: Array, known: Experience, key: Array, episodes: int) -> Array:
    """Objectives [N, 2] of policies x [N, D], means over new episodes."""
    return replace(policies, episodes=episodes).problem().evaluate(x, key, known)[0]


@pytree
class Actor:
    """What PPO's policy is made of: the measure of its training."""

    weights: Any  # of its network
    obs_stats: Any

    @classmethod
    def of(cls, state: Any) -> "Actor":
        """That of a state of PPO."""
        return cls(state.params["params"]["actor"], state.obs_stats)


def translated(policies: rl.Policies, actor: Actor, known: Experience) -> Array:
    """The weights x [D] of the policy that PPO has learnt, for what is `known` of observations.

    PPO has seen others, which its first layer takes in by another scale and offset: the policies
    are equal but where an input is more than ten deviations from the mean. PPO knows no bounds of
    weights, so that x may be beyond one.
    """

    def scale(stats: Any) -> tuple[Array, Array]:
        return stats.mean, jnp.sqrt(stats.square / jnp.maximum(stats.count, 1) + 1e-8)

    (mine, my_scale), (mean, spread) = scale(known.obs_stats), scale(actor.obs_stats)
    first = actor.weights["Dense_0"]
    kernel = first["kernel"] * (my_scale / spread)[:, None]
    bias = first["bias"] + jnp.sum(((mine - mean) / spread)[:, None] * first["kernel"], 0)
    moved = {**actor.weights, "Dense_0": {"kernel": kernel, "bias": bias}}
    return ravel_pytree({"params": moved})[0] / policies.max_weight
