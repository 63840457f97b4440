"""Sums over all pairs of targets and sources that never store a value per pair.

`pair_sum` makes a function that runs as a kernel on GPUs and TPUs (`pair_kernels`). On CPUs, and
for derivatives, it uses `sum_sources`, written for XLA, whose CPU compiler makes it a loop.

In `sum_sources` every sum is one variadic reduction over the sources: one pass computes all outputs
and evaluates the pair's expression once for all of them. Sources are the leading, reduced axis.
Targets therefore fill the vector registers, and no sum must be reordered to be fast. Targets go in
tiles of 512, because XLA's CPU backend does not vectorise larger loops (0.6e9 pairs per second and
core become 0.13e9).
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.custom_derivatives import SymbolicZero

from jaxgpu.devices import kernels
from jaxgpu.devices.precision import scope
from jaxgpu.devices.primitive import primitive

from . import pair_kernels
from .powers import inverse_powers

TILE = 512

# (rows of the targets [1, K], rows of the sources [N, 1]) -> terms of every pair
type Terms = Callable[[list[Array], list[Array]], list[Array]]
# (targets, sources, numbers) -> sums
type PairSum = Callable[[list[Array], list[Array], Array], Array]


def check_rows(name: str, count: int, points: Any, sources: Any, m: Any) -> None:
    """Raise if points or sources do not have `count` rows, or if m is not one mass per source.

    Raises:
        ValueError: another shape; an extra row would be read as masses.
    """
    shapes: list[tuple[int, ...]] = []
    for what, given in (("points", points), ("sources", sources)):
        shapes = [jnp.shape(a) for a in jax.tree.leaves(given)]
        whole = len(shapes) == 1 and len(shapes[0]) == 2 and shapes[0][0] == count
        rows = len(shapes) == count and len(set(shapes)) == 1 and len(shapes[0]) == 1
        if not (whole or rows):
            found = ", ".join(str(list(shape)) for shape in shapes[:3])
            raise ValueError(
                f"{name}: {what} of shape {found}; it must be [{count}, N] or a tuple of {count} "
                "rows [N]"
            )
    if jnp.shape(m) != shapes[0][-1:]:
        raise ValueError(
            f"{name}: m of shape {list(jnp.shape(m))} for {shapes[0][-1]} sources; give one mass "
            "for each"
        )


def sum_sources(
    terms: Terms, targets: list[Array], sources: list[Array], outputs: int, most: int = TILE
) -> Array:
    """Return the sum of `terms` over all sources for each target, [outputs, K].

    Args:
        terms: the terms of a pair, from the rows of all targets and the rows of all sources.
        targets: arrays [K] or [C, K], whose rows are concatenated.
        sources: arrays [N] or [C, N].
        outputs: number of terms per pair.
        most: maximum number of targets per tile.

    Supports forward-mode but not reverse-mode differentiation.

    >>> apart = lambda t, s: [(s[0] - t[0]) * s[1]]
    >>> x, m = jnp.array([1.0, 2.0]), jnp.array([10.0, 1.0])
    >>> sum_sources(apart, [jnp.array([0.0, 1.0])], [x, m], 1).tolist()
    [[12.0, 1.0]]
    """
    zero = (jnp.zeros((), targets[0].dtype),) * outputs
    add = lambda a, b: tuple(p + q for p, q in zip(a, b))
    # a gather or stack fused into the loop prevents vectorisation: 6 to 13 times slower
    across = _rows(lax.optimization_barrier([s[..., None] for s in sources]))

    def tile(targets: list[Array]) -> Array:
        along = _rows(lax.optimization_barrier([t[..., None, :] for t in targets]))
        sums = lax.reduce(tuple(terms(along, across)), zero, add, (0,))
        return jnp.stack(lax.optimization_barrier(sums))

    count = targets[0].shape[-1]
    if count <= most:
        return tile(targets)
    tiles = -(-count // most)
    spare = [(0, 0), (0, tiles * most - count)]
    padded = [jnp.pad(t.reshape(-1, count), spare).reshape(-1, tiles, most) for t in targets]
    sums = lax.map(tile, [jnp.moveaxis(t, 1, 0) for t in padded])
    return jnp.moveaxis(sums, 0, 1).reshape(outputs, -1)[:, :count]


def pair_sum(
    name: str,
    terms: pair_kernels.PairTerms,
    outputs: int,
    *,
    plain: PairSum | None = None,
    apart: int = 6,
    exact: bool = False,
    cpu: PairSum | None = None,
) -> PairSum:
    """Make the function of (targets, sources, numbers) that sums `terms` on any platform.

    On a device without true float64, such as a TPU, float64 sums use pairs of float32 numbers.
    Separations are then as accurate as in float64; all later terms have float32 rounding errors.

    Args:
        name: name of the primitive in a jaxpr.
        terms: the terms of a pair, from the rows of its target, those of its source, the numbers,
            and a function from r^2 to 1 / r^2 and 1 / r^3.
        outputs: number of terms per pair.
        plain: implementation for other platforms and for derivatives; `sum_sources` by default.
        apart: number of leading rows of targets and sources that enter only as differences.
        exact: whether sums are pairs of numbers, [2, outputs, K] for [outputs, K].
        cpu: implementation for CPUs, if it is a different one.

    The function takes arrays [T, K] or [K] of targets, [S, N] or [N] of sources, whose rows are
    concatenated, and numbers [C] that all pairs share. It supports forward-mode differentiation,
    but not reverse mode.
    """

    def sum_terms(targets: list[Array], sources: list[Array], numbers: Array) -> Array:
        shared = list(numbers)
        bind_numbers = lambda t, s: terms(t, s, shared, inverse_powers)
        return sum_sources(bind_numbers, targets, sources, outputs)

    form = plain or sum_terms

    def kernel(on: pair_kernels.Kernel, wide: bool) -> PairSum:
        def run(targets: list[Array], sources: list[Array], numbers: Array) -> Array:
            dtype, sizes = targets[0].dtype.name, (targets[0].shape[-1], sources[0].shape[-1])
            old = on is pair_kernels.on_gpu and not kernels.gpu_takes_kernels()
            if old or dtype not in ("float32", "float64") or 0 in sizes:
                return form(targets, sources, numbers)
            to, by = ([q.reshape(-1, q.shape[-1]) for q in group] for group in (targets, sources))
            if dtype == "float64" and not wide:
                return pair_kernels.sum_float64(on, terms, outputs, to, by, numbers, apart=apart)
            return on(terms, outputs, to, by, numbers, exact=exact)

        return run

    forms = {"cuda": kernel(pair_kernels.on_gpu, True), "tpu": kernel(pair_kernels.on_tpu, False)}
    if cpu is not None:
        forms["cpu"] = cpu
    bound = primitive(
        name,
        partial(_apply_vmapped, form),
        partial(_abstract_sums, (2, outputs) if exact else (outputs,)),
        kernels={platform: partial(_apply_vmapped, own) for platform, own in forms.items()},
        batch=lambda size, *args, count, maps, copied: bound(
            *args, count=count, maps=(copied, *maps)
        ),
        spread=False,
    )

    @jax.custom_jvp
    def total(targets: list[Array], sources: list[Array], numbers: Array) -> Array:
        return bound(*targets, *sources, numbers, count=len(targets), maps=())

    total.defjvp(partial(_jvp, form), symbolic_zeros=True)
    return total


def _jvp(form: PairSum, primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    """Return value and tangent of `form` in one pass, along the nonzero tangents only."""
    args, tree = jax.tree.flatten(primals)
    changes = dict(enumerate(tree.flatten_up_to(tangents)))
    changes = {i: t for i, t in changes.items() if not isinstance(t, SymbolicZero)}

    def evaluate(moving: dict[int, Array]) -> Array:
        return form(*tree.unflatten([moving.get(i, a) for i, a in enumerate(args)]))

    value, tangent = jax.jvp(evaluate, ({i: args[i] for i in changes},), (changes,))
    return _move_batch_first(value), _move_batch_first(tangent)


# The identity, with the batch axis of a `vmap` moved to the front: value and tangent must have
# their batch axis in the same place, and the primitive always puts that of the value in front.
_move_batch_first = primitive(
    "pair_copies_in_front",
    lambda a: a,
    lambda a: a,
    jvp=lambda args, tangents, out: _move_batch_first(*tangents),
    transpose=lambda ct, args: [_move_batch_first(ct)],
)


def _apply_vmapped(form: PairSum, *args: Array, count: int, maps: tuple) -> Array:
    """Apply `form` under one `vmap` per entry of `maps`, the flags of the batched arguments."""
    f = lambda *args: form(list(args[:count]), list(args[count:-1]), args[-1])
    for copied in reversed(maps):  # the outermost `vmap` comes first
        f = jax.vmap(f, [0 if has else None for has in copied])
    # lowering follows tracing, and 64-bit types may be disabled again by then
    with scope(args):
        return f(*args)


def _abstract_sums(outputs: tuple[int, ...], *args: Any, count: int, maps: tuple) -> Any:
    """Return the abstract value of the sums for abstract arguments."""
    batch, seen = [], [0] * len(args)
    for copied in maps:
        first = copied.index(True)
        batch.append(args[first].shape[seen[first]])
        seen = [n + has for n, has in zip(seen, copied)]
    return args[0].update(shape=(*batch, *outputs, args[0].shape[-1]), weak_type=False)


def _rows(groups: list[Array]) -> list[Array]:
    """Return every row, [1, K] or [N, 1], of the arrays, as slices of memory."""
    return [row for group in groups for row in (group if group.ndim > 2 else [group])]
