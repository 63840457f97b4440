"""What a critic has learnt, for the training of another actor to begin with.

Asymmetric actor-critic distillation (Akinola et al. 2024, arXiv:2408.06506): first an actor and a
critic learn that both see all that a simulation knows; then another actor, which sees what a robot
would, learns from the same critic, which goes on learning. What observations and rewards are scaled
by goes with the weights, without which they mean nothing.
"""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp

from jaxgpu.pytree import pytree

from . import normaliser


@pytree
class Critic:
    """The critic of a training; `PPO.critic_of(state)` makes it."""

    params: Any  # weights of its network
    obs_stats: normaliser.Normaliser  # of the observations so far
    reward_stats: normaliser.Normaliser  # of discounted sums of rewards so far

    def put_into(self, name: str, state: Any) -> Any:
        """A state before a training, of `name`, with this critic in place of its own.

        Raises:
            ValueError: a network of other shapes, or observations that it has not seen.
        """
        params = state.params["params"]
        new, own = (jax.tree.map(jnp.shape, x) for x in (params["critic"], self.params))
        if new != own:
            raise ValueError(
                f"{name}: the critic that is given has weights of the shapes {own}, that of this "
                f"learner {new}; give both learners the same hidden_sizes, and a critic that sees "
                "the same"
            )
        return replace(
            state,
            params={**state.params, "params": {**params, "critic": self.params}},
            obs_stats=normaliser.continued(name, state.obs_stats, self.obs_stats),
            returns=replace(state.returns, stats=self.reward_stats),
        )
