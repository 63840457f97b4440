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
        "Five methods to pour a glass",
        f"Water is poured off milk. After {options.episodes * seconds:g} simulated seconds the "
        f"best of five methods are {first}, which returns {equal[first].mean():.3f}, and {second} "
        f"({equal[second].mean():.3f}); a manual plan returns {race.fixed['by hand'].mean():.3f}. "
        f"At {time:.0f} s of CPU time per seed {quickest} is best with "
        f"{timed[quickest].mean():.3f} (means of {many}).",
        figures=[
            figure(
                pictures.curves(race, seconds, options.episodes),
                "Return against simulated time (a) and CPU time (b; methods without gradients "
                f"have {options.longer} times as many episodes); an episode with its gradient "
                "counts as one in (a). Policies (solid): current one, without exploration noise, "
                "from the initial states of all plans. Plans (dashed): best so far, each from its "
                f"own initial state. Lines: means of {many}; areas: 95 % intervals. (c) Final "
                f"return of each seed on these states and on new ones. {costs(race, timed, time)}",
            ),
            figure(
                pictures.gradients(windows, found, DISCOUNT, FRAME),
                f"Estimates of gradients of the summed reward in a window, at {options.plans} "
                "random plans and initial frames; bars in (a) and (b): 95 % intervals over plans. "
                "(a) Cosine to the gradient of the smoothed sum (Gaussian, deviation 0.1 per "
                "action); it may pass 1, as the norm is estimated. (b) Variance of one estimate "
                "over the squared norm. (c) Median and quartiles of the norm of exact gradients.",
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
                f"return at {time:.0f} s of CPU time per seed, {quickest}",
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
        f"Returns: means of {len(next(iter(equal.values())))} seeds with 95 % confidence intervals",
        [
            "method",
            "result",
            f"at {simulated:g} simulated s",
            "at equal CPU time",
            "final",
            "final, new initial states",
            "CPU seconds per episode",
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
        "Gradient estimates by window: cosine to the smoothed gradient, variance over its squared "
        "norm, and CPU time for equal variance, pairs of episodes over gradients",
        [
            "window, s",
            "cosine, exact",
            f"cosine, discounted by {DISCOUNT:g}",
            "cosine, mean of exact gradients at perturbed plans",
            "variance of a gradient",
            "variance of a pair",
            "CPU time, pairs / gradients",
        ],
        rows,
        digits=3,
    )


def sentences(race: Race, equal: dict[str, Any], windows: list[int], found: Quality) -> list[str]:
    """Return the significant findings, which are reproducible for the same seeds."""
    return [
        f"At equal simulated seconds {leader_sentence(equal)}",
        *(transfer_sentence(name, race.own[name], race.new[name]) for name in race.own),
        f"The gradient over the full episode has a cosine of {found.exact[-1, 0]:.2f} to the "
        f"smoothed gradient, over {FRAME * windows[0]:g} s {found.exact[0, 0]:.2f}; discounted by "
        f"{DISCOUNT:g} per frame it has {found.discounted[-1, 0]:.2f} over the full episode.",
    ]


def costs(race: Race, timed: dict[str, Any], time: float) -> str:
    """Return sentences on measured times, which differ between runs."""
    gradient = np.mean([race.price[name] for name in WITH_GRADIENTS])
    plain = np.mean([race.price[name] for name in race.price if name not in WITH_GRADIENTS])
    return (
        f"An episode with its gradient takes {gradient / plain:.1f} times the CPU time of one "
        f"without. At {time:.0f} s of CPU time {leader_sentence(timed)}"
    )


def leader_sentence(returns: dict[str, np.ndarray]) -> str:
    """Return a sentence on the best method, and its significant leads over the others."""
    leader, *others = sorted(returns, key=lambda name: -returns[name].mean())
    parts = []
    for name in others:
        gap, low, high = difference(returns[leader], returns[name])
        sure = "" if low > 0 else ", not significant"
        parts.append(f"{name} by {gap:.3f} ({low:.3f} to {high:.3f}{sure})")
    return f"{leader} leads " + ", ".join(parts) + "."


def transfer_sentence(name: str, own: np.ndarray, new: np.ndarray) -> str:
    """Return a sentence on the loss of returns on new initial states."""
    kind = "policies" if name in LEARNERS else "plans"
    lost, low, high = mean_interval(own - new)
    return f"On new initial states the {kind} of {name} lose {lost:.3f} ({low:.3f} to {high:.3f})."


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
