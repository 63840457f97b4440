"""Rules that every public function of the package must obey; modules only register into it.

`check(f, *args)` takes a function of pytrees of arrays and one example of its arguments, and tests
design 8: one program, equal results with and without jit and vmap, portable, and with explicit
precision. `check_state(step, state)` tests a function that maps a state to the next one.
"""

import contextlib
import operator
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np

from jaxgpu.devices import kernels

PLATFORMS = ("cpu", "cuda", "tpu")
_CALLBACKS = {"pure_callback", "io_callback", "debug_callback", "outside_call"}
_DOTS = {"dot_general", "conv_general_dilated"}


def check(
    f: Callable[..., Any],
    *args: Any,
    differentiable: tuple[int, ...] = (),
    batched: tuple[int, ...] = (),
    rtol: float = 1e-5,
    beyond: bool = False,
) -> None:
    """Test that `f(*args)` obeys the rules; `args` are arrays or pytrees of arrays.

    differentiable: positions of floating arguments whose gradient must be finite.
    batched: positions to `vmap` over; the results are compared with a Python loop.
    rtol: tolerance between jit or vmap and the plain call (they may fuse differently).
    beyond: as in `check_program`.
    """
    plain = f(*args)
    assert_same(jax.jit(f)(*args), plain, rtol)
    assert_deterministic(f, *args)
    assert_compiles_once(f, *args)
    check_program(f, *args, beyond=beyond)
    assert_exports(f, *args)
    if batched:
        vmap_is_a_loop(f, args, batched, rtol)
    if differentiable:
        gradients_are_finite(f, args, differentiable)


def check_state(step: Callable[[Any], Any], state: Any, rtol: float = 1e-5) -> None:
    """Test that `step(state) -> state` obeys the rules and preserves the types of its state."""
    check(step, state, rtol=rtol)
    assert avals(jax.eval_shape(step, state)) == avals(state), "step changes the type of its state"


def avals(tree: Any) -> list[str]:
    """Return path, dtype, shape and weak type of every leaf."""
    return [
        f"{jax.tree_util.keystr(path)} {jax.typeof(leaf)}"
        for path, leaf in jax.tree.leaves_with_path(tree)
    ]


def assert_same(got: Any, want: Any, rtol: float = 0.0) -> None:
    """Assert equal structure, dtypes and shapes, and values within `rtol` of the largest one."""
    assert jax.tree.structure(got) == jax.tree.structure(want)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want)):
        assert jnp.asarray(a).dtype == jnp.asarray(b).dtype
        a, b = _to_numpy(a), _to_numpy(b)
        if rtol == 0:
            np.testing.assert_array_equal(a, b)
        else:
            finite = np.abs(b[np.isfinite(b)]) if b.dtype.kind in "fc" else np.zeros(0)
            scale = finite.max(initial=0.0)
            np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * scale)


def take_copy(tree: Any, i: int) -> Any:
    """Return one of the copies in a pytree of stacked arrays."""
    return jax.tree.map(lambda x: x[i] if _is_key(x) else np.asarray(x)[i], tree)


def assert_deterministic(f: Callable[..., Any], *args: Any) -> None:
    """Assert that two calls return identical bits."""
    g = jax.jit(f)
    assert_same(g(*args), g(*args))


def assert_compiles_once(f: Callable[..., Any], *args: Any) -> None:
    """Assert that a second call with the same shapes compiles nothing."""
    g = jax.jit(f)
    jax.block_until_ready(g(*args))
    with no_compile():
        jax.block_until_ready(g(*args))


def assert_exports(f: Callable[..., Any], *args: Any) -> None:
    """Assert that the program lowers for every platform, on a machine without accelerators."""
    checks = kernels.export_checks()
    jax.export.export(jax.jit(f), platforms=PLATFORMS, disabled_checks=checks)(*args)


def vmap_is_a_loop(f: Any, args: tuple, batched: tuple[int, ...], rtol: float) -> None:
    """Assert that `vmap` over two copies, one of them scaled, equals two calls."""
    axes = tuple(0 if i in batched else None for i in range(len(args)))
    lanes = [_scale_batched(args, batched, scale) for scale in (1.0, 1.0625)]
    stacked = [
        jax.tree.map(lambda a, b: jnp.stack([a, b]), one, two) if i in batched else one
        for i, (one, two) in enumerate(zip(*lanes))
    ]
    got = jax.jit(jax.vmap(f, axes))(*stacked)
    first, second = (jax.tree.map(operator.itemgetter(lane), got) for lane in range(2))
    assert_same(first, f(*lanes[0]), rtol)
    assert_same(second, f(*lanes[1]), rtol)


def gradients_are_finite(f: Any, args: tuple, positions: tuple[int, ...]) -> None:
    """Assert that reverse and forward derivatives of the sum of outputs are finite and agree."""

    def total(*args):
        leaves = [x for x in jax.tree.leaves(f(*args)) if jnp.issubdtype(x.dtype, jnp.floating)]
        return sum(jnp.sum(x * 0.5) for x in leaves)

    tangents = tuple(
        jax.tree.map(jnp.ones_like if i in positions else jnp.zeros_like, a)
        for i, a in enumerate(args)
    )

    def both_derivatives(args, tangents):
        return jax.grad(total, positions)(*args), jax.jvp(total, args, tangents)[1]

    # One program: a separate operation costs as much to compile as dozens inside a program.
    grads, forward = jax.jit(both_derivatives)(args, tangents)
    for path, leaf in jax.tree.leaves_with_path(grads):
        assert np.all(np.isfinite(leaf)), f"gradient at {jax.tree_util.keystr(path)} is not finite"
    reverse = sum(jnp.sum(leaf) for leaf in jax.tree.leaves(grads))
    scale = sum(jnp.sum(jnp.abs(leaf)) for leaf in jax.tree.leaves(grads))
    tolerance = 1e3 * float(jnp.finfo(forward.dtype).eps)
    np.testing.assert_allclose(forward, reverse, rtol=0, atol=tolerance * float(scale) + 1e-30)


def check_program(f: Callable[..., Any], *args: Any, beyond: bool = False) -> None:
    """Test the program of a function with `check_jaxpr`."""
    check_jaxpr(jax.make_jaxpr(f)(*args), beyond)


def check_jaxpr(jaxpr: Any, beyond: bool = False) -> None:
    """Assert no callbacks, explicit precision of matrix products, no float64 from float32.

    beyond: True if some float64 value in it is outside float32's range; see `vanishing`.
    """
    found = vanishing(np.concatenate([np.zeros(0), *numbers(jaxpr.jaxpr, jaxpr.consts)]))
    assert bool(found.size) == beyond, f"numbers beyond float32's exponents: {np.unique(found)}"
    wide = any(str(v.dtype) in ("float64", "complex128") for v in jaxpr.in_avals if _has_dtype(v))
    for eqn in equations(jaxpr.jaxpr):
        name = eqn.primitive.name
        assert name not in _CALLBACKS, f"{name}: a call back to the host"
        if name in _DOTS:
            assert eqn.params["precision"] is not None, f"{name}: no precision\n{eqn}"
        if not wide:
            for out in eqn.outvars:
                leak = _has_dtype(out.aval) and str(out.aval.dtype) in ("float64", "complex128")
                assert not leak, f"{name}: float64 from float32 arguments\n{eqn}"


def equations(jaxpr: Any) -> Iterator[Any]:
    """Yield every equation of a program, also inside loops and calls."""
    for eqn in jaxpr.eqns:
        yield eqn
        for value in eqn.params.values():
            for inner in value if isinstance(value, (list, tuple)) else (value,):
                inner = getattr(inner, "jaxpr", inner)
                if hasattr(inner, "eqns"):
                    yield from equations(inner)


def numbers(jaxpr: Any, consts: Any = ()) -> Iterator[np.ndarray]:
    """Yield all float64 values in a program, [N] each."""
    for value in consts:
        yield from _float64_values(value)
    for eqn in jaxpr.eqns:
        for v in eqn.invars:
            yield from _float64_values(getattr(v, "val", None))
        for value in eqn.params.values():
            for inner in value if isinstance(value, (list, tuple)) else (value,):
                held, inner = getattr(inner, "consts", ()), getattr(inner, "jaxpr", inner)
                if hasattr(inner, "eqns"):
                    yield from numbers(inner, held)


def vanishing(x: np.ndarray) -> np.ndarray:
    """Return the values that become 0 or inf if float64 has float32's exponents, as on a TPU."""
    size = np.abs(x[np.isfinite(x)])
    return size[((size > 0) & (size < 1e-38)) | (size > 1e38)]


def _float64_values(value: Any) -> Iterator[np.ndarray]:
    if getattr(value, "dtype", None) == np.float64:
        yield np.ravel(np.asarray(value))


@contextlib.contextmanager
def programs() -> Iterator[list[str]]:
    """Collect the names of the functions that are compiled in this context."""
    seen: list[str] = []

    def listen(event: str, *_: Any, **said: Any) -> None:
        if event.endswith("backend_compile_duration"):
            seen.append(str(said.get("fun_name", "a program")))

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield seen
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


@contextlib.contextmanager
def no_compile() -> Iterator[None]:
    """Fail if anything is compiled in this context."""
    with programs() as seen:
        yield
    assert not seen, f"compiled {len(seen)} programs where none was expected"


def _scale_batched(args: tuple, batched: tuple[int, ...], scale: float) -> list[Any]:
    """Return the arguments; floating ones among the batched positions are scaled."""

    def scale_leaf(x: Any) -> Any:
        x = jnp.asarray(x)
        return x * scale if jnp.issubdtype(x.dtype, jnp.floating) else x

    return [jax.tree.map(scale_leaf, a) if i in batched else a for i, a in enumerate(args)]


def _to_numpy(x: Any) -> np.ndarray:
    return np.asarray(jax.random.key_data(x) if _is_key(x) else x)


def _is_key(x: Any) -> bool:
    return jnp.issubdtype(jnp.result_type(x), jax.dtypes.prng_key)


def _has_dtype(aval: Any) -> bool:
    return hasattr(aval, "dtype")


def flip_bit(data, random):
    """Return the bytes with one random bit flipped."""
    flipped = bytearray(data)
    bit = random.randrange(8 * len(flipped))
    flipped[bit // 8] ^= 1 << bit % 8
    return flipped
