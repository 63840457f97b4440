"""Functions with given first and second derivatives: any mode, any order up to the second.

For a function y(a) with y' [x] = A(a; x) and y'' [x, z] = B(a; x, z), the value, A and B are JAX
primitives. A is linear in x and B in x and z. So with a weight w the scalars <w, A(x)> and
<w, B(x, z)> are multilinear forms, and every transpose requests another of their slots. Custom
rules (custom_jvp, custom_vjp) cannot: after a transposition a rule's body is differentiated.

All arrays have one shape and dtype, and the functions are elementwise.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
from jax import Array

from jaxgpu.devices.primitive import fill_zeros, is_constant, primitive


@dataclass(frozen=True)
class Form:
    """Static parameters of the primitives: functions and tree structures. Hashable."""

    value: Callable  # (law, point) -> (result, frame); derivatives share the frame
    first: Callable  # (law, frame, point, direction) -> result
    second: Callable  # (law, frame, point, direction, direction) -> result
    law: Any  # static part of a material, the functions' first argument
    point: Any  # tree structure of the point, and of a direction
    result: Any  # tree structure of the result
    frame: Any  # tree structure of the frame

    @property
    def num_known(self) -> int:
        """Number of arrays before the slots: the point, then the frame."""
        return self.point.num_leaves + self.frame.num_leaves


def apply(value: Callable, first: Callable, second: Callable, law: Any, point: Any) -> Any:
    """Return the result of `value(law, point)`, with derivatives given by `first` and `second`."""
    result, frame = map(jax.tree.structure, jax.eval_shape(partial(value, law), point))
    leaves, tree = jax.tree.flatten(point)
    form = Form(
        value=value, first=first, second=second, law=law, point=tree, result=result, frame=frame
    )
    out = _value(*leaves, form=form)
    return jax.tree.unflatten(result, out[: result.num_leaves])


def _run_value(*args: Array, form: Form) -> list[Array]:
    return jax.tree.leaves(form.value(form.law, jax.tree.unflatten(form.point, args)))


def _run_first(*args: Array, form: Form, back: bool) -> list[Array]:
    """Return A(x), or with `back` its transpose at a weight."""
    known, slot = args[: form.num_known], args[form.num_known :]
    apply_first = lambda x: form.first(form.law, *_split_known(form, known), x)
    return _apply_or_transpose(apply_first, form, known, slot, back)


def _run_second(*args: Array, form: Form, back: bool) -> list[Array]:
    """Return B(x, z), or with `back` its transpose in x; z comes first, as it is always present."""
    n = form.num_known + form.point.num_leaves
    known, z, slot = args[: form.num_known], args[form.num_known : n], args[n:]
    z = jax.tree.unflatten(form.point, z)
    apply_second = lambda x: form.second(form.law, *_split_known(form, known), x, z)
    return _apply_or_transpose(apply_second, form, known, slot, back)


def _split_known(form: Form, known) -> tuple[Any, Any]:
    """Return frame and point."""
    n = form.point.num_leaves
    return jax.tree.unflatten(form.frame, known[n:]), jax.tree.unflatten(form.point, known[:n])


def _apply_or_transpose(along: Callable, form: Form, known, slot, back: bool) -> list[Array]:
    if not back:
        return jax.tree.leaves(along(jax.tree.unflatten(form.point, slot)))
    like = jax.tree.unflatten(form.point, known[: form.point.num_leaves])
    weight = jax.tree.unflatten(form.result, slot)
    return jax.tree.leaves(jax.linear_transpose(along, like)(weight)[0])


def _num_outputs(form: Form, back: bool) -> int:
    return form.point.num_leaves if back else form.result.num_leaves


def _add(a, b) -> list[Array]:
    return [x + y for x, y in zip(a, b)]


def _value_jvp(point, tangents, out, *, form: Form) -> list[Array | None]:
    frame = out[form.result.num_leaves :]
    along = _first_derivative(*point, *frame, *fill_zeros(tangents, point), form=form, back=False)
    # only derivatives use the frame, and they do not need its tangent
    return [*along, *(None for _ in frame)]


def _first_jvp(args, tangents, out, *, form: Form, back: bool) -> list[Array]:
    n, k = form.point.num_leaves, form.num_known
    known, slot = args[:k], args[k:]
    parts = []
    if not is_constant(tangents[k:]):
        parts.append(
            _first_derivative(*known, *fill_zeros(tangents[k:], slot), form=form, back=back)
        )
    if not is_constant(tangents[:n]):
        moved = fill_zeros(tangents[:n], args[:n])
        parts.append(_second_derivative(*known, *moved, *slot, form=form, back=back))
    return parts[0] if len(parts) == 1 else _add(*parts)


def _second_jvp(args, tangents, out, *, form: Form, back: bool) -> list[Array]:
    n, k = form.point.num_leaves, form.num_known
    if not is_constant(tangents[:n]):
        raise NotImplementedError(
            "spectral: a third derivative was requested; the map has exact first and second "
            "derivatives only; use a law by invariants (NeoHookean, Corotated, Liquid)"
        )
    known, z, slot = args[:k], args[k : k + n], args[k + n :]
    dz, dslot = fill_zeros(tangents[k : k + n], z), fill_zeros(tangents[k + n :], slot)
    bend = partial(_second_derivative, *known, form=form, back=back)
    return _add(bend(*dz, *slot), bend(*z, *dslot))


def _first_transpose(cts, args, *, form: Form, back: bool) -> list:
    known = args[: form.num_known]
    return [None] * form.num_known + _first_derivative(*known, *cts, form=form, back=not back)


def _second_transpose(cts, args, *, form: Form, back: bool) -> list:
    """Return the transpose of B in one slot: w, x or z; B is symmetric in x and z."""
    k, n = form.num_known, form.point.num_leaves
    known, z, slot = args[:k], args[k : k + n], args[k + n :]
    if any(a is None for a in slot):  # x, or the weight with `back`
        return [None] * (k + n) + _second_derivative(*known, *z, *cts, form=form, back=not back)
    # transpose in z: x (or its replacement) takes the place of z, and the other is the weight
    x, weight = (cts, slot) if back else (slot, cts)
    along = _second_derivative(*known, *x, *weight, form=form, back=True)
    return [None] * k + along + [None] * len(slot)


_value = primitive(
    "continuum_value",
    _run_value,
    lambda *avals, form: [avals[0].update()] * (form.result.num_leaves + form.frame.num_leaves),
    several=True,
    jvp=_value_jvp,
)


def _make_primitive(name: str, value: Callable, **rules: Any) -> Any:
    """Return the primitive of a derivative of a form, or with `back` of its transpose."""
    output_avals = lambda *avals, form, back: [avals[0].update()] * _num_outputs(form, back)
    return primitive(f"continuum_{name}", value, output_avals, several=True, **rules)


_first_derivative = _make_primitive("slope", _run_first, jvp=_first_jvp, transpose=_first_transpose)
_second_derivative = _make_primitive(
    "bend", _run_second, jvp=_second_jvp, transpose=_second_transpose
)
