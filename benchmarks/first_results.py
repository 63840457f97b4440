"""CPU seconds until the first result in a fresh process, in which nothing has been compiled.

The imports of JAX and of the package are included, because a user waits for them too.
"""

import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.harness import Contender, Entry

ROOT = Path(__file__).parents[1]
PROGRAMS = {
    "imports": "import jax, jaxgpu; jax.devices()",
    "minimize of a parabola": """
import jax.numpy as jnp
from jaxgpu.evolution import Real, minimize
minimize(lambda x: jnp.sum(x * x), Real(-5.0, 5.0, (5,)), 400)
""",
    "nbody.evolve of 500 stars": """
import jax
import numpy as np
from jaxgpu.physics.nbody import evolve, plummer
evolve(*plummer(jax.random.key(0), 500), np.full(500, 1 / 500), 0.25)
""",
    "hopper's reset and step": """
import jax
from jaxgpu import rl
env, key = rl.make("hopper"), jax.random.key(0)
jax.block_until_ready(env.step(env.reset(key)[0], env.action_space.sample(key), key))
""",
}


def entries() -> list[Entry]:
    """Return entries of the imports, of first calls of three domains, and of an examples page."""
    page = (ROOT / "docs/examples/arm.md").read_text()
    pages = {"the arm page": "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))}
    return [_entry(name, program) for name, program in (PROGRAMS | pages).items()]


def _entry(name: str, program: str) -> Entry:
    def run() -> dict[str, float]:
        before, command = _children_cpu_seconds(), [sys.executable, "-c", program]
        with tempfile.TemporaryDirectory() as here:  # the page saves an image
            subprocess.run(
                command, cwd=here, env=_clean_environment(), check=True, capture_output=True
            )
        return {"CPU s of the process": _children_cpu_seconds() - before}

    return Entry(
        name=f"first results: {name}",
        work="a fresh process, imports counted in, with nothing compiled before",
        contenders=[Contender("jaxgpu", run)],
        rounds=3,
    )


def _children_cpu_seconds() -> float:
    """Return the CPU seconds of child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _clean_environment() -> dict[str, str]:
    """Return the environment without a compilation cache, and with no window for plots."""
    kept = {k: v for k, v in os.environ.items() if k != "JAX_COMPILATION_CACHE_DIR"}
    return kept | {"MPLBACKEND": "agg"}
