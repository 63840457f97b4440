"""Noise-free costs of the hot kernels as reported by XLA: operations, bytes and temporaries.

`python tests/helpers/kernel_cost.py` writes `kernel_cost.json`, with a section per jax version (the
counts are the compiler's); tests/core/test_cost.py fails if a kernel grows by more than 2 %. A
loop's body counts once.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

FILE = Path(__file__).with_name("kernel_cost.json")

type Kernel = Callable[[], tuple[Callable[..., Any], tuple[Any, ...]]]


def cost(kernel: Kernel) -> dict[str, float]:
    """Return operations, transcendentals, bytes moved and bytes of temporaries of one call."""
    f, args = kernel()
    compiled = jax.jit(f).lower(*args).compile()
    counts, memory = compiled.cost_analysis() or {}, compiled.memory_analysis()
    return {
        "flops": counts.get("flops", 0.0),
        "transcendentals": counts.get("transcendentals", 0.0),
        "bytes": counts.get("bytes accessed", 0.0),
        "temporaries": float(memory.temp_size_in_bytes if memory else 0),
    }


def _ranks(m: int) -> Kernel:
    def kernel():
        from jaxgpu.evolution.pareto import ranks

        return ranks, (jax.ShapeDtypeStruct((2048, m), "float32"),)

    return kernel


KERNELS: dict[str, Kernel] = {
    "evolution.pareto.ranks, 2048 x 2": _ranks(2),
    "evolution.pareto.ranks, 2048 x 3": _ranks(3),
    "evolution.pareto.ranks, 2048 x 8": _ranks(8),
}


def main() -> None:
    """Measure all kernels with this jax version and store the counts."""
    held = json.loads(FILE.read_text()) if FILE.exists() else {}
    held[jax.__version__] = {name: cost(kernel) for name, kernel in KERNELS.items()}
    FILE.write_text(json.dumps(held, indent=1, sort_keys=True) + "\n")
    for name, counts in held[jax.__version__].items():
        print(f"{name:40s}", *(f"{what} {value:.4g}" for what, value in counts.items()), sep="  ")


if __name__ == "__main__":
    main()
