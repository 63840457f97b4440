"""Interactive 3-D views: moving points, capsules and triangles on one self-contained page.

The page needs no other file: its program draws on the CPU, into the image of a canvas, so it works
in any browser. Positions are rounded to 1/65534 of the displayed box.
"""

import base64
import contextlib
import dataclasses
import hashlib
import html
import json
import re
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from jaxgpu.inputs import arguments
from jaxgpu.inputs.explanations import explain_errors
from jaxgpu.runs.files import replace_file

from .palette import SERIES

MAX_POINTS, MAX_FRAMES = 20_000, 120  # maximum per page; more are subsampled
_ABSENT = 65535  # code of an absent point; positions go to one less
_DATA = re.compile(r'<script type="application/json">(.*?)</script>', re.S)
_MARGIN = 0.75  # of the width of nearly all points; points outside this margin are not shown


@dataclass(frozen=True)
class Points:
    """A set of points: bodies, particles or designs."""

    name: str  # for the legend
    x: np.ndarray  # [T, N, 3]; NaN where a point is absent
    colour: str = ""  # #rrggbb; by default one of the palette
    radius: float = 0.0  # in the units of x; 0 for a dot of the same size at any distance
    hollow: bool = False  # rings instead of discs


@dataclass(frozen=True)
class Rods:
    """Capsules: all points within a radius of a segment."""

    start: np.ndarray  # [T, N, 3]
    end: np.ndarray  # [T, N, 3]
    radius: np.ndarray  # [N]
    colour: np.ndarray  # [N, 3] in 0 ... 1


@dataclass(frozen=True)
class Surface:
    """A triangle mesh with the same triangles in all frames; only their corners move."""

    x: np.ndarray  # [T, V, 3]
    faces: np.ndarray  # [F, 3] indices of corners
    colour: str = ""  # #rrggbb; by default one of the palette


@dataclass(frozen=True)
class View:
    """Displayed objects, all with the same number of frames or with one. A notebook shows it.

    >>> view = View((Points("stars", np.zeros((1, 4, 3))),))
    >>> len(view.page()) < 300_000, view.page().startswith("<!doctype html>")
    (True, True)
    """

    points: tuple[Points, ...] = ()
    rods: tuple[Rods, ...] = ()
    surfaces: tuple[Surface, ...] = ()
    times: np.ndarray | None = None  # [T]
    axes: tuple[str, str, str] | None = None  # names of the coordinates, each scaled to its range
    up: int = 2  # the coordinate that points up

    def __repr__(self) -> str:
        quote_name = lambda one: f" {one.name!r}" if one.name else ""
        seen = [f"{one.x.shape[1]} points{quote_name(one)}" for one in self.points]
        seen += [f"{one.start.shape[1]} capsules" for one in self.rods]
        seen += [f"{len(one.faces)} triangles" for one in self.surfaces]
        return f"View of {', '.join(seen)}; {self.moments} moment{'' if self.moments == 1 else 's'}"

    def _repr_html_(self) -> str:
        page = html.escape(self.page())
        style = "width:100%;height:30rem;border:0"
        return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{page}"></iframe>'

    @property
    def moments(self) -> int:
        """Number of moments."""
        parts = [one.x for one in (*self.points, *self.surfaces)] + [one.start for one in self.rods]
        return max((len(x) for x in parts), default=0)

    def save(self, path: str | Path) -> Path:
        """Write the page and return its path."""
        path = arguments.path("View.save: path", path, "a file")
        with replace_file(path) as file:
            file.write(self.page())
        return path

    @explain_errors
    def page(self) -> str:
        """Return the self-contained page."""
        thinned, note = _subsample(self)
        return make_page(_page_data(thinned, note))


def make_page(data: Any) -> str:
    """Return the page of the data that its program reads, a JSON value; only that program may run.

    >>> make_page({"note": "</script><script>"}).count("</script>")  # the data's and the program's
    2
    """
    script = _read_resource("view.js")
    page = (
        _read_resource("view.html").replace("@HASH@", csp_hash(script)).replace("@SCRIPT@", script)
    )
    # "<" could end the script; the data is put in last, so that it is not searched for marks
    return page.replace("@DATA@", json.dumps(data).replace("<", "\\u003c"))


def extract_data(page: str) -> Any:
    """Return the data in a page that its program reads, or None if the page is not a view.

    >>> extract_data(make_page({"note": "</script>"})), extract_data("<p>")
    ({'note': '</script>'}, None)
    """
    found = _DATA.search(page)
    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(found[1]) if found else None
    return None


def view_script() -> str:
    """Return the script of every view; a page that embeds views allows this script and no other.

    >>> csp_hash(view_script()) in make_page({})
    True
    """
    return _read_resource("view.js")


def csp_hash(script: str) -> str:
    """Return the name of a script in a content security policy.

    >>> csp_hash("")
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
    """
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _read_resource(name: str) -> str:
    return resources.files("jaxgpu.render").joinpath(name).read_text()


def _subsample(view: View) -> tuple[View, str]:
    """Return the view with a limited number of frames and points, and a note on the reduction."""
    said = []
    stride = -(-view.moments // MAX_FRAMES)
    if stride > 1:
        said.append(f"Shows one in {stride} of {view.moments} moments.")
    moments = lambda x: x[::stride] if len(x) > 1 else x
    points = []
    for one in view.points:
        every = -(-one.x.shape[1] // MAX_POINTS)
        if every > 1:
            said.append(f"Shows one in {every} of {one.x.shape[1]} {one.name or 'points'}.")
        points.append(dataclasses.replace(one, x=moments(one.x)[:, ::every]))
    return dataclasses.replace(
        view,
        points=tuple(points),
        rods=tuple(
            dataclasses.replace(one, start=moments(one.start), end=moments(one.end))
            for one in view.rods
        ),
        surfaces=tuple(dataclasses.replace(one, x=moments(one.x)) for one in view.surfaces),
        times=None if view.times is None else moments(view.times),
    ), " ".join(said)


def _page_data(view: View, note: str) -> dict[str, Any]:
    """Return the data that the page's program reads."""
    low, high = _bounding_box(view)
    encode = lambda x: _encode_positions(x, low, high)
    rods = [
        {
            "start": encode(one.start),
            "end": encode(one.end),
            "radius": _to_rounded_floats(one.radius),
            "colour": [_hex(c) for c in one.colour],
        }
        for one in view.rods
    ]
    return {
        "low": _to_rounded_floats(low),
        "high": _to_rounded_floats(high),
        "up": view.up,
        "axes": view.axes,
        "frames": view.moments,
        "times": None if view.times is None else _to_rounded_floats(view.times),
        "note": note,
        "points": [
            {
                "name": one.name,
                "colour": one.colour or SERIES[i % len(SERIES)],
                "radius": float(one.radius),
                "hollow": one.hollow,
                "x": encode(one.x),
            }
            for i, one in enumerate(view.points)
        ],
        "rods": rods,
        "surfaces": [
            {
                "colour": one.colour or SERIES[-1],
                "faces": np.asarray(one.faces).ravel().tolist(),
                "x": encode(one.x),
            }
            for one in view.surfaces
        ],
    }


def _bounding_box(view: View) -> tuple[np.ndarray, np.ndarray]:
    """Return the corners of the displayed box: of all points, except outliers of large sets."""
    solid = [x for one in view.rods for x in (one.start, one.end)]
    solid += [one.x for one in view.surfaces]
    low, high = np.full(3, np.inf), np.full(3, -np.inf)
    for x in (a.reshape(-1, 3) for a in (*solid, *(one.x for one in view.points))):
        x = x[np.isfinite(x).all(1)]
        if len(x):
            low, high = np.minimum(low, x.min(0)), np.maximum(high, x.max(0))
    if not np.isfinite(low).all():
        return np.zeros(3), np.ones(3)
    cloud = np.concatenate([one.x.reshape(-1, 3) for one in view.points] or [np.zeros((0, 3))])
    cloud = cloud[np.isfinite(cloud).all(1)]
    if view.axes is None and not solid and len(cloud) > 100:
        near = np.quantile(cloud, [0.01, 0.99], axis=0)
        reach = _MARGIN * (near[1] - near[0])
        low, high = np.maximum(low, near[0] - reach), np.minimum(high, near[1] + reach)
    widest = max(float((high - low).max()), 1e-30)
    flat = high - low < 1e-6 * widest  # a plane, or a single point
    return np.where(flat, low - widest / 2, low), np.where(flat, high + widest / 2, high)


def _encode_positions(x: np.ndarray, low: np.ndarray, high: np.ndarray) -> dict[str, Any]:
    """Encode positions [T, N, 3] as 16-bit numbers in base64."""
    share = (np.asarray(x, float) - low) / (high - low)
    seen = (np.isfinite(share) & (share >= -1e-9) & (share <= 1 + 1e-9)).all(-1, keepdims=True)
    words = np.where(seen, np.round(np.clip(np.nan_to_num(share), 0, 1) * (_ABSENT - 1)), _ABSENT)
    data = base64.b64encode(words.astype("<u2").tobytes()).decode()
    return {"frames": len(x), "count": x.shape[1], "data": data}


def _to_rounded_floats(x: Any) -> list[float]:
    return [float(f"{value:.6g}") for value in np.ravel(np.asarray(x, float))]


def _hex(colour: Any) -> str:
    return "#" + "".join(f"{round(255 * float(np.clip(c, 0, 1))):02x}" for c in colour)
