"""`python -m benchmarks.reach CHIP`: compile all programs for a chip and check their budgets.

`make reach` runs it for both chips. A program is not compiled again if its lowered text and the
versions of the compilers are those of the last run in which it met its budget: their digest is in
`benchmarks/reach/h100.json` or `v5e.json`. No program is lowered if no source has changed since the
digest in that file. A run in which all programs meet their budgets writes the file: commit it. With
`--write` all programs are compiled, budgets are lowered to the results, budgets of new programs are
added, and docs/reach.md is rewritten.
"""

import hashlib
import json
import os
import re
import time
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from benchmarks.reach import chips

if __name__ == "__main__":
    chips.prepare()

import jax
import numpy as np
from jax.extend import core

from benchmarks.reach import budgets, hlo
from benchmarks.reach.program import Program
from benchmarks.reach.programs import SINGLE_DEVICE
from benchmarks.reach.sharded_programs import SHARDED
from jaxgpu.runs.files import replace_file

# outside this range, a float64 made of two float32 is 0 or infinite
_LEAST, _MOST = 1.2e-38, 3.4e38


_KERNEL = re.compile(r'(kernel_hash|module) = "[^"]*"|\\22(body|debug_locations)\\22: \\22[^\\]*')
_PLACE = re.compile(r" at (0x[0-9a-f]+|[^ ]+:\d+)")  # an address, or a line of a source file
ROOT = Path(__file__).parents[2]


def kept_file(chip: str) -> Path:
    """Return the file with the digests of the programs and of all sources."""
    return Path(__file__).with_name(f"{chip}.json")


def sources(chip: str, root: Path = ROOT) -> str:
    """Return the digest of all files that a lowered program can depend on."""
    compilers = root / "benchmarks" / "reach" / f"{chip}.txt"
    tops = [root / top for top in ("jaxgpu", "physics", "numerics", "rl", "benchmarks/reach")]
    found = [path for top in tops for path in top.rglob("*") if path.is_file()]
    written = [kept_file(name).name for name in ("h100", "v5e")]
    read = [path for path in found if path.suffix != ".pyc" and path.name not in written]
    total = hashlib.sha256(os.environ.get("XLA_FLAGS", "").encode())
    for path in sorted({*read, compilers, root / "requirements.lock"}):
        total.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    return total.hexdigest()[:16]


def lower(program: Program, chip: str, kind: str) -> tuple[Any, Any]:
    """Return the traced and the lowered `program`, for described devices that cannot run it."""
    size = program.full if kind == "full" else program.small
    with jax.enable_x64(program.wide):
        f, args = program.describe(size, chips.devices(chip, program.devices))
        traced = jax.jit(f).trace(*args)
        return traced, traced.lower(lowering_platforms=(chips.PLATFORMS[chip],))


def digest(traced: Any, lowered: Any) -> str:
    """Return the digest of everything that the compiler gets, and of the compiler versions.

    A Pallas kernel is hashed as traced, because its lowered form holds paths of source files.
    """
    names = sorted(dist.name for dist in metadata.distributions())
    compilers = [n for n in names if n.startswith(("jaxlib", "jax-cuda", "libtpu"))]
    versions = [f"{name} {metadata.version(name)}" for name in compilers]
    text = [_KERNEL.sub("", lowered.as_text()), os.environ.get("XLA_FLAGS", ""), *versions]
    if _KERNEL.search(lowered.as_text()):
        text.append(_PLACE.sub("", str(traced.jaxpr)))
    return hashlib.sha256("\n".join(text).encode()).hexdigest()[:16]


def figures(program: Program, chip: str, kind: str, traced: Any, lowered: Any) -> budgets.Figures:
    """Compile a lowered program and return its figures."""
    size = program.full if kind == "full" else program.small
    with jax.enable_x64(program.wide):
        compiled = lowered.compile()
        lost = _count_vanished(traced.jaxpr) if chip != "h100" else 0
    text, memory = compiled.as_text(), compiled.memory_analysis()
    if text is None or memory is None:
        raise SystemExit(f"reach: the compiler of {chip} says nothing of {program.name}")
    found = hlo.account(text)
    given = memory.argument_size_in_bytes + memory.output_size_in_bytes
    operations = found.operations + program.operations * program.amount(size)
    roofline = chips.CHIPS[chip].roofline(found.moved, operations, program.wide)
    return budgets.Figures(
        launches=found.launches,
        loops=found.loops,
        turns=found.turns,
        temporaries=round(memory.temp_size_in_bytes / max(1, given), 3),
        wide=0 if program.wide else text.count("f64["),
        vanished=lost,
        moved=found.moved,
        roofline=round(1e6 * roofline, 3),
        collectives=found.collectives,
        crossing=found.crossing,
    )


def _count_vanished(closed: Any) -> int:
    """Count the float64 constants of a jaxpr and its inner jaxprs outside float32's range."""
    count, programs, seen = 0, [closed], set()
    while programs:
        program = programs.pop()
        count += sum(map(_is_out_of_range, getattr(program, "consts", ())))
        jaxpr = getattr(program, "jaxpr", program)
        if id(jaxpr) in seen:
            continue
        seen.add(id(jaxpr))
        for equation in jaxpr.eqns:
            count += sum(
                _is_out_of_range(x.val) for x in equation.invars if isinstance(x, core.Literal)
            )
            programs += jax.tree.leaves(equation.params, is_leaf=_is_program)
        programs = [program for program in programs if _is_program(program)]
    return count


def _is_program(value: Any) -> bool:
    return hasattr(value, "eqns") or hasattr(value, "jaxpr")


def _is_out_of_range(value: Any) -> bool:
    if getattr(value, "dtype", None) != np.float64 and not isinstance(value, float):
        return False
    size = np.abs(np.asarray(value, np.float64))
    return bool(np.any(np.isfinite(size) & (size != 0) & ((size < _LEAST) | (size > _MOST))))


def main(
    chip: tyro.conf.Positional[Annotated[Literal["h100", "v5e"], tyro.conf.arg(metavar="CHIP")]],
    write: bool = False,
    full: bool = False,
    like: str = "",
    anew: bool = False,
) -> None:
    """Compile all programs for a chip, and exit with 1 if one exceeds its budget.

    Args:
        chip: h100 or v5e.
        write: lower the budgets to the results, and rewrite docs/reach.md.
        full: compile at full size, which takes some minutes more and is not part of the gate: these
            rows are the latest results, not budgets.
        like: only programs whose name contains this.
        anew: also compile programs that have not changed since they last met their budget.
    """
    began, kept, over = time.process_time(), budgets.read(), []
    file, now = kept_file(chip), sources(chip)
    passed = json.loads(file.read_text()) if file.exists() else {}
    whole = not (full or like)
    same = whole and not (write or anew) and passed.get("sources") == now
    programs = [program for program in (*SINGLE_DEVICE, *SHARDED) if chip in program.chips]
    programs = [program for program in programs if like in program.name]
    if same:
        print(f"{chip}: all sources are as they were")
        programs = []
    for program in programs:
        if full and program.devices > 1:
            continue
        kind = "full" if full else "small" if program.devices == 1 else "spread"
        mine = kept.setdefault(budgets.section(jax.__version__, chip, kind), {})
        start = time.process_time()
        traced, lowered = lower(program, chip, kind)
        text = digest(traced, lowered)
        at = program.name if program.devices == 1 else f"{program.name}, spread"
        if not (write or full or anew) and text == passed.get(at):
            spent = time.process_time() - start
            print(f"{chip} {program.name}: as it was, {spent:.1f} CPU-s", flush=True)
            continue
        found = figures(program, chip, kind, traced, lowered)
        spent = time.process_time() - start
        print(f"{chip} {program.name}: {found}, {spent:.1f} CPU-s", flush=True)
        if write:
            before = None if full else mine.get(program.name)
            mine[program.name] = budgets.tighten(before, found)
        if not full:
            breaches = budgets.breaches(program.name, found, mine.get(program.name))
            over += breaches
            passed[at] = "" if breaches else text
    if write:
        budgets.write(kept, jax.__version__)
    elif budgets.PAGE.read_text() != budgets.page(kept, jax.__version__):
        over.append("docs/reach.md is not of these budgets; run make reach WRITE=--write")
    if whole and not over and not same:
        with replace_file(file) as lines:
            lines.write(json.dumps(passed | {"sources": now}, indent=1, sort_keys=True) + "\n")
    spent = time.process_time() - began
    print(f"{chip}: {len(programs)} programs, {spent:.0f} CPU-s")
    if over:
        raise SystemExit("\n".join(over))


if __name__ == "__main__":
    tyro.cli(main, prog="python -m benchmarks.reach")
