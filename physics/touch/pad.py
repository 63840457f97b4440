"""Positions of the taxels of a pad, and an object's distance, normal and velocity at them."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.typing import ArrayLike

from jaxgpu.geometry import rotations, rows, vectors
from jaxgpu.inputs import ranges
from jaxgpu.inputs.calls import defer_check
from jaxgpu.inputs.explanations import explain_errors

RAY_DEPTH, RAY_STEPS, HIT_DISTANCE = (
    4e-3,
    24,
    2e-5,
)  # depth of ray origins, m; steps; distance of a hit, m


@explain_errors
def taxels(
    width: float, height: float, rows: int, columns: int, margin: float = 3e-3, dtype=None
) -> Array:
    """Return the positions [rows columns, 3], m, of taxels on the face z = 0 of a pad, by rows.

    The pad, centred at 0, is `width` along x and `height` along y. Taxels have in both directions

        spacing = min((width - 2 margin) / (columns + 1), (height - 2 margin) / (rows + 1)),

    as in TacSL (doi:10.48550/arXiv.2408.06506); x increases along a row, y from row to row.

    Raises:
        ValueError: the margin leaves no room, or a number is out of range.

    >>> (1e3 * taxels(0.018, 0.014, rows=1, columns=3)).round(2).tolist()
    [[-3.0, 0.0, 0.0], [0.0, 0.0, 0.0], [3.0, 0.0, 0.0]]
    """
    for word, value in (("width", width), ("height", height)):
        ranges.numbers(f"taxels: {word}", value, (), above=0, unit="m")
    ranges.numbers("taxels: margin", margin, (), least=0, unit="m")
    for word, value in (("rows", rows), ("columns", columns)):
        ranges.refuse(f"taxels: {word}", value, ranges.Range(whole=True, one=True, least=1))
    x_free, y_free = (width - 2 * margin) / (columns + 1), (height - 2 * margin) / (rows + 1)
    free = jnp.minimum(x_free, y_free)
    defer_check(_check_margin, free, margin, width, height)
    dtype = dtype or jnp.result_type(width, height, 1.0)
    free = free.astype(dtype)
    x = free * (jnp.arange(columns, dtype=dtype) - (columns - 1) / 2)
    y = free * (jnp.arange(rows, dtype=dtype) - (rows - 1) / 2)
    grid = jnp.meshgrid(x, y)
    return jnp.stack([grid[0].ravel(), grid[1].ravel(), jnp.zeros(rows * columns, x.dtype)], 1)


@explain_errors
def probe(
    shape: Any, points: Array, pos: Array, quat: Array, velocity: Array, spin: Array
) -> tuple[Array, Array, Array]:
    """Return a shape's distance [T], normal [T, 3] and surface velocity [T, 3] at taxels.

    With R the rotation of `quat` and D the shape's signed distance, for a taxel at x

        y = R^T (x - pos),             d = D(y),
        n = R grad D(y) / |grad D(y)|, v = velocity + spin x (x - pos),

    exact, by automatic differentiation; n is zero where the distance has no gradient. Everything is
    in the frame of the pad, and velocities are relative to it.

    Args:
        shape: of `jaxgpu.geometry.sdf`, in 3-D, or anything else with `distance(x)`.
        points: [T, 3] taxels, m.
        pos: [3] the shape's origin, m.
        quat: [4] its orientation, a quaternion (w, x, y, z) of length one.
        velocity: [3] of the shape's origin, m/s.
        spin: [3] its angular velocity, rad/s.
    Raises:
        ValueError: a wrong array shape, a number that is not finite, a quaternion of another
            length; radii and sizes of the shape that are out of range.

    >>> from jaxgpu.geometry import sdf
    >>> still, upright = jnp.zeros(3), jnp.array([1.0, 0.0, 0.0, 0.0])
    >>> above = jnp.array([0.0, 0.0, 0.25])
    >>> d, n, v = probe(sdf.Ball(0.5), jnp.zeros((1, 3)), above, upright, still, still)
    >>> d.tolist(), n.tolist()  # the ball lies above the taxel and presses it down
    ([-0.25], [[0.0, 0.0, -1.0]])
    """
    ranges.check("probe", shape)
    points = as_float(ranges.numbers("probe: points", points, ("T", 3), unit="m"))
    pos = as_float(ranges.numbers("probe: pos", pos, (3,), unit="m"))
    quat = as_float(ranges.numbers("probe: quat", quat, (4,)))
    velocity = as_float(ranges.numbers("probe: velocity", velocity, (3,), unit="m/s"))
    spin = as_float(ranges.numbers("probe: spin", spin, (3,), unit="rad/s"))
    check_unit("probe: quat", quat)
    arm = tuple(x - centre for x, centre in zip(points.T, pos))
    turn = rotations.matrix(quat)
    own = vectors.matvec(vectors.transpose(turn), arm)
    distance, out = distance_normal(shape, own)
    normal = vectors.matvec(turn, out)
    moving = tuple(u + w for u, w in zip(velocity, vectors.cross(spin, arm)))
    return distance, jnp.stack(normal, 1), jnp.stack(moving, 1)


def distance_normal(shape: Any, x: vectors.Vec) -> tuple[Array, vectors.Vec]:
    """Return a shape's distance at points of its frame, and its unit or zero outward direction.

    >>> from jaxgpu.geometry import sdf
    >>> d, n = distance_normal(sdf.Ball(0.5), tuple(jnp.array([0.0, 0.0, 2.0])))
    >>> float(d), [float(a) for a in n]
    (1.5, [0.0, 0.0, 1.0])
    """
    distance, pull = jax.vjp(shape.distance, x)
    (slope,) = pull(jnp.ones_like(distance))
    return distance, vectors.unit(slope)


@explain_errors
def heights(
    shape: Any, points: Array, pos: Array, quat: Array, *, far: Array | float = 0.02
) -> Array:
    """Return the height [T] of a shape over points of a pad along its normal z, m, or `far`.

    It is the z at which an upward ray from `RAY_DEPTH` below the point meets the shape: negative
    where the shape is pressed in, and the input of `GelSight.image`. Rays advance by the signed
    distance (Hart 1996, doi:10.1007/s003710050084), `RAY_STEPS` times; the last step, -D / (dD/dz),
    has the exact derivatives by pose and shape.

    Args:
        shape: of `jaxgpu.geometry.sdf`, in 3-D, or anything else with `distance(x)`.
        points: [T, 3] of the pad, m.
        pos: [3] the shape's origin in the pad's frame, m.
        quat: [4] its orientation, a quaternion (w, x, y, z) of length one.
        far: result where a ray meets nothing below this height, m.
    Raises:
        ValueError: as for `probe`.

    >>> from jaxgpu.geometry import sdf
    >>> over, upright = jnp.array([0.0, 0.0, 3e-3]), jnp.array([1.0, 0.0, 0.0, 0.0])
    >>> z = heights(sdf.Ball(4e-3), jnp.zeros((1, 3)), over, upright)
    >>> round(1e3 * float(z[0]), 3)  # a ball of 4 mm that is pressed in by 1 mm
    -1.0
    """
    ranges.check("heights", shape)
    points = as_float(ranges.numbers("heights: points", points, ("T", 3), unit="m"))
    pos = as_float(ranges.numbers("heights: pos", pos, (3,), unit="m"))
    quat = as_float(ranges.numbers("heights: quat", quat, (4,)))
    far = ranges.numbers("heights: far", far, (), above=0, unit="m")
    check_unit("heights: quat", quat)
    x, y, low = points.T

    def distance(z: Array, pos: Array, quat: Array, shape: Any) -> Array:
        own = tuple(a - b for a, b in zip((x, y, low + z), pos))
        return shape.distance(rotations.rotate_inverse(quat, own))

    held = lax.stop_gradient((pos, quat, shape))
    z = lax.fori_loop(
        0,
        RAY_STEPS,
        lambda _, z: jnp.minimum(z + distance(z, *held), far),
        jnp.full_like(x, -RAY_DEPTH),
    )
    left, slope = jax.jvp(lambda z: distance(z, pos, quat, shape), (z,), (jnp.ones_like(z),))
    met = (z < far) & (jnp.abs(left) < HIT_DISTANCE) & (slope < 0)
    return jnp.where(met, z - left / lax.stop_gradient(jnp.where(met, slope, 1)), far)


@explain_errors
def wrench(points: Array, force: Array) -> tuple[Array, Array]:
    """Return force [3], N, and torque [3] about the pad's origin, N m, of a field on the pad.

        F = sum f_i,   M = sum x_i x f_i;

    the object receives -F at the origin and -M. Points [T, 3] in m, force [T, 3] in N.

    >>> points, up = jnp.array([[1.0, 0.0, 0.0], [2.0, 0.0, 0.0]]), jnp.array([[0.0, 0.0, 1.0]] * 2)
    >>> [a.tolist() for a in wrench(points, up)]
    [[0.0, 0.0, 2.0], [0.0, -3.0, 0.0]]
    """
    points = as_float(ranges.numbers("wrench: points", points, ("T", 3), unit="m"))
    force = as_float(ranges.numbers("wrench: force", force, (points.shape[0], 3), unit="N"))
    return jnp.sum(force, 0), jnp.sum(rows.cross(points, force), 0)


def _check_margin(free: Array, margin: float, width: float, height: float) -> None:
    if not free > 0:
        raise ValueError(
            f"taxels: margin={margin:g} on a pad of {width:g} by {height:g}; it must leave space "
            "on both sides; give less than half the smaller side"
        )


def check_unit(name: str, vectors: Array, zero: bool = False) -> None:
    """Raise an error if vectors [..., D] differ from length 1 by over 1e-3; traced ones pass.

    Args:
        name: name of function and argument, for the message.
        vectors: the vectors to check.
        zero: vectors of length 0 are valid, too.

    >>> check_unit("probe: quat", jnp.array([2.0, 0.0, 0.0, 0.0]))
    Traceback (most recent call last):
    ValueError: probe: quat is of length 2; it must be of length 1; divide it by its length
    """
    defer_check(partial(_check_lengths, name, zero), vectors)


def _check_lengths(name: str, zero: bool, vectors: Array) -> None:
    size = np.linalg.norm(np.asarray(vectors, np.float64), axis=-1)
    off = (np.abs(size - 1) > 1e-3) & ~(zero & (size == 0))
    if off.any():
        raise ValueError(
            f"{name} is of length {size[off].flat[0]:g}; it must be of length 1"
            f"{', or 0 where there is no direction' if zero else ''}; divide it by its length"
        )


def as_float(a: ArrayLike) -> Array:
    """Convert to a JAX array of floats; integers become floats of the default precision.

    >>> as_float(np.array([1, 2])).dtype, as_float(jnp.zeros(2, jnp.float16)).dtype
    (dtype('float32'), dtype('float16'))
    """
    a = jnp.asarray(a)
    return a if jnp.issubdtype(a.dtype, jnp.floating) else a.astype(float)
