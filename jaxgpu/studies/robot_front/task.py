"""Multi-objective task: a robot swims fast with little effort.

Three links in a fluid, driven at two joints, without contacts: the cheapest of gymnasium's robots
to simulate. Here it uses Euler steps with three solver iterations for the joint limits. The
objectives are those of MoRobtrol's swimmer, with an effort weight of 0.05, so that both have the
same order of magnitude. All policies have the same network and are scored on the same episodes.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree

from jaxgpu import rl
from jaxgpu.evolution import NoisyProblem, Objective
from jaxgpu.evolution.indicators import hypervolume
from jaxgpu.inputs.fields import number, pytree
from jaxgpu.rl import Step
from jaxgpu.rl.environment import Wrapper
from jaxgpu.rl.learners.evolved.neuroevolution import ObjectiveState

SCALE = 40.0, 8.0  # of a sum of speeds, m/s, and of an effort: the box of the hypervolume
EFFORT = 0.05  # weight of squared controls
HIDDEN = (16,)
TESTS = 4  # new episodes for the scores of the results


def swimmer_policies(max_steps: int) -> rl.PolicyObjective:
    """Return policies of the swimmer whose observation statistics are frozen after first use.

    >>> swimmer_policies(5).weights
    178
    """
    env: Any = rl.make("swimmer", vector=True, ctrl_cost_weight=EFFORT, max_steps=max_steps)
    layout = replace(env.model.layout, integrator="euler", iterations=3)
    env = replace(env, model=replace(env.model, layout=layout))
    return rl.PolicyObjective(env, hidden_sizes=HIDDEN, max_steps=max_steps, settled=1.0)


@pytree
class WeightedReward(Wrapper):
    """Single-objective task: the weighted sum of both rewards."""

    share: Array | float = number(default=0.5, least=0, most=1)  # [] weight of speed

    def step(self, state: Any, action: Array, key: Array) -> Step:
        """Take a step of the task, with both rewards combined."""
        step = self.env.step(state, action, key)
        return step._replace(reward=weighted_sum(step.reward, self.share))


@pytree
class WeightedObjective(Objective):
    """Objective of a single-objective search: the weighted sum of both objectives."""

    policies: rl.PolicyObjective
    share: Array | float = number(default=0.5, least=0, most=1)  # [] weight of speed

    def init(self) -> ObjectiveState:
        """Return the initial observation statistics of the policies."""
        return self.policies.init()

    def evaluate(self, x: Array, key: Array, state: ObjectiveState) -> tuple[Array, Any, Any]:
        """Return the weighted sum of both objectives, the violation and the statistics."""
        f, violation, seen = self.policies.evaluate(x, key, state)
        return weighted_sum(f, self.share), violation, seen

    def update(self, state: ObjectiveState, seen: Any) -> ObjectiveState:
        """Add observations to the statistics of the policies."""
        return self.policies.update(state, seen)


def weighted_sum(values: Array, share: Array | float) -> Array:
    """Return the weighted sum [] of two objectives [2], scaled to the box.

    >>> float(weighted_sum(jnp.array([20.0, 4.0]), 0.5))
    0.5
    """
    return share * values[0] / SCALE[0] + (1 - share) * values[1] / SCALE[1]


def volume(f: Array) -> Array:
    """Return the fraction of the box (speed 0, effort 8) that objectives f [N, 2] dominate.

    >>> float(volume(jnp.array([[-20.0, 4.0], [1.0, 0.0]])))
    0.25
    """
    scaled = f / jnp.asarray(SCALE, f.dtype)[None]
    return hypervolume(scaled, jnp.array([0.0, 1.0], f.dtype))


@jax.jit
def warm_statistics(problem: NoisyProblem, x: Array, key: Array) -> ObjectiveState:
    """Return the observation statistics after episodes of random policies x [N, D]."""
    return problem.evaluate(x, key, problem.init())[2]


@partial(jax.jit, static_argnames="episodes")
def score_policies(
    policies: rl.PolicyObjective, x: Array, known: ObjectiveState, key: Array, episodes: int
) -> Array:
    """Return objectives [N, 2] of policies x [N, D], means over new episodes."""
    return replace(policies, episodes=episodes).problem().evaluate(x, key, known)[0]


@pytree
class Actor:
    """Weights and observation statistics of PPO's policy, the measurement of its training."""

    weights: Any  # of its network
    obs_stats: Any

    @classmethod
    def from_state(cls, state: Any) -> "Actor":
        """Return the actor in a state of PPO."""
        return cls(state.params["params"]["actor"], state.obs_stats)


def convert_weights(policies: rl.PolicyObjective, actor: Actor, known: ObjectiveState) -> Array:
    """Return the weights x [D] of PPO's policy, converted to the observation statistics `known`.

    PPO has other statistics, so the first layer is rescaled and shifted. The policies are equal
    except where an input is more than ten deviations from the mean. PPO's weights are unbounded: x
    may exceed one.
    """

    def scale(stats: Any) -> tuple[Array, Array]:
        return stats.mean, jnp.sqrt(stats.square / jnp.maximum(stats.count, 1) + 1e-8)

    (mine, my_scale), (mean, spread) = scale(known.obs_stats), scale(actor.obs_stats)
    first = actor.weights["Dense_0"]
    kernel = first["kernel"] * (my_scale / spread)[:, None]
    bias = first["bias"] + jnp.sum(((mine - mean) / spread)[:, None] * first["kernel"], 0)
    moved = {**actor.weights, "Dense_0": {"kernel": kernel, "bias": bias}}
    return ravel_pytree({"params": moved})[0] / policies.max_weight
