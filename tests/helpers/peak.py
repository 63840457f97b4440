"""How much memory the main program of a study takes, beside its forecast.

    python tests/helpers/peak.py solar-system --tracers 1000000

runs the study's first large program for a step, and prints the forecast, what the process took, in
MB, and their ratio. Linux alone: the peak is set back before the launch.
"""

import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import jax
import numpy as np
import psutil

from jaxgpu import cli, memory, program

LEAST = 100_000_000  # bytes of a program that is looked at
advance = program.Loop.advance


def peak() -> int:
    """Most bytes of this process so far, or since it was set back."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(re.findall(r"VmHWM:\s+(\d+)", status)[0])


def measured(loop: Any, state: Any, done: int, count: int) -> Any:
    """A step, and what it took."""
    chunk = loop.program.chunks[loop.capacity]
    if memory.forecast(chunk) < LEAST:
        return advance(loop, state, done, count)
    held = memory.size((state, loop.operands))
    Path("/proc/self/clear_refs").write_text("5")
    before = psutil.Process().memory_info().rss
    jax.block_until_ready(chunk(state, loop.operands, np.int32(done), np.int32(1)))
    took, forecast = peak() - before + held, memory.forecast(chunk)
    print(f"{' '.join(sys.argv[1:])}: forecast {forecast / 1e6:.1f}, took {took / 1e6:.1f}", end="")
    print(f" MB, ratio {forecast / took:.3f}")
    sys.exit()


def main() -> int:
    program.Loop.advance = measured
    with tempfile.TemporaryDirectory() as out:
        return cli.main(["run", *sys.argv[1:], "--out", f"{out}/run"])


if __name__ == "__main__":
    sys.exit(main())
