"""Peg insertion by touch: students helped by a teacher in three ways, or without a teacher."""

from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax import Array

from jaxgpu import rl
from jaxgpu.inputs.fields import number, size
from jaxgpu.render.palette import BAND, BLUE, GRAY, GREEN, ORANGE, PURPLE, report_style
from jaxgpu.report import Headline, Report, figure
from jaxgpu.runs.loop import Run
from jaxgpu.studies import SeededOptions, seed_count, shared_parts
from jaxgpu.studies.mobile_pick import success
from jaxgpu.studies.mobile_pick.success import Course
from jaxgpu.studies.peg_insertion import LEARNER, MAX_STEPS, pictures

ASKED = 0.9  # target success rate
TAXELS = 8, 7  # of each pad
PRIVILEGED_KEYS, TACTILE_KEYS = ("hand", "privileged"), ("hand", "field")
TEACHER = replace(
    LEARNER, actor_keys=PRIVILEGED_KEYS, critic_keys=PRIVILEGED_KEYS, normalize_reward=True
)
# Unprocessed tactile images; convolutions would take 1.5 times as long on two cores.
FLAT_NETWORK = rl.CNN(features=(), kernel_sizes=(), strides=())
STUDENT = replace(TEACHER, actor_keys=TACTILE_KEYS, network=FLAT_NETWORK)
# Student with the teacher's critic, which imitates the teacher in the first half of the training.
KICKSTARTED = partial(
    rl.KickstartedPPO, **{field.name: getattr(STUDENT, field.name) for field in fields(STUDENT)}
)
# Student that imitates the teacher (DAgger), with fewer steps.
DAGGER = partial(
    rl.DAgger,
    actor_keys=TACTILE_KEYS,
    network=FLAT_NETWORK,
    num_steps=16,
    gradient_steps=64,
    batch_size=512,
)
STEP_DIVISORS = {"told": 4}  # factor by which its steps are reduced
# Ranges of the variation between episodes at full augmentation: error of the hole's assumed
# position, stiffness of the hand, friction and stiffness of the pads.
FULL_SPREADS = {"place_error": 1e-3, "gain_spread": 0.33, "friction_spread": 0.5, "pad_spread": 0.4}


@dataclass(frozen=True)
class Options(SeededOptions):
    """Options of the study."""

    steps: int = size(default=1_500_000, least=50_000, most=10**12)
    """Environment steps of the teacher and of each seed of its students; a quarter for DAgger."""
    seeds: int = seed_count(default=5, least=3)
    """Students per method, all in one program; at least 3, for an interval."""
    copies: int = size(default=128, least=8, most=10**7)
    """Parallel environments per seed; thousands on an accelerator."""
    augmentation: float = number(default=0.0, least=0, most=1)
    """Variation of position, stiffness and friction between episodes, fraction of the full one."""
    episodes: int = size(default=128, least=1, most=10**6)
    """Evaluation episodes per measurement; there are eleven measurements per training."""


def course(options: Options, observation: str, learner: Any) -> Course:
    """Return the task with this type of observation, and its learner."""
    varied = {name: options.augmentation * full for name, full in FULL_SPREADS.items()}
    varied["friction_spread"] = max(0.2, varied["friction_spread"])  # at least the task's default
    make = partial(rl.make, "touch/peg-insertion", observation=observation, taxels=TAXELS)
    env = make(max_steps=MAX_STEPS, **varied)
    return Course(
        env=env,
        new=env,
        learner=replace(learner, num_envs=options.copies),
        episodes=options.episodes,
        max_steps=MAX_STEPS,
    )


def trainings(options: Options, out: Path, resume: bool) -> dict[str, tuple[Course, Run]]:
    """Train the teacher and the students: kickstarted, with its critic, independent, DAgger."""
    keys = jax.random.split(jax.random.key(options.seed), options.seeds)

    def train(name: str, what: Course, keys: Array) -> tuple[Course, Run]:
        steps = options.steps // STEP_DIVISORS.get(name, 1)
        return what, success.train_seeds(what, steps, keys, out / name, resume)

    what, run = train("teacher", course(options, "reduced", TEACHER), keys[:1])
    learnt = jax.tree.map(lambda x: x[0], run.state)
    critic, teacher = what.learner.critic_of(learnt), what.learner.policy(what.env, learnt)
    student = partial(course, options, "force")
    return {
        "teacher": (what, run),
        "led": train("led", student(KICKSTARTED(critic=critic, teacher=teacher)), keys),
        "taught": train("taught", student(replace(STUDENT, critic=critic)), keys),
        "alone": train("alone", student(STUDENT), keys),
        "told": train("told", student(DAGGER(teacher)), keys),
    }


def num_steps(name: str, what: Course, options: Options) -> int:
    """Return the environment steps of the training of that name."""
    return what.steps(options.steps // STEP_DIVISORS.get(name, 1))


def study(options: Options, out: Path, resume: bool) -> Report:
    """Train all, evaluate in new episodes, and make a video of the first kickstarted student."""
    runs = trainings(options, out, resume)
    what, run = runs["led"]
    ends = {name: 100 * float(np.median(run.history[-1])) for name, (_, run) in runs.items()}
    steps = what.steps(options.steps)
    policy = what.learner.policy(what.env, jax.tree.map(lambda x: x[0], run.state))
    tables = [
        success.table("", run, num_steps(name, what, options)) for name, (what, run) in runs.items()
    ]
    rows = [[NAMES[name], *table.rows[0]] for name, table in zip(runs, tables)]
    told = num_steps("told", runs["told"][0], options)
    return Report(
        "A robot hand learns peg insertion by touch",
        f"After {steps / 1e6:.2g} million steps, students that observe forces on their pads "
        f"succeed in {ends['led']:.0f} % of {options.episodes} new episodes when kickstarted by a "
        f"teacher, in {ends['taught']:.0f} % with only its critic and in {ends['alone']:.0f} % "
        f"with their own critic (medians of {options.seeds} seeds). With DAgger they succeed in "
        f"{ends['told']:.0f} % after {told / 1e6:.2g} million steps.",
        figures=[
            pictures.video(what.env, policy, jax.random.key(options.seed), INPUTS_TEXT),
            figure(
                curves(runs, options),
                "Success rate in new episodes, without exploration noise: median (line) and range "
                f"(area) of {options.seeds} students. In a success the peg is in its hole at the "
                "end. Dashed: the teacher, which observes the full state. Dotted: target, "
                f"{100 * ASKED:.0f} %.",
            ),
        ],
        tables=[
            replace(
                tables[0],
                caption="Final success rates in new episodes, %",
                columns=["method", *tables[0].columns],
                rows=rows,
            )
        ],
        headlines=[
            Headline(
                "success rate by touch, kickstarted by a teacher (median)",
                f"{ends['led']:.0f} %",
                f"{ends['taught']:.0f} % with its critic, {ends['alone']:.0f} % with own critics",
            ),
            Headline(
                f"steps until the median stays at {100 * ASKED:.0f} % or above, kickstarted",
                _steps_to_target(runs["led"], options),
                f"{_steps_to_target(runs['alone'], options)} with their own critic",
            ),
            Headline(
                "success rate by touch, DAgger (median)",
                f"{ends['told']:.0f} %",
                f"after {told / 1e6:.2g} million steps",
            ),
        ],
        **shared_parts(
            options, {name: run for name, (_, run) in runs.items()}, FINDINGS, CITATIONS
        ),
    )


def _steps_to_target(trained: tuple[Course, Run], options: Options) -> str:
    """Return the steps to the first measurement from which on the median meets the target."""
    what, run = trained
    below = np.flatnonzero(np.median(run.history, 1) < ASKED)
    first = below[-1] + 1 if below.size else 0
    if first > success.PARTS:
        return "none"
    return f"{first * what.steps(options.steps) / success.PARTS / 1e6:.2g} million"


@report_style
def curves(runs: dict[str, tuple[Course, Run]], options: Options) -> Any:
    """Plot medians and ranges of the students, and the teacher, in per cent."""
    import matplotlib.pyplot as plt

    drawing, axes = plt.subplots(figsize=(4.6, 2.8))
    what, teacher = runs["teacher"]
    steps_axis = lambda name, what: np.linspace(
        0, num_steps(name, what, options) / 1e6, success.PARTS + 1
    )
    axes.plot(
        steps_axis("teacher", what), 100 * np.asarray(teacher.history)[:, 0], color=GRAY, ls="--"
    )
    colours = {"led": PURPLE, "taught": BLUE, "alone": ORANGE, "told": GREEN}
    for name, colour in colours.items():
        what, run = runs[name]
        x, share = steps_axis(name, what), 100 * np.asarray(run.history)
        axes.fill_between(x, share.min(1), share.max(1), color=colour, alpha=BAND, lw=0)
        axes.plot(x, np.median(share, 1), color=colour, label=NAMES[name])
    axes.axhline(100 * ASKED, color=GRAY, lw=0.8, ls=":")
    axes.legend()
    axes.set(xlabel="environment steps, millions", ylabel="success rate, %", ylim=(-3, 103))
    return drawing


INPUTS_TEXT = "The policy observes the hand and these forces; it was kickstarted by a teacher."

NAMES = {
    "teacher": "teacher, full state",
    "led": "touch, kickstarted",
    "taught": "touch, teacher's critic",
    "alone": "touch, own critic",
    "told": "touch, DAgger",
}

FINDINGS = [
    "Students observe the hand and the forces on the taxels of both pads; all critics observe the "
    "full state (asymmetric actor-critic). Own critic: trained with the student. Teacher's "
    "critic: initialised from the teacher (asymmetric actor-critic distillation). Kickstarted: "
    "with the teacher's critic, and in the first half of the training the student also imitates "
    "the teacher's actions in the states that it visits, with decreasing weight. DAgger: without "
    "a critic, the student is fitted to the teacher's actions in the states that it visits "
    "(dataset aggregation).",
    "The steps of the teacher are not included in those of its students.",
    "The hole is 0.5 mm wider than the peg; the published one is 0.114 mm wider.",
]

CITATIONS = [
    "Akinola et al. (2024), arXiv:2408.06506, TacSL: the task and the distillation",
    "Schmitt et al. (2018), arXiv:1803.03835: kickstarting",
    "Ross, Gordon and Bagnell (2011), arXiv:1011.0686: dataset aggregation",
    "Pinto et al. (2018), arXiv:1710.06542: asymmetric actor-critic",
    "Schulman et al. (2017), arXiv:1707.06347: PPO",
]
