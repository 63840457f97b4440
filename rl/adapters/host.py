"""Environment state on the device, advanced by host calls with one array in and one out.

The overhead of a call is mainly the number of its arrays, a few microseconds for each input or
output. Therefore all parts of the state are packed into one array of 32-bit words, which is donated
to each call, and the results for the host are packed into another.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

_LARGEST = 1 << 16  # bytes; larger leaves remain separate arrays
_WORD = 4  # bytes


class Layout:
    """Layout of a tree's leaves in one array of words; large ones remain separate."""

    def __init__(self, example: Any):
        """Define the layout for trees with the structure, shapes and dtypes of `example`."""
        leaves, self._tree = jax.tree.flatten(example)
        self._leaves = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in leaves]
        self._packed = [_is_packable(x) for x in self._leaves]
        # 8-byte types come first, so that all leaves are aligned.
        order = [i for i, packed in enumerate(self._packed) if packed]
        self._order = sorted(order, key=lambda i: -self._leaves[i].dtype.itemsize)
        sizes = [-(-_num_bytes(self._leaves[i]) // _WORD) for i in self._order]
        self._sample_starts = [sum(sizes[:i]) for i in range(len(sizes))]
        self._ends = [start + size for start, size in zip(self._sample_starts, sizes)]
        self._seen: list[tuple[int, tuple[int, ...], np.dtype, int]] = [
            (i, self._leaves[i].shape, np.dtype(self._leaves[i].dtype), _WORD * start)
            for i, start in zip(self._order, self._sample_starts)
        ]

    def pack(self, tree: Any) -> tuple[Array, ...]:
        """Return the words [W] and the separate leaves."""
        leaves = jax.tree.leaves(tree)
        words = [_to_words(leaves[i]) for i in self._order]
        apart = [x for x, packed in zip(leaves, self._packed) if not packed]
        return (jnp.concatenate(words) if words else jnp.zeros(0, jnp.uint32), *apart)

    def unpack(self, packed: tuple[Array, ...]) -> Any:
        """Return the tree, inside a compiled program."""
        words, *apart = packed
        leaves = self._place_separate(apart)
        for i, start, end in zip(self._order, self._sample_starts, self._ends):
            leaves[i] = _from_words(words[start:end], self._leaves[i])
        return jax.tree.unflatten(self._tree, leaves)

    def to_numpy(self, packed: tuple[Array, ...]) -> Any:
        """Return the tree on the host, as writable views of one new array."""
        words, *apart = packed
        copy, leaves = np.array(words), self._place_separate([np.array(x) for x in apart])
        for i, shape, dtype, at in self._seen:
            leaves[i] = np.ndarray(shape, dtype, copy, at)
        return jax.tree.unflatten(self._tree, leaves)

    def _place_separate(self, apart: list[Any]) -> list[Any]:
        rest = iter(apart)
        return [None if packed else next(rest) for packed in self._packed]


class StepperState(NamedTuple):
    """State kept on the device from call to call."""

    state: Any  # of all copies
    key: Array  # data of a random key
    calls: Array  # [] calls so far; each call's key is made from both


class HostStepper:
    """State and random key on the device, initialized and advanced by calls from the host.

    The same seed and the same calls give the same results.
    """

    def __init__(self, begin: Callable[[Array], Any], seed: int = 0):
        """Compile for `begin(key)`, which returns a state and its outputs for the host."""
        self._begin, self._key = begin, _key_data(seed)
        self._impl = jax.random.key_impl(jax.random.key(0))
        start = jax.eval_shape(lambda: begin(self._call_key(self._key, jnp.uint32(0)))[0])
        self._state = Layout(StepperState(start, self._key, jnp.uint32(0)))
        self._first, self._again = (
            jax.jit(self._start_packed),
            self.program(lambda _, key: begin(key)),
        )
        self._packed: tuple[Array, ...] | None = None
        self._seen: Layout | None = None

    def begin(self, seed: int | None = None) -> Any:
        """Start from a new state and return its outputs; without a seed, use the next key."""
        if seed is None and self._packed is not None:
            return self._again()
        if seed is not None:
            self._key = _key_data(seed)
        self._packed, seen = self._first(self._key)
        return jax.tree.map(np.array, seen)

    def program(self, move: Callable[..., Any], kept: bool = False) -> Callable[..., Any]:
        """Return a host function that calls the compiled `move(state, *arguments, key)`.

        `move` returns a state and outputs; arguments must have fixed shapes and dtypes. The outputs
        are writable arrays on the host or, with `kept`, remain on the device.
        """
        layout: list[Layout] = []  # layout of the outputs, known after tracing

        def packed_step(packed: tuple[Array, ...], *arguments: Any) -> Any:
            now = self._state.unpack(packed)
            state, seen = move(now.state, *arguments, self._call_key(now.key, now.calls))
            packed = self._state.pack(StepperState(state, now.key, now.calls + 1))
            if kept:
                return packed, seen
            layout[:] = [Layout(seen)]
            return packed, layout[0].pack(seen)

        compiled = jax.jit(packed_step, donate_argnums=0)

        def call(*arguments: Any) -> Any:
            if self._packed is None:
                raise RuntimeError("step: the environment has no state yet; call reset first")
            self._packed, seen = compiled(self._packed, *arguments)
            return seen if kept else layout[0].to_numpy(seen)

        return call

    def _start_packed(self, data: Array) -> Any:
        state, seen = self._begin(self._call_key(data, jnp.uint32(0)))
        return self._state.pack(StepperState(state, data, jnp.uint32(1))), seen

    def _call_key(self, data: Array, count: Array) -> Array:
        """Return the key of call number `count`, by adding it to the last word of the key data.

        Since the generator is a function of key and counter, adding is sufficient.
        """
        last = jnp.arange(data.size, dtype=jnp.uint32) == data.size - 1
        return jax.random.wrap_key_data(data + jnp.where(last, count, 0), impl=self._impl)


def _key_data(seed: int) -> Array:
    """Return the key data of a seed, far from the data of all other seeds."""
    return jax.random.key_data(jax.random.fold_in(jax.random.key(seed), 0))


def _num_bytes(leaf: Any) -> int:
    return math.prod(leaf.shape) * leaf.dtype.itemsize


def _is_packable(leaf: Any) -> bool:
    """Return whether a leaf is small and of 1, 2, 4 or 8 bytes per value."""
    plain = leaf.dtype == bool or (
        jnp.issubdtype(leaf.dtype, jnp.number) and leaf.dtype.itemsize in (1, 2, 4, 8)
    )
    return bool(
        plain
        and not jnp.issubdtype(leaf.dtype, jnp.complexfloating)
        and _num_bytes(leaf) <= _LARGEST
    )


def _to_words(x: Array) -> Array:
    """Return the bits of `x` as words [W], padded with zeros."""
    x = jnp.ravel(x.astype(jnp.uint8) if x.dtype == bool else x)
    several = _WORD // x.dtype.itemsize
    if several > 1:
        x = jnp.pad(x, (0, -x.size % several)).reshape(-1, several)
    return jnp.ravel(jax.lax.bitcast_convert_type(x, jnp.uint32))


def _from_words(words: Array, leaf: Any) -> Array:
    """Return the array from which `_to_words` made these words."""
    dtype = jnp.dtype(jnp.uint8) if leaf.dtype == bool else leaf.dtype
    if dtype.itemsize > _WORD:
        words = words.reshape(-1, dtype.itemsize // _WORD)
    x = jnp.ravel(jax.lax.bitcast_convert_type(words, dtype))
    return x[: math.prod(leaf.shape)].reshape(leaf.shape).astype(leaf.dtype)
