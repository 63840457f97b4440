"""PPO with a memory, for tasks that hide what matters: a gated recurrent unit before both networks.

The unit is that of Cho et al. (2014), arXiv:1406.1078, learnt through whole rollouts: a minibatch
is some of the copies over all steps, each from the memory it began the rollout with. The memory is
blank at every start of an episode, in the rollout and in learning alike. A copy that broke (see
`vectorize`) is left out of the update. All else is as in `PPO`.
"""

from dataclasses import replace
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.pytree import pytree, size

from ..doors import check_learner
from ..environment import Environment
from ..learn import Remembering
from ..spaces import Space
from ..vectorize import VectorState, vectorize
from . import normaliser, optimiser, ppo
from .advantage import advantages
from .networks import ActorCritic, Categorical, Normal, feasible


class Recurrent(nn.Module):
    """Observation to memory, memory to action and value."""

    space: Space
    width: int

    def setup(self) -> None:
        """Make all parts."""
        start = nn.initializers.orthogonal(2**0.5)
        self.embed = nn.Dense(self.width, kernel_init=start, precision="highest")
        self.cell = nn.GRUCell(self.width)
        self.heads = ActorCritic(self.space, (self.width,))

    def __call__(self, memory: Array, x: Array) -> tuple[Array, Normal | Categorical, Array]:
        """Memory [..., W] and observation [..., O] to memory, distribution and value."""
        memory = self.recall(memory, x)
        return memory, *self.heads(memory)

    def recall(self, memory: Array, x: Array) -> Array:
        """The memory after an observation."""
        with jax.default_matmul_precision("highest"):  # the cell has no argument for it
            return self.cell(memory, nn.tanh(self.embed(x)))[0]

    def said(self, memory: Array) -> tuple[Normal | Categorical, Array]:
        """Distribution and value."""
        return self.heads(memory)


@pytree
class RecurrentPPO:
    """What to run: PPO's numbers, the width of the memory and of the networks behind it."""

    ppo: ppo.PPO  # its `hidden` does not count
    width: int = size(default=64, least=1)  # W

    @property
    def steps_per_update(self) -> int:
        """Steps of environments in one update."""
        return self.ppo.steps_per_update

    def init(self, env: Environment, key: Array, updates: Array | int | None = None) -> "State":
        """The network before learning, and environments at the start.

        Args:
            env: of all copies.
            key: of everything random in it.
            updates: how many the training will have, the length of its schedules; without it the
                state can be looked at and played, but not updated.

        Raises:
            ValueError: minibatches that do not divide the copies.
        """
        check_learner("RecurrentPPO", self, env)
        if self.ppo.copies % self.ppo.minibatches:
            raise ValueError(
                f"RecurrentPPO: {self.ppo.minibatches} minibatches of {self.ppo.copies} copies, "
                "which stay whole; choose a divisor"
            )
        env_key, network_key = jax.random.split(key)
        first, common = self.ppo.common(env, env_key, updates)
        recall = jnp.zeros((self.ppo.copies, self.width))
        params = self._network(env).init(network_key, recall[0], first)
        return State(
            params=params,
            memory=optimiser.init(params),
            **common,
            returns=normaliser.no_returns(self.ppo.copies),
            pace=jnp.ones((), jnp.float32),
            recall=recall,
            fresh=jnp.ones(self.ppo.copies, bool),
        )

    def update(self, env: Environment, state: "State", key: Array) -> "State":
        """One rollout of `horizon` steps of all copies, then `epochs` passes over it."""
        spec, network = self.ppo, self._network(env)
        roll_key, learn_key = jax.random.split(key)
        (vector, recall, fresh, returns), batch, report = self._rollout(env, state, roll_key)
        seen = normaliser.update(state.seen, batch["observation"])
        batch["observation"] = normaliser.apply(state.seen, batch["observation"])

        def loss(params: Any, part: dict[str, Array]) -> Array:
            return spec.surrogate(*self._replay(network, params, part), part)

        orders = optimiser.minibatches(learn_key, spec.copies, spec.epochs, spec.minibatches)
        orders = optimiser.spared(orders, jnp.any(batch["broken"], 1))
        rate = spec.learning_rate * state.pace * spec.left(state)
        start = (state.params, state.memory)
        params, memory = optimiser.passes(loss, start, batch, orders, rate, spec.max_gradient)
        pace = spec.kept(state.pace, self._replay(network, params, batch)[0], batch)
        return replace(
            state,
            params=params,
            memory=memory,
            seen=seen,
            vector=vector,
            update=state.update + 1,
            report=report,
            returns=returns,
            pace=pace,
            recall=recall,
            fresh=fresh,
        )

    def policy(self, env: Environment, state: "State") -> Remembering:
        """The learnt policy: the likeliest action."""

        def act(memory: Array, observation: Any) -> tuple[Array, Array]:
            x = normaliser.apply(state.seen, observation)
            out: Any = self._network(env).apply(state.params, memory, x)
            return out[0], feasible(env.action_space, out[1].mode())

        return Remembering(jnp.zeros(self.width), act)

    def _rollout(self, env: Environment, state: "State", key: Array) -> tuple[Any, dict, dict]:
        spec, network = self.ppo, self._network(env)
        copies = vectorize(env, spec.copies)

        def move(carry: tuple[VectorState, Array, Array], inputs: Any) -> tuple[Any, Any]:
            (vector, memory, fresh), (act_key, supply) = carry, inputs
            x = normaliser.apply(state.seen, vector.observation)
            said: Any = network.apply(state.params, _blank(memory, fresh), x)
            memory, choice, value = said
            action = choice.sample(act_key)
            after, out = copies.follow(vector, feasible(env.action_space, action), supply)
            row = (vector.observation, action, choice.log_prob(action), value, out, memory, fresh)
            return (after, memory, out.anew), row

        start = (state.vector, state.recall, state.fresh)
        inputs = spec.drawn(copies, state.vector, key, 1)
        (vector, memory, fresh), rows = jax.lax.scan(move, start, inputs)
        observation, action, likely, value, out, memories, begun = rows
        ahead = normaliser.apply(state.seen, out.final)
        said: Any = network.apply(state.params, memories, ahead)
        returns, reward = state.returns, out.reward
        if spec.level:
            returns, reward = normaliser.scale(returns, reward, out.anew, spec.discount)
        ends = (out.terminated, out.truncated)
        gain = advantages(reward, value, said[2], *ends, spec.discount, spec.trace, out.broken)
        batch = {"observation": observation, "action": action, "likely": likely, "fresh": begun}
        batch |= {"advantage": gain, "target": gain + value, "broken": out.broken}
        batch = jax.tree.map(lambda x: jnp.moveaxis(x, 0, 1), batch)  # [B, T, ...]
        batch["memory"] = state.recall
        return (vector, memory, fresh, returns), batch, out.report()

    def _replay(self, network: Recurrent, params: Any, part: dict[str, Array]) -> Any:
        """Distributions and values along the rollouts of `part`, [B, T]."""

        def step(memory: Array, row: tuple[Array, Array]) -> tuple[Array, Array]:
            x, fresh = row
            now: Any = network.apply(params, _blank(memory, fresh), x, method=Recurrent.recall)
            return now, now

        along = jax.tree.map(lambda x: jnp.moveaxis(x, 0, 1), (part["observation"], part["fresh"]))
        memories = jax.lax.scan(step, part["memory"], along)[1]
        return network.apply(params, jnp.moveaxis(memories, 0, 1), method=Recurrent.said)

    def _network(self, env: Environment) -> Recurrent:
        return Recurrent(env.action_space, self.width)


@pytree
class State(ppo.State):
    """And what the policy remembers."""

    recall: Array  # [B, W] in each copy
    fresh: Array  # [B] bool: the copy is at the start of an episode


def _blank(memory: Array, fresh: Array) -> Array:
    return jnp.where(fresh[:, None], 0.0, memory)
