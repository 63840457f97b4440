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
    """Of environments, for each seed."""
    seeds: int = seed_count(default=3, least=3)
    """Trainings, all in one program; at least 3, for an interval."""
    episodes: int = size(default=128, least=1, most=10**6)
    """Of each measurement of a training."""
    measurements: int = size(default=success.PARTS, least=1, most=1000)
    """Of a training, at equal distances, beside the one before it."""
    copies: int = size(default=256, least=8, most=10**7)
    """Of the task, at once, of each training; thousands where an accelerator steps them."""
    homes: int = size(default=64, least=1, most=100_000)
    """Houses to learn in; half as many others, at least 4, to be measured in."""
    led: float = number(default=0.3, least=0, most=1)
    """Share of the training in which a script leads who knows the way; 0 for PPO alone."""
    pixels: int = size(default=0, least=0, most=1024)
    """Of each side of the depth image that the policy sees; 0 for a vector that knows the way."""


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
        success="the thing is taken, in houses that were not learnt from",
        findings=[
            f"It was learnt in {options.homes} houses.",
            INPUTS_TEXT[options.pixels > 0],
            *([SCRIPT.format(100 * options.led)] if options.led and not options.pixels else []),
            *FINDINGS,
        ],
        citations=CITATIONS,
    )


INPUTS_TEXT = (
    "The policy is told where the thing is, the ways of base and hand to it, which only a map can "
    "tell, and what is near to its arm; the published one sees depth images.",
    "The policy sees the depth image of the camera on the head, and is told where the thing is, as "
    "the published one; it knows no map.",
)

SCRIPT = (
    "In the first {:.0f} % of the training it is drawn towards what the task's script would do, "
    "less and less (kickstarting); then it learns from rewards alone."
)

FINDINGS = [
    "Houses are drawn from published statistics of households. The robot moves as in the published "
    "abstraction: nothing has a mass, the base slides along what it meets, and what is close "
    "enough is taken by closing the hand; but the arm slides too, where the published one stays.",
]

CITATIONS = [
    "Berges et al. (2023), arXiv:2306.07552, Galactic: the abstraction and the task",
    "Deitke et al. (2022), arXiv:2206.06994, ProcTHOR: the statistics of households",
    "Schulman et al. (2017), arXiv:1707.06347: PPO",
    "Schmitt et al. (2018), arXiv:1803.03835: kickstarting",
]
