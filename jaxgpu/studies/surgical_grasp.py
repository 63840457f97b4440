"""A needle driver learns to pick a needle or to move a block, held only by friction."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax import Array

from jaxgpu import report, rl
from jaxgpu.inputs.fields import size
from jaxgpu.render import Camera
from jaxgpu.report import Figure, Report
from jaxgpu.rl.animation import render_frames as on_device
from jaxgpu.rl.envs.surgical import ContactTask, NeedlePickContact, PegTransferContact
from jaxgpu.studies import SeededOptions, seed_count
from jaxgpu.studies.mobile_pick import success
from jaxgpu.studies.mobile_pick.success import Course, record_episode

TASKS = {"needle-pick": NeedlePickContact, "peg-transfer": PegTransferContact}
ASKED, SHAPING = 0.95, 1000.0  # target success rate; without contact, reward per metre of the way
PPO = rl.PPO(
    learning_rate=1e-3,
    num_envs=128,
    num_steps=32,
    gamma=0.98,
    update_epochs=6,
    num_minibatches=16,
    normalize_reward=True,
    hidden_sizes=(128, 128),
)
SIZE = 360  # pixels of the video
TRAY = Camera(
    eye=(0.16, -0.25, -0.06),
    target=(0.0, 0.0, -0.17),
    up=(0.0, 0.0, 1.0),
    angle=0.46,
    width=SIZE,
    height=SIZE,
)


@dataclass(frozen=True)
class Options(SeededOptions):
    """Options of the study."""

    task: str = "needle-pick"
    """`needle-pick` or `peg-transfer`, each with contact physics and with an attachment rule."""
    steps: int = size(default=200_000, least=20_000, most=10**12)
    """Environment steps per seed; ten times as many for PPO with the attachment rule."""
    seeds: int = seed_count(default=3, least=3)
    """Training seeds per task, all in one program; at least 3, for an interval."""
    episodes: int = size(default=128, least=1, most=10**6)
    """Evaluation episodes per measurement; there are eleven measurements per training."""

    def __post_init__(self):
        super().__post_init__()
        if self.task not in TASKS:
            raise ValueError(f"surgical-grasp: task={self.task!r}; it must be one of {list(TASKS)}")


def contact_course(options: Options) -> Course:
    """Return the task with contact physics and a DAgger student of its script."""
    env: ContactTask = TASKS[options.task]()
    learner = rl.DAgger(
        jax.tree_util.Partial(type(env).script, env),
        num_envs=128,
        num_steps=8,
        gradient_steps=64,
        batch_size=512,
        buffer_size=300_000,
        hidden_sizes=(128, 128),
    )
    return course(env, learner, options)


def rule_course(options: Options) -> Course:
    """Return the task in which a rule attaches the object to the jaw, with PPO as the learner."""
    return course(rl.make(f"surgical/{options.task}", shaping=SHAPING), PPO, options)


def course(env: Any, learner: Any, options: Options) -> Course:
    """Return a course that trains and evaluates on the same task."""
    return Course(
        env=env,
        new=env,
        learner=learner,
        episodes=options.episodes,
        max_steps=int(env.max_steps),
    )


def study(options: Options, out: Path, resume: bool) -> Report:
    """Train with and without contact, evaluate both, and make a video of the first seed."""
    keys = jax.random.split(jax.random.key(options.seed), options.seeds)
    contact, rule = contact_course(options), rule_course(options)
    run = success.train_seeds(contact, options.steps, keys, out / "contact", resume)
    without = success.train_seeds(rule, 10 * options.steps, keys, out / "rule", resume)
    found = success.report(
        contact,
        run,
        options,
        video,
        ASKED,
        title=TITLES[options.task],
        success=SUCCESSES[options.task],
        findings=FINDINGS,
        citations=CITATIONS,
    )
    (mine,) = found.tables
    (other,) = success.table("", without, rule.steps(10 * options.steps)).rows
    rows = [["contact physics, DAgger", *mine.rows[0]], ["attachment rule, PPO", *other]]
    table = replace(mine, columns=["task, learner", *mine.columns], rows=rows)
    return replace(
        found, tables=[table], timing={"by contact": run.timing, "by a rule": without.timing}
    )


def video(env: Any, policy: Any, key: Array) -> Figure:
    """Make a video of one episode."""
    states = record_episode(env, policy, key, int(env.max_steps))
    states = jax.tree.map(lambda x: x[: int(states.t[-1])], states)
    return report.video(np.asarray(on_device(env, states, TRAY)), CAPTION, 0.04)


CAPTION = "The first seed in a new episode: blades (grey), the object, and the tray."

TITLES = {
    "needle-pick": "A needle driver learns to pick a needle by friction",
    "peg-transfer": "A needle driver learns to move a block from peg to peg by friction",
}

SUCCESSES = {
    "needle-pick": "the needle is within 5 mm of its goal at the end",
    "peg-transfer": "the block is over its peg at the end",
}

FINDINGS = [
    "With contact physics only friction holds the object: blades, object, pegs and board collide "
    "in MuJoCo's contact model, ten steps of 4 ms per step of the task. The student learns from a "
    "script; published learners of the task without contact have its demonstrations.",
    "With the rule, closing the jaw near and across an object attaches it; PPO uses rewards only.",
]

CITATIONS = [
    "Xu et al. (2021), arXiv:2108.13035, SurRoL: the tasks without contact",
    "Todorov (2014), doi:10.1109/ICRA.2014.6907751: the model of contact",
    "Ross, Gordon & Bagnell (2011), arXiv:1011.0686: DAgger",
    "Schulman et al. (2017), arXiv:1707.06347: PPO",
]
