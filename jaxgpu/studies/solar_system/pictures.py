"""Plots of tracers and planets. Functions that need matplotlib import it."""

from typing import Any

import numpy as np

from jaxgpu.physics.nbody.orbits.elements import Elements
from jaxgpu.render.palette import BLUE, GRAY, INK, ORANGE, report_style

# p : q resonances with Jupiter inside its orbit, at a = a_J (q / p)^(2/3)
RESONANCES = {"4:1": (4, 1), "3:1": (3, 1), "5:2": (5, 2), "7:3": (7, 3), "2:1": (2, 1)}


@report_style
def response(before: Elements, strayed: np.ndarray, highest: np.ndarray, jupiter: float) -> Any:
    """Plot the change of each tracer's orbit against its initial semi-major axis.

    Args:
        before: initial elements, [M] each, AU.
        strayed: maximum minus minimum semi-major axis [M], AU.
        highest: maximum eccentricity [M].
        jupiter: semi-major axis of Jupiter, AU.
    """
    import matplotlib.pyplot as plt

    a = np.asarray(before.a)
    drawing, (top, bottom) = plt.subplots(2, 1, figsize=(7.4, 5), sharex=True)
    top.semilogy(a, strayed, ".", ms=1.6, color=BLUE, alpha=0.6, rasterized=True)
    top.set_ylabel("range of semi-major axis, AU")
    gain = highest - np.asarray(before.e)
    bottom.plot(a, gain, ".", ms=1.6, color=BLUE, alpha=0.6, rasterized=True)
    bottom.set_ylabel("maximum gain in eccentricity")
    bottom.set_xlabel("initial semi-major axis, AU")
    for name, (p, q) in RESONANCES.items():
        place = jupiter * (q / p) ** (2 / 3)
        if a.min() <= place <= a.max():
            for axes in (top, bottom):
                axes.axvline(place, color=ORANGE, lw=0.8, zorder=0)
            at = top.get_xaxis_transform()
            top.text(place, 1.02, name, color=ORANGE, ha="center", va="bottom", transform=at)
    drawing.align_ylabels()
    return drawing


@report_style
def plane(
    planets: dict[str, np.ndarray], tracers: np.ndarray, before: Elements, after: Elements
) -> Any:
    """Plot the tracers from above, and their orbits before and after.

    Args:
        planets: heliocentric position [3] by name, AU.
        tracers: heliocentric positions [M, 3], AU.
        before: initial elements, [M] each, AU.
        after: final elements.
    """
    import matplotlib.pyplot as plt

    drawing, (left, right) = plt.subplots(1, 2, figsize=(9.2, 4.4))
    left.plot(tracers[:, 0], tracers[:, 1], ".", ms=1.2, color=BLUE, alpha=0.5, rasterized=True)
    for name, place in ({"Sun": np.zeros(3)} | planets).items():
        left.plot(place[0], place[1], "o", ms=5, color=ORANGE)
        left.annotate(name, place[:2], xytext=(6, 5), textcoords="offset points", color=INK)
    left.set_aspect("equal")
    left.set_xlabel("x, AU (ecliptic of J2000)")
    left.set_ylabel("y, AU")
    for orbit, colour, label in ((after, BLUE, "at the end"), (before, GRAY, "at the start")):
        dots = {"ms": 1.2, "rasterized": True, "color": colour, "label": label}
        right.plot(orbit.a, orbit.e, ".", **dots)
    right.set_xlabel("semi-major axis, AU")
    right.set_ylabel("eccentricity")
    right.set_ylim(0)
    right.legend(markerscale=8, loc="upper left")
    return drawing


@report_style
def sky(seen: np.ndarray, bodies: dict[str, np.ndarray]) -> Any:
    """Plot the density of tracers on the sky, centered on the point opposite to the Sun.

    Args:
        seen: positions relative to the observer [M, 3].
        bodies: the same [3] by name, including the Sun.
    """
    import matplotlib.pyplot as plt

    sun = _angles(bodies["Sun"])[0]
    from_opposition = lambda x: ((_angles(x)[0] - sun) % 360 - 180, _angles(x)[1])
    longitude, latitude = from_opposition(seen)
    drawing, axes = plt.subplots(figsize=(8.6, 3))
    image = axes.hist2d(
        longitude,
        latitude,
        bins=(120, 27),
        range=((-180, 180), (-20, 20)),
        cmap="magma",
        rasterized=True,
    )[3]
    for name, place in bodies.items():
        at = from_opposition(place)
        axes.plot(*at, "o", ms=5, mfc="none", color="white", clip_on=False)
        # East is left, so a label at an edge is aligned inwards.
        side = "left" if at[0] > 150 else "right" if at[0] < -150 else "center"
        axes.annotate(name, at, xytext=(0, 6), textcoords="offset points", color="white", ha=side)
    axes.set_xlim(180, -180)  # the sky from inside: east is left
    axes.set_xlabel("ecliptic longitude from opposition to the Sun, degrees")
    axes.set_ylabel("latitude, degrees")
    drawing.colorbar(image, label="tracers per 3 x 1.5 degrees", pad=0.02)
    return drawing


@report_style
def ephemeris_errors(names: tuple[str, ...], by_model: dict[str, np.ndarray]) -> Any:
    """Plot distances from the ephemeris [N] of each model, as dots on a logarithmic scale, km."""
    import matplotlib.pyplot as plt

    drawing, axes = plt.subplots(figsize=(7.4, 3.2))
    place = np.arange(len(names))
    values = list(by_model.values())
    axes.vlines(place, np.minimum(*values), np.maximum(*values), color=GRAY, lw=1, zorder=0)
    for (model, km), colour in zip(by_model.items(), (ORANGE, BLUE)):
        axes.semilogy(place, km, "o", color=colour, label=model)
    axes.set_xticks(place, names)
    axes.set_ylabel("distance from DE440, km")
    axes.grid(axis="y")
    axes.legend()
    return drawing


def _angles(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    x, y, z = np.moveaxis(x, -1, 0)
    return np.degrees(np.arctan2(y, x)), np.degrees(np.arctan2(z, np.hypot(x, y)))
