"""Exact hypervolume of up to five objectives, with its gradient.

The volume is swept along the last objective. The points enter in ascending order, and each adds the
part a_i of the (m-1)-dimensional face below it that no earlier point covers,

    HV = sum_i a_i (r_m - f_im),    dHV/df_im = -a_i,

so the gradient with respect to objective m is the face itself (Emmerich & Deutz 2014,
doi:10.1007/978-3-319-07494-8_7). The gradients of the other objectives come from sweeps along them.
In three objectives the covered face is a staircase, which each point lowers from its position on;
in four and five the sweep adds volumes of one dimension less.

Time O(n log n), n^2, n^3 and n^4 for m = 2, 3, 4, 5; memory O(n). For larger sets and more
objectives see `rays`.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu.devices import allocation
from jaxgpu.inputs.explanations import explain_errors

from ..pareto.order import argsort
from .arguments import check_points, check_vector

_SLICES = 32  # volumes of one dimension less computed in parallel


@explain_errors
@allocation.limit_memory
def hypervolume(f: Array, reference: Array) -> Array:
    """Return the volume between the points and the reference point, worse in every objective.

    Args:
        f: objectives to minimise, [n, m], 1 <= m <= 5. Points that are not better than the
            reference in every objective contribute nothing. NaN and -inf raise if values are known;
            in a compiled program a point with NaN is ignored.
        reference: [m].
    Returns:
        Scalar. Differentiable once in f and reference; where two values are equal the derivative is
        one-sided.

    >>> f = jnp.array([[0.0, 2.0], [1.0, 1.0], [2.0, 0.5]])
    >>> float(hypervolume(f, jnp.array([3.0, 3.0])))
    5.5
    """
    f = check_points("hypervolume: f", f)
    m = f.shape[1]
    if not 1 <= m <= 5:
        raise ValueError(f"hypervolume: {m} objectives; it must be 1 to 5; use hypervolume_by_rays")
    reference = check_vector("hypervolume: reference", reference, f)
    inside = jnp.all(f < reference[None], axis=1, keepdims=True)
    return _volume(jnp.where(inside, f, reference[None]), reference)


def _volume(f: Array, reference: Array) -> Array:
    """Return the hypervolume of points that are nowhere worse than the reference."""
    if f.shape[1] <= 3:
        return _sweep_volume(f, reference)
    order = argsort(f[:, -1])
    g, w = f[order, :-1], f[order, -1]
    depth = jnp.append(w[1:], reference[-1]) - w
    place = jnp.arange(f.shape[0])

    def slab_volume(j: Array) -> Array:
        entered = jnp.where((place <= j)[:, None], g, reference[None, :-1])
        return depth[j] * _volume(entered, reference[:-1])

    return jnp.sum(lax.map(slab_volume, place, batch_size=_SLICES if f.shape[1] == 4 else None))


@jax.custom_jvp
def _sweep_volume(f: Array, reference: Array) -> Array:
    return jnp.sum(faces(f, reference) * (reference[-1] - f[:, -1]))


@_sweep_volume.defjvp
def _sweep_volume_jvp(
    primals: tuple[Array, Array], tangents: tuple[Array, Array]
) -> tuple[Array, Array]:
    (f, reference), (df, dreference) = primals, tangents
    m = f.shape[1]
    change = jnp.zeros((), f.dtype)
    for k in range(m):
        axes = np.array([*range(k), *range(k + 1, m), k])
        face = faces(f[:, axes], reference[axes])
        change += jnp.sum(face * (dreference[k] - df[:, k]))
    return _sweep_volume(f, reference), change


def faces(f: Array, reference: Array) -> Array:
    """Return the part of the face that each point adds, entering in ascending last objective. [n].

    The face is spanned by the other objectives: a length for two, an area for three. Points must
    not be worse than the reference.
    """
    order = argsort(f[:, -1])
    g = f[order]
    if f.shape[1] == 1:
        added = (jnp.arange(f.shape[0]) == 0).astype(f.dtype)
    elif f.shape[1] == 2:
        before = jnp.append(reference[:1], lax.cummin(g[:, 0], axis=0)[:-1])
        added = jnp.maximum(before - g[:, 0], 0)
    else:
        added = _staircase_areas(g[:, 0], g[:, 1], reference)
    return jnp.zeros_like(added).at[order].set(added, unique_indices=True)


def _staircase_areas(x: Array, y: Array, reference: Array) -> Array:
    """Return the area that each point adds to the union of boxes [x, r_0] x [y, r_1]. [n]."""
    steps = x[argsort(x)]
    width = jnp.append(steps[1:], reference[0]) - steps

    def add_point(height: Array, point: tuple[Array, Array]) -> tuple[Array, Array]:
        x, y = point
        lowered = jnp.where(steps >= x, jnp.minimum(height, y), height)
        return lowered, jnp.sum(width * (height - lowered))

    return lax.scan(add_point, jnp.full_like(steps, reference[1]), (x, y))[1]
