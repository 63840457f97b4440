"""Counts of a compiled module, from its text: launches, loops, bytes, operations, collectives.

A launch is an instruction of a computation that is run, not fused: a kernel on a GPU, an operation
of the core on a TPU. A loop whose length the compiler knows counts once per iteration. A loop of
unknown length counts once, and is reported as a loop, since on a GPU the host reads its predicate.
"""

import re
from dataclasses import dataclass
from typing import Self

from benchmarks.reach import traffic
from benchmarks.reach.traffic import Instruction

# operations that move no data and launch no kernel
_FREE = set(
    """parameter constant tuple get-tuple-element bitcast after-all opt-barrier partition-id
    replica-id domain add-dependency async-update copy-done async-done all-reduce-done
    all-gather-done collective-permute-done""".split()
)
_COLLECTIVES = (
    "all-reduce",
    "all-gather",
    "all-to-all",
    "reduce-scatter",
    "collective-permute",
    "collective-broadcast",
)
_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\) -> .*\{\s*$")
_INSTRUCTION = re.compile(r"^\s*(ROOT )?%?([\w.\-]+) = (.*)$")
_CALLED = re.compile(
    r"(body|condition|to_apply|calls|true_computation|false_computation)=%?([\w.\-]+)"
)
_TURNS = re.compile(r'known_trip_count[^0-9]*"?n"?[^0-9]*(\d+)')


@dataclass(frozen=True)
class Account:
    """Counts of one call of a computation."""

    launches: int = 0
    loops: int = 0  # loops whose length only the device knows
    turns: int = 0  # iterations of loops of known length, one after the other
    moved: int = 0  # bytes that launches read and write
    operations: int = 0  # arithmetic operations, except inside kernels that are not XLA's
    collectives: int = 0
    crossing: int = 0  # bytes that a device receives from collectives

    def __add__(self, other: Self) -> "Account":
        mine, its = (vars(account).values() for account in (self, other))
        return Account(*(a + b for a, b in zip(mine, its)))

    def repeat(self, turns: int) -> "Account":
        """Return the account of `turns` iterations; a loop inside counts as one loop."""
        times = {name: turns * value for name, value in vars(self).items()}
        return Account(**times | {"loops": self.loops, "turns": turns * (self.turns + 1)})


def account(text: str) -> Account:
    """Return the account of a module's entry computation, from the text of `compiled.as_text()`.

    >>> account('''ENTRY main (x: f32[8]) -> f32[8] {
    ...   %x = f32[8]{0} parameter(0)
    ...   ROOT %y = f32[8]{0} sine(%x)
    ... }''')
    Account(launches=1, loops=0, turns=0, moved=64, operations=8, collectives=0, crossing=0)
    """
    computations, entry = _parse_module(text)
    return _count_computation(computations, entry)


def _parse_module(text: str) -> tuple[dict[str, list[Instruction]], str]:
    computations: dict[str, list[Instruction]] = {}
    rows: list[Instruction] | None = None
    entry = ""
    for line in text.splitlines():
        if begins := _COMPUTATION.match(line):
            rows = computations.setdefault(begins[2], [])
            entry = begins[2] if begins[1] else entry
        elif line.startswith("}"):
            rows = None
        elif rows is not None and (found := _INSTRUCTION.match(line)):
            instruction = _parse_instruction(found[2], found[3], bool(found[1]))
            rows += [] if instruction is None else [instruction]
    return computations, entry


def _parse_instruction(name: str, rest: str, root: bool) -> Instruction | None:
    """Parse `type op(arguments), attributes`; a type may be a tuple of types."""
    kind = _closing_index(rest) + 1 if rest.startswith("(") else rest.find(" ")
    op = re.match(r"\s*([\w\-]+)(?=\()", rest[kind:])
    if op is None:
        return None
    after = rest[kind + op.end() :]
    end = _closing_index(after)
    arguments, attributes = after[1:end], after[end + 1 :]
    called = {key: [name] for key, name in _CALLED.findall(attributes)}
    if branches := re.search(r"branch_computations=\{([^}]*)\}", attributes):
        called["branches"] = [b.strip().lstrip("%") for b in branches[1].split(",")]
    operands = re.findall(r"%([\w.\-]+)", arguments)
    return Instruction(name, op[1], rest[:kind], operands, arguments, attributes, root, called)


def _closing_index(text: str) -> int:
    """Return the index of the parenthesis that closes the first one of `text`."""
    depth = 0
    for i, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return i
    return len(text)


def _count_computation(computations: dict[str, list[Instruction]], name: str) -> Account:
    total = Account()
    rows = {row.name: row for row in computations[name]}
    for row in computations[name]:
        if row.op == "while":
            total += _count_loop(computations, row)
        elif row.op == "conditional":
            total += _count_costliest_branch(computations, row)
        elif row.op in ("call", "async-start"):
            inner = row.called.get("to_apply", row.called.get("calls", []))
            total += sum((_count_computation(computations, c) for c in inner), Account())
        elif row.op not in _FREE:
            total += _count_launch(computations, row, rows)
    return total


def _count_launch(
    computations: dict[str, list[Instruction]], row: Instruction, rows: dict[str, Instruction]
) -> Account:
    crosses = row.op.removesuffix("-start") in _COLLECTIVES
    return Account(
        launches=1,
        moved=traffic.moved_bytes(computations, row, rows),
        operations=traffic.operations(computations, row, rows),
        collectives=int(crosses),
        crossing=traffic.received_bytes(row, rows) if crosses else 0,
    )


def _count_loop(computations: dict[str, list[Instruction]], row: Instruction) -> Account:
    (condition,), (body,) = row.called["condition"], row.called["body"]
    inside = _count_computation(computations, body) + _count_computation(computations, condition)
    stated = _TURNS.search(row.attributes)
    turns = int(stated[1]) if stated else _trip_count(computations[condition], computations[body])
    return inside + Account(loops=1) if turns is None else inside.repeat(turns)


def _count_costliest_branch(
    computations: dict[str, list[Instruction]], row: Instruction
) -> Account:
    keys = ("branches", "true_computation", "false_computation")
    branches = [name for key in keys for name in row.called.get(key, [])]
    return max(
        (_count_computation(computations, b) for b in branches), key=lambda found: found.launches
    )


def _trip_count(condition: list[Instruction], body: list[Instruction]) -> int | None:
    """Return the iterations of a loop from 0 to a constant by 1; TPU modules do not state them."""
    test = next(row for row in condition if row.root)
    by_name = {row.name: row for row in condition}
    if test.op != "compare" or "direction=LT" not in test.attributes:
        return None
    counter, end = (by_name.get(name) for name in test.operands)
    if counter is None or end is None or (counter.op, end.op) != ("get-tuple-element", "constant"):
        return None
    at, rows = _tuple_index(counter), {row.name: row for row in body}
    new = next(row for row in body if row.root).operands
    step = _resolve_operand(rows, new[at]) if at < len(new) else None
    if step is None or step.op != "add" or not end.arguments.isdigit():
        return None
    old, one = (_resolve_operand(rows, name) for name in step.operands)
    counts = old is not None and old.op == "get-tuple-element" and _tuple_index(old) == at
    counts = counts and one is not None and (one.op, one.arguments) == ("constant", "1")
    return int(end.arguments) if counts else None


def _tuple_index(row: Instruction) -> int:
    found = re.search(r"\bindex=(\d+)", row.attributes)
    return int(found[1]) if found else -1


def _resolve_operand(rows: dict[str, Instruction], name: str) -> Instruction | None:
    """Return the instruction that defines an operand, behind copies and bitcasts."""
    row = rows.get(name)
    while row is not None and row.op in ("copy", "bitcast") and row.operands:
        row = rows.get(row.operands[0])
    return row
