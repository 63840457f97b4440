"""The five methods, with settings chosen on other seeds.

Three learn a policy for all initial states: PPO, SHAC, and evolution strategies on the weights of a
linear policy, as in Mania, Guy & Recht (2018, arXiv:1803.07055) for few episodes. Two optimize a
plan, an action sequence, from one initial state: Adam through the episode, and CEM.
"""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import Array

from jaxgpu import rl
from jaxgpu.evolution.single import SNES
from jaxgpu.inputs.fields import pytree
from jaxgpu.rl import sweep
from jaxgpu.rl.plan import CEM, Descent
from jaxgpu.runs.loop import Run

from .task import ScaledReward

DISCOUNT = 0.95  # of Adam's gradients, per frame

PPO = rl.PPO(
    num_envs=2,
    num_steps=75,
    learning_rate=1e-3,
    gamma=0.97,
    gae_lambda=0.9,
    update_epochs=10,
    num_minibatches=2,
    normalize_reward=True,
    anneal_lr=False,
    hidden_sizes=(32, 32),
)
SHAC = rl.SHAC(
    num_envs=2,
    num_steps=15,
    learning_rate=3e-3,
    gamma=0.97,
    reset_prob=0.1,
    anneal_lr=False,
    hidden_sizes=(32, 32),
)
ES = rl.ES(SNES(8), max_weight=0.3, episodes=1, max_steps=75, hidden_sizes=())
ADAM = Descent(optax.chain(optax.clip_by_global_norm(1.0), optax.adam(0.05, b2=0.99)))
SEARCH = CEM(16, 4, sigma=0.5, correlation=0.95)
LEARNERS = {"PPO": PPO, "SHAC": SHAC, "ES": ES}
PLANNERS = {"Adam": ADAM, "CEM": SEARCH}
WITH_GRADIENTS = "SHAC", "Adam"  # of the simulation
# episodes between two scores of a policy; for a planner, those of its timing
BLOCKS = {"PPO": 32, "SHAC": 8, "ES": 32, "Adam": 2, "CEM": 16}


@pytree
class Starts:
    """Initial states and observations [N, ...]."""

    state: Any
    observation: Array  # [N, O]


@pytree
class Score:
    """Noise-free returns of a policy: `score(state)` is [N], one per initial state."""

    env: Any
    learner: Any
    starts: Starts

    def __call__(self, state: Any) -> Array:
        """Return the returns [N] of the policy in a learner's state."""
        return episode_returns(self.env, self.learner.policy(self.env, state), self.starts)


def episode_returns(env: Any, act: Any, starts: Starts) -> Array:
    """Return the returns [N] of a policy from every initial state."""

    def move(loop: tuple[Any, Any, Array], _: None) -> tuple[Any, None]:
        state, observation, total = loop
        step = lambda s, a: env.step(s, a, jax.random.key(0))
        new = jax.vmap(step)(state, jax.vmap(act)(observation))
        return (new.state, new.observation, total + new.reward), None

    first = starts.state, starts.observation, jnp.zeros(starts.observation.shape[0])
    return jax.lax.scan(move, first, length=len(env.initial_actions()))[0][2]


@jax.jit
def make_starts(env: Any, keys: Array) -> Starts:
    """Return the initial states for the keys [N]."""
    return Starts(*jax.vmap(env.reset)(keys))


def train_learner(
    env: Any, name: str, keys: Array, starts: Starts, episodes: int, out: Path | None, resume: bool
) -> Run:
    """Train from every key for `episodes` episodes, scored from `starts` after every block.

    A block has `BLOCKS` episodes for the learner `name` of `LEARNERS`.
    """
    learner = LEARNERS[name]
    every = BLOCKS[name] * env.max_steps // learner.steps_per_update
    parts = episodes // BLOCKS[name]
    score = Score(env, learner, starts)
    # Rewards of order 1 / max_steps are small compared with the outputs of an untrained critic.
    scaled = ScaledReward(env, float(env.max_steps))
    return sweep(scaled, learner, keys, parts, every, measure=score, out=out, resume=resume)
