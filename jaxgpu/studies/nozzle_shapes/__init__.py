"""Nozzle shapes: a Pareto front by evolution, refined by gradients through the flow of oil."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxgpu.inputs.fields import size
from jaxgpu.report import Figure, Headline, Report, Table, figure, seeds_caption
from jaxgpu.studies import SeededOptions, seed_count

from . import pictures
from .nozzle import Pour
from .race import COUNT_LABELS, Cost, Race, agreement, cost, run_race


@dataclass(frozen=True)
class Options(SeededOptions):
    """Options of the study."""

    seeds: int = seed_count(default=5, least=2)
    """Seeds of evolution; at least 2, for intervals."""
    pop_size: int = size(default=12, least=4, most=10_000)
    """Population size, an even number."""
    generations: int = size(default=50, least=20, most=1_000_000)
    """Generations of evolution only; gradients start after a fifth and after a half of them."""
    frames: int = size(default=40, least=1, most=10_000)
    """Frames per episode, of ten time steps each."""

    def __post_init__(self):
        super().__post_init__()
        if self.pop_size % 2:
            raise ValueError(f"pop_size: {self.pop_size}; must be an even number")

    @property
    def starts(self) -> tuple[int, int]:
        """Generations after which gradients take over."""
        return self.generations // 5, self.generations // 2


def study(options: Options, out: Path, resume: bool) -> Report:
    """Run all seeds and compare the hypervolumes at equal cost."""
    pour = Pour(frames=options.frames)
    price = cost(pour, options.pop_size, out, resume)
    steps = {
        start: max(1, int((options.generations - start) / price.ratio)) for start in options.starts
    }
    races = [
        run_race(
            pour,
            options.pop_size,
            options.generations,
            steps,
            options.seed + i,
            out / f"seed-{options.seed + i}",
            resume,
        )
        for i in range(options.seeds)
    ]
    ends: Ends = {start: [one.ends(start) for one in races] for start in (None, *options.starts)}
    means = {start: np.mean([list(e.values()) for e in ends[start]], 0) for start in ends}
    late = options.starts[1]
    cosines = checks(pour, races[0], options.starts[0])
    timing = {"evolution": races[0].evolved.timing}
    timing |= {f"from {start}": one.timing for start, one in races[0].polished.items()}
    return Report(
        "Nozzle shapes by evolution and by gradients",
        f"An episode with its gradient costs {price.ratio:.1f} episodes without, "
        f"{1e3 * price.plain:.1f} ms of CPU time each (medians of this run). At equal CPU time "
        f"evolution alone has a hypervolume of {means[None][0]:.4f} (all members so far) and "
        f"{means[None][2]:.4f} (last {options.pop_size}). With gradients after generation {late} "
        f"of {options.generations} these are {means[late][0]:.4f} and {means[late][2]:.4f} (means "
        f"of {options.seeds} seeds).",
        figures=[picture(pour, races, options, price)],
        tables=tables(ends, steps, races, cosines),
        findings=[
            *(
                gain_sentence(ends, start, counted)
                for counted in COUNT_LABELS
                for start in options.starts
            ),
            "NSGA-II can lose non-dominated members, so that the hypervolume of its last "
            "population fluctuates; refinement by gradients cannot. Counting all members, "
            "evolution gains from its more numerous episodes, which fill gaps.",
            "A step is accepted if neither objective worsens. The front advances but does not "
            "spread: evolution fills its gaps, gradients do not.",
            "The first step of a refinement only evaluates gradients. The next ones start at 8 % "
            "of the box; their length grows after acceptance and shrinks after rejection.",
        ],
        citations=CITATIONS,
        timing=timing,
        seed=options.seed,
        headlines=[
            Headline(
                f"hypervolume of {COUNT_LABELS[i]}, gradients from generation {late} (mean)",
                float(means[late][i]),
                f"{means[None][i]:.4f} by evolution alone at equal CPU time ({options.seeds} "
                "seeds)",
                digits=4,
            )
            for i in (0, 2)
        ],
    )


type Ends = dict[int | None, list[dict[str, float]]]  # of all seeds, by `start`


def tables(
    ends: Ends, steps: dict[int, int], races: list[Race], cosines: np.ndarray
) -> list[Table]:
    """Return tables of volumes at equal cost, of accepted steps, and of gradient accuracy."""
    named = zip(("fraction of oil retained", "rms width of the jet"), cosines.T)
    return [
        Table(
            "Hypervolume at equal CPU time, and gain of gradients over evolution alone",
            ["counted", "method", "steps", "mean", "gain", "95 % from", "to", "seeds with gain"],
            rows(ends, steps),
        ),
        Table(
            "Members that moved in each gradient step, all seeds",
            ["gradients from generation", "step", "moved", "did not move"],
            moves(races),
        ),
        Table(
            "Cosine between gradients and central differences (steps of 1 mm), members of one seed",
            ["objective", "median", "minimum", "above 0.9", "members"],
            [
                [name, float(np.median(c)), float(c.min()), int(np.sum(c > 0.9)), len(c)]
                for name, c in named
            ],
            digits=3,
        ),
    ]


def gains(ends: Ends, start: int, counted: str) -> np.ndarray:
    """Return the hypervolume gain [seeds] over evolution alone of gradients from `start`."""
    return np.array([led[counted] - own[counted] for led, own in zip(ends[start], ends[None])])


def rows(ends: Ends, steps: dict[int, int]) -> list[list[Any]]:
    """Return the table rows: for each count, evolution alone and each refinement."""
    lines = []
    for counted in COUNT_LABELS:
        for start in ends:
            mean = float(np.mean([one[counted] for one in ends[start]]))
            if start is None:
                lines.append([counted, "evolution alone", "", mean, "", "", "", ""])
                continue
            gain = gains(ends, start, counted)
            better = f"{int(np.sum(gain > 0))} of {len(gain)}"
            found = mean, float(gain.mean()), *interval(gain)
            lines.append(["", f"gradients from {start}", steps[start], *found, better])
    return lines


def interval(samples: np.ndarray) -> tuple[float, float]:
    """Return the 95 % confidence interval of the mean of normal samples, by Student's t.

    >>> [round(end, 3) for end in interval(np.array([1.0, 2.0, 3.0]))]
    [-0.484, 4.484]
    """
    from scipy.stats import t

    reach = t.ppf(0.975, len(samples) - 1) * samples.std(ddof=1) / np.sqrt(len(samples))
    return float(samples.mean() - reach), float(samples.mean() + reach)


def gain_sentence(ends: Ends, start: int, counted: str) -> str:
    """Return a sentence on the effect of gradients from `start`, by the gain's interval."""
    gain = gains(ends, start, counted)
    low, high = interval(gain)
    verdict = "helped" if low > 0 else "hurt" if high < 0 else "had no significant effect"
    return (
        f"Counting {counted}, gradients from generation {start} on {verdict}: {gain.mean():+.4f} "
        f"in hypervolume (95 % from {low:+.4f} to {high:+.4f})."
    )


def moves(races: list[Race]) -> list[list[Any]]:
    """Count the members that each step moved or left; the first step only computes gradients."""
    rows = []
    for start in races[0].polished:
        x = np.stack([one.polished[start].history["x"] for one in races])  # [seeds, 1 + K, N, D]
        moved = np.any(x[:, 1:] != x[:, :-1], -1)
        for i in range(1, moved.shape[1]):
            count = int(moved[:, i].sum())
            rows.append([start, i, count, moved[:, i].size - count])
    return rows


def checks(pour: Pour, one: Race, start: int) -> np.ndarray:
    """Return cosines [N, 2] between gradients and finite differences at the refined members."""
    led = one.polished[start].state
    box = pour.problem().box
    width = np.asarray(box.upper - box.lower)
    x = np.asarray(box.lower) + np.asarray(led.x) * width
    return agreement(pour, x, np.asarray(led.slopes) / width)


def picture(pour: Pour, races: list[Race], options: Options, price: Cost) -> Figure:
    """Return the figure: fronts and nozzles of the seed with the median gain, and all volumes."""
    start = options.starts[0]
    gain = np.array([one.volumes(start)[-1] - one.volumes()[-1] for one in races])
    middle = races[int(np.argsort(gain)[len(gain) // 2])]
    led = middle.polished[start].history
    after = np.asarray(led["f"][-1])
    order = np.argsort(after[:, 0])
    chosen = [int(order[i]) for i in (0, len(order) // 2, -1)]
    box = pour.problem().box
    designs = box.lower[None] + led["x"][-1][chosen] * (box.upper - box.lower)[None]
    shown = pour.frames * 5 // 8
    film = jax.jit(pour.trajectory)
    oil = np.stack([np.asarray(film(one)[shown]) for one in designs])
    seen = shown / pour.frames * pour.seconds
    return figure(
        pictures.overview(
            np.asarray(led["f"][0]),
            after,
            np.asarray(middle.evolved.history["f"][-1]),
            chosen,
            oil,
            np.asarray(designs),
            curves(races, options, price),
        ),
        f"Left: members after generation {start} and after refinement by gradients, and evolution "
        "alone at equal CPU time, for the seed with the median gain. Right: hypervolume of all "
        f"members so far against cost; an episode with its gradient counts as {price.ratio:.1f} "
        "episodes. "
        + seeds_caption(len(races), "Lines: medians of {n} seeds; areas: their range. ")
        + f"Bottom: three refined nozzles {seen:.2f} s after the release of the oil; the width of "
        "the jet is measured at the dashed line.",
    )


def curves(
    races: list[Race], options: Options, price: Cost
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return cost [T], in plain episodes, and hypervolume [T, seeds] of each method."""
    alone = np.stack([one.volumes() for one in races], 1)
    found: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    found["evolution alone"] = options.pop_size * np.arange(1, len(alone) + 1), alone
    for start in options.starts:
        covered = np.stack([one.volumes(start) for one in races], 1)
        spent = options.pop_size * (start + price.ratio * np.arange(len(covered)))
        found[f"gradients from {start}"] = spent, covered
    return found


CITATIONS = [
    "Deb, Pratap, Agarwal & Meyarivan (2002), doi:10.1109/4235.996017: NSGA-II",
    "Desideri (2012), doi:10.1016/j.crma.2012.03.014: multiple-gradient descent",
    "Fliege & Svaiter (2000), doi:10.1007/s001860000043: steepest descent of several objectives",
    "Hu et al. (2018), doi:10.1145/3197517.3201293: the transfers of the oil's simulation",
]
