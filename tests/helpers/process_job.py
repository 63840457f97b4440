"""A run in one of several processes, as a program: `process_job.py FOLDER STEPS DEVICES [EVENT]`.

The processes find each other through environment variables. Each writes the result of the run to
FOLDER/NUMBER.json. At turn 12 an EVENT, if given, happens to the last process.
"""

import json
import os
import signal
import sys
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec

import jaxgpu
from jaxgpu.devices import mesh
from jaxgpu.devices.processes import is_leader, watchdog
from jaxgpu.runs import Branch
from jaxgpu.runs.loop import Run, run
from jaxgpu.runs.saving import identity

ROWS, CHUNK, TURN = 96, 5, 12


def start():
    """Return a state with sharded arrays, including random keys, and replicated ones."""
    devices = mesh.make_mesh()
    x = np.linspace(-1, 1, 3 * ROWS, dtype=np.float32).reshape(ROWS, 3)
    keys = jax.random.split(jax.random.key(3), ROWS)
    return {
        "x": mesh.shard(x, devices),
        "columns": mesh.shard(x.T.copy(), devices, axis=1),
        "keys": mesh.shard(keys, devices),
        "turn": mesh.replicate(np.int32(0), devices),
        "scale": np.float32(0.5),  # on one device
    }


def step(rate, state, key):
    """Advance the state elementwise: the bits are independent of devices and processes."""
    noise = jax.vmap(lambda key: jax.random.normal(key, (3,)))(state["keys"])
    x = (
        jnp.sin(rate * state["x"])
        + state["scale"] * state["x"]
        + noise * jax.random.uniform(key, ())
    )
    return {
        "x": x,
        "columns": jnp.cos(state["columns"]) + 0.1 * x.T,
        "keys": jax.vmap(jax.random.fold_in, (0, None))(state["keys"], state["turn"]),
        "turn": state["turn"] + 1,
        "scale": state["scale"],
    }


def measure(state):
    """Return sums over devices, which round differently by grouping, and an exact number."""
    devices = mesh.make_mesh()
    (axis,) = devices.axis_names
    total = lambda x: jax.lax.psum(jnp.sum(x), axis)
    shared = jax.shard_map(
        total, mesh=devices, in_specs=PartitionSpec(axis), out_specs=PartitionSpec()
    )
    mean = (state["x"].mean() + shared(state["x"]) / state["x"].size) / 2
    return {"mean": mean, "turn": state["turn"]}


def run_job(out: Path, steps: int, check=None, keep=None, resume=True) -> Run:
    """Run from the last checkpoint, if there is one."""
    key = jax.random.key(7)
    return run(
        partial(step, 0.9),
        start(),
        steps,
        key=key,
        measure=measure,
        check=check,
        chunk=CHUNK,
        out=out,
        resume=resume,
        keep=keep,
    )


def signal_check(event: str):
    """Return a check that sends a signal to the last process at a turn."""

    def check(state, history):
        if jax.process_index() == jax.process_count() - 1 and len(history["turn"]) > TURN:
            if event == "SIGTERM":
                os.kill(os.getpid(), signal.SIGTERM)
            elif event == "SIGKILL":
                os.kill(os.getpid(), signal.SIGKILL)

    return check


def main(folder: Path, steps: int, devices: int, event: str = "") -> None:
    """Join the other processes, run, and write the result."""
    jax.config.update("jax_num_cpu_devices", devices)
    # the settings of the tests, on which a traced program depends
    jax.config.update("jax_numpy_rank_promotion", "raise")
    jax.config.update("jax_numpy_dtype_promotion", "strict")
    watchdog.SILENCE, watchdog.GRACE, watchdog.EXIT_DELAY = 4.0, 2.0, 3.0
    jaxgpu.distributed()
    number = jax.process_index()
    steps += number if event == "other steps" else 0
    if event == "branch":
        run_job(folder / "out", steps, keep=4)
        branch = Branch(folder / "out", step=8)
        result = run_job(folder / "branch", steps, resume=branch)
    else:
        result = run_job(folder / "out", steps, signal_check(event))
    said = {
        "state": identity.arrays_digest(result.state),
        "mean": result.history["mean"].tolist(),
        "turn": result.history["turn"].tolist(),
        "steps": result.timing.steps,
        "leads": is_leader(),
    }
    (folder / f"{number}.json").write_text(json.dumps(said))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
