"""Every algorithm: 100 generations are 60, a process that is killed, and 40, to the last bit."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.evolution import multi, protocol, single
from jaxgpu.evolution.multi import das_dennis
from jaxgpu.evolution.problem import Problem, box
from jaxgpu.evolution.problems import dtlz

REF_DIRS = das_dennis(3, 4)
MANY = {
    "nsga2": multi.NSGA2(pop_size=16),
    "nsga3": multi.NSGA3(REF_DIRS, pop_size=16),
    "unsga3": multi.NSGA3(REF_DIRS, pop_size=16, unified=True),
    "moead": multi.MOEAD(REF_DIRS, 5),
    "moead_tchebycheff": multi.MOEAD(REF_DIRS, 5, "tchebycheff"),
    "moead_sum": multi.MOEAD(REF_DIRS, 5, "weighted_sum"),
    "rvea": multi.RVEA(REF_DIRS, generations=100),
    "hype": multi.HypE(pop_size=16, rays=1024, rounds=4),
    "sms": multi.HypE(pop_size=16, rays=1024, rounds=4, depth=1),
}
ONE = {
    "cma": single.CMAES(8),
    "cma_cholesky": single.CMAES(8, factor="cholesky"),
    "sep_cma": single.SepCMAES(8),
    "lm_ma": single.LMMAES(8),
    "xnes": single.XNES(8),
    "snes": single.SNES(8),
    "openes": single.OpenES(8),
    "pgpe": single.pgpe(8),
    "bipop": single.Restarts(8, doublings=2),
    "ipop": single.Restarts(8, doublings=2, small_runs=False),
    "lshade": single.LSHADE(800, pop_size=16),
    "pso": single.PSO(8),
    "cso": single.CSO(8),
}
KEY = 3


def evolved(name, generations, **where):
    """The algorithm on a sphere, of three objectives or of one."""
    if name in MANY:
        spec, problem, measure = MANY[name], dtlz.dtlz2(3, 5), lambda s: s.population.f
    else:
        sphere = Problem(box(-5.0, 5.0, 4), lambda x: jnp.sum(x * x, keepdims=True))
        spec, problem, measure = ONE[name], sphere, lambda s: s.best.f
    key = jax.random.key(KEY)
    return protocol.run(spec, problem, key, generations, measure=measure, **where)


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """The folder of a process that made 60 generations with each, and was killed."""
    out = tmp_path_factory.mktemp("killed")
    path = {"PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, __file__, out]
    done = subprocess.run(command, env=os.environ | path, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    return out


@pytest.mark.slow
@pytest.mark.parametrize("name", MANY | ONE)
def test_100_generations_are_60_a_killed_process_and_40(name, killed):
    again = evolved(name, 100, out=killed / name, resume=True)
    assert again.timing.steps == 40
    whole = evolved(name, 100)
    np.testing.assert_array_equal(again.history, whole.history)
    for a, b in zip(jax.tree.leaves(again.state), jax.tree.leaves(whole.state)):
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        np.testing.assert_array_equal(a, b)


def test_every_algorithm_is_here():
    public = [getattr(module, name) for module in (multi, single) for name in module.__all__]
    here = {type(spec) for spec in (MANY | ONE).values()}
    kinds = [kind for kind in public if isinstance(kind, type)]
    assert here == {kind for kind in kinds if issubclass(kind, protocol.Algorithm)}


if __name__ == "__main__":
    for algorithm in MANY | ONE:
        evolved(algorithm, 60, out=Path(sys.argv[1]) / algorithm)
    os.kill(os.getpid(), signal.SIGKILL)
