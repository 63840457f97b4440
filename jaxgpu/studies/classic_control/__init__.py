"""The score table of classic control: every learner against published results."""

from dataclasses import dataclass
from pathlib import Path

from jaxgpu import rl
from jaxgpu.report import Report

from . import scores
from .scores import Row

EPISODES = 100  # per evaluation


ROWS = (
    Row(
        "cartpole",
        rl.PPO(learning_rate=2.5e-3, clip_eps=0.1, num_envs=16, update_epochs=6, num_minibatches=4),
        100_000,
        495,
        published="500 at 100k, zoo PPO",
    ),
    Row(
        "cartpole",
        rl.PQN(learning_rate=2e-3, num_steps=32),
        200_000,
        480,
        published="500 at 50k, zoo DQN",
    ),
    Row("cartpole", rl.ES(), 640_000, 495),
    Row(
        "acrobot",
        rl.PPO(num_envs=16, num_minibatches=4),
        300_000,
        -85,
        published="-73.5 at 1M, zoo PPO",
    ),
    Row(
        "pendulum",
        rl.PPO(
            learning_rate=6e-4,
            gamma=0.97,
            gae_lambda=0.9,
            ent_coef=0.005,
            num_envs=16,
            num_steps=128,
            update_epochs=10,
            num_minibatches=16,
            normalize_reward=True,
        ),
        200_000,
        -180,
        published="-172 at 100k, zoo PPO with gSDE",
    ),
    Row(
        "pendulum",
        rl.SAC(learning_rate=3e-3, gamma=0.98, tau=0.01, start_steps=1000.0, num_steps=2),
        20_000,
        -165,
        published="-157 at 20k, zoo SAC",
    ),
    Row(
        "pendulum",
        rl.SHAC(learning_rate=5e-3, gamma=0.98, reset_prob=0.1, critic_iterations=4, num_envs=8),
        200_000,
        -165,
    ),
    Row(
        "mountain-car",
        rl.PQN(hold=0.9, exploration_fraction=0.3, num_steps=32),
        500_000,
        -120,
        published="-101 at 120k, zoo DQN",
    ),
    Row(
        "mountain-car-continuous",
        rl.ES(max_steps=999),
        1_900_000,
        90,
        published="94.7 at 50k, zoo SAC",
    ),
    Row(
        "mountain-car-continuous",
        rl.SAC(
            tau=0.01,
            target_entropy=-0.5,
            temperature=0.5,
            start_steps=8192.0,
            hold=0.95,
            gradient_steps=64,
            batch_size=256,
            num_steps=64,
        ),
        50_000,
        90,
        published="94.7 at 50k, zoo SAC with gSDE",
    ),
)


@dataclass(frozen=True)
class Options(scores.Options):
    """Options of the study."""

    ROWS = ROWS


def study(options: Options, out: Path, resume: bool) -> Report:
    """Train every row and compare its returns with the published ones."""
    task = scores.Task("Classic control", EPISODES, FINDINGS, CITATIONS)
    return scores.report(task, options, out, resume)


FINDINGS = [
    "Target returns are close to the results of Stable-Baselines3's zoo. Those are single "
    "trainings, some of them with state-dependent exploration, which is not used here.",
    "Tasks have the states and rewards of gymnasium 1.4.0; their mean returns are comparable.",
]

CITATIONS = [
    "Raffin (2020), RL Baselines3 Zoo: the published results",
    "Towers et al. (2024), arXiv:2407.17032: gymnasium",
    "Agarwal et al. (2021), arXiv:2108.13264: interquartile means",
]
