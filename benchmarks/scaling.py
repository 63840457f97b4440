"""Strong and weak scaling of `run` over virtual devices of a CPU and over processes of a machine.

Three programs represent three kinds of communication: rows that are independent, bodies that all
attract each other (every device gathers all positions), and a network whose gradients are summed.
Each is advanced by one process with 1 to 8 virtual devices, and by 2 and 4 processes with 8 devices
in total. The workers are started once and wait while others work. Virtual devices share the cores
of the machine: more devices than cores add no speed, so the benchmark measures the cost of
sharding. The bytes that a step sends between devices are read from the compiled program.
"""

import atexit
import functools
import multiprocessing
import os
import re
import socket
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.harness import Contender, Entry
from jaxgpu import distributed
from jaxgpu.devices import mesh
from jaxgpu.runs.loop import run

TEAMS = ((1, 1), (1, 2), (1, 4), (1, 8), (2, 4), (4, 2))  # processes, devices of each
STEPS = {"rows": 100, "bodies": 10, "network": 50}
_COLLECTIVE = re.compile(
    r"= (.*?) (?:all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)(?:-start)?\("
)
_ARRAY = re.compile(r"[a-z]+(\d+)\[([\d,]*)\]")


def entries() -> list[Entry]:
    """Return entries of a fixed total work on all teams, and of a fixed work per device."""
    return [
        Entry(
            name=f"scaling, {program}, {'weak' if weak else 'strong'}",
            work=f"{STEPS[program]} steps of {work}, {'for each device' if weak else 'in all'}; "
            f"{os.cpu_count()} cores",
            contenders=[
                Contender(_team_name(*team), partial(_run_team, team, program, weak))
                for team in TEAMS
            ],
            amount=STEPS[program],
            unit="steps",
            rounds=3,
        )
        for program, work in WORK.items()
        for weak in (False, True)
    ]


def _team_name(processes: int, devices: int) -> str:
    pluralize = lambda count, word, ending: f"{count} {word}{ending if count > 1 else ''}"
    where = f" in {processes} processes" if processes > 1 else ""
    return pluralize(processes * devices, "device", "s") + where


# --- the programs ------------------------------------------------------------------------------


def rows_of(share: float) -> tuple[Callable, Any]:
    """Return independent rows, of which only the mean is reduced."""
    x = np.linspace(0.1, 0.9, int(16384 * share) * 64, dtype=np.float32).reshape(-1, 64)
    return _logistic, {"spread": x}


def _logistic(state: dict) -> dict:
    turn = lambda _, x: 3.7 * x * (1 - x)
    return {"spread": jax.lax.fori_loop(0, 32, turn, state["spread"])}


def bodies_of(share: float) -> tuple[Callable, Any]:
    """Return bodies under their own gravity; twice as many pairs have 1.4 times as many bodies."""
    count = 64 * round(2048 * share**0.5 / 64)
    x = np.random.default_rng(0).normal(size=(count, 3)).astype(np.float32)
    return _kick_and_drift, {"spread": x, "v": np.zeros_like(x)}


def _kick_and_drift(state: dict) -> dict:
    x = state["spread"]
    d = x[None] - x[:, None]
    r2 = jnp.sum(d**2, axis=-1) + np.float32(0.01)
    pull = jnp.sum(d / (r2 * jnp.sqrt(r2))[..., None], axis=1) / np.float32(x.shape[0])
    v = state["v"] + np.float32(1e-3) * pull
    return {"spread": x + np.float32(1e-3) * v, "v": v}


def network_of(share: float) -> tuple[Callable, Any]:
    """Return a network of 2 x 64 units that descends the gradient of the mean loss of all rows."""
    draw = np.random.default_rng(0)
    sizes = (8, 64), (64, 64), (64, 1)
    weights = [
        draw.normal(size=s).astype(np.float32) / np.sqrt(s[0]).astype(np.float32) for s in sizes
    ]
    return _descend, {"spread": draw.normal(size=(int(8192 * share), 8)).astype(np.float32)} | {
        "whole": weights
    }


def _descend(state: dict) -> dict:
    def loss(weights: list) -> jax.Array:
        y = state["spread"]
        for w in weights:
            y = jnp.tanh(jnp.dot(y, w, precision="highest"))
        return jnp.mean((y[:, 0] - jnp.sin(state["spread"][:, 0])) ** 2)

    slopes = jax.grad(loss)(state["whole"])
    fall = lambda w, slope: w - np.float32(0.1) * slope
    return {"spread": state["spread"], "whole": jax.tree.map(fall, state["whole"], slopes)}


PROGRAMS = {"rows": rows_of, "bodies": bodies_of, "network": network_of}
WORK = {
    "rows": "32 logistic maps of 16,384 x 64 numbers, whose mean is measured",
    "bodies": "gravity between 2,048 bodies (weak: 2,048^2 pairs)",
    "network": "gradient descent of a network of 2 x 64 units on 8,192 rows",
}


def _mean(state: dict) -> jax.Array:
    return jnp.mean(state["spread"])


# --- a process of a team ------------------------------------------------------------------------


def worker(number: int, team: tuple[int, int], port: int, pipe: Any) -> None:
    """Join the team, and run each program that the pipe requests, until it sends None."""
    processes, devices = team
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", devices)
    if processes > 1:
        distributed(f"127.0.0.1:{port}", processes, number)
    made = functools.cache(_build_program)
    while (asked := pipe.recv()) is not None:
        (step, state, traffic), steps = made(*asked), STEPS[asked[0]]
        cpu = time.process_time()
        mean = run(step, state, steps, measure=_mean, chunk=steps).history[-1]
        pipe.send({"cpu": time.process_time() - cpu, "mean": float(mean), **traffic})


def _build_program(program: str, weak: bool) -> tuple[Callable, Any, dict[str, float]]:
    """Return the step, the placed state, and the bytes sent by a step with its measurement."""
    devices = mesh.make_mesh()
    step, state = PROGRAMS[program](devices.size if weak else 1)
    place = lambda name, part: (mesh.replicate if name == "whole" else _split)(part, devices)
    state = {name: place(name, part) for name, part in state.items()}
    whole = jax.jit(lambda state: (new := step(state), _mean(new)))
    found = _COLLECTIVE.findall(whole.lower(state).compile().as_text() or "")
    sent = [_array_bytes(result) for result in found]
    return step, state, {"collectives a step": len(sent), "bytes a step": sum(sent)}


def _split(part: Any, devices: Any) -> Any:
    return mesh.shard(part, devices, axis=0)


def _array_bytes(result: str) -> int:
    """Return the bytes of the arrays that a collective returns."""
    sizes = [(int(bits), lengths) for bits, lengths in _ARRAY.findall(result)]
    return sum(
        bits // 8 * int(np.prod([int(n) for n in lengths.split(",") if n]))
        for bits, lengths in sizes
    )


# --- the teams, seen from outside ---------------------------------------------------------------


@functools.cache
def _start_team(team: tuple[int, int]) -> list[Any]:
    """Start the processes of a team and return their pipes; they end with this process."""
    context, port = multiprocessing.get_context("spawn"), _free_port()
    pipes = []
    for number in range(team[0]):
        ours, theirs = context.Pipe()
        context.Process(target=worker, args=(number, team, port, theirs)).start()
        pipes.append(ours)
    atexit.register(lambda: [pipe.send(None) for pipe in pipes])
    return pipes


def _run_team(team: tuple[int, int], program: str, weak: bool) -> dict[str, float]:
    pipes = _start_team(team)
    for pipe in pipes:
        pipe.send((program, weak))
    found = [pipe.recv() for pipe in pipes]
    return {**found[0], "cpu": sum(part["cpu"] for part in found)}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
