"""Neuroevolution: returns of policies as an objective of the weights of their network.

Nothing is differentiated, so rewards may be sparse or multi-objective, and observations and actions
of any type. The network is the small one of Liang, Li, Yu, Sun & Cheng (2025), arXiv:2503.20286:
one hidden layer of 16 tanh units. Its inputs are observations standardized by the mean and
deviation of all earlier ones. Unlike in the paper, outputs are clipped to the action bounds instead
of passing through a final tanh.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree

from jaxgpu.evolution.problem import box
from jaxgpu.evolution.stochastic import NoisyProblem, Objective
from jaxgpu.inputs import ranges
from jaxgpu.inputs.explanations import on_host
from jaxgpu.inputs.fields import number, pytree, size, static

from ...checks import layer_widths
from ...environment import Step, check_environment
from ...policies import LearnedPolicy
from ...spaces import Box
from ...vector import is_finite, replace_broken
from .. import normalizer
from ..networks import MLP, clip_action
from ..normalizer import Normalizer

_AT_ONCE = ranges.Range(least=1, whole=True, one=True, none=True)


@pytree
class ObjectiveState:
    """State of the objective before a generation."""

    obs_stats: Normalizer  # running statistics of the observations
    report: dict[str, Array]  # means over the episodes of the last generation


@pytree
class Perceptron:
    """Acting part of an evolved policy made by `PolicyObjective.policy`.

    >>> from jaxgpu import rl
    >>> env = rl.make("pendulum")
    >>> policies = PolicyObjective(env, (4,))
    >>> act = policies.policy(jnp.zeros(policies.weights), policies.init())
    >>> act.learner.hidden_sizes, act(env.reset(jax.random.key(0))[1]).tolist()
    ((4,), [0.0])
    """

    hidden_sizes: tuple[int, ...] = layer_widths((16,))  # units of each hidden layer

    def network(self, space: Any) -> MLP:
        """Return the network for an action space."""
        return MLP(space.shape[0] if isinstance(space, Box) else space.size, self.hidden_sizes)

    def act(self, policy: LearnedPolicy, observation: Any) -> Array:
        """Return the action: outputs clipped to the bounds, or the argmax for discrete actions."""
        inputs, space = normalizer.apply(policy.obs_stats, observation), policy.action_space
        out: Any = self.network(space).apply(policy.params, inputs)
        return clip_action(space, out) if isinstance(space, Box) else jnp.argmax(out, -1)


@pytree
class PolicyObjective(Objective):
    """Minus the mean return of a policy, for each objective of the environment's reward.

    A candidate is the vector of all weights, as fractions of `max_weight`. It runs `episodes`
    episodes with the same initial states and random keys as the others of its generation. An
    episode stops counting after `max_steps` steps or when the environment ends it. If a value in an
    episode is not finite, the episode and its candidate count as failed.

    >>> from jaxgpu import rl
    >>> from jaxgpu.evolution import multi, search
    >>> swim = PolicyObjective(rl.make("swimmer", vector=True), max_steps=5)
    >>> problem = swim.problem(at_once=8)  # speed against effort
    >>> spec = multi.NSGA3(multi.das_dennis(2, 7))
    >>> found = jax.jit(search)(spec, problem, jax.random.key(0), 2)
    >>> found.state.population.f.shape, int(found.objective.obs_stats.count)
    ((8, 2), 80)
    >>> act = swim.policy(found.state.population.x[0], found.objective)
    >>> act(swim.env.reset(jax.random.key(1))[1]).shape
    (2,)
    """

    env: Any  # the environment
    hidden_sizes: tuple[int, ...] = layer_widths((16,))  # units of each hidden layer
    episodes: int = size(default=1, least=1)  # per candidate and generation
    max_steps: int = size(default=1000, least=1)  # maximum steps of an episode
    max_weight: Array | float = number(default=1.0, above=0)  # [] bound of the weights
    # number of observations after which the statistics are frozen, so that fixed weights give a
    # fixed policy
    settled: Array | float = number(default=float("inf"), least=0, infinite=True)  # []
    # maps a `Step` to a constraint violation, at most 0 if satisfied; the violation of a
    # candidate is the mean over its episodes of the sum over their steps
    violation: Callable[[Step], Any] | None = static(default=None)

    @property
    def steps(self) -> int:
        """Environment steps per candidate."""
        return self.episodes * self.max_steps

    @property
    def weights(self) -> int:
        """Number of weights of a policy, the variables of the problem."""
        return ravel_pytree(self._zero_params())[0].shape[0]

    @on_host
    def problem(self, at_once: int | None = None) -> NoisyProblem:
        """Return the optimization problem over the weights, with one objective per reward.

        Args:
            at_once: number of candidates evaluated in parallel per device, to bound its memory.
        """
        ranges.check("PolicyObjective", self)
        check_environment("PolicyObjective", self.env)
        ranges.refuse("problem: at_once", at_once, _AT_ONCE)
        shape = self._step_shapes().reward.shape
        if len(shape) > 1:
            raise TypeError(
                f"PolicyObjective: a reward of {type(self.env).__name__} has shape {list(shape)}; "
                "it must be one number, or [K] of several objectives"
            )
        whole = box(-1.0, 1.0, self.weights, jnp.float32)
        return NoisyProblem(whole, self, shape[0] if shape else 1, at_once)

    def init(self) -> ObjectiveState:
        """Return the initial state, without observations or episodes."""
        zero = jnp.zeros((), jnp.float32)
        paid = jnp.zeros(self._step_shapes().reward.shape, jnp.float32)
        report = {"episode_return": paid, "episodes": zero, "success": zero, "broken": zero}
        return ObjectiveState(normalizer.init(self._zero_observation()), report)

    def evaluate(self, x: Array, key: Array, state: ObjectiveState) -> tuple[Array, Any, Any]:
        """Return minus the mean returns of weights x [D], their violation, and statistics."""
        start_key, step_key = jax.random.split(key)
        act, keys = self.policy(x, state), jax.random.split(start_key, self.episodes)
        first, observation = replace_broken(jax.vmap(self.env.reset)(keys))
        zero = jnp.zeros(self.episodes)
        start = {
            "state": first,
            "observation": observation,
            "playing": zero == 0,
            "returns": jnp.zeros((self.episodes, *self._step_shapes().reward.shape)),
            "success": zero > 0,
            "violation": zero,
            "stats": normalizer.init(self._zero_observation()),
        }

        def move(loop: dict[str, Any], key: Array) -> tuple[dict[str, Any], None]:
            playing, seen = loop["playing"], loop["observation"]
            keys = jax.random.split(key, self.episodes)
            step = jax.vmap(self.env.step)(loop["state"], jax.vmap(act)(seen), keys)
            sound = is_finite(step.observation) & is_finite(step.reward)
            paid = jnp.where(_expand_like(sound, step.reward), step.reward, jnp.nan)
            paid = paid.astype(loop["returns"].dtype)
            success = step.info.get("success", jnp.zeros_like(playing))
            rows = Normalizer(seen, jax.tree.map(jnp.zeros_like, seen), playing.astype(zero.dtype))
            more = {
                "state": step.state,
                "observation": step.observation,
                "playing": playing & sound & ~(step.terminated | step.truncated),
                "returns": loop["returns"] + jnp.where(_expand_like(playing, paid), paid, 0),
                "success": jnp.where(playing, success, loop["success"]),
                "violation": loop["violation"] + jnp.where(playing, self._step_violations(step), 0),
                "stats": pool_stats(loop["stats"], rows),
            }
            return more, None

        end, _ = jax.lax.scan(move, start, jax.random.split(step_key, self.max_steps))
        told = {name: end[name] for name in ("returns", "success", "stats")}
        broken = None if self.violation is None else jnp.mean(end["violation"])
        return -jnp.mean(end["returns"], 0), broken, told

    def update(self, state: ObjectiveState, seen: Any) -> ObjectiveState:
        """Add the observations of all candidates [N] without failed episodes to the statistics."""
        returns, success, stats = seen["returns"], seen["success"], seen["stats"]
        whole = jnp.all(jnp.isfinite(returns.reshape(*success.shape, -1)), -1)  # [N, E]
        told = jnp.all(whole, 1) & is_finite(stats.mean) & is_finite(stats.square)
        stats = Normalizer(stats.mean, stats.square, jnp.where(told, stats.count, 0))
        after, settled = pool_stats(state.obs_stats, stats), state.obs_stats.count >= self.settled
        keep_settled = lambda old, new: jnp.where(settled, old, new)
        episodes = jnp.sum(whole.astype(jnp.float32))
        sum_valid = lambda a: jnp.sum(
            jnp.where(_expand_like(whole, a), a.astype(jnp.float32), 0), (0, 1)
        )
        report = {
            "episode_return": sum_valid(returns) / jnp.maximum(episodes, 1),
            "episodes": episodes,
            "success": sum_valid(success) / jnp.maximum(episodes, 1),
            "broken": jnp.float32(whole.size) - episodes,
        }
        return ObjectiveState(jax.tree.map(keep_settled, state.obs_stats, after), report)

    def policy(self, x: Array, state: ObjectiveState) -> LearnedPolicy:
        """Return the policy with the weights x [D] and the observation statistics of `state`."""
        return LearnedPolicy(
            learner=Perceptron(self.hidden_sizes),
            observation_space=self.env.observation_space,
            action_space=self.env.action_space,
            params=ravel_pytree(self._zero_params())[1](self.max_weight * x),
            obs_stats=state.obs_stats,
        )

    def _zero_params(self) -> Any:
        network = Perceptron(self.hidden_sizes).network(self.env.action_space)
        shapes = jax.eval_shape(network.init, jax.random.key(0), self._zero_observation())
        return jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), shapes)

    def _zero_observation(self) -> Any:
        """Return zeros like an observation."""
        shapes = jax.eval_shape(self.env.reset, jax.random.key(0))[1]
        return jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), shapes)

    def _step_shapes(self) -> Step:
        """Return the shapes of a step."""
        key = jax.random.key(0)
        state = jax.eval_shape(self.env.reset, key)[0]
        action = jax.eval_shape(self.env.action_space.sample, key)
        return jax.eval_shape(self.env.step, state, action, key)

    def _step_violations(self, step: Step) -> Array:
        """Return the constraint violations of the steps [E], at least 0."""
        if self.violation is None:
            return jnp.zeros(self.episodes)
        return jnp.maximum(jax.vmap(self.violation)(step), 0).astype(jnp.float32)


def pool_stats(known: Normalizer, rows: Normalizer) -> Normalizer:
    """Merge statistics with K further batches of them, counts [K] and leaves [K, ...].

    Chan, Golub & LeVeque (1983), equations 2.1, for K batches at once, except those with count 0.

    >>> none, zero = normalizer.init(jnp.zeros(1)), jnp.zeros((3, 1))
    >>> rows = Normalizer(jnp.array([[1.0], [3.0], [9.0]]), zero, jnp.array([1.0, 1.0, 0.0]))
    >>> both = pool_stats(none, rows)
    >>> float(both.mean[0]), float(both.square[0]), float(both.count)
    (2.0, 2.0, 2.0)
    """
    prepend = lambda old, new: jnp.concatenate([old[None], new])
    every = jax.tree.map(prepend, known, rows)
    total = jnp.sum(every.count)

    def merge_leaf(mean: Array, square: Array) -> tuple[Array, Array]:
        count = _expand_like(every.count, mean).astype(mean.dtype)
        mean, square = (jnp.where(count > 0, a, 0) for a in (mean, square))
        middle = jnp.sum(count * mean, 0) / jnp.maximum(total, 1).astype(mean.dtype)
        return middle, jnp.sum(square + count * (mean - middle[None]) ** 2, 0)

    means, structure = jax.tree.flatten(every.mean)
    found = [merge_leaf(*pair) for pair in zip(means, jax.tree.leaves(every.square), strict=True)]
    mean, square = (structure.unflatten(part) for part in zip(*found, strict=True))
    return Normalizer(mean, square, total)


def _expand_like(rows: Array, like: Array) -> Array:
    """Append axes of size 1 to `rows` [K, ...] until it has as many axes as `like`."""
    return rows.reshape(*rows.shape, *[1] * (like.ndim - rows.ndim))
