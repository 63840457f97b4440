"""Points that fill a shape: a regular grid, restricted to a signed distance below 0."""

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.devices import memory
from jaxgpu.inputs import ranges
from jaxgpu.inputs.explanations import explain_errors, on_host


@explain_errors
@on_host
def fill_box(
    lower: Sequence[float], upper: Sequence[float], spacing: float, shape: Any = None
) -> Array:
    """Return points [N, D], float32, at the centers of cubes of the given spacing that tile a box.

    Args:
        lower, upper: corners of the box, m; its edges should be multiples of the spacing.
        spacing: m; half a grid cell is usual. A particle's rest volume is spacing^D.
        shape: an `sdf` shape in the same coordinates; points outside it are removed.
    Raises:
        ValueError: no point remains, or the corners do not define a box.

    >>> fill_box((0.0, 0.0), (1.0, 0.5), 0.5)
    Array([[0.25, 0.25],
           [0.75, 0.25]], dtype=float32)
    """
    among = {"unit": "m"}
    lower, upper = (
        ranges.numbers(f"fill_box: {name}", corner, ("D",), **among).tolist()
        for name, corner in (("lower", lower), ("upper", upper))
    )
    spacing = float(ranges.numbers("fill_box: spacing", spacing, (), above=0, **among))
    if len(lower) != len(upper) or len(lower) not in (2, 3) or not np.all(np.less(lower, upper)):
        raise ValueError(
            f"fill_box: lower={tuple(lower)} and upper={tuple(upper)}; they must be the lower and "
            f"the upper corner of a box, 2 or 3 numbers each"
        )
    counts = [int(round((b - a) / spacing)) for a, b in zip(lower, upper)]
    memory.check_size(
        f"fill_box: spacing={spacing:g}", 32 * len(counts) * math.prod(counts), "widen it"
    )
    axes = [a + (np.arange(n) + 0.5) * spacing for a, n in zip(lower, counts)]
    x = np.stack([m.ravel() for m in np.meshgrid(*axes, indexing="ij")], 1)
    if shape is not None and len(x):
        distance = shape.distance(tuple(jnp.asarray(x[:, i]) for i in range(x.shape[1])))
        x = x[np.asarray(distance) < 0]
    if len(x) == 0:
        raise ValueError(
            f"fill_box: no point of spacing {spacing:g} m lies in the box {tuple(lower)} to "
            f"{tuple(upper)} and the shape; take a smaller spacing or a larger shape"
        )
    return jnp.asarray(x, jnp.float32)
