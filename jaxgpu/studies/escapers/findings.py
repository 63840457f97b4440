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
    said = dict(zip(_SIDES, (format_mean(mean_and_error(angles[middle, :, k])) for k in range(2))))
    slow, late = wanted[middle].mean(0)
    gain = fits.gain.mean(1)
    return Report(
        title="Directions of escapers from star clusters",
        lead=(
            f"{int(count.sum())} tracers escape from {len(labels) * options.seeds} clusters on "
            "circular orbits about a galaxy. In axes that rotate with the orbit, their directions "
            f"form two tails. For {labels[middle]} these are at {said['inner']} and "
            f"{said['outer']} degrees from the radially outward direction; theory (release at "
            f"rest at a Lagrange point) predicts {slow[0]:.1f} and {slow[1]:.1f}."
        ),
        figures=[
            figure(
                pictures.sky(options, fits, theory, middle),
                f"Directions in which tracers cross twice the tidal radius ({labels[middle]}, all "
                f"{options.seeds} seeds, points), and density of the mixture fitted to the first "
                "seed. Left: axes that rotate with the orbit; the center of the map is radially "
                "outward, its edges point to the galactic centre, and the orbital motion is to "
                "the right. Crosses: theory. Right: the same tracers in fixed axes.",
                mime="image/png",
            ),
            figure(
                pictures.tails(options, fits, bent),
                "Inner and outer tail by half-mass radius: theoretical minus fitted angle, "
                "concentration, and fraction of escapers. "
                + seeds_caption(
                    options.seeds, "Points: {n} seeds; bars: means and standard errors."
                ),
            ),
        ],
        tables=[_table(labels, options, fits, angles, wanted)],
        findings=[
            f"Of {total} tracers per half-mass radius, "
            + ", ".join(f"{n} escaped for {label}" for n, label in zip(count, labels))
            + f" in {options.time} units of time.",
            "Mixtures in rotating axes exceed the mean log density of a uniform distribution by "
            + ", ".join(f"{turned:.2f} ({fixed:.2f})" for turned, fixed in gain)
            + " (in order of half-mass radius; in brackets: in fixed axes, where the tails are "
            "smeared).",
            "Theory is the limit of slow escape from the initial mass. With the mass that remains "
            f"at the end, and its smaller tidal radius, the predicted angles are {late[0]:.1f} "
            f"and {late[1]:.1f} degrees.",
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
                f"angle of the {side} tail from the outward direction, {labels[middle]}, degrees",
                said[side],
                f"{slow[k]:.1f} by theory for the initial mass, {late[k]:.1f} for the final mass",
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
        "Escape angles, concentrations and fractions of the two tails. "
        + seeds_caption(options.seeds, "Means over {n} seeds ± standard errors."),
        [
            "half-mass radius",
            "tail",
            "angle, degrees",
            "theory, initial mass",
            "theory, final mass",
            "concentration",
            "fraction, %",
        ],
        rows,
        digits=4,
    )
