"""Evolution strategies: the weights of the policy are the candidates.

Salimans et al. (2017), arXiv:1703.03864, with any method of `jaxgpu.evolution.single` that keeps a
mean. The objective is that of `rl.Policies`: all candidates of a generation play the same episodes,
so that chance favours none, and of the mean returns only ranks count. Nothing is differentiated:
rewards may be rare, and observations and actions of any kind.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.sharding import PartitionSpec

from jaxgpu.evolution.single import SNES, bounds
from jaxgpu.inputs.fields import number, pytree, size

from ...doors import check_learner, widths
from ...environment import Environment
from ...policies import LearntPolicy
from .. import normaliser
from ..training import check_shares
from .neuroevolution import Experience, Policies


@pytree
class ES:
    """What to run; numbers are leaves, to be vmapped over.

    >>> from jaxgpu import rl
    >>> env, es = rl.make("cartpole"), ES(SNES(4), max_steps=10)
    >>> act = es.policy(env, es.init(env, jax.random.key(0)))  # rl.train makes it better
    >>> act(env.reset(jax.random.key(1))[1]).shape
    ()
    """

    algorithm: Any = SNES(32)  # of `jaxgpu.evolution.single`, with a mean
    max_weight: Array | float = number(default=3.0, above=0)  # [] bound of the weights
    episodes: int = size(default=2, least=1)  # of each candidate in a generation
    max_steps: int = size(default=500, least=1)  # steps of an episode, at most
    hidden_sizes: tuple[int, ...] = widths((8,))  # units of each hidden layer of the policy

    @property
    def steps_per_update(self) -> int:
        """Steps of environments in one generation; those after an episode's end count as well."""
        return int(self.algorithm.batch_size) * int(self.episodes) * int(self.max_steps)

    def init(
        self, env: Environment, key: Array, num_updates: Array | int | None = None
    ) -> "ESState":
        """The state before a training: the first mean; nothing depends on `num_updates`."""
        del num_updates
        check_learner("ES", self, env)
        policies = self.policies(env)
        known = policies.init()
        return ESState(
            search=self.algorithm.init(key, policies.problem().plain()),
            obs_stats=known.obs_stats,
            update=jnp.int32(0),
            report=known.report,
        )

    def policies(self, env: Environment) -> Policies:
        """The objective that is minimised: minus the mean return of the policies of a network."""
        return Policies(
            env,
            hidden_sizes=self.hidden_sizes,
            episodes=self.episodes,
            max_steps=self.max_steps,
            max_weight=self.max_weight,
        )

    def check_devices(self, devices: int) -> None:
        """Raise where so many devices cannot share out the candidates."""
        check_shares("ES", "algorithm.batch_size", self.algorithm.batch_size, devices)

    def update(
        self, env: Environment, state: "ESState", key: Array, axis: str | None = None
    ) -> "ESState":
        """One generation.

        With the `axis` of a mesh, inside `jax.shard_map`, it is seen by one of its devices, which
        plays its share of the candidates; all of them know all returns.
        """
        ask_key, play_key = jax.random.split(key)
        x = self.algorithm.ask(state.search, ask_key)
        problem = self.policies(env).problem()
        known = Experience(state.obs_stats, state.report)
        cost, broken, known = problem.evaluate(x, play_key, known, axis)
        return ESState(
            search=self.algorithm.tell(state.search, x, cost, broken),
            obs_stats=known.obs_stats,
            update=state.update + 1,
            report=known.report,
        )

    def policy(self, env: Environment, state: "ESState") -> LearntPolicy:
        """The policy of the mean."""
        mean = bounds.point(state.search.box, state.search.mean)
        return self.policies(env).policy(mean, Experience(state.obs_stats, state.report))


@pytree
class ESState:
    """All of a training: resumed from it, a run goes on to the bit."""

    search: Any  # of the method
    obs_stats: normaliser.Normaliser
    update: Array  # [] generations done
    report: dict[str, Array]  # means over the generation

    def places(self, axis: str) -> Any:
        """Where each part belongs on a mesh: every device has the whole."""
        del axis
        return PartitionSpec()
