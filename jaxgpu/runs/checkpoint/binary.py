"""Arrays and keys in a file: raw bytes, with the type and the shape of each.

Types come from a closed list of numeric types: bytes of a file never become pointers or strings.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

from jaxgpu.inputs.arguments import is_key

_NUMPY_TYPES = """bool int8 int16 int32 int64 uint8 uint16 uint32 uint64
float16 float32 float64 complex64 complex128""".split()
_ML_TYPES = """bfloat16 int2 int4 uint2 uint4 float4_e2m1fn float6_e2m3fn float6_e3m2fn float8_e3m4
float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz
float8_e8m0fnu""".split()
DTYPES = {name: np.dtype(name) for name in _NUMPY_TYPES}
DTYPES |= {name: np.dtype(getattr(ml_dtypes, name)) for name in _ML_TYPES}


def named_leaves(tree: Any) -> list[tuple[str, Any]]:
    """Return the leaves of a pytree with their names."""
    return [(jax.tree_util.keystr(at), leaf) for at, leaf in jax.tree.leaves_with_path(tree)]


def kind_of(leaf: Any) -> str:
    """Return the name of a leaf's type in a file: its dtype, or the generator of a key."""
    if is_key(leaf):
        return f"key<{jax.random.key_impl(leaf)}>"
    return str(leaf.dtype if hasattr(leaf, "dtype") else np.asarray(leaf).dtype)


def is_kept(leaf: Any) -> bool:
    """Return True if a file can hold a leaf: a key, or numbers of a listed type.

    >>> is_kept(np.zeros(2)), is_kept(np.array(["a"])), is_kept(np.array([print]))
    (True, False, False)
    """
    return is_key(leaf) or kind_of(leaf) in DTYPES


def numbers_of(leaf: Any) -> Any:
    """Return the array that represents a leaf: itself, or the words of a key."""
    return jax.random.key_data(leaf) if is_key(leaf) else leaf


def describe(tree: Any) -> tuple[list[str], list[jax.ShapeDtypeStruct]]:
    """Return the types of the leaves of a pytree, and the shapes of the arrays that represent them.

    The leaves may be shapes as well.

    >>> describe({"k": jax.random.key(0), "x": np.float32(1.0)})[0]
    ['key<threefry2x32>', 'float32']
    """
    kinds: list[str] = []

    def collect_types(*leaves: Any) -> list[Any]:
        kinds[:] = map(kind_of, leaves)
        return [*map(numbers_of, leaves)]

    return kinds, jax.eval_shape(collect_types, *jax.tree.leaves(tree))


def dtype_of(kind: str) -> np.dtype:
    """Return the dtype of the array that represents a leaf of this type.

    Raises:
        ValueError: a type that is not on the list.

    >>> dtype_of("bfloat16"), dtype_of("key<fry>")
    (dtype(bfloat16), dtype('uint32'))
    >>> dtype_of("object")
    Traceback (most recent call last):
    ValueError: kind='object'; it must be a numeric type
    """
    name = "uint32" if kind.startswith("key<") else kind
    if name not in DTYPES:
        raise ValueError(f"kind={kind!r:.40}; it must be a numeric type")
    return DTYPES[name]


def layout(kind: str, shape: Any) -> tuple[np.dtype, tuple[int, ...], int]:
    """Return the dtype, the shape and the size in bytes of an array that a file describes.

    Raises:
        ValueError: a type that is not on the list, or a shape that is not of integers >= 0.

    >>> layout("float32", [2, 3])
    (dtype('float32'), (2, 3), 24)
    """
    if not all(type(n) is int and n >= 0 for n in shape):
        raise ValueError(f"shape={shape!r:.40}; it must be whole numbers of at least 0")
    dtype = dtype_of(kind)
    return dtype, tuple(shape), math.prod(shape) * dtype.itemsize


# raw bytes, since npy does not support bfloat16, and its header could contradict this one


def as_bytes(data: np.ndarray | bytes) -> np.ndarray:
    """Return the bytes of an array, or bytes, as an array of uint8."""
    raw = data if isinstance(data, bytes) else np.ascontiguousarray(data).tobytes()
    return np.frombuffer(raw, np.uint8)


def from_bytes(raw: np.ndarray, kind: str, shape: Any) -> np.ndarray:
    """Return the array of this type and shape that was stored as bytes."""
    dtype, shape, _ = layout(kind, shape)
    return raw.view(dtype).reshape(shape)


def leaf_of(numbers: np.ndarray, kind: str) -> Any:
    """Return the leaf of this type that an array represents: the array itself, or a key."""
    if not kind.startswith("key<"):
        return numbers
    return jax.random.wrap_key_data(jnp.asarray(numbers), impl=kind[4:-1])
