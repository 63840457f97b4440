"""Evolution strategies as a learner: the candidates are the policy's weights.

Salimans et al. (2017), arXiv:1703.03864, with any method of `jaxgpu.evolution.single` that has a
mean. The objective is that of `rl.PolicyObjective`: all candidates of a generation run the same
episodes, for a fair comparison, and only the ranks of the mean returns count. Nothing is
differentiated, so rewards may be sparse, and observations and actions of any type.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.sharding import PartitionSpec

from jaxgpu.evolution.single import SNES, bounds
from jaxgpu.inputs.fields import number, pytree, size

from ...checks import check_learner, layer_widths
from ...environment import Environment
from ...policies import LearnedPolicy
from .. import normalizer
from ..training import check_divisible
from .neuroevolution import ObjectiveState, PolicyObjective


@pytree
class ES:
    """Evolution strategy on the weights of a policy. Numeric fields are pytree leaves.

    >>> from jaxgpu import rl
    >>> env, es = rl.make("cartpole"), ES(SNES(4), max_steps=10)
    >>> act = es.policy(env, es.init(env, jax.random.key(0)))  # rl.train makes it better
    >>> act(env.reset(jax.random.key(1))[1]).shape
    ()
    """

    algorithm: Any = SNES(32)  # search method of `jaxgpu.evolution.single`, with a mean
    max_weight: Array | float = number(default=3.0, above=0)  # [] bound of the weights
    episodes: int = size(default=2, least=1)  # per candidate and generation
    max_steps: int = size(default=500, least=1)  # maximum steps of an episode
    hidden_sizes: tuple[int, ...] = layer_widths((8,))  # units of each hidden layer of the policy

    @property
    def steps_per_update(self) -> int:
        """Environment steps per generation, also counting steps after the end of an episode."""
        return int(self.algorithm.batch_size) * int(self.episodes) * int(self.max_steps)

    def init(
        self, env: Environment, key: Array, num_updates: Array | int | None = None
    ) -> "ESState":
        """Return the initial state, with the initial mean; `num_updates` is ignored."""
        del num_updates
        check_learner("ES", self, env)
        policies = self.objective(env)
        known = policies.init()
        return ESState(
            search=self.algorithm.init(key, policies.problem().to_problem()),
            obs_stats=known.obs_stats,
            update=jnp.int32(0),
            report=known.report,
        )

    def objective(self, env: Environment) -> PolicyObjective:
        """Return the minimized objective: minus the mean return of policies of one network."""
        return PolicyObjective(
            env,
            hidden_sizes=self.hidden_sizes,
            episodes=self.episodes,
            max_steps=self.max_steps,
            max_weight=self.max_weight,
        )

    def check_devices(self, devices: int) -> None:
        """Raise if the candidates cannot be sharded evenly over that many devices."""
        check_divisible("ES", "algorithm.batch_size", self.algorithm.batch_size, devices)

    def update(
        self, env: Environment, state: "ESState", key: Array, axis: str | None = None
    ) -> "ESState":
        """Return the state after one generation.

        With the `axis` of a mesh, each of its devices calls it inside `jax.shard_map`. Each
        evaluates its shard of the candidates, and all get all returns.
        """
        ask_key, play_key = jax.random.split(key)
        x = self.algorithm.ask(state.search, ask_key)
        problem = self.objective(env).problem()
        known = ObjectiveState(state.obs_stats, state.report)
        cost, broken, known = problem.evaluate(x, play_key, known, axis)
        return ESState(
            search=self.algorithm.tell(state.search, x, cost, broken),
            obs_stats=known.obs_stats,
            update=state.update + 1,
            report=known.report,
        )

    def policy(self, env: Environment, state: "ESState") -> LearnedPolicy:
        """Return the policy at the mean of the search distribution."""
        mean = bounds.to_box(state.search.box, state.search.mean)
        return self.objective(env).policy(mean, ObjectiveState(state.obs_stats, state.report))


@pytree
class ESState:
    """Complete state of a training; a run resumed from it gives bitwise the same result."""

    search: Any  # state of the search method
    obs_stats: normalizer.Normalizer
    update: Array  # [] completed generations
    report: dict[str, Array]  # means over the last generation

    def partition_specs(self, axis: str) -> Any:
        """Return the partition spec on a mesh: the state is replicated."""
        del axis
        return PartitionSpec()
