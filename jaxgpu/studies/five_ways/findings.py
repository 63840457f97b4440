"""Tables, findings and headlines of the study."""

from typing import Any

import numpy as np

from jaxgpu.report import Headline, Report, Table, figure
from jaxgpu.runs.loop import Timing

from . import pictures
from .gradient_quality import Quality
from .methods import DISCOUNT, LEARNERS, WITH_GRADIENTS
from .race import Race
from .statistics import difference, format_interval, mean_interval

FRAME = 0.02  # s


def make_report(
    options: Any, env: Any, race: Race, windows: list[int], found: Quality, looking: Timing
) -> Report:
    """Return the report on the race and on the gradients."""
    seconds = FRAME * env.max_steps
    equal = {name: curve.interpolate(options.episodes) for name, curve in race.curves.items()}
    time = min(race.price[name] * curve.episodes[-1] for name, curve in race.curves.items())
    timed = {
        name: curve.interpolate(time / race.price[name]) for name, curve in race.curves.items()
    }
    order = sorted(equal, key=lambda name: -equal[name].mean())
    first, second = order[:2]
    quickest = max(timed, key=lambda name: timed[name].mean())
    many = f"{options.seeds} seeds"
    return Report(
        "Five ways to pour a glass",
        f"Water is poured off milk. After {options.episodes * seconds:g} simulated seconds "
        f"{first} returns {equal[first].mean():.3f} and {second} {equal[second].mean():.3f}, the "
        f"best of five ways; a plan made by hand returns {race.fixed['by hand'].mean():.3f}. At "
        f"{time:.0f} s of processor time a seed {quickest} is first with "
        f"{timed[quickest].mean():.3f} (means of {many}).",
        figures=[
            figure(
                pictures.curves(race, seconds, options.episodes),
                f"Return over simulated seconds (a) and over processor time (b), where ways "
                f"without gradients go on to {options.longer} times as many episodes; one with "
                "its gradient counts as one in (a). Of policies (solid) the newest, without "
                "noise, from the starts of all plans; of plans (dashed) the best so far, each from "
                f"its own start. Lines are means of {many}, areas their 95 % intervals. (c) Each "
                f"seed at its end there and on new starts. {costs(race, timed, time)}",
            ),
            figure(
                pictures.gradients(windows, found, DISCOUNT, FRAME),
                f"Gradients of the rewards in a window, at {options.plans} random plans and places "
                "on the way, bars 95 % intervals over plans. (a) Cosine to the slope of the gain "
                "that is smoothed over deviations of 0.1 in every action; intervals may pass 1, "
                "as the size of that slope is known with noise. (b) Variance of one "
                "estimate of that slope. (c) Median and quartiles of the norm.",
            ),
        ],
        tables=[
            returns(race, equal, timed, options.episodes * seconds),
            quality_table(windows, found, race),
        ],
        findings=sentences(race, equal, windows, found),
        citations=CITATIONS,
        timing={name: run.timing for name, run in race.runs.items()} | {"gradients": looking},
        seed=options.seed,
        headlines=[
            Headline(
                f"return after {options.episodes * seconds:g} simulated seconds, {first}",
                float(equal[first].mean()),
                f"{equal[second].mean():.3f} by {second}, "
                f"{race.fixed['by hand'].mean():.3f} by hand ({many})",
            ),
            Headline(
                f"return at {time:.0f} s of processor time, {quickest}",
                float(timed[quickest].mean()),
                ", ".join(f"{timed[n].mean():.3f} by {n}" for n in order if n != quickest),
            ),
        ],
    )


def returns(race: Race, equal: dict[str, Any], timed: dict[str, Any], simulated: float) -> Table:
    """Return a table of the returns of all methods and of the fixed plans."""
    rows: list[list[Any]] = []
    for name in sorted(equal, key=lambda name: -equal[name].mean()):
        kind = "policy" if name in LEARNERS else "plan"
        scores = (format_interval(one[name]) for one in (equal, timed, race.own, race.new))
        rows.append([name, kind, *scores, race.price[name]])
    rows += [[name, "plan", "", "", "", f"{r.mean():.3f}", ""] for name, r in race.fixed.items()]
    return Table(
        f"Returns, means of {len(next(iter(equal.values())))} seeds with their 95 % intervals",
        [
            "",
            "finds",
            f"after {simulated:g} simulated s",
            "at equal seconds of processor time",
            "at its end",
            "at its end, new starts",
            "seconds an episode",
        ],
        rows,
        digits=3,
    )


def quality_table(windows: list[int], found: Quality, race: Race) -> Table:
    """Return a table of cosines by window, and of the relative cost of both estimates."""
    pair = 2 * race.price["CEM"]
    gradient = race.price["Adam"]
    format_row = lambda row: f"{row[0]:.2f} ({row[1]:.2f} to {row[2]:.2f})"
    rows = [
        [
            frames * FRAME,
            format_row(found.exact[i]),
            format_row(found.discounted[i]),
            format_row(found.averaged[i]),
            float(found.spread_of_gradients[i, 0]),
            float(found.spread_of_pairs[i, 0]),
            float(
                found.spread_of_pairs[i, 0] * pair / (found.spread_of_gradients[i, 0] * gradient)
            ),
        ]
        for i, frames in enumerate(windows)
    ]
    return Table(
        "Gradients by the window: cosines to the smoothed slope, variances over its square, and "
        "how many times as much processor time pairs of episodes need for the same variance",
        [
            "window, s",
            "exact",
            f"discounted by {DISCOUNT:g}",
            "mean of exact ones nearby",
            "variance of a gradient",
            "of a pair",
            "seconds of pairs over those of gradients",
        ],
        rows,
        digits=3,
    )


def sentences(race: Race, equal: dict[str, Any], windows: list[int], found: Quality) -> list[str]:
    """Return the significant findings, which are reproducible for the same seeds."""
    return [
        f"At equal simulated seconds {leader_sentence(equal)}",
        *(transfer_sentence(name, race.own[name], race.new[name]) for name in race.own),
        f"Over the whole episode a gradient has a cosine of {found.exact[-1, 0]:.2f} to the "
        f"smoothed slope, over {FRAME * windows[0]:g} s one of {found.exact[0, 0]:.2f}; discounted "
        f"by {DISCOUNT:g} a frame it has {found.discounted[-1, 0]:.2f} over the whole.",
    ]


def costs(race: Race, timed: dict[str, Any], time: float) -> str:
    """Return sentences on measured times, which differ between runs."""
    gradient = np.mean([race.price[name] for name in WITH_GRADIENTS])
    plain = np.mean([race.price[name] for name in race.price if name not in WITH_GRADIENTS])
    return (
        f"An episode with its gradient takes {gradient / plain:.1f} times the processor time of a "
        f"plain one. At {time:.0f} s of it {leader_sentence(timed)}"
    )


def leader_sentence(returns: dict[str, np.ndarray]) -> str:
    """Return a sentence on the best method, and its significant leads over the others."""
    leader, *others = sorted(returns, key=lambda name: -returns[name].mean())
    parts = []
    for name in others:
        gap, low, high = difference(returns[leader], returns[name])
        sure = "" if low > 0 else ", which is not sure"
        parts.append(f"{name} by {gap:.3f} ({low:.3f} to {high:.3f}{sure})")
    return f"{leader} leads " + ", ".join(parts) + "."


def transfer_sentence(name: str, own: np.ndarray, new: np.ndarray) -> str:
    """Return a sentence on the loss of returns on new initial states."""
    kind = "policies" if name in LEARNERS else "plans"
    lost, low, high = mean_interval(own - new)
    return f"On new starts the {kind} of {name} lose {lost:.3f} ({low:.3f} to {high:.3f})."


CITATIONS = [
    "Schulman et al. (2017), arXiv:1707.06347: PPO",
    "Xu et al. (2022), arXiv:2204.07137: SHAC",
    "Salimans et al. (2017), arXiv:1703.03864; Mania, Guy & Recht (2018), arXiv:1803.07055: ES",
    "Kingma & Ba (2015), arXiv:1412.6980: Adam",
    "de Boer, Kroese, Mannor & Rubinstein (2005), doi:10.1007/s10479-005-5724-z: CEM",
    "Suh, Simchowitz, Zhang & Tedrake (2022), arXiv:2202.00817: whether gradients of simulations "
    "give better policy gradients",
    "Metz, Freeman, Schoenholz & Kachman (2021), arXiv:2111.05803: gradients of chaotic motion",
    "Xian et al. (2023), arXiv:2303.02346: FluidLab, the task",
]
