"""A hand learns to insert a peg into a hole, half a millimetre wider, from the full state."""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import jax

from jaxgpu import rl
from jaxgpu.inputs.fields import size
from jaxgpu.report import Report
from jaxgpu.studies import SeededOptions, seed_count
from jaxgpu.studies.mobile_pick import success
from jaxgpu.studies.mobile_pick.success import Course

from . import pictures

ASKED, MAX_STEPS = 0.95, 256  # target success rate; maximum steps of an episode
LEARNER = rl.PPO(learning_rate=7e-4, num_envs=128, num_steps=32, gamma=0.98, update_epochs=6)
# Gain in 1/s of a more aggressive script next to the hole: its actions there are larger, so that
# an equal error of the student's actions leaves it closer to the hole.
SIDE_GAIN = 20.0
IMITATION = partial(
    rl.DAgger,
    learning_rate=3e-3,
    max_grad_norm=5.0,
    num_steps=16,
    gradient_steps=256,
    hidden_sizes=(32, 32),
)


@dataclass(frozen=True)
class Options(SeededOptions):
    """Options of the study."""

    taught: bool = False
    """Imitate the task's script (DAgger) instead of learning from rewards (PPO)."""
    steps: int = size(default=1_500_000, least=10_000, most=10**12)
    """Environment steps per seed."""
    seeds: int = seed_count(default=5, least=3)
    """Training seeds, all in one program; at least 3, for an interval."""
    copies: int = size(default=128, least=8, most=10**7)
    """Parallel environments per seed; thousands on an accelerator."""
    episodes: int = size(default=128, least=1, most=10**6)
    """Evaluation episodes per measurement."""
    measurements: int = size(default=success.PARTS, least=1, most=1000)
    """Measurements per training, at equal intervals, in addition to the initial one."""


def course(options: Options) -> Course:
    """Return the task and its learner."""
    env: Any = rl.make("touch/peg-insertion", max_steps=MAX_STEPS)
    learner = _imitation_learner(env, options) if options.taught else LEARNER
    learner = replace(learner, num_envs=options.copies)
    return Course(
        env=env,
        new=env,
        learner=learner,
        episodes=options.episodes,
        max_steps=MAX_STEPS,
        parts=options.measurements,
    )


def _imitation_learner(env: Any, options: Options) -> rl.DAgger:
    """Return a DAgger learner of the script, with a buffer for all or the latest of its data."""
    learner = IMITATION(replace(env.script, aside=SIDE_GAIN))
    update, seen = options.copies * learner.num_steps, min(learner.buffer_size, options.steps)
    return replace(learner, buffer_size=max(update, seen))


def study(options: Options, out: Path, resume: bool) -> Report:
    """Train, evaluate in new episodes, and make a video of the first seed."""
    what, how = course(options), "taught" if options.taught else "ppo"
    keys = jax.random.split(jax.random.key(options.seed), options.seeds)
    run = success.train_seeds(what, options.steps, keys, out / how, resume)
    return success.report(
        what,
        run,
        options,
        pictures.video,
        ASKED,
        title="A robot hand learns peg insertion",
        success="the peg is in its hole at the end",
        findings=[IMITATION_TEXT if options.taught else REWARD_TEXT, WIDTH_TEXT],
        citations=CITATIONS,
    )


REWARD_TEXT = (
    "The published reward is the distance from the final position in the hole, which above the "
    "hole is insensitive to lateral errors of tenths of a millimetre. Here the reward also "
    "contains axis alignment and insertion depth, with the weight `aim` of the task; 0 gives the "
    "published reward."
)
IMITATION_TEXT = (
    "Rewards are not used: the policy imitates a script that knows the positions of peg and hole, "
    "in the states that the policy visits."
)
WIDTH_TEXT = "The hole is 0.5 mm wider than the peg; the published one is 0.114 mm wider."

CITATIONS = [
    "Akinola et al. (2024), arXiv:2408.06506, TacSL: the task",
    "Narang et al. (2022), arXiv:2205.03532, Factory: peg and hole",
    "Schulman et al. (2017), arXiv:1707.06347: PPO",
    "Ross et al. (2011), arXiv:1011.0686: DAgger",
]
