"""Tables, findings and headlines of the study."""

from typing import Any

import numpy as np

from jaxgpu.report import Headline, Report, Table, figure, seeds_caption
from jaxgpu.runs.loop import Run
from jaxgpu.studies.cluster_tracers.measures import mean_and_error

from . import pictures

_SIDES = "inner", "outer"


def make_report(options: Any, done: Run, fits: Any, theory: np.ndarray) -> Report:
    """Return the report on all clusters; leaves of `fits` are [densities, seeds, ...]."""
    wanted = degrees(theory)  # [densities, seeds, mass, tails]
    found = degrees(fits.mixture.mean_directions[:, :, :2])
    bent = (wanted[:, :, 0] - found + 180) % 360 - 180
    angles = wanted[:, :, 0] - bent  # continuous at 180 degrees, so that they have a mean
    count = fits.gone.sum((1, 2))
    total = options.tracers * options.seeds
    labels = [f"{radius:g} pc" for radius in options.radii]
    middle = len(labels) // 2
    means = (mean_and_error(angles[middle, :, k]) for k in range(2))
    said = dict(zip(_SIDES, map(format_mean, means)))
    slow, late = wanted[middle].mean(0)
    gain = fits.gain.mean(1)
    return Report(
        title="Where escapers go",
        lead=(
            f"{int(count.sum())} tracers leave {len(labels) * options.seeds} clusters on circles "
            f"about a galaxy. In axes that turn with the orbit their directions are two tails: for "
            f"{labels[middle]} at {said['inner']} and {said['outer']} degrees from the outward "
            f"line, where a tracer that leaves a Lagrange point at rest would go at "
            f"{slow[0]:.1f} and {slow[1]:.1f}."
        ),
        figures=[
            figure(
                pictures.sky(options, fits, theory, middle),
                f"Directions in which tracers cross twice the tidal radius of the clusters of "
                f"{labels[middle]}, all {options.seeds} seeds, and the density of the first seed's "
                "mixture. Left: in axes that turn with the orbit, the galaxy's centre is the "
                "edge, the middle is away from it, the motion to the right; crosses are theory. "
                "Right: the same tracers in axes that do not turn.",
                mime="image/png",
            ),
            figure(
                pictures.tails(options, fits, bent),
                "The tails by the cluster's size: how much further each is bent than theory, its "
                "concentration and its share. "
                + seeds_caption(
                    options.seeds, "Points are {n} seeds, bars means with their errors."
                ),
            ),
        ],
        tables=[_table(labels, options, fits, angles, wanted)],
        findings=[
            f"Of {total} tracers of each size "
            + ", ".join(f"{n} left those of {label}" for n, label in zip(count, labels))
            + f" in {options.time} units of time.",
            "A mixture in axes that turn has a mean log density "
            + ", ".join(f"{turned:.2f} ({fixed:.2f})" for turned, fixed in gain)
            + " above that of even directions; in brackets that of the same tracers in axes that "
            "do not turn, where the tails are smeared.",
            "Theory is the limit of slow escape from all of the mass. For the mass that is still "
            "there at the end, whose tidal radius is smaller, its angles are "
            f"{late[0]:.1f} and {late[1]:.1f} degrees.",
        ],
        citations=[
            "Fukushige & Heggie (2000), doi:10.1046/j.1365-8711.2000.03811.x: escape through the "
            "Lagrange points",
            "Flammini Dotti et al. (2025), A&A 693, A166: escaping bodies without mass",
            "Banerjee et al. (2005), JMLR 6, 1345: mixtures of von Mises-Fisher distributions",
        ],
        timing={"all clusters": done.timing},
        seed=0,
        headlines=[
            Headline(
                f"direction of the {side} tail, {labels[middle]}, degrees",
                said[side],
                f"{slow[k]:.1f} by theory of slow escape, {late[k]:.1f} for the mass left",
            )
            for k, side in enumerate(_SIDES)
        ],
    )


def degrees(directions: np.ndarray) -> np.ndarray:
    """Return angles in the orbital plane from the line away from the galaxy's centre, degrees.

    >>> degrees(np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.2]])).tolist()
    [90.0, 180.0]
    """
    return np.degrees(np.arctan2(directions[..., 1], directions[..., 0]))


def format_mean(value: tuple[float, float]) -> str:
    """Return a mean and its error as text."""
    return f"{value[0]:.1f}" if np.isnan(value[1]) else f"{value[0]:.1f} ± {value[1]:.1f}"


def _table(
    labels: list[str], options: Any, fits: Any, angles: np.ndarray, wanted: np.ndarray
) -> Table:
    share = np.exp(fits.mixture.log_weights)
    rows = [
        [
            label,
            side,
            format_mean(mean_and_error(angles[i, :, k])),
            *(f"{angle:.1f}" for angle in wanted[i, :, :, k].mean(0)),
            format_mean(mean_and_error(fits.mixture.concentrations[i, :, k])),
            format_mean(mean_and_error(100 * share[i, :, k])),
        ]
        for i, label in enumerate(labels)
        for k, side in enumerate(_SIDES)
    ]
    return Table(
        "The two tails. "
        + seeds_caption(options.seeds, "Means over {n} seeds with their standard errors."),
        [
            "half-mass radius",
            "tail",
            "degrees",
            "theory",
            "of the mass left",
            "concentration",
            "share, %",
        ],
        rows,
        digits=4,
    )
