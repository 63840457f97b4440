"""A mobile robot learns to fetch small objects in furnished houses."""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import jax

from jaxgpu import rl
from jaxgpu.inputs.fields import number, size
from jaxgpu.report import Report
from jaxgpu.rl.envs.rearrange import houses, tasks
from jaxgpu.studies import SeededOptions, seed_count

from . import pictures, success
from .success import Course

ASKED, MAX_STEPS = 0.9, 300  # target success rate; maximum steps of an episode
UNSEEN = 1_000_000  # first seed of the test houses
LEARNER = rl.PPO(
    learning_rate=1e-3,
    gamma=0.99,
    ent_coef=2e-3,
    num_envs=256,
    num_steps=32,
    hidden_sizes=(128, 128),
)
# Initially imitates the task's script, with a small learning rate and little noise.
KICKSTARTED = partial(
    rl.KickstartedPPO,
    learning_rate=3e-4,
    log_std=-2.0,
    gamma=LEARNER.gamma,
    num_steps=LEARNER.num_steps,
    hidden_sizes=LEARNER.hidden_sizes,
)
# For depth images: residual blocks with group norm, and a recurrent policy.
VISION_LEARNER = replace(
    LEARNER,
    gamma=0.98,
    ent_coef=0.0,
    learning_rate=3.5e-4,
    update_epochs=2,
    num_minibatches=4,
    network=rl.ResNet(),
)
MEMORY = 256  # units of the GRU


@dataclass(frozen=True)
class Options(SeededOptions):
    """Options of the study."""

    steps: int = size(default=8_000_000, least=100_000, most=10**12)
    """Environment steps per seed."""
    seeds: int = seed_count(default=3, least=3)
    """Training seeds, all in one program; at least 3, for an interval."""
    episodes: int = size(default=128, least=1, most=10**6)
    """Evaluation episodes per measurement."""
    measurements: int = size(default=success.PARTS, least=1, most=1000)
    """Measurements per training, at equal intervals, in addition to the initial one."""
    copies: int = size(default=256, least=8, most=10**7)
    """Parallel environments per seed; thousands on an accelerator."""
    homes: int = size(default=64, least=1, most=100_000)
    """Training houses; half as many others, at least 4, are for evaluation."""
    led: float = number(default=0.3, least=0, most=1)
    """Fraction of the training that imitates a script with a map; 0 for PPO only."""
    pixels: int = size(default=0, least=0, most=1024)
    """Side length of the observed depth image, pixels; 0 for a vector with map information."""


def course(options: Options) -> Course:
    """Return the task in training houses and in test houses, and its learner."""
    make_houses = lambda first, count: houses.generate_many(range(first, first + count))
    make_episodes = lambda first, count: tasks.fetch_episodes(make_houses(first, count), skip=True)
    learnt, new = make_episodes(0, options.homes), make_episodes(UNSEEN, max(4, options.homes // 2))
    told = {"max_steps": MAX_STEPS, "pixels": options.pixels}
    make_env = lambda episodes: rl.make("rearrange/mobile-pick", episodes=episodes, **told)
    env = make_env(learnt)
    return Course(
        env=env,
        new=make_env(new),
        learner=learner(env, options),
        episodes=options.episodes,
        max_steps=MAX_STEPS,
        parts=options.measurements,
    )


def learner(env: Any, options: Options) -> Any:
    """Return the learner: recurrent PPO on images, kickstarted PPO on the script, or PPO."""
    if options.pixels:
        return rl.RecurrentPPO(replace(VISION_LEARNER, num_envs=options.copies), hidden_size=MEMORY)
    if options.led:
        return KICKSTARTED(teacher=env.script, teacher_share=options.led, num_envs=options.copies)
    return replace(LEARNER, num_envs=options.copies)


def study(options: Options, out: Path, resume: bool) -> Report:
    """Train, evaluate in unseen houses, and make a video of the first seed."""
    what = course(options)
    keys = jax.random.split(jax.random.key(options.seed), options.seeds)
    run = success.train_seeds(what, options.steps, keys, out / "ppo", resume)
    return success.report(
        what,
        run,
        options,
        pictures.video,
        ASKED,
        title="A mobile robot learns to fetch",
        success="the object is grasped, in houses that were not in the training",
        findings=[
            f"There are {options.homes} training houses.",
            INPUTS_TEXT[options.pixels > 0],
            *([SCRIPT.format(100 * options.led)] if options.led and not options.pixels else []),
            *FINDINGS,
        ],
        citations=CITATIONS,
    )


INPUTS_TEXT = (
    "The policy observes the position of the object, the paths of base and hand to it, which "
    "require a map, and obstacles near its arm. The published policy observes depth images.",
    "The policy observes the depth image of the head camera and the position of the object, as "
    "the published policy does; it has no map.",
)

SCRIPT = (
    "In the first {:.0f} % of the training the policy also imitates the task's script, with "
    "decreasing weight (kickstarting); afterwards it learns from rewards only."
)

FINDINGS = [
    "Houses are sampled from published statistics of households. The robot moves as in the "
    "published abstraction: without masses, the base slides along obstacles, and closing the hand "
    "grasps what is close enough. Here the arm slides, too; the published arm stops.",
]

CITATIONS = [
    "Berges et al. (2023), arXiv:2306.07552, Galactic: the abstraction and the task",
    "Deitke et al. (2022), arXiv:2206.06994, ProcTHOR: the statistics of households",
    "Schulman et al. (2017), arXiv:1707.06347: PPO",
    "Schmitt et al. (2018), arXiv:1803.03835: kickstarting",
]
