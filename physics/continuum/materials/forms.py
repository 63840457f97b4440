"""Functions whose first and second derivatives are given: any mode, any order up to the second.

For a function y(a) with y' [x] = A(a; x) and y'' [x, z] = B(a; x, z), the value, A and B are JAX
primitives. A is linear in x and B in x and z, so with a weight w the numbers <w, A(x)> and
<w, B(x, z)> are forms, and every transpose asks for another of their slots. Custom rules
(custom_jvp, custom_vjp) cannot do this: after a transposition a rule's body is differentiated.

All arrays have one shape and dtype, and the functions act on every element alone.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
from jax import Array
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir


@dataclass(frozen=True)
class Map:
    """The static half: hashable, so that it can be a parameter of a primitive."""

    value: Callable  # (law, point) -> (result, frame); the frame is what derivatives share
    first: Callable  # (law, frame, point, direction) -> result
    second: Callable  # (law, frame, point, direction, direction) -> result
    law: Any
    point: Any  # tree of the point, and of a direction
    result: Any  # tree of the result
    frame: Any  # tree of the frame

    @property
    def known(self) -> int:
        """Arrays before the slots: the point, then the frame."""
        return self.point.num_leaves + self.frame.num_leaves


def apply(value: Callable, first: Callable, second: Callable, law: Any, point: Any) -> Any:
    """The result of `value(law, point)`, with derivatives as given by `first` and `second`."""
    result, frame = map(jax.tree.structure, jax.eval_shape(partial(value, law), point))
    leaves, tree = jax.tree.flatten(point)
    form = Map(value, first, second, law, tree, result, frame)
    out = _value.bind(*leaves, form=form)
    return jax.tree.unflatten(result, out[: result.num_leaves])


def _run_value(*args: Array, form: Map) -> list[Array]:
    return jax.tree.leaves(form.value(form.law, jax.tree.unflatten(form.point, args)))


def _run_slope(*args: Array, form: Map, back: bool) -> list[Array]:
    """A(x), or with `back` its transpose at a weight."""
    known, slot = args[: form.known], args[form.known :]
    along = lambda x: form.first(form.law, *_parted(form, known), x)
    return _either_way(along, form, known, slot, back)


def _run_bend(*args: Array, form: Map, back: bool) -> list[Array]:
    """B(x, z), or with `back` its transpose in x; z comes first, being always there."""
    n = form.known + form.point.num_leaves
    known, z, slot = args[: form.known], args[form.known : n], args[n:]
    z = jax.tree.unflatten(form.point, z)
    along = lambda x: form.second(form.law, *_parted(form, known), x, z)
    return _either_way(along, form, known, slot, back)


def _parted(form: Map, known) -> tuple[Any, Any]:
    """Frame and point."""
    n = form.point.num_leaves
    return jax.tree.unflatten(form.frame, known[n:]), jax.tree.unflatten(form.point, known[:n])


def _either_way(along: Callable, form: Map, known, slot, back: bool) -> list[Array]:
    if not back:
        return jax.tree.leaves(along(jax.tree.unflatten(form.point, slot)))
    like = jax.tree.unflatten(form.point, known[: form.point.num_leaves])
    weight = jax.tree.unflatten(form.result, slot)
    return jax.tree.leaves(jax.linear_transpose(along, like)(weight)[0])


def _primitive(name: str, run: Callable, count: Callable[..., int]) -> Primitive:
    """A primitive that is evaluated, lowered and batched through the function `run`."""
    p = Primitive(f"continuum_{name}")
    p.multiple_results = True
    p.def_impl(jax.jit(run, static_argnames=("form", "back") if name != "value" else "form"))
    p.def_abstract_eval(lambda *avals, **static: [avals[0].update()] * count(**static))
    mlir.register_lowering(p, mlir.lower_fun(run, multiple_results=True))
    batching.primitive_batchers[p] = partial(_batch, p)
    return p


def _batch(p: Primitive, args, dims, **static):
    size = next(a.shape[d] for a, d in zip(args, dims) if d is not None)
    out = p.bind(*(batching.bdim_at_front(a, d, size) for a, d in zip(args, dims)), **static)
    return out, [0] * len(out)


def _size(form: Map, back: bool) -> int:
    return form.point.num_leaves if back else form.result.num_leaves


_value = _primitive(
    "value", _run_value, lambda form: form.result.num_leaves + form.frame.num_leaves
)
_slope = _primitive("slope", _run_slope, _size)
_bend = _primitive("bend", _run_bend, _size)


def _filled(tangents) -> list[Array]:
    return [ad.instantiate_zeros(t) for t in tangents]


def _still(tangents) -> bool:
    return all(isinstance(t, ad.Zero) for t in tangents)


def _sum(a, b) -> list[Array]:
    return [x + y for x, y in zip(a, b)]


def _value_jvp(point, tangents, *, form: Map):
    out = _value.bind(*point, form=form)
    frame = out[form.result.num_leaves :]
    along = _slope.bind(*point, *frame, *_filled(tangents), form=form, back=False)
    # the frame is for derivatives alone, which do not ask how it turns
    return out, [*along, *(ad.Zero(jax.typeof(a)) for a in frame)]


def _slope_jvp(args, tangents, *, form: Map, back: bool):
    n = form.point.num_leaves
    known, slot = args[: form.known], args[form.known :]
    moved, turned = tangents[:n], tangents[form.known :]
    out = _slope.bind(*args, form=form, back=back)
    parts = []
    if not _still(turned):
        parts.append(_slope.bind(*known, *_filled(turned), form=form, back=back))
    if not _still(moved):
        parts.append(_bend.bind(*known, *_filled(moved), *slot, form=form, back=back))
    return out, parts[0] if len(parts) == 1 else _sum(*parts)


def _bend_jvp(args, tangents, *, form: Map, back: bool):
    n = form.point.num_leaves
    if not _still(tangents[:n]):
        raise NotImplementedError(
            "spectral: a third derivative was asked for; the map has exact first and second "
            "derivatives only; use a law by invariants (NeoHookean, Corotated, Liquid)"
        )
    known, z, slot = args[: form.known], args[form.known : form.known + n], args[form.known + n :]
    dz, dslot = tangents[form.known : form.known + n], tangents[form.known + n :]
    bend = partial(_bend.bind, *known, form=form, back=back)
    return bend(*z, *slot), _sum(bend(*_filled(dz), *slot), bend(*z, *_filled(dslot)))


def _asked(args) -> list[bool]:
    return [ad.is_undefined_primal(a) for a in args]


def _slope_transpose(cts, *args, form: Map, back: bool):
    out = _slope.bind(*args[: form.known], *_filled(cts), form=form, back=not back)
    return [None] * form.known + list(out)


def _bend_transpose(cts, *args, form: Map, back: bool):
    """The form is symmetric in x and z, so that three cases are all: w, or one of the others."""
    k, n = form.known, form.point.num_leaves
    known, z, slot, cts = args[:k], args[k : k + n], args[k + n :], _filled(cts)
    if any(_asked(slot)):  # x, or the weight with `back`
        return [None] * (k + n) + list(_bend.bind(*known, *z, *cts, form=form, back=not back))
    # z is asked for: x (or what stood for it) takes its place, and the other is the weight
    x, weight = (cts, slot) if back else (slot, cts)
    return (
        [None] * k
        + list(_bend.bind(*known, *x, *weight, form=form, back=True))
        + ([None] * len(slot))
    )


ad.primitive_jvps[_value] = _value_jvp
ad.primitive_jvps[_slope] = _slope_jvp
ad.primitive_jvps[_bend] = _bend_jvp
ad.primitive_transposes[_slope] = _slope_transpose
ad.primitive_transposes[_bend] = _bend_transpose
