"""Gymnasium's contact-rich robots learn to run by PPO, SAC and SHAC, against published results."""

from dataclasses import dataclass, replace
from pathlib import Path

import jax

from jaxgpu import rl
from jaxgpu.inputs.fields import number
from jaxgpu.report import Report
from jaxgpu.studies import seed_count
from jaxgpu.studies.classic_control import scores
from jaxgpu.studies.classic_control.scores import Row

EPISODES = 8  # per evaluation, of up to 1000 steps
# 16 environments give rollouts of 2048 steps, as in the published results.
PPO = rl.PPO(
    learning_rate=1e-3,
    gae_lambda=0.9,
    num_envs=16,
    num_steps=128,
    update_epochs=10,
    num_minibatches=32,
    normalize_reward=True,
)
# With the learning rate and lambda of the others, the ant unlearns how to stand.
STEADY = replace(PPO, learning_rate=3e-4, gae_lambda=0.95)
SAC = rl.SAC(
    learning_rate=5e-4,
    start_steps=5000,
    gradient_steps=4,
    batch_size=256,
    buffer_size=300_000,
    hidden_sizes=(128, 128),
)
SHAC = rl.SHAC(
    learning_rate=1e-3,
    gamma=0.99,
    reset_prob=0.05,
    actor_lambda=0.9,
    max_slope=10.0,
    critic_iterations=32,
    network=rl.MLP(hidden_sizes=(64, 64), activation=jax.nn.elu, layer_norm=True),
    hidden_sizes=(),
)
ROWS = (
    Row("half-cheetah", PPO, 1_000_000, 2000, published="5784 Tianshou, 1700 baselines"),
    Row("hopper", PPO, 1_000_000, 2000, published="2609 Tianshou, 2400 baselines"),
    Row("walker2d", PPO, 1_000_000, 2000, published="3589 Tianshou, 3510 baselines"),
    Row("ant", STEADY, 1_000_000, 1500, published="3258 Tianshou"),
    Row("hopper", SAC, 1_000_000, 2000, published="3542 Tianshou, 2310 CleanRL"),
    Row("ant", SAC, 1_000_000, 1500, published="5850 Tianshou"),
    Row("hopper", SHAC, 1_000_000, 2000),
    Row("ant", SHAC, 1_000_000, 1500),
)


@dataclass(frozen=True)
class Options(scores.Options):
    """Options of the study."""

    ROWS = ROWS
    seeds: int = seed_count(default=3, least=3)
    """Training seeds per row, all in one program; at least 3, for an interval."""
    share: float = number(default=0.2, least=0.01, most=100)
    """Environment steps relative to the million of each row."""
    only: str = "half-cheetah"
    """Substring of the names of the rows to run, such as `hopper` or `PPO`; all rows if empty."""


def study(options: Options, out: Path, resume: bool) -> Report:
    """Train every row and compare its returns with the published ones."""
    task = scores.Task("Robots learn to run", EPISODES, FINDINGS, CITATIONS)
    return scores.report(task, options, out, resume)


FINDINGS = [
    "Robots, observations, rewards and terminations are those of gymnasium 1.4.0's version 5; "
    "published returns are of the same learners after a million steps on versions 2 to 4, whose "
    "rewards differ slightly.",
    "PPO has the best of eight settings on the half-cheetah after 0.4 million steps (one training "
    "each), except for the ant, which has a learning rate of 3e-4 and a lambda of 0.95.",
]

CITATIONS = [
    "Weng et al. (2022), JMLR 23 (267), Tianshou: published PPO and SAC at a million steps",
    "Huang et al. (2022), JMLR 23 (274), CleanRL: published SAC at a million steps",
    "Dhariwal et al. (2017), OpenAI Baselines: published PPO at a million steps",
    "Towers et al. (2024), arXiv:2407.17032: gymnasium",
    "Agarwal et al. (2021), arXiv:2108.13264: interquartile means",
]
