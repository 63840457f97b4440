"""Tables, findings and figures of the study."""

from typing import Any

import numpy as np

from jaxgpu.report import Headline, Report, Table, figure, seeds_caption
from jaxgpu.runs.loop import Run

from . import pictures
from .measures import escape_rates, find_collapse, mean_and_error, slope


def make_report(options: Any, done: Run, scale: dict[str, float]) -> Report:
    """Return the report on all clusters."""
    names = ["isolated", *scale]
    history = done.history
    times = 0.5 * np.arange(2 * options.time + 1)
    turn, fell = find_collapse(history["core"])
    turn = np.where(fell, turn, len(times) - 1)  # without a collapse the full run is before it
    of = {name: np.arange(options.seeds) * 4 + k for k, name in enumerate(names)}
    by = {name: summary(history, times, (turn, fell), runs, options) for name, runs in of.items()}
    bound = abs(history["energy"] / history["energy"][0] - 1)[:, of["isolated"]].max()
    alone = by["isolated"]
    return Report(
        title="Tracers in star clusters",
        lead=(
            f"{options.stars} stars and {options.tracers} tracers per cluster, isolated and at "
            f"three densities in a tidal field, {options.seeds} seeds each. In isolation "
            f"half-mass radii change by factors of {alone['heavy'][0]:.2f} (heavy stars), "
            f"{alone['light'][0]:.2f} (light stars) and {alone['tracers'][0]:.2f} (tracers)."
        ),
        figures=figures(options, history, times, of, scale),
        tables=tables(by, scale),
        findings=findings(by, bound, int(done.history["pairs"][-1].sum()), options),
        citations=CITATIONS,
        timing={"all clusters": done.timing},
        seed=0,
        headlines=[
            Headline(
                "half-mass radius of tracers / initial value (isolated cluster, mean)",
                format_mean(alone["tracers"]),
                f"{format_mean(alone['light'])} for light stars, {format_mean(alone['heavy'])} "
                "for heavy stars",
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
            "Final (mean of the last tenth) relative to initial Lagrangian radii (r50, r90: 50 "
            "and 90 % of the bodies), and growth rates d ln r50 / dt in the second half; means "
            "over seeds ± standard errors",
            [
                "cluster",
                "heavy stars, r50",
                "light stars, r50",
                "tracers, r50",
                "tracers, r90",
                "growth, light",
                "growth, tracers",
                "difference",
            ],
            rows(radii),
        ),
        Table(
            "Core collapse and escape, means over seeds ± standard errors: number and time "
            "(N-body units) of collapses, minimum over initial core radius, fraction of escaped "
            "tracers, and escapes per 1000 tracers and unit of time before and after the "
            "collapse. In a collapse the core shrinks below a quarter and grows again by half; "
            "without one, all of the run is before it",
            ["cluster", "collapsed", "collapse time", "minimum core", "escaped", "before", "after"],
            rows(leaving),
        ),
        Table("The unit of time", ["half-mass radius", "Myr"], [list(q) for q in scale.items()], 3),
    ]


def format_mean(value: tuple[float, float]) -> str:
    """Return a mean as text, with its error if it is known."""
    return f"{value[0]:.2g}" + ("" if np.isnan(value[1]) else f" ± {value[1]:.1g}")


def findings(by: dict, bound: float, pairs: int, options: Any) -> list[str]:
    """Return one sentence per claim, based on the figures."""
    alone, densities = by["isolated"], [name for name in by if name != "isolated"]
    dense, loose = by[densities[0]], by[densities[-1]]
    suffix = lambda value: (
        "" if np.isnan(value[0]) else f", {format_mean(value)} after the collapse"
    )
    return [
        "Tracers do not segregate: in isolation, half-mass radii change by factors of "
        f"{format_mean(alone['heavy'])} (heavy stars), {format_mean(alone['light'])} (light "
        f"stars) and {format_mean(alone['tracers'])} (tracers).",
        "Tracers follow the potential: growth rates d ln r50 / dt of tracers and light stars "
        f"differ by {format_mean(alone['difference'])} per unit of time; that of light stars is "
        f"{format_mean(alone['light slope'])}.",
        "The tidal field shapes the outer parts: the 90 % radius of the tracers changes by "
        f"factors of {format_mean(dense['outer'])} (highest density), "
        f"{format_mean(loose['outer'])} (lowest density) and {format_mean(alone['outer'])} "
        "(isolated).",
        "Escapes per 1000 tracers and unit of time: "
        + ", ".join(f"{format_mean(by[k]['before'])}{suffix(by[k]['after'])} ({k})" for k in by)
        + ". "
        + collapse_finding(by, options),
        f"Cores shrink to {format_mean(dense['depth'])} (densest) and "
        f"{format_mean(loose['depth'])} (loosest) of their initial radius; the fractions of "
        f"escaped tracers are {format_mean(dense['gone'])} and {format_mean(loose['gone'])}.",
        f"The energy of isolated clusters is conserved to {bound:.1g} (relative) without "
        f"softening; {pairs} pairs were regularised at the end, in all clusters together.",
        *(["With one seed per type there are no error estimates."] if options.seeds == 1 else []),
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
            "Lagrangian radii (10, 50 and 90 %) of heavy stars (most massive 5 %), light stars "
            "(less massive half) and tracers, relative to their initial values. "
            + seeds_caption(options.seeds, "Lines: means of {n} seeds; bands: their range.")
            + " Heavy stars are few, and their radii jump when one is ejected.",
        ),
        figure(
            pictures.escapes(history, times, of, options.tracers),
            "Core radius, and fraction of escaped tracers. "
            + seeds_caption(options.seeds, "Lines: means of {n} seeds; bands: their range."),
        ),
    ]


CITATIONS = [
    "Flammini Dotti et al. (2025), A&A 693, A166, arXiv:2412.08785: massless particles",
    "Kroupa (2001), doi:10.1046/j.1365-8711.2001.04022.x: masses",
    "Makino & Aarseth (1992), PASJ 44, 141: Hermite block steps",
    "Casertano & Hut (1985), doi:10.1086/163589: the core",
]
