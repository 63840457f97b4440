"""The five ways to act on one task, each with what was chosen for it on other seeds.

Three learn a policy, which is to be good from every start: PPO, SHAC, and evolution strategies on
the weights of a linear policy, as Mania, Guy & Recht (2018, arXiv:1803.07055) have it for few
episodes. Two find a plan, actions in a row, from one start: Adam through the episode, and CEM.
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

from .task import Scaled

DISCOUNT = 0.95  # of Adam's gradients, a frame

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
# episodes between two scores of a policy; of a planner, those by which it is timed
BLOCKS = {"PPO": 32, "SHAC": 8, "ES": 32, "Adam": 2, "CEM": 16}


@pytree
class Starts:
    """States and observations [N, ...] of beginnings."""

    state: Any
    observation: Array  # [N, O]


@pytree
class Score:
    """What a policy returns without noise: `score(state)` is [N], one number a start."""

    env: Any
    learner: Any
    starts: Starts

    def __call__(self, state: Any) -> Array:
        """Returns [N] of the policy in the state of its learner."""
        return played(self.env, self.learner.policy(self.env, state), self.starts)


def played(env: Any, act: Any, starts: Starts) -> Array:
    """Returns [N] of a policy from every start."""

    def move(loop: tuple[Any, Any, Array], _: None) -> tuple[Any, None]:
        state, observation, total = loop
        step = lambda s, a: env.step(s, a, jax.random.key(0))
        new = jax.vmap(step)(state, jax.vmap(act)(observation))
        return (new.state, new.observation, total + new.reward), None

    first = starts.state, starts.observation, jnp.zeros(starts.observation.shape[0])
    return jax.lax.scan(move, first, length=len(env.initial_actions()))[0][2]


@jax.jit
def begin(env: Any, keys: Array) -> Starts:
    """Starts from the keys [N]."""
    return Starts(*jax.vmap(env.reset)(keys))


def learnt(
    env: Any, name: str, keys: Array, starts: Starts, episodes: int, out: Path | None, resume: bool
) -> Run:
    """Train from every key for so many episodes, scored from `starts` after every block of them.

    A block is `BLOCKS` of the learner, by its name in `LEARNERS`.
    """
    learner = LEARNERS[name]
    every = BLOCKS[name] * env.max_steps // learner.steps_per_update
    parts = episodes // BLOCKS[name]
    score = Score(env, learner, starts)
    # a reward of order 1 / max_steps would drown in what a critic says before it has learnt
    scaled = Scaled(env, float(env.max_steps))
    return sweep(scaled, learner, keys, parts, every, measure=score, out=out, resume=resume)
