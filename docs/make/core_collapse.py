"""A star cluster through core collapse and to twice that time, without softening.

    python docs/make/core_collapse.py --out FOLDER     minutes; a killed run resumes

The energy must be conserved through the binaries that end the collapse: see docs/nbody.md.
"""

import time
from pathlib import Path

import jax
import jax.numpy as jnp
import tyro

from jaxgpu.physics.nbody import Hermite, evolve, kroupa, plummer, virialize
from jaxgpu.physics.nbody.models import sample_masses


def main(
    out: Path,
    stars: int = 256,
    seed: int = 0,
    eta: float = 0.005,
    stages: tuple[float, ...] = (40.0, 80.0, 84.0, 90.0, 100.0, 140.0, 168.0),
    heaviest: float | None = None,
) -> None:
    """Evolve a Plummer model to each time of `stages`, and print a line at each.

    Stars are equal, or of Kroupa's function from 0.08 to `heaviest` solar masses.
    """
    with jax.enable_x64(True):
        key = jax.random.key(seed)
        (x, v), m = plummer(key, stars), jnp.full(stars, 1 / stars)
        if heaviest:
            law = kroupa(0.08, heaviest)
            solar = sample_masses(jax.random.fold_in(key, 1), law, stars)
            m = solar / solar.sum()
            x, v = virialize(x, v, m)
    before, since = 0, 0.0
    print(" time   dE/E now   largest  pairs  blocks a unit  CPU s a unit")
    for t in stages:
        start = time.process_time()
        done = evolve(x, v, m, t, spec=Hermite(eta=eta), out=out, resume=True)
        cpu = (time.process_time() - start) / (t - since)
        energy = done.history["kinetic"] + done.history["potential"]
        error = energy / energy[0] - 1
        blocks = (int(done.state.bodies.blocks) - before) / (t - since)
        pairs = int(done.history["pairs"][-1])
        print(
            f"{t:5.0f} {error[-1]:10.1e} {abs(error).max():9.1e} {pairs:6}"
            f" {blocks:14.0f} {cpu:13.2f}",
            flush=True,
        )
        before, since = int(done.state.bodies.blocks), t


if __name__ == "__main__":
    tyro.cli(main)
