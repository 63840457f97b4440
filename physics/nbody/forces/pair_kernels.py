"""Pair sums as one kernel on an accelerator, which keeps the sums of a target in registers.

`on_gpu` gives each thread one or two targets. All threads loop over the sources and read the same
one at a time; with few targets, several programs share the sources. `on_tpu` puts targets in the
lanes and eight sources in the sublanes, and loops over blocks of sources. Neither stores a value
per pair. A pair of `pairs.pull` takes 28 issue slots and an inverse square root.

With `exact`, a sum is a pair of numbers, computed by Knuth's exact sum of two (see `hilo`).
"""

from collections.abc import Callable
from math import ceil

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.devices import kernels

from .powers import powers_in_kernel

# (rows of targets, rows of sources, numbers, `powers`) -> terms of every pair
type PairTerms = Callable[[list[Array], list[Array], list[Array], Callable], list[Array]]
# `on_gpu` or `on_tpu`
type Kernel = Callable[..., Array]

_PROGRAMS = 1024  # programs that run concurrently on a GPU: eight per multiprocessor
_SHARE = 32  # minimum number of sources per program
_PARTIAL = 4_000_000  # maximum bytes of partial sums, unless a single part is larger
_LANES, _COLUMN, _BLOCK = 256, 8, 1024  # on a TPU: targets, sources per vector and per block
_FAR = 1e18  # coordinate of padding sources: powers of the distance stay within float32


def on_gpu(
    terms: PairTerms,
    outputs: int,
    targets: list[Array],
    sources: list[Array],
    numbers: Array,
    *,
    exact: bool = False,
    interpret: bool = False,
) -> Array:
    """Return the sums [outputs, K] over sources at each target; with `exact` [2, outputs, K].

    Args:
        terms: the terms of a pair.
        outputs: number of terms per pair.
        targets: arrays [T, K], whose rows are concatenated.
        sources: arrays [S, N].
        numbers: [C], the same for all pairs.
        exact: whether a sum is a pair of numbers.
        interpret: run on the CPU, slowly.
    """
    like, k, n = targets[0].dtype, targets[0].shape[1], sources[0].shape[1]
    held = outputs * (2 if exact else 1)
    each = 2 if like.itemsize == 4 and not exact and k > 8 * kernels.WARPGROUP else 1
    wide = each * kernels.WARPGROUP
    programs = ceil(k / wide)
    most = min(_PROGRAMS // programs, _PARTIAL // (held * programs * wide * like.itemsize))
    parts = max(1, min(most, n // _SHARE))
    share = ceil(n / parts)

    def body(*refs):
        to, by = refs[: len(targets)], refs[len(targets) : -2]
        at, part = lax.axis_index("targets") * wide, lax.axis_index("parts")
        lanes = kernels.window(at, wide)
        t = [kernels.load_row(ref, (i, lanes)) for ref in to for i in range(ref.shape[0])]
        c = [kernels.broadcast_like(refs[-2][i], t[0]) for i in range(numbers.size)]

        def add_source(j, total):
            s = [kernels.broadcast_like(ref[i, j], t[0]) for ref in by for i in range(ref.shape[0])]
            return _accumulate(total, terms(t, s, c, powers_in_kernel), exact)

        first = part * share
        last = jnp.minimum(first + share, n)
        total = lax.fori_loop(first, last, add_source, (jnp.zeros_like(t[0]),) * held)
        for i in range(held):
            refs[-1][part, i, lanes] = total[i]

    out = jax.ShapeDtypeStruct((parts, held, programs * wide), like)
    grid, names = (programs, parts), ("targets", "parts")
    run = kernels.on_gpu(body, out, grid, names, interpret=interpret)
    return _sum_parts(run(*_pad_targets(targets, wide), *sources, numbers)[:, :, :k], exact)


def on_tpu(
    terms: PairTerms,
    outputs: int,
    targets: list[Array],
    sources: list[Array],
    numbers: Array,
    *,
    exact: bool = False,
    interpret: bool = False,
) -> Array:
    """Return the sums of `on_gpu` for float32 arrays on a TPU.

    The first three rows of the sources are positions. A distant source whose other rows are zero
    must have vanishing terms.
    """
    k, n = targets[0].shape[1], sources[0].shape[1]
    rows, count = (sum(a.shape[0] for a in group) for group in (sources, targets))
    held = outputs * (2 if exact else 1)
    lanes = min(_LANES // 2 if exact else _LANES, _round_up(k, 128))
    block = min(_BLOCK, _round_up(n, 128))
    to, by = (
        jnp.concatenate(_pad_targets(targets, lanes)),
        _pad_sources(jnp.concatenate(sources), block),
    )
    wide, blocks = to.shape[1], by.shape[1] // block

    def body(t_ref, s_ref, c_ref, o_ref, total_ref, column_ref):
        turn_of = kernels.program_id(1)

        @kernels.run_when(turn_of == 0)
        def start():
            total_ref[...] = jnp.zeros_like(total_ref)

        # in memory the sources are along the lanes, since rows of few values are padded to 128
        column_ref[...] = s_ref[...].T
        t = [t_ref[i : i + 1, :] for i in range(count)]
        c = [c_ref[:, i : i + 1] for i in range(numbers.size)]

        def add_sources(j, total):
            s = column_ref[kernels.window(j * _COLUMN, _COLUMN), :]
            return _accumulate(
                total, terms(t, [s[:, i : i + 1] for i in range(rows)], c, powers_in_kernel), exact
            )

        total = lax.fori_loop(
            0, block // _COLUMN, add_sources, tuple(total_ref[i] for i in range(held))
        )
        for i in range(held):
            total_ref[i] = total[i]

        @kernels.run_when(turn_of == blocks - 1)
        def finish():
            o_ref[...] = jnp.concatenate([a.sum(0, keepdims=True) for a in total], 0)

    run = kernels.on_tpu(
        body,
        jax.ShapeDtypeStruct((held, wide), jnp.float32),
        (wide // lanes, blocks),
        [
            ((count, lanes), lambda i, j: (0, i)),
            ((rows, block), lambda i, j: (0, j)),
            ((1, numbers.size), lambda i, j: (0, 0)),
            ((held, lanes), lambda i, j: (0, i)),
        ],
        [(held, _COLUMN, lanes), (block, rows)],
        interpret=interpret,
    )
    return _sum_parts(run(to, by, numbers[None])[None, :, :k], exact)


def sum_float64(
    kernel: Kernel,
    terms: PairTerms,
    outputs: int,
    targets: list[Array],
    sources: list[Array],
    numbers: Array,
    *,
    apart: int,
    **options: bool,
) -> Array:
    """Return the sums of float64 arrays, computed by a kernel with pairs of float32.

    The first `apart` rows enter only as differences between targets and sources, accurate to 2^-48
    of the coordinates. All other rows are rounded to float32. Sums are stored in pairs.
    """
    rows = [jnp.concatenate(group) for group in (targets, sources)]
    high = [q.astype(jnp.float32) for q in rows]
    low = [(q - h.astype(q.dtype)).astype(jnp.float32)[:apart] for q, h in zip(rows, high)]
    ends = rows[0].shape[0], rows[1].shape[0]

    def split_terms(
        t: list[Array], s: list[Array], c: list[Array], powers: Callable
    ) -> list[Array]:
        lower = zip(t[ends[0] :], s[ends[1] :])
        d = [(q - p) + (b - a) for p, q, (a, b) in zip(t, s, lower)]
        origin = [jnp.zeros_like(d[0])] * apart
        return terms(origin + t[apart : ends[0]], d + s[apart : ends[1]], c, powers)

    to, by = ([h, l] for h, l in zip(high, low))
    out = kernel(split_terms, outputs, to, by, numbers.astype(jnp.float32), exact=True, **options)
    return out[0].astype(jnp.float64) + out[1].astype(jnp.float64)


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Return the rounded sum of two numbers and its rounding error."""
    total = a + b
    virtual = total - a
    return total, (a - (total - virtual)) + (b - virtual)


def _accumulate(total: tuple, terms: list[Array], exact: bool) -> tuple:
    if not exact:
        return tuple(a + b for a, b in zip(total, terms))
    n = len(terms)
    sums = [two_sum(a, b) for a, b in zip(total[:n], terms)]
    return tuple(s for s, _ in sums) + tuple(a + b for a, (_, b) in zip(total[n:], sums))


def _sum_parts(parts: Array, exact: bool) -> Array:
    """Return the sum over the first axis, of pairs of numbers if `exact`."""
    if not exact:
        return jnp.sum(parts, 0)
    high, low = jnp.split(parts, 2, 1)
    total, rest = high[0], jnp.sum(low, 0)
    for part in high[1:]:
        total, lost = two_sum(total, part)
        rest = rest + lost
    return jnp.stack(two_sum(total, rest))


def _round_up(count: int, block: int) -> int:
    return ceil(count / block) * block


def _pad_targets(targets: list[Array], block: int) -> list[Array]:
    return [jnp.pad(t, ((0, 0), (0, -t.shape[1] % block))) for t in targets]


def _pad_sources(sources: Array, block: int) -> Array:
    """Pad with sources that are distant and zero otherwise, which add nothing to the sums."""
    spare = -sources.shape[1] % block
    places = jnp.pad(sources[:3], ((0, 0), (0, spare)), constant_values=_FAR)
    return (
        jnp.concatenate([places, jnp.pad(sources[3:], ((0, 0), (0, spare)))]) if spare else sources
    )
