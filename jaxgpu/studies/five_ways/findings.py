"""The report: curves, a table, and where derivatives help and hurt."""

from typing import Any

import numpy as np

from jaxgpu.report import Headline, Report, Table, figure, of_seeds

from . import pictures, slopes, ways

_KINDS = {
    "PPO": ("a policy", "rewards"),
    "SHAC": ("a policy", f"derivatives over {ways.WINDOW} frames"),
    "ES": ("a policy", "returns"),
    "Adam": ("a plan", f"derivatives, discounted by {ways.DISCOUNT} a frame"),
    "CEM": ("a plan", "returns"),
}


def written(
    options: Any,
    env: Any,
    scores: dict[str, np.ndarray],
    agreement: dict[str, np.ndarray],
    timing: dict[str, Any],
) -> Report:
    """The report; `scores` are returns [measurements, seeds]."""
    seconds = options.episodes * env.max_steps * 0.02
    ends = {name: score[-1] for name, score in scores.items()}
    order = sorted(ends, key=lambda name: -np.median(ends[name]))
    best = order[0]
    cosine = np.median(agreement["cosine"], 1)
    among = "one seed" if options.seeds == 1 else f"medians of {options.seeds} seeds"
    listed = ", ".join(f"{np.median(ends[name]):.3f} by {name}" for name in order)
    return Report(
        "Five ways to pour",
        f"Water is poured off milk by policies and plans that each simulated {seconds:g} s of "
        f"matter. Returns are {listed} ({among}); holding still returns 0, and 1 would be all "
        "water out and all milk in.",
        figures=[
            figure(
                pictures.drawn(scores, agreement, options.episodes),
                "Left: return over simulated episodes; policies are played from starts that they "
                "did not learn on, plans where they were made. Right: cosine between the "
                f"derivatives at a random plan and at one {slopes.NEARBY:g} of the greatest action "
                "away, by the number of frames that they run through. "
                + of_seeds(
                    options.seeds, "Lines are medians of {n} seeds, areas the worst and best."
                ),
            )
        ],
        tables=[
            Table(
                f"Return after {options.episodes} episodes. "
                + of_seeds(options.seeds, "Of {n} seeds."),
                ["way", "finds", "learns from", "median", "worst", "best", "CPU time, s"],
                [
                    [
                        name,
                        *_KINDS[name],
                        *(float(f(ends[name])) for f in (np.median, np.min, np.max)),
                        timing[name].run,
                    ]
                    for name in order
                ],
                digits=3,
            )
        ],
        findings=[
            f"Derivatives through {slopes.WINDOWS[0]} frames agree with those at a plan nearby to "
            f"a cosine of {cosine[0]:.3f}, through {slopes.WINDOWS[-1]} frames to {cosine[-1]:.3f} "
            f"({among}); their norm goes from {np.median(agreement['norm'][0]):.2g} to "
            f"{np.median(agreement['norm'][-1]):.2g}.",
            "An episode with its derivative counts as one and takes some five times as long, as "
            "the table says; a plan serves one start, a policy every start.",
            "So few episodes favour planners: learners of policies are used to thousands.",
        ],
        citations=[
            "Xian et al. (2023), arXiv:2303.02346: FluidLab, the task",
            "Schulman et al. (2017), arXiv:1707.06347: PPO",
            "Xu et al. (2022), arXiv:2204.07137: SHAC",
            "Salimans et al. (2017), arXiv:1703.03864: evolution strategies",
            "de Boer, Kroese, Mannor & Rubinstein (2005), doi:10.1007/s10479-005-5724-z: CEM",
            "Metz, Freeman, Schoenholz & Kachman (2021), arXiv:2111.05803: gradients of chaotic "
            "motion",
        ],
        timing=timing,
        seed=options.seed,
        headlines=[
            Headline(
                f"return after {options.episodes} episodes, {best}",
                float(np.median(ends[best])),
                f"{np.median(ends[order[1]]):.3f} by {order[1]} ({among})",
            )
        ],
    )
