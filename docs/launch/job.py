"""Bodies under their own gravity on all devices of a job: `python job.py [bodies] [steps]`.

Every process runs this file. It goes on from the last checkpoint wherever it is started again.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np

import jaxgpu
from jaxgpu.devices import mesh
from jaxgpu.devices.processes import is_leader
from jaxgpu.runs.loop import run

DT, SOFTENING = 1e-3, 0.05


def acceleration(x):
    """Of all bodies [N, 3] of equal mass: those of this device by all others, a sum at a time."""
    d = x[None] - x[:, None]
    r2 = jnp.sum(d**2, axis=-1) + SOFTENING**2
    return jnp.sum(d / (r2 * jnp.sqrt(r2))[..., None], axis=1) / x.shape[0]


def step(state):
    """Leapfrog: kick, drift, kick."""
    v = state["v"] + 0.5 * DT * acceleration(state["x"])
    x = state["x"] + DT * v
    return {"x": x, "v": v + 0.5 * DT * acceleration(x)}


def measure(state):
    """Numbers of a few bytes, which every process gets."""
    return {"kinetic energy": 0.5 * jnp.mean(jnp.sum(state["v"] ** 2, axis=-1))}


def main(bodies: int = 4096, steps: int = 1000) -> None:
    """Join the processes, place the bodies, run."""
    jaxgpu.distributed()  # the launcher says where the others are
    devices = mesh.make_mesh()  # of all processes
    x = np.random.default_rng(0).normal(size=(bodies, 3)).astype(np.float32)  # the same everywhere
    state = mesh.shard({"x": x, "v": np.zeros_like(x)}, devices, axis=0)
    result = run(step, state, steps, measure=measure, out="out", resume=True)
    if is_leader():
        print(f"{jax.process_count()} processes, {devices.size} devices")
        print(result)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
