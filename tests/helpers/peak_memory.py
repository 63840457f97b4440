"""Peak memory of a program and its forecast, as a line of JSON.

    python tests/helpers/peak_memory.py run solar-system --tracers 1000000
    python tests/helpers/peak_memory.py gradient cluster

The first runs a step of the study's first large program, the second the gradient of a rollout with
respect to its first state. A run ends after `LONG` seconds, when a program that repeats itself has
long reached its peak. Linux only: the peak counter is reset before the run.
"""

import ctypes
import json
import os
import re
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import psutil
from jax import Array

from jaxgpu import cli, rl
from jaxgpu.devices import memory
from jaxgpu.physics import continuum
from jaxgpu.physics.continuum import Body, Grid, NeoHookean, Scene, fill_box
from jaxgpu.physics.nbody import WisdomHolman
from jaxgpu.rl import plan
from jaxgpu.runs import program
from jaxgpu.runs.loop import rollout

LEAST = 10_000_000  # minimum bytes of a program that is measured
LONG = 300
advance = program.Loop.advance


def peak() -> int:
    """Return the peak memory of this process, bytes, since the counter was reset."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(re.findall(r"VmHWM:\s+(\d+)", status)[0])


class Heap(ctypes.Structure):
    """Statistics of the C library's heap."""

    NAMES = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = [(name, ctypes.c_size_t) for name in NAMES.split()]


def fill_heap() -> None:
    """Allocate all free heap in pieces of 64 kB or more, without touching them.

    Arrays of the run then get separate mappings, which are returned to the system when they are
    freed. In holes of the heap, of which compilation leaves many, they would stay and count.
    """
    libc = ctypes.CDLL("libc.so.6")
    libc.mallinfo2.restype, libc.malloc.restype = Heap, ctypes.c_void_p
    libc.malloc.argtypes, libc.free.argtypes = [ctypes.c_size_t], [ctypes.c_void_p]
    libc.malloc_trim(0)
    for size in [2**i for i in range(30, 15, -1)]:
        while True:
            mapped, piece = libc.mallinfo2().hblks, libc.malloc(size)
            if piece is None or libc.mallinfo2().hblks > mapped:
                libc.free(piece)
                break


def run_and_report(compiled: Any, held: int, *arguments: Any) -> None:
    """Run a program, print its forecast and peak, and exit; `held` are its arguments' bytes."""
    fill_heap()
    Path("/proc/self/clear_refs").write_text("5")
    forecast, before = memory.estimate_peak(compiled), psutil.Process().memory_info().rss

    def report_and_exit() -> None:
        print(json.dumps({"forecast": forecast, "took": peak() - before + held}), flush=True)
        os._exit(0)

    late = threading.Timer(LONG, report_and_exit)
    late.start()
    jax.block_until_ready(compiled(*arguments))
    report_and_exit()


def measure_step(loop: Any, state: Any, done: int, count: int) -> Any:
    """Replace a loop's steps: measure one step if its program is large."""
    chunk = loop.program.chunks[loop.capacity]
    if memory.estimate_peak(chunk) < LEAST:
        return advance(loop, state, done, count)
    held = memory.size((state, loop.operands))
    run_and_report(chunk, held, state, loop.operands, np.int32(done), np.int32(1))


def run_study(*options: str) -> None:
    """Run a study up to its first large program."""
    loop: Any = program.Loop
    loop.advance = measure_step
    with tempfile.TemporaryDirectory() as out:
        cli.main(["run", *options, "--out", f"{out}/run"])


def planet_loss() -> tuple[Callable[[Any], Array], Any]:
    """Return 100 systems of ten bodies, 500 Wisdom-Holman steps, all stored for reverse mode."""
    gm, radius = jnp.append(1.0, jnp.full(9, 1e-6)), jnp.append(0.0, 1.0 + jnp.arange(9.0))
    speed = jnp.append(0.0, (1.0 + jnp.arange(9.0)) ** -0.5)
    turn = jax.random.uniform(jax.random.key(0), (100, 10, 1), maxval=2 * jnp.pi)
    around = jnp.concatenate([jnp.cos(turn), jnp.sin(turn), 0 * turn], -1)
    ahead = jnp.concatenate([-jnp.sin(turn), jnp.cos(turn), 0 * turn], -1)

    def end(x: Array, v: Array) -> Array:
        spec = WisdomHolman(gm, 0.2)
        return jnp.sum(rollout(spec.step, spec.init(x, v), 500)[0].x ** 2)

    def loss(states: Any) -> Array:
        return jnp.sum(jax.vmap(end)(*states))

    return loss, (radius[None, :, None] * around, speed[None, :, None] * ahead)


def matter_loss() -> tuple[Callable[[Any], Array], Any]:
    """Return a block of jelly of 64,000 particles that falls for 64 frames of four steps."""
    x = fill_box((0.3, 0.3, 0.3), (0.7, 0.7, 0.7), 0.01)
    scene = Scene((Body(x, NeoHookean(1e4), 1e-6),), Grid(0.02, (50, 50, 50)), dt=2e-4)

    def loss(speed: Any) -> Array:
        start = replace(scene, bodies=(replace(scene.bodies[0], v=speed),)).init()
        return jnp.sum(continuum.rollout(scene, start, 64, substeps=4)[0].bodies[0].x[:, 2])

    return loss, jnp.zeros_like(x)


def task_loss(name: str, copies: int, steps: int) -> tuple[Callable[[Any], Array], Any]:
    """Return the cost of copies of a task as a function of all their actions."""
    env, key = rl.make(name), jax.random.key(0)
    states = jax.jit(jax.vmap(lambda key: env.reset(key)[0]))(jax.random.split(key, copies))

    def loss(actions: Any) -> Array:
        return jnp.sum(jax.vmap(lambda state, a: plan.cost(env, state, a))(states, actions))

    return loss, jnp.zeros((copies, steps, *env.action_space.shape))


ROLLOUTS: dict[str, Callable[[], tuple[Callable[[Any], Array], Any]]] = {
    "planets": planet_loss,
    "matter": matter_loss,
    "ant": partial(task_loss, "ant", 256, 64),
    "arm": partial(task_loss, "surgical/psm-reach", 16_384, 100),
    "pendulum": partial(task_loss, "pendulum", 65_536, 100),
}


def run_rollout(name: str) -> None:
    """Measure the gradient of a rollout with respect to its initial state."""
    loss, start = ROLLOUTS[name]()
    compiled = jax.jit(jax.grad(loss)).lower(start).compile()
    run_and_report(compiled, memory.size(start), start)


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    {"run": run_study, "gradient": run_rollout}[what](*rest)
    sys.exit(f"{' '.join(sys.argv[1:])}: no program of {LEAST / 1e6:g} MB")
