"""Tables, findings and headlines of the study."""

from typing import Any

import numpy as np

from jaxgpu.report import Headline, Report, Table, figure
from jaxgpu.runs.loop import Run
from jaxgpu.studies import shared_parts

from . import pictures
from .galaxy import HIGH, LOW, NAMES
from .inference import Inference, MockResults
from .measures import LEVELS, RADII, Posteriors, binomial, circular_speeds, posteriors

TOLERANCE = 2.0  # in minus the log posterior: fits that are as good as the best
FORMATS = "{:.0f}", "{:.1f}", "{:.3f}", "{:.2f}"  # number formats of the parameters


def make_report(options: Any, spec: Inference, done: Run) -> Report:
    """Return the report on all mocks."""
    found = done.state
    known = posteriors(found)
    k = int(np.argsort(found.amiss)[len(found.amiss) // 2])
    pull = known.pull
    counts = [int(known.is_covered(level).sum()) for level in LEVELS]
    total = pull.size
    errors = ", ".join(
        f"{name.partition(',')[0]} {100 * share:.0f} %"
        for name, share in zip(NAMES, np.median(known.deviation / known.truth, 0))
    )
    return Report(
        title="A galaxy's potential from two stellar streams",
        lead=(
            "Four parameters of a galaxy are inferred from the tracks of two streams, "
            f"{options.stars} stars each, for {options.mocks} galaxies from the prior. Intervals "
            f"of 68 % contain the truth in {counts[0]} of {total} cases, of 95 % in {counts[1]}; "
            f"pulls have a standard deviation of {pull.std():.2f}. Median errors: {errors}."
        ),
        figures=figures(spec, found, known, k),
        tables=[coverage(known), posterior_table(known, found)],
        headlines=[
            Headline(
                f"{100 * level:.0f} % intervals that contain the truth, of {total}",
                float(count),
                f"{level * total:.0f} expected; the four intervals of a mock are not independent",
            )
            for level, count in zip(LEVELS, counts)
        ],
        **shared_parts(options, {"all mocks": done}, findings(known, found, options), CITATIONS),
    )


def figures(spec: Inference, found: MockResults, known: Posteriors, k: int) -> list[Any]:
    """Return streams and posterior of one mock, calibration of all, and circular speeds."""
    shape = (*spec.fine.places.shape, 5)
    tracks = tuple(np.asarray(a[k]).reshape(shape) for a in (found.data, found.scatter, found.mean))
    rows = np.asarray(found.rows[k])
    which = f"mock {k + 1}, whose emulator has the median error"
    return [
        figure(
            pictures.streams(rows, np.asarray(spec.fine.places), tracks),
            f"The two streams of {which}, as observed from the Sun: stars with observational "
            "errors (grey), their track with the errors of the synthetic likelihood (points; "
            "neighbours are correlated), and the fit (line). Proper motions are also fitted, but "
            "not shown.",
            mime="image/png",
        ),
        figure(
            pictures.corner(known, k),
            f"Posterior of {which}: regions of 68 and 95 %, and the truth. v15: halo circular "
            "speed at 15 kpc; a: halo scale length; q: halo flattening; Md: disc mass / 6.82e10 "
            "solar masses.",
        ),
        figure(
            pictures.calibration(known),
            "Top: posterior means against truths of all mocks, with central 68 % intervals; the "
            "axes span the prior ranges. Bottom: cumulative distribution of the truths' posterior "
            "ranks; if calibrated, it is in the grey band with 95 % probability at each rank.",
        ),
        figure(
            pictures.speeds(known, k),
            f"Left: circular speed in the plane of {which}, with 68 % intervals of prior and "
            "posterior. Right: relative standard deviation of the circular speed in all mocks.",
        ),
    ]


def coverage(known: Posteriors) -> Table:
    """Return a table of the coverage of intervals and of pulls, by parameter and for all."""
    mocks, pull = len(known.truth), known.pull
    rows: list[list[Any]] = []
    for j, name in enumerate(NAMES):
        row: list[Any] = [
            name,
            f"{LOW[j]:g} to {HIGH[j]:g}",
            FORMATS[j].format(np.median(known.deviation[:, j])),
            f"{pull[:, j].mean():.2f} ± {pull[:, j].std(ddof=1) / np.sqrt(mocks):.2f}",
            f"{pull[:, j].std(ddof=1):.2f}",
        ]
        for level in LEVELS:
            count = int(known.is_covered(level)[:, j].sum())
            low, high = binomial(count, mocks)
            row += [f"{count} of {mocks}", f"{low:.2f} to {high:.2f}"]
        rows.append(row)
    whole: list[Any] = ["all", "", "", f"{pull.mean():.2f}", f"{pull.std():.2f}"]
    for level in LEVELS:
        covered = known.is_covered(level)
        share = covered.mean(1)  # per mock, since its parameters are not independent
        error = share.std(ddof=1) / np.sqrt(mocks)
        whole += [f"{int(covered.sum())} of {covered.size}", f"{share.mean():.2f} ± {error:.2f}"]
    rows.append(whole)
    return Table(
        "Coverage of central intervals; mean and standard deviation (width) of pulls (mean - "
        "truth) / deviation. Fractions: 95 % Clopper-Pearson intervals; last row: standard error "
        "over mocks.",
        [
            "parameter",
            "prior",
            "median error",
            "mean pull",
            "width",
            "in 68 %",
            "fraction (68 %)",
            "in 95 %",
            "fraction (95 %)",
        ],
        rows,
    )


def posterior_table(known: Posteriors, found: MockResults) -> Table:
    """Return a table of truths and posteriors of all mocks."""
    rows: list[list[Any]] = []
    for k in range(len(known.truth)):
        row: list[Any] = [k + 1]
        for j, digits in enumerate(FORMATS):
            mean, deviation = known.mean[k, j], known.deviation[k, j]
            row += [
                digits.format(known.truth[k, j]),
                f"{digits.format(mean)} ± {digits.format(deviation)}",
            ]
        rows.append([*row, f"{float(found.chi2[k]):.0f}", f"{float(found.amiss[k]):.2f}"])
    columns = [
        part
        for name in NAMES
        for part in (f"{name}: truth", f"{name.partition(',')[0]}: posterior")
    ]
    width = found.data.shape[1]
    return Table(
        "All mocks: truths, posterior means ± standard deviations, chi-squared of the fit to "
        f"{width} data, and standard deviation of the error of the emulated log density.",
        ["mock", *columns, "chi-squared", "emulator error"],
        rows,
    )


def findings(known: Posteriors, found: MockResults, options: Any) -> list[str]:
    """Return sentences about the fits, the samples and the best-known quantity."""
    values = np.asarray(found.values)
    near = int(np.sum(values < values.min(1, keepdims=True) + TOLERANCE))
    speeds = circular_speeds(known.samples)
    mean = speeds.mean(1)
    error = speeds.std(1) / mean
    best = int(np.argmin(np.median(error, 0)))
    true = circular_speeds(known.truth)[:, best]
    pull = (mean[:, best] - true) / (error * mean)[:, best]
    chi2 = np.asarray(found.chi2)
    return [
        f"Of {values.size} first fits, whose initial parameters are off by 10 to 30 %, {near} end "
        f"within {TOLERANCE:g} of the best log posterior of their mock; the best fit is continued.",
        f"Two streams best constrain the circular speed at {RADII[best]:.0f} kpc: to "
        f"{100 * np.median(error[:, best]):.1f} % (median), with pulls of a width of "
        f"{pull.std(ddof=1):.2f}. Halo and disc are degenerate in it: their errors correlate.",
        f"Chi-squared of the fits is {chi2.mean():.0f} on average for {found.data.shape[1]} data "
        "and 4 free parameters.",
        "The error of the emulated log density has a standard deviation of "
        f"{np.median(found.amiss):.2f} in the median mock and of {np.max(found.amiss):.2f} in the "
        "worst, among the simulations of the last round.",
        "The model is the process that makes the mocks, with other random numbers and longer "
        "steps: a particle spray from clusters with known positions and velocities, without "
        "self-gravity of the streams, halo substructure, bar or foreground stars. For real "
        "streams, intervals must also include these effects.",
    ]


CITATIONS = [
    "Fardal, Huang & Weinberg (2015), doi:10.1093/mnras/stv1198: the spray",
    "Bovy, Bahmanyar, Fritz & Kallivayalil (2016), doi:10.3847/1538-4357/833/1/31: the "
    "halo's shape from Palomar 5 and GD-1",
    "Wood (2010), doi:10.1038/nature09319: synthetic likelihoods",
    "Price, Drovandi, Lee & Nott (2018), doi:10.1080/10618600.2017.1302882: their posteriors",
    "Sellentin & Heavens (2016), doi:10.1093/mnrasl/slv190: covariances from simulations",
    "Goodman & Weare (2010), doi:10.2140/camcos.2010.5.65: ensembles of walkers",
    "Talts et al. (2018), arXiv:1804.06788: calibration by truths from the prior",
]
