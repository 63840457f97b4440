"""The programs of `benchmarks.reach` on a present device, at full size, compared with their models.

On a CPU they run at small size, which shows only that they run. The model is the one of
docs/reach.md, applied to the program as compiled for this device: an H100, an H200 or a TPU v5e,
whose published specifications are in `benchmarks/reach/chips.py`. On an H100 the programs run for
90 seconds; compiling them first takes about 20 minutes of one CPU core.
"""

from collections.abc import Callable, Iterator
from typing import Any

import jax

from benchmarks.harness import Contender, Entry
from benchmarks.reach import chips, hlo
from benchmarks.reach.program import Program
from benchmarks.reach.programs import SINGLE_DEVICE
from benchmarks.reach.sharded_programs import SHARDED
from jaxgpu.devices import precision


def entries() -> Iterator[Entry]:
    """Yield every program for which enough devices are present."""
    accelerated = precision.platform() != "cpu"
    for program in (*SINGLE_DEVICE, *SHARDED):
        size = program.full if accelerated else program.small
        calls = program.calls if accelerated else min(program.calls, 2)
        if program.devices <= len(jax.devices()):
            yield Entry(
                name=program.name
                if accelerated
                else f"{_device_prefix(program.devices)}, {program.name}",
                work=f"{calls} calls of size {size}, one after the other",
                contenders=[Contender("jaxgpu", _ProgramCalls(program, size, calls), part=calls)],
                amount=program.amount(size),
                unit=program.unit,
            )


def _device_prefix(count: int) -> str:
    return "device" if count == 1 else f"{count} devices"


class _ProgramCalls:
    """Repeated calls of a program, which is compiled in the first run."""

    def __init__(self, program: Program, size: int, calls: int) -> None:
        self.program, self.size, self.calls = program, size, calls
        self.call: Callable[..., Any] | None = None
        self.said: dict[str, float] = {}

    def __call__(self) -> dict[str, float]:
        with jax.enable_x64(self.program.wide):
            self.call = self.call or self._compile()
            out: Any = ()
            for _ in range(self.calls):
                out = self.call(*self.args)
            jax.block_until_ready(out)
        return self.said

    def _compile(self) -> Callable[..., Any]:
        f, start = self.program.build(self.size, jax.devices()[: self.program.devices])
        self.args = start()
        program = jax.jit(f, compiler_options=precision.options_of(f))
        compiled = program.lower(*self.args).compile()
        chip = chips.find_chip(jax.devices()[0].device_kind)
        if chip is not None:
            found = hlo.account(compiled.as_text() or "")
            operations = found.operations + self.program.operations * self.program.amount(self.size)
            roofline = chip.roofline(found.moved, operations, self.program.wide)
            model = chip.model(found.launches, roofline)
            self.said = {"launches": found.launches, "model s": model, "roofline s": roofline}
            if self.program.goal is not None:
                self.said["goal s"] = self.program.amount(self.size) / self.program.goal
        return compiled
