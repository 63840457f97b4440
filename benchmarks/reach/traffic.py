"""Bytes and operations of one launch of a compiled module, from its operand and result types.

The bytes are those of operands and results, each once: no cache is assumed to hold data between two
launches, and a fusion keeps its intermediate values in registers. If a launch takes slices or rows
of an array, only these count; if it updates an array in place, only the updated part counts.
"""

import re
from dataclasses import dataclass, field
from math import isqrt, prod

type Rows = dict[str, Instruction]
type Computations = dict[str, list[Instruction]]

_TYPE = re.compile(r"\b(pred|bf16|[suf]\d+\w*|c64|c128)\[([\d,]*)\]")
# the batch axes of a dot, or of a library call for it
_BATCH = re.compile(r'lhs_batch_dim(?:ension)?s"?[=:]\s*[{\[]([^}\]]*)')
_TAKEN = ("dynamic-slice", "slice", "gather")
_PUT = {"dynamic-update-slice": 1, "scatter": 2}  # index of the operand that is written
# operations without arithmetic
_STILL = set(
    """parameter constant tuple get-tuple-element bitcast broadcast iota reshape transpose copy
    slice dynamic-slice dynamic-update-slice gather concatenate pad reverse convert bitcast-convert
    fusion call while conditional custom-call""".split()
)


@dataclass(frozen=True)
class Instruction:
    """One line of a computation."""

    name: str
    op: str
    type: str
    operands: list[str]
    arguments: str  # text between the parentheses
    attributes: str
    root: bool
    called: dict[str, list[str]] = field(default_factory=dict)


def size(kind: str) -> int:
    """Return the bytes of a type, or of all types in a tuple.

    >>> size("(f32[8,2]{1,0}, pred[])")
    65
    """
    return sum(
        _element_bytes(number) * _shape_elements(shape) for number, shape in _TYPE.findall(kind)
    )


def elements(kind: str) -> int:
    """Return the number of elements of a type, or of all types in a tuple.

    >>> elements("(f32[8,2]{1,0}, pred[])")
    17
    """
    return sum(_shape_elements(shape) for _, shape in _TYPE.findall(kind))


def _element_bytes(number: str) -> int:
    digits = re.search(r"\d+", number)
    return max(1, int(digits[0]) // 8) if digits else 1


def _shape_elements(shape: str) -> int:
    return prod(int(n) for n in shape.split(",") if n)


def moved_bytes(computations: Computations, row: Instruction, rows: Rows) -> int:
    """Return the bytes that a launch reads and writes."""
    if row.op != "fusion":
        return _unfused_bytes(row, rows)
    inside = computations[row.called["calls"][0]]
    given = {int(one.arguments): one for one in inside if one.op == "parameter"}
    read = sum(
        _bytes_read(given[i], inside) if i in given else size(rows[name].type)
        for i, name in enumerate(row.operands)
        if name in rows
    )
    return read + _bytes_written(
        {one.name: one for one in inside}, next(o for o in inside if o.root)
    )


def _unfused_bytes(row: Instruction, rows: Rows) -> int:
    if row.op in _TAKEN:
        return 2 * size(row.type)
    if row.op in _PUT:
        return 2 * size(rows[row.operands[_PUT[row.op]]].type)
    return size(row.type) + sum(size(rows[name].type) for name in row.operands if name in rows)


def _bytes_read(parameter: Instruction, inside: list[Instruction]) -> int:
    """Return the bytes that a fusion reads of one of its arguments."""
    users = [row for row in inside if parameter.name in row.operands]
    first = all(row.operands[0] == parameter.name for row in users)
    if users and first and all(row.op in _TAKEN for row in users):
        return sum(size(row.type) for row in users)
    return 0 if first and users and all(row.op in _PUT for row in users) else size(parameter.type)


def _bytes_written(inside: Rows, root: Instruction) -> int:
    """Return the bytes that a fusion writes; in-place updates also count as read."""
    if root.op == "tuple":
        return sum(_bytes_written(inside, inside[name]) for name in root.operands)
    if root.op == "bitcast":
        return _bytes_written(inside, inside[root.operands[0]])
    put = _PUT.get(root.op)
    return size(root.type) if put is None else 2 * size(inside[root.operands[put]].type)


def operations(computations: Computations, row: Instruction, rows: Rows) -> int:
    """Count the arithmetic operations of a launch; a matrix product has two per multiplication."""
    if row.op == "fusion":
        inside = computations[row.called["calls"][0]]
        within = {one.name: one for one in inside}
        return sum(operations(computations, one, within) for one in inside)
    if row.op in ("dot", "convolution") or "gemm" in row.attributes:
        first, second = (rows[name].type for name in row.operands[:2])
        out = max(1, _max_elements(row.type))
        alike = _batch_size(first, row.attributes)
        return 2 * out * isqrt(elements(first) * elements(second) // (out * alike))
    if row.op in ("reduce", "reduce-window", "sort"):
        return max((elements(rows[n].type) for n in row.operands if n in rows), default=0)
    return 0 if row.op in _STILL else elements(row.type)


def _batch_size(kind: str, attributes: str) -> int:
    """Return the batch size of a dot whose first operand has the type `kind`.

    >>> _batch_size("f32[7,5,3]{2,1,0}", ", lhs_batch_dims={0}, lhs_contracting_dims={2}")
    7
    """
    shapes, axes = _TYPE.findall(kind), _BATCH.search(attributes)
    if not shapes or axes is None:
        return 1
    lengths = shapes[0][1].split(",")
    return prod(int(lengths[int(axis)]) for axis in re.findall(r"\d+", axes[1]))


def _max_elements(kind: str) -> int:
    return max((_shape_elements(shape) for _, shape in _TYPE.findall(kind)), default=1)


def received_bytes(row: Instruction, rows: Rows) -> int:
    """Return the bytes that a device receives; the type of a `-start` also holds its operand."""
    if not row.op.endswith("-start") or row.op == "all-reduce-start":
        return size(row.type)
    return size(row.type) - sum(size(rows[name].type) for name in row.operands if name in rows)
