"""Declaration of a JAX primitive: its kernels, shapes, batching and derivatives.

A custom rule (`jax.custom_jvp`, `jax.custom_vjp`) supports one mode of differentiation. A primitive
whose tangent and transpose are primitives too supports all modes, in any combination and order.
Each platform may have its own kernel: the kernel is attached by its lowering, so one program can be
exported for several platforms at once (`lax.platform_dependent` lowers every branch for all).

This is the only module that uses `jax.interpreters`.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import jax
from jax import Array
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from jaxgpu.inputs.explanations import explain_errors

# a tangent or a gradient; None stands for one that is zero or not requested
type Maybe = Array | None
# (arguments, their tangents, values, **static) -> tangents of the values
type Jvp = Callable[..., Any]
# (cotangents, arguments, **static) -> a gradient for each argument
type Transpose = Callable[..., Sequence[Maybe]]


def primitive(
    name: str,
    value: Callable[..., Any],
    like: Callable[..., Any],
    *,
    several: bool = False,
    kernels: Mapping[str, Callable[..., Any]] | None = None,
    batch: Callable[..., Any] | None = None,
    spread: bool = True,
    jvp: Jvp | None = None,
    transpose: Transpose | None = None,
) -> Callable[..., Any]:
    """Define a new primitive; return the function `f(*arrays, **static)` that binds it.

    Args:
        name: its name in a jaxpr.
        value: the function that it computes, of the arrays and the static parameters (hashable, by
            keyword); used on every platform that `kernels` does not name.
        like: the abstract values of the result, from those of the arguments.
        several: True if `value` returns a list of arrays instead of one.
        kernels: other implementations of `value`, by platform: "cpu", "cuda", "rocm", "tpu".
        batch: `batch(size, *arrays, **static)` returns the results of `size` copies of the
            arguments, with the copies along a new first axis of both. Without it the primitive is
            bound to the batched arrays, which is right for elementwise primitives.
        spread: True if `batch` gets copies of unbatched arguments. If False, it gets them as they
            are, and the mask of batched arguments as `copied`, a tuple of booleans.
        jvp: `jvp(args, tangents, out, **static)` returns the tangent of the value (with `several` a
            list). A zero tangent is passed as None, and may be returned as None; see `fill_zeros`.
            Without a rule, differentiation raises NotImplementedError.
        transpose: `transpose(ct, args, **static)` returns a list of one gradient per argument.
            Arguments whose gradient is requested are None, zero cotangents are filled in, and
            gradients that were not requested are dropped.

    >>> import jax.numpy as jnp
    >>> twice = primitive("twice", lambda x: 2 * x, lambda x: x,
    ...                   jvp=lambda args, tangents, out: twice(*tangents),
    ...                   transpose=lambda ct, args: [twice(ct)])
    >>> jax.grad(lambda x: twice(x) ** 2)(3.0), jax.vmap(twice)(jnp.arange(2.0))
    (Array(24., dtype=float32, weak_type=True), Array([0., 2.], dtype=float32))
    """
    p = Primitive(name)
    p.multiple_results = several
    # a single call also runs as a program, so that it uses the kernel of its platform
    through = jax.jit(lambda static, *args: p.bind(*args, **dict(static)), static_argnums=0)
    p.def_impl(lambda *args, **static: through(tuple(static.items()), *args))
    p.def_abstract_eval(like)
    mlir.register_lowering(p, mlir.lower_fun(value, multiple_results=several))
    for platform, kernel in (kernels or {}).items():
        lowered = mlir.lower_fun(kernel, multiple_results=several)
        mlir.register_lowering(p, lowered, platform=platform)
    bind_batched = lambda size, *args, **static: p.bind(*args, **static)
    batching.primitive_batchers[p] = partial(_batch_rule, batch or bind_batched, spread)
    if jvp is not None:
        ad.primitive_jvps[p] = partial(_jvp_rule, p, jvp)
    if transpose is not None:
        ad.primitive_transposes[p] = partial(_transpose_rule, transpose)
    return p.bind


@explain_errors
def fill_zeros(tangents: Sequence[Maybe], args: Sequence[Array]) -> list[Array]:
    """Return the tangents of `args`; replace None by zeros.

    >>> import jax.numpy as jnp
    >>> fill_zeros([None, jnp.ones(2)], [jnp.zeros(3), jnp.zeros(2)])[0].tolist()
    [0.0, 0.0, 0.0]
    """
    return [
        _zero_tangent(jax.typeof(a)) if t is None else t
        for t, a in zip(tangents, args, strict=True)
    ]


@explain_errors
def is_constant(tangents: Sequence[Maybe]) -> bool:
    """Return True if all of these tangents are zero.

    >>> import jax.numpy as jnp
    >>> is_constant([None, None]), is_constant([None, jnp.ones(2)])
    (True, False)
    """
    return all(t is None for t in tangents)


def jvp_of(form: Callable[..., Any]) -> Jvp:
    """Return the jvp rule of a primitive from `form`, its value in terms that JAX differentiates.

    >>> import jax.numpy as jnp
    >>> square = lambda x: x**2
    >>> squared = primitive("squared", square, lambda x: x, jvp=jvp_of(square))
    >>> jax.jvp(squared, (3.0,), (1.0,))
    (Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))
    """

    def rule(args: Sequence[Array], tangents: Sequence[Maybe], out: Any, /, **static: Any) -> Any:
        return jax.jvp(partial(form, **static), tuple(args), tuple(fill_zeros(tangents, args)))[1]

    return rule


def _zero_tangent(aval: Any) -> Array:
    return ad.instantiate_zeros(ad.Zero(aval.to_tangent_aval()))


def _batch_rule(
    batch: Callable[..., Any], spread: bool, args: Any, dims: Any, /, **static: Any
) -> tuple[Any, Any]:
    size = next(a.shape[d] for a, d in zip(args, dims) if d is not None)
    front = [
        a if d is None and not spread else batching.bdim_at_front(a, d, size)
        for a, d in zip(args, dims)
    ]
    if not spread:
        static["copied"] = tuple(d is not None for d in dims)
    out = batch(size, *front, **static)
    return out, [0] * len(out) if isinstance(out, (list, tuple)) else 0


def _jvp_rule(
    p: Primitive, jvp: Jvp, args: Any, tangents: Any, /, **static: Any
) -> tuple[Any, Any]:
    out = p.bind(*args, **static)
    known = [None if isinstance(t, ad.Zero) else t for t in tangents]
    along = jvp(args, known, out, **static)
    if not p.multiple_results:
        return out, along
    zero = lambda a: ad.Zero(jax.typeof(a).to_tangent_aval())
    return out, [zero(a) if t is None else t for a, t in zip(out, along, strict=True)]


def _transpose_rule(transpose: Transpose, ct: Any, /, *args: Any, **static: Any) -> list[Maybe]:
    asked = [ad.is_undefined_primal(a) for a in args]
    several = isinstance(ct, (list, tuple))
    if all(isinstance(c, ad.Zero) for c in (ct if several else [ct])):
        return [None] * len(args)
    full = [ad.instantiate_zeros(c) for c in ct] if several else ct
    known = [None if wanted else a for a, wanted in zip(args, asked)]
    gradients = transpose(full, known, **static)
    return [g if wanted else None for g, wanted in zip(gradients, asked, strict=True)]
