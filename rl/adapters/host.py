"""A state on the device that the host moves by one call a step, with one array there and one back.

What a call costs is above all the number of its arrays: about 4 us for each that goes in or comes
out, on a CPU as on a GPU. So the parts of the state lie one after another in one array of 32-bit
words, which is given away to each call, and what the host sees comes in another.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

_LARGEST = 1 << 22  # bytes; a leaf with more of them keeps an array of its own
_WORD = 4  # bytes


class Layout:
    """How the leaves of a tree lie in one array of words; large and unusual ones stay apart."""

    def __init__(self, example: Any):
        """Of trees with the structure, shapes and types of `example`."""
        leaves, self._tree = jax.tree.flatten(example)
        self._leaves = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in leaves]
        self._packed = [_fits(x) for x in self._leaves]
        # those of 8 bytes first: all of them then begin where their type may
        order = [i for i, packed in enumerate(self._packed) if packed]
        self._order = sorted(order, key=lambda i: -self._leaves[i].dtype.itemsize)
        sizes = [-(-_bytes(self._leaves[i]) // _WORD) for i in self._order]
        self._starts = [sum(sizes[:i]) for i in range(len(sizes))]
        self._ends = [start + size for start, size in zip(self._starts, sizes)]
        self._seen: list[tuple[int, tuple[int, ...], np.dtype, int]] = [
            (i, self._leaves[i].shape, np.dtype(self._leaves[i].dtype), _WORD * start)
            for i, start in zip(self._order, self._starts)
        ]

    def pack(self, tree: Any) -> tuple[Array, ...]:
        """The words [W], then the leaves that stay apart."""
        leaves = jax.tree.leaves(tree)
        words = [_words(leaves[i]) for i in self._order]
        apart = [x for x, packed in zip(leaves, self._packed) if not packed]
        return (jnp.concatenate(words) if words else jnp.zeros(0, jnp.uint32), *apart)

    def unpack(self, packed: tuple[Array, ...]) -> Any:
        """The tree, in a compiled program."""
        words, *apart = packed
        leaves = self._apart(apart)
        for i, start, end in zip(self._order, self._starts, self._ends):
            leaves[i] = _leaf(words[start:end], self._leaves[i])
        return jax.tree.unflatten(self._tree, leaves)

    def seen(self, packed: tuple[Array, ...]) -> Any:
        """The tree on the host: views of one new array that may be written to."""
        words, *apart = packed
        copy, leaves = np.array(words), self._apart([np.array(x) for x in apart])
        for i, shape, dtype, at in self._seen:
            leaves[i] = np.ndarray(shape, dtype, copy, at)
        return jax.tree.unflatten(self._tree, leaves)

    def _apart(self, apart: list[Any]) -> list[Any]:
        rest = iter(apart)
        return [None if packed else next(rest) for packed in self._packed]


class Carried(NamedTuple):
    """What stays on the device from call to call."""

    state: Any
    key: Array  # the data of the key that `begin` was given
    count: Array  # [] calls since then; the key of each is made from both


class Host:
    """A state with its key on the device, and the programs that begin and move it.

    The n-th call after `begin(seed)` draws from the key of the seed folded with n: the same seed
    and actions give the same numbers.
    """

    def __init__(
        self, begin: Callable[[Array], Any], move: Callable[[Any, Any, Array], Any], seed: int = 0
    ):
        """Of `begin(key)` and `move(state, action, key)`; both give a state and what is seen."""
        self._key, self._begin, self._move = jax.random.key(seed), begin, move
        self._impl = jax.random.key_impl(self._key)
        self._first = jax.jit(lambda data: self._begun(data, jnp.uint32(0)))
        state, seen = jax.eval_shape(begin, self._key)
        data = jax.random.key_data(self._key)
        self._state = Layout(Carried(state, data, jnp.uint32(0)))
        self._start = Layout(seen)
        self._again = jax.jit(self._begun_again, donate_argnums=0)
        self._next = jax.jit(self._moved, donate_argnums=0)
        self._packed: tuple[Array, ...] | None = None
        self._after: Layout | None = None

    def begin(self, seed: int | None = None) -> Any:
        """What is seen of a first state; without a seed, of the next one."""
        if seed is not None:
            self._key, self._packed = jax.random.key(seed), None
        if self._packed is None:
            self._packed, seen = self._first(jax.random.key_data(self._key))
        else:
            self._packed, seen = self._again(self._packed)
        return self._start.seen(seen)

    def move(self, action: np.ndarray) -> Any:
        """What is seen after one step; `action` in its final shape and type.

        Raises:
            RuntimeError: `begin` has not been called.
        """
        if self._packed is None:
            raise RuntimeError("step: the environment has no state yet; call reset first")
        self._packed, seen = self._next(self._packed, action)
        if self._after is None:
            raise RuntimeError("step: the layout of what is seen is not known")
        return self._after.seen(seen)

    def _begun(self, data: Array, count: Array) -> Any:
        state, seen = self._begin(self._drawn(data, count))
        return self._state.pack(Carried(state, data, count + 1)), self._start.pack(seen)

    def _begun_again(self, packed: tuple[Array, ...]) -> Any:
        now = self._state.unpack(packed)
        return self._begun(now.key, now.count)

    def _moved(self, packed: tuple[Array, ...], action: Array) -> Any:
        now = self._state.unpack(packed)
        state, seen = self._move(now.state, action, self._drawn(now.key, now.count))
        self._after = Layout(seen)  # known once this is traced, before the first of it is seen
        return self._state.pack(Carried(state, now.key, now.count + 1)), self._after.pack(seen)

    def _drawn(self, data: Array, count: Array) -> Array:
        return jax.random.fold_in(jax.random.wrap_key_data(data, impl=self._impl), count)


def _bytes(leaf: Any) -> int:
    return math.prod(leaf.shape) * leaf.dtype.itemsize


def _fits(leaf: Any) -> bool:
    """Whether a leaf is of numbers of 1, 2, 4 or 8 bytes, and small."""
    plain = leaf.dtype == bool or (
        jnp.issubdtype(leaf.dtype, jnp.number) and leaf.dtype.itemsize in (1, 2, 4, 8)
    )
    return bool(
        plain
        and not jnp.issubdtype(leaf.dtype, jnp.complexfloating)
        and _bytes(leaf) <= _LARGEST
    )


def _words(x: Array) -> Array:
    """The bits of `x` as words [W], zeros after the last of them."""
    x = jnp.ravel(x.astype(jnp.uint8) if x.dtype == bool else x)
    several = _WORD // x.dtype.itemsize
    if several > 1:
        x = jnp.pad(x, (0, -x.size % several)).reshape(-1, several)
    return jnp.ravel(jax.lax.bitcast_convert_type(x, jnp.uint32))


def _leaf(words: Array, leaf: Any) -> Array:
    """What `_words` was made from."""
    dtype = jnp.dtype(jnp.uint8) if leaf.dtype == bool else leaf.dtype
    if dtype.itemsize > _WORD:
        words = words.reshape(-1, dtype.itemsize // _WORD)
    x = jnp.ravel(jax.lax.bitcast_convert_type(words, dtype))
    return x[: math.prod(leaf.shape)].reshape(leaf.shape).astype(leaf.dtype)
