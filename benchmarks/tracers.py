"""Tracers in a cluster: an interval of 2048 stars with 20480 tracers, and the cost per tracer.

python -m benchmarks tracers                2048 stars without and with 20 480 tracers
python -m benchmarks.tracers --stars 64     the cost of 1e3 to 1e6 tracers, with memory;
                                            on one core: idle threads count as CPU time
"""

import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import tyro

from benchmarks.harness import Contender, Entry
from jaxgpu.devices.precision import reassociation, with_float64
from jaxgpu.physics.nbody import Hermite, plummer
from jaxgpu.physics.nbody.clusters.hermite import State

SPAN, SOFTENING = 0.125, 1e-4


@with_float64
def entries() -> list[Entry]:
    """Return an entry of an eighth of a time unit of both clusters, on all cores."""
    with_, without = (_prepare(2048, count) for count in (20_480, 0))
    return [
        Entry(
            name="tracers",
            work=f"2048 stars, softening {SOFTENING}, {SPAN} N-body time units",
            contenders=[
                Contender("with 20 480 tracers", partial(_run_interval, *with_)),
                Contender("without", partial(_run_interval, *without)),
            ],
            amount=SPAN,
            unit="time units",
            rounds=3,
        )
    ]


def _prepare(stars: int, tracers: int) -> tuple:
    """Return the compiled step, its spec and a state one interval old, with adapted time steps."""
    x, v = plummer(jax.random.key(1), stars)
    followed = plummer(jax.random.key(2), tracers) if tracers else None
    spec = Hermite(softening=jnp.asarray(SOFTENING))
    state = jax.jit(Hermite.init)(spec, x, v, jnp.full(stars, 1 / stars), followed)
    step = jax.jit(Hermite.step, compiler_options=reassociation()).lower(spec, state).compile()
    return step, spec, jax.block_until_ready(step(spec, state))


@with_float64
def _run_interval(step, spec: Hermite, state: State) -> dict[str, float]:
    end = step(spec, state)
    steps = np.asarray(end.steps - state.steps)
    return {"blocks": float(end.blocks - state.blocks), "pairs": float(steps.sum() * state.m.size)}


@with_float64
def main(stars: int = 64, rounds: int = 2) -> None:
    """Print CPU seconds of an interval for 1e3 to 1e6 tracers, and the program's memory."""
    print(" tracers  CPU s  us a body  steps a body  ns a pair  MB")
    for tracers in (1000, 10_000, 100_000, 1_000_000):
        step, spec, state = _prepare(stars, tracers)
        seconds, count = [], 0.0
        for _ in range(rounds):
            begin = time.process_time()
            end = jax.block_until_ready(step(spec, state))
            seconds.append(time.process_time() - begin)
            count = float(end.steps[1] - state.steps[1])
        best = min(seconds)
        memory = step.memory_analysis()
        size = memory.argument_size_in_bytes + memory.temp_size_in_bytes
        print(
            f"{tracers:8} {best:6.3f} {1e6 * best / tracers:10.1f} {count / tracers:13.1f}"
            f" {1e9 * best / (count * stars):10.2f} {size / 1e6:6.0f}",
            flush=True,
        )


if __name__ == "__main__":
    tyro.cli(main)
