"""Checks of a scene before a run; each error names the problem in one sentence.

Ranges of single values are declared on the fields and checked by `jaxgpu.inputs.ranges`. This
module checks shapes, dtypes, and the consistency of fields. Traced values are skipped.
"""

import dataclasses
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from jaxgpu.geometry import sdf
from jaxgpu.inputs import ranges

from .grid.grid import Grid
from .materials.liquid import corrects_volume
from .particles import Body
from .scene_fields import SceneFields
from .tools.contact import Collider
from .tools.sources import Collector, Injector

FLOATS = ("float32", "float64")
_TOLERANCE = 1e-6  # relative tolerance for moments that just fulfil the triangle inequality


def check_scene[S: SceneFields](name: str, scene: S) -> S:
    """Check a scene and convert lists to tuples, positions to floating point, gravity to a tuple.

    Args:
        name: of the public function that was called, which begins the message.
    Raises:
        ValueError, TypeError: a value is outside its range, or parts do not fit each other in
            shape or dtype.
    """
    d = len(scene.grid.cells)
    parts = {
        field: _check_parts(f"{name}: {field}", getattr(scene, field), kind, method)
        for field, kind, method in (
            ("bodies", "Body", "material"),
            ("colliders", "Collider", "friction"),
            ("sources", "Injector or Collector", "act"),
        )
    }
    if not parts["bodies"]:
        raise ValueError(f"{name}: the scene has no bodies; give at least one Body of particles")
    ranges.check(name, dataclasses.replace(scene, bodies=(), colliders=(), sources=()))
    for field, among in parts.items():
        for i, part in enumerate(among):
            ranges.check(f"{name}: {field}[{i}]", part)
    bodies = tuple(_check_body(f"{name}: bodies[{i}]", b, d) for i, b in enumerate(parts["bodies"]))
    dtypes = [str(body.x.dtype) for body in bodies]
    for i, other in enumerate(dtypes):
        if _canonical_dtype(other) != _canonical_dtype(dtypes[0]):
            raise TypeError(
                f"{name}: bodies[{i}].x is {other} and bodies[0].x is {dtypes[0]}; all must have "
                "one type; convert one by x.astype"
            )
    for i, tool in enumerate(parts["colliders"]):
        _check_tool(f"{name}: colliders[{i}]", tool, d)
    for i, source in enumerate(parts["sources"]):
        _check_source(f"{name}: sources[{i}]", source, d, parts)
    gravity = _check_gravity(f"{name}: gravity", scene.gravity, d)
    return dataclasses.replace(scene, **{**parts, "bodies": bodies}, gravity=gravity)


def check_positions(scene: SceneFields) -> None:
    """Raise an error for particles, free tools or injectors outside the box, or traced bodies."""
    if _is_traced(scene.bodies):
        raise TypeError(
            "prepare: the bodies hold traced values; prepare the scene outside of jit and grad, "
            "and change it inside by dataclasses.replace"
        )
    for i, body in enumerate(scene.bodies):
        _check_inside_box(f"prepare: bodies[{i}].x", np.asarray(body.x), "particles", scene.grid)
    for i, tool in enumerate(scene.colliders):
        if tool.mass is not None and not _is_traced(tool.x):
            name = f"prepare: colliders[{i}].x"
            _check_inside_box(name, np.asarray(tool.x)[None], "centres of free tools", scene.grid)
    for i, source in enumerate(scene.sources):
        if isinstance(source, Injector) and source.tool < 0:
            _check_inside_box(
                f"prepare: sources[{i}].x", np.asarray(source.x), "points", scene.grid
            )


def check_densities(scene: SceneFields) -> None:
    """Raise an error for densities per particle if the volume of any liquid is corrected."""
    if not any(corrects_volume(body.material) for body in scene.bodies):
        return
    for i, body in enumerate(scene.bodies):
        if np.ndim(body.density):
            raise ValueError(
                f"prepare: bodies[{i}].density has shape {list(np.shape(body.density))}; with a "
                "volume-corrected liquid it must be one number, or the liquid must have "
                "volume_correction=None"
            )


def _check_inside_box(name: str, x: np.ndarray, noun: str, grid: Grid) -> None:
    outside = ~np.all((x >= grid.lower) & (x <= grid.upper), -1)  # NaN is outside
    if outside.any():
        raise ValueError(
            f"{name}: {outside.sum()} of {len(x)} {noun} are outside the box {grid.lower} "
            f"to {grid.upper}, the first at {x[outside.argmax()].tolist()}; move them or widen it"
        )


def _is_traced(value: Any) -> bool:
    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(value))


def _shape(value: Any) -> tuple[int, ...]:
    return jnp.asarray(value).shape if _is_traced(value) else np.shape(value)


def _check_shape(name: str, value: Any, *shapes: tuple[int, ...]) -> None:
    """Raise an error for a value of none of these shapes."""
    if (shape := _shape(value)) not in shapes:
        said = " or ".join(str(list(a)) for a in shapes)
        raise ValueError(f"{name} has shape {list(shape)}; it must be {said}")


def _check_parts(name: str, value: Any, kind: str, has: str) -> tuple:
    if not isinstance(value, tuple | list):
        raise TypeError(f"{name} is a {type(value).__name__}; it must be a tuple of {kind}, (a, )")
    for i, part in enumerate(value):
        if not hasattr(part, has):
            raise TypeError(f"{name}[{i}] is a {type(part).__name__}; it must be a {kind}")
    return tuple(value)


def _canonical_dtype(dtype: Any) -> str:
    """Return the dtype that JAX uses for a dtype: float32 for float64 if 64-bit types are off."""
    return str(jax.dtypes.canonicalize_dtype(dtype))


def _check_gravity(name: str, gravity: Any, d: int) -> tuple:
    shape = _shape(gravity)
    if shape not in ((0,), (d,)):
        raise ValueError(
            f"{name} has shape {list(shape)}; it must be {d} numbers, as the grid has {d} axes"
        )
    return gravity if isinstance(gravity, tuple) else tuple(gravity[i] for i in range(shape[0]))


def _check_body(name: str, body: Body, d: int) -> Body:
    for method in ("rest", "stress", "sound_speed", "kinematic_viscosity"):
        if not callable(getattr(body.material, method, None)):
            kind = type(body.material).__name__
            raise TypeError(f"{name}.material is a {kind}; it must have a method `{method}`")
    for path, leaf in jax.tree.leaves_with_path(body.material):
        if not _is_traced(leaf) and not np.all(np.isfinite(np.asarray(leaf))):
            field = f"{name}.material{jax.tree_util.keystr(path)}"
            raise ValueError(f"{field} is not a finite number; give one")
    x = _to_floating(f"{name}.x", body.x)
    if x.ndim != 2 or x.shape[1] != d or x.shape[0] == 0 == body.capacity:
        raise ValueError(
            f"{name}.x has shape {list(x.shape)}; it must be [N, {d}] with N >= 1, or N = 0 and "
            f"a capacity for injectors"
        )
    _check_shape(f"{name}.v", body.v, (), (d,), x.shape)
    _check_shape(f"{name}.volume", body.volume, (), x.shape[:1])
    _check_shape(f"{name}.density", body.density, (), x.shape[:1])
    return body if x is body.x else dataclasses.replace(body, x=x)


def _to_floating(name: str, x: Any) -> Any:
    """Return positions in floating point; `name` is their name in errors."""
    if not hasattr(x, "dtype"):
        x = jnp.asarray(ranges.numbers(name, x), float)
    if jnp.issubdtype(x.dtype, jnp.integer):
        return jnp.asarray(x, float)
    if str(x.dtype) not in FLOATS:
        raise TypeError(f"{name} is {x.dtype}; it must be float32 or float64")
    # With 64-bit types off, JAX would warn at each later conversion to 32 bits.
    return x if str(x.dtype) == _canonical_dtype(x.dtype) else jnp.asarray(x)


def _check_tool(name: str, tool: Collider, d: int) -> None:
    turns, spins = (1, 1) if d == 2 else (4, 3)
    _check_shape(f"{name}.x", tool.x, (d,))
    _check_shape(f"{name}.v", tool.v, (), (d,))
    _check_shape(f"{name}.spin", tool.spin, (), (spins,))
    if tool.turn is not None:
        _check_shape(f"{name}.turn", tool.turn, (turns,))
        if d == 3 and not _is_traced(tool.turn) and not np.linalg.norm(tool.turn) > 1e-6:
            raise ValueError(
                f"{name}.turn={tuple(np.asarray(tool.turn).tolist())}; it must be a quaternion "
                f"(w, x, y, z) of length 1; no rotation is (1, 0, 0, 0)"
            )
    if (tool.mass is None) != (tool.inertia is None):
        given, lacks = ("mass", "inertia") if tool.inertia is None else ("inertia", "mass")
        raise ValueError(
            f"{name} has {given} but no {lacks}; give both to a tool that moves freely, or neither "
            "to one with a given motion"
        )
    if tool.inertia is not None:
        _check_shape(f"{name}.inertia", tool.inertia, (), (spins,))
        if not _is_traced(tool.inertia):
            moments = np.asarray(tool.inertia, float)
            if moments.size == 3 and 2 * moments.max() > (1 + _TOLERANCE) * moments.sum():
                raise ValueError(
                    f"{name}.inertia={tuple(moments.tolist())}; no moment may exceed the sum of "
                    f"the other two; give the principal moments in kg m^2"
                )
    _check_sdf(f"{name}.shape", tool.shape, d)


def _check_source(name: str, source: Injector | Collector, d: int, parts: dict[str, tuple]) -> None:
    for field, among in (("body", parts["bodies"]), ("tool", parts["colliders"])):
        if getattr(source, field) >= len(among):
            index, count = getattr(source, field), len(among)
            raise ValueError(f"{name}.{field}={index}; the scene has {count} of them")
    if isinstance(source, Collector):
        return _check_sdf(f"{name}.shape", source.shape, d)
    x, v = _shape(source.x), _shape(source.v)
    if len(x) != 2 or 0 in x or x[1] != d or v != (d,):
        raise ValueError(
            f"{name}: x has shape {list(x)} and v {list(v)}; they must be [n, {d}] with n >= 1 "
            f"and [{d}]"
        )
    body = parts["bodies"][source.body]
    if len(_shape(body.volume)) or len(_shape(body.density)):
        raise ValueError(
            f"{name}: bodies[{source.body}] has a volume or density per particle; give it one "
            "number of each, which injected particles take"
        )


_VECTORS = {sdf.HalfSpace: "normal", sdf.Box: "half", sdf.Moved: "offset", sdf.Voxels: "lower"}


def _check_sdf(name: str, shape: Any, d: int) -> None:
    """Raise an error for an invalid shape or one that does not have D axes."""
    if not callable(getattr(shape, "distance", None)):
        kind = type(shape).__name__
        raise TypeError(f"{name} is a {kind}; it must have a method `distance`, as those of `sdf`")
    if field := _VECTORS.get(type(shape)):
        _check_shape(f"{name}.{field}", getattr(shape, field), (d,))
    if isinstance(shape, sdf.HalfSpace) and not _is_traced(shape.normal):
        if not np.linalg.norm(shape.normal) > 0:
            raise ValueError(f"{name}.normal has length 0; it must point out of the half space")
    if isinstance(shape, sdf.Cylinder) and d != 3:
        raise ValueError(f"{name} is a Cylinder in {d}-D; take a Box, or a Ball for its section")
    if isinstance(shape, sdf.Voxels) and (
        np.ndim(shape.values) != d or min(np.shape(shape.values)) < 2
    ):
        raise ValueError(
            f"{name}.values has shape {list(np.shape(shape.values))}; it must have {d} axes of at "
            f"least 2 points"
        )
    inner: Iterable[Any] = getattr(shape, "shapes", ())
    if isinstance(shape, sdf.Union | sdf.Intersection) and not shape.shapes:
        raise ValueError(f"{name}.shapes is empty; give at least one shape")
    if isinstance(shape, sdf.Moved | sdf.Rounded | sdf.Complement):
        inner = (shape.shape,)
    for part in inner:
        _check_sdf(name, part, d)
