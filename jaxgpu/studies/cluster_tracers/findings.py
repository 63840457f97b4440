"""Tables, findings and figures of the study."""

from typing import Any

import numpy as np

from jaxgpu.report import Headline, Report, Table, figure, seeds_caption
from jaxgpu.runs.loop import Run

from . import pictures
from .measures import escape_rates, find_collapse, mean_and_error, slope


def make_report(options: Any, done: Run, scale: dict[str, float]) -> Report:
    """Return the report on all clusters."""
    names = ["alone", *scale]
    history = done.history
    times = 0.5 * np.arange(2 * options.time + 1)
    turn, fell = find_collapse(history["core"])
    turn = np.where(fell, turn, len(times) - 1)  # without a collapse the full run is before it
    of = {name: np.arange(options.seeds) * 4 + k for k, name in enumerate(names)}
    by = {name: summary(history, times, (turn, fell), runs, options) for name, runs in of.items()}
    bound = abs(history["energy"] / history["energy"][0] - 1)[:, of["alone"]].max()
    alone = by["alone"]
    return Report(
        title="Tracers in star clusters",
        lead=(
            f"{options.stars} stars and {options.tracers} tracers, three densities, alone "
            f"and in the tide, {options.seeds} of each: alone, the radius that holds half of the "
            f"heavy stars goes to {alone['heavy'][0]:.2f} of what it was, that of the light stars "
            f"to {alone['light'][0]:.2f}, that of the tracers to {alone['tracers'][0]:.2f}."
        ),
        figures=figures(options, history, times, of, scale),
        tables=tables(by, scale),
        findings=findings(by, bound, int(done.history["pairs"][-1].sum()), options),
        citations=CITATIONS,
        timing={"all clusters": done.timing},
        seed=0,
        headlines=[
            Headline(
                "radius of half of the tracers over its first, a cluster alone",
                format_mean(alone["tracers"]),
                f"{format_mean(alone['light'])} of light stars, {format_mean(alone['heavy'])} of "
                "heavy ones",
            )
        ],
    )


def summary(
    history: dict[str, np.ndarray],
    times: np.ndarray,
    turns: tuple[np.ndarray, np.ndarray],
    runs: np.ndarray,
    options,
) -> dict[str, tuple[float, float]]:
    """Return means over seeds, with standard errors, for one type of cluster."""
    turn, fell = turns
    pick = lambda name, k: history[name][:, runs, k]
    late = slice(-max(len(times) // 10, 1), None)
    relative_growth = lambda name, k: mean_and_error(pick(name, k)[late].mean(0) / pick(name, k)[0])
    gone = history["gone"][:, runs]
    before, after = escape_rates(gone, times, turn[runs], options.tracers)
    core = history["core"][:, runs]
    slopes = {name: slope(pick(name, 1), times) for name in ("light", "tracers")}
    return {
        "heavy": relative_growth("heavy", 1),
        "light": relative_growth("light", 1),
        "tracers": relative_growth("tracers", 1),
        "outer": relative_growth("tracers", 2),
        "light slope": mean_and_error(slopes["light"]),
        "tracers slope": mean_and_error(slopes["tracers"]),
        "difference": mean_and_error(slopes["tracers"] - slopes["light"]),
        "collapse": mean_and_error(times[turn[runs]][fell[runs]]),
        "collapsed": (float(fell[runs].sum()), np.nan),
        "depth": mean_and_error(core.min(0) / core[0]),
        "gone": mean_and_error(gone[-1] / options.tracers),
        "before": mean_and_error(before),
        "after": mean_and_error(after),
    }


def tables(by: dict[str, dict[str, tuple[float, float]]], scale: dict[str, float]) -> list[Table]:
    """Return tables of radii and escapes, one row per type of cluster."""
    format_error = lambda value: "" if np.isnan(value[1]) else f" ± {value[1]:.1g}"
    format_cell = lambda value: (
        "-" if np.isnan(value[0]) else f"{value[0]:.3g}" + format_error(value)
    )
    rows = lambda names: [
        [kind, *(format_cell(one[name]) for name in names)] for kind, one in by.items()
    ]
    radii = ["heavy", "light", "tracers", "outer", "light slope", "tracers slope", "difference"]
    leaving = ["collapsed", "collapse", "depth", "gone", "before", "after"]
    return [
        Table(
            "How radii changed: at the end over the beginning, with the error of the mean over "
            "seeds; and how fast half-mass radii grow in the second half, d ln r / dt",
            [
                "cluster",
                "heavy stars, r50",
                "light stars, r50",
                "tracers, r50",
                "tracers, r90",
                "light, slope",
                "tracers, slope",
                "difference",
            ],
            rows(radii),
        ),
        Table(
            "How many cores collapsed, when (N-body units of time), and the smallest core over the "
            "first; and the tracers that escaped: their share, and how many of a thousand in a "
            "unit of time before and after the collapse. A core collapsed where it shrank below a "
            "quarter and then grew by half again; where none did, all of the run is before",
            ["cluster", "collapsed", "at time", "smallest core", "escaped", "before", "after"],
            rows(leaving),
        ),
        Table("The unit of time", ["half-mass radius", "Myr"], [list(q) for q in scale.items()], 3),
    ]


def format_mean(value: tuple[float, float]) -> str:
    """Return a mean as text, with its error if it is known."""
    return f"{value[0]:.2g}" + ("" if np.isnan(value[1]) else f" ± {value[1]:.1g}")


def findings(by: dict, bound: float, pairs: int, options: Any) -> list[str]:
    """Return one sentence per claim, based on the figures."""
    alone, densities = by["alone"], [name for name in by if name != "alone"]
    dense, loose = by[densities[0]], by[densities[-1]]
    suffix = lambda value: (
        "" if np.isnan(value[0]) else f", {format_mean(value)} after the collapse"
    )
    return [
        "No segregation of tracers: alone, half-mass radii change by factors of "
        f"{format_mean(alone['heavy'])} (heavy stars), {format_mean(alone['light'])} (light stars) "
        f"and {format_mean(alone['tracers'])} (tracers).",
        "They follow the potential: half-mass radii of tracers and light stars grow "
        f"at rates that differ by {format_mean(alone['difference'])} a unit of time, where the "
        f"light stars' is {format_mean(alone['light slope'])}.",
        f"The outer parts answer to the tide: the 90 % radius of the tracers changes by "
        f"{format_mean(dense['outer'])} at the highest density, {format_mean(loose['outer'])} at "
        f"the lowest and {format_mean(alone['outer'])} alone.",
        "Escape, per thousand tracers and unit of time: "
        + ", ".join(f"{format_mean(by[k]['before'])}{suffix(by[k]['after'])} ({k})" for k in by)
        + ". "
        + collapse_finding(by, options),
        f"Cores shrink to {format_mean(dense['depth'])} (densest) and "
        f"{format_mean(loose['depth'])} (loosest) of their first radius; shares that escape are "
        f"{format_mean(dense['gone'])} and {format_mean(loose['gone'])}.",
        f"The energy of the clusters alone is kept to {bound:.1g} without softening; {pairs} pairs "
        "were regularised at the end, in all clusters together.",
        *(
            ["With one seed of each kind no error is known, and none is given."]
            if options.seeds == 1
            else []
        ),
    ]


def collapse_finding(by: dict, options: Any) -> str:
    """Return a sentence on the number of collapsed cores."""
    fell = int(sum(one["collapsed"][0] for one in by.values()))
    if fell == 0:
        return "No core collapsed within the run, so there is no rate after a collapse."
    return f"{fell} of {len(by) * options.seeds} cores collapsed within the run."


def figures(
    options: Any, history: dict, times: np.ndarray, of: dict, scale: dict[str, float]
) -> list:
    """Return the video, the radii and the escapes."""
    stars = options.stars
    radius = next(iter(scale))
    return [
        pictures.video(history["film"], stars, times, scale[radius], radius),
        figure(
            pictures.radii(history, times, of),
            "Radii that hold a tenth, a half and nine tenths of each kind of body, over their "
            "first values. "
            + seeds_caption(options.seeds, "Lines are means of {n} seeds, bands their range.")
            + " There are few heavy stars, and their radii jump when one is thrown out.",
        ),
        figure(
            pictures.escapes(history, times, of, options.tracers),
            "The core's radius, and the share of tracers that have escaped. "
            + seeds_caption(options.seeds, "Lines are means of {n} seeds, bands their range."),
        ),
    ]


CITATIONS = [
    "Flammini Dotti et al. (2025), A&A 693, A166, arXiv:2412.08785: massless particles",
    "Kroupa (2001), doi:10.1046/j.1365-8711.2001.04022.x: masses",
    "Makino & Aarseth (1992), PASJ 44, 141: Hermite block steps",
    "Casertano & Hut (1985), doi:10.1086/163589: the core",
]
