"""Interactive views of objects: a state, a run, an array, a robot or a Pareto front."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from jaxgpu.inputs import arguments, ranges
from jaxgpu.runs.loop import Run

from .capsules import Capsules
from .palette import SERIES
from .particles import Balls
from .view import Points, Rods, Surface, View

_UP = {"y": 1, "z": 2}
_ROD_RADIUS = 0.012  # radius of rods given by their ends, relative to the extent of their set


def show(
    x: Any,
    states: Any = None,
    *,
    times: Any = None,
    axes: tuple[str, str, str] | None = None,
    up: str | None = None,
) -> View:
    """Return a view of `x`, which a notebook displays; `.save("x.html")` writes its page.

    Args:
        x: object to show:
            an array [N, 3] or [N, 2] of points, or [T, N, 3] of moving points;
            a mapping from names to such arrays, or to pairs of them, the ends of rods;
            a state with a method `view` that returns such a mapping (star clusters, planets,
            particles) or a complete `View` (a house); a list of states is an animation;
            objectives `f` [K, 2] or [K, 3]: a `Solution` or a population, whose axes are scaled;
            a `Run` whose history has positions "x" [T, N, 3], otherwise its last state;
            with `states`, an environment of `rl` or a `rigid.Model`: any object with a method
            `scene`, or `view`, of a state;
            `render.Capsules`, `render.Balls`, or a mesh that has `vertices` and `faces`.
        states: of the environment or the simulation, stacked: arrays begin with T.
        times: [T] of the moments, for the clock.
        axes: names of the coordinates, each of which is then scaled to its range.
        up: the coordinate that points up, "y" or "z"; by default z, and y for `render.Balls`.
    Raises:
        TypeError: `x` is of a type that cannot be shown.
        ValueError: arrays have another shape, different lengths, or values that are not finite.

    >>> show(np.zeros((10, 5, 3)))
    View of 5 points; 10 moments
    >>> show({"ours": np.eye(3), "theirs": np.ones((4, 3))})
    View of 3 points 'ours', 4 points 'theirs'; 1 moment
    """
    found = _make_view(x) if states is None else _make_scene_view(x, states)
    if times is not None:
        times = np.asarray(ranges.numbers("show: times", times, ("T",)), float)
        if len(times) != found.moments:
            raise ValueError(
                f"show: times has {len(times)} moments and x has {found.moments}; give as many"
            )
        found = replace(found, times=times)
    if axes is not None:
        if not isinstance(axes, tuple | list) or [type(name) for name in axes] != 3 * [str]:
            raise TypeError(f"show: axes={arguments.format_value(axes)}; it must be three names")
        found = replace(found, axes=tuple(axes))
    if up is not None:
        found = replace(found, up=_UP[arguments.word("show: up", up, tuple(_UP))])
    return found


def _make_view(x: Any) -> View:
    """Return the view of one object."""
    if isinstance(x, View):
        return x
    if isinstance(x, Capsules | Balls):
        return _make_frames_view(jax.tree.map(lambda a: np.asarray(a)[None], x))
    if getattr(getattr(x, "f", None), "ndim", 0) == 2:
        return _make_front_view(np.asarray(x.f), getattr(x, "violation", 0.0))
    if _has_view(x):
        found = x.view()
        return found if isinstance(found, View) else _make_named_view(found, absent=True)
    if isinstance(x, Run):
        held = x.history.get("x") if isinstance(x.history, dict) else x.history
        return _make_view(held if getattr(held, "ndim", 0) == 3 else x.state)
    if hasattr(x, "vertices") and hasattr(x, "faces"):
        return View(
            surfaces=(Surface(_to_positions("show: vertices", x.vertices), np.asarray(x.faces)),)
        )
    if isinstance(x, Mapping) and x:
        return _make_named_view(x)
    if isinstance(x, Sequence) and len(x) and _has_view(x[0]):
        moments = [one.view() for one in x]
        held = {name: [moment.get(name) for moment in moments] for name in moments[0]}
        if len({np.shape(a) for parts in held.values() for a in parts}) > len(held):
            raise ValueError("show: the states of x differ in shape; they must have equal shapes")
        return _make_named_view(
            {name: np.stack(parts) for name, parts in held.items()}, absent=True
        )
    if isinstance(x, list | tuple | np.ndarray | jax.Array):
        return View((Points("", _to_positions("show: x", x)),))
    raise TypeError(
        f"show: x={arguments.format_value(x)}; it must be points, a state or a run; for an "
        "environment or a mechanism give states= too"
    )


def _has_view(x: Any) -> bool:
    """Return whether an object has jaxgpu's method `view`; an array has NumPy's."""
    return callable(getattr(x, "view", None)) and not hasattr(x, "dtype")


def _make_scene_view(x: Any, states: Any) -> View:
    """Return the view of an environment or a mechanism at states [T, ...]."""
    if callable(getattr(x, "scene", None)):
        return _make_frames_view(jax.jit(lambda states: jax.lax.map(x.scene, states))(states))
    if _has_view(x):
        return _make_named_view(x.view(states))
    raise TypeError(
        f"show: {type(x).__name__} has no method `scene`; write one that returns the "
        "render.Capsules of a state"
    )


def _make_named_view(parts: Mapping[str, Any], absent: bool = False) -> View:
    """Return the view of named points and rods; if `absent`, NaN marks absent points."""
    points, rods = [], []
    for i, (name, held) in enumerate(parts.items()):
        if isinstance(held, tuple):
            start, end = (_to_positions(f"show: {name}", x, absent) for x in held)
            ends = np.concatenate([start, end], 1)
            thin = _ROD_RADIUS * float(np.ptp(ends, axis=(0, 1)).max())
            colour = [int(SERIES[i % len(SERIES)][k : k + 2], 16) / 255 for k in (1, 3, 5)]
            count = start.shape[1]
            rods.append(Rods(start, end, np.full(count, thin), np.tile(colour, (count, 1))))
        elif not absent or np.shape(held)[-2:-1] != (0,):  # a cluster may have no tracers
            points.append(Points(str(name), _to_positions(f"show: {name}", held, absent)))
    lengths = {len(one.x) for one in points} | {len(one.start) for one in rods}
    if len(lengths - {1}) > 1:
        raise ValueError(
            f"show: x has arrays of {sorted(lengths)} moments; all must be equal, or 1"
        )
    return View(tuple(points), tuple(rods))


def _make_front_view(f: np.ndarray, violation: Any) -> View:
    """Return the view of feasible designs by their objectives."""
    f = f[np.broadcast_to(np.asarray(violation) <= 0, len(f))]
    if f.shape[1] not in (2, 3) or len(f) == 0:
        raise ValueError(
            f"show: x has objectives of shape {list(f.shape)}; they must be [K, 2] or [K, 3], of K "
            "feasible designs with two or three objectives"
        )
    return View((Points("designs", _to_positions("show: f", f)),), axes=("f1", "f2", "f3"))


def _make_frames_view(scene: Any) -> View:
    """Return the view of capsules or particles with a leading axis of moments."""
    first_moment = lambda a: np.asarray(a, float)[0]
    if isinstance(scene, Capsules):
        ends = (np.asarray(scene.start, float), np.asarray(scene.end, float))
        return View(rods=(Rods(*ends, first_moment(scene.radius), first_moment(scene.colour)),))
    paint, x = first_moment(scene.colour), np.asarray(scene.x, float)
    kinds, kind = np.unique(paint, axis=0, return_inverse=True)
    size = float(np.max(first_moment(scene.look.radius)))
    sets = [
        Points("", x[:, np.ravel(kind) == i], _hex(colour), size) for i, colour in enumerate(kinds)
    ]
    return View(tuple(sets), up=1)


def _hex(colour: np.ndarray) -> str:
    return "#" + "".join(f"{round(255 * float(c)):02x}" for c in np.clip(colour, 0, 1))


def _to_positions(name: str, x: Any, absent: bool = False) -> np.ndarray:
    """Return positions [T, N, 3] of an array [N, D] or [T, N, D], in a plane or in space."""
    x = np.asarray(x if absent else ranges.numbers(name, x), float)
    if x.ndim not in (2, 3) or x.shape[-1] not in (2, 3) or 0 in x.shape:
        raise ValueError(
            f"{name} has shape {list(x.shape)}; it must be [N, 3] or [T, N, 3], N points at T "
            "moments, or 2 instead of 3 in a plane"
        )
    x = x if x.ndim == 3 else x[None]
    return np.concatenate([x, np.zeros((*x.shape[:2], 3 - x.shape[-1]))], -1)
