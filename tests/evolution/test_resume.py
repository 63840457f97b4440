"""100 generations are 60, a process that is killed, and 40, to the last bit.

What resumes is `run`, the same for all algorithms: a population, a schedule of runs and an archive
are resumed here; of every algorithm the state survives its checkpoint.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance import same

from jaxgpu.evolution import multi, protocol, single
from jaxgpu.evolution.multi import das_dennis
from jaxgpu.evolution.problem import Problem, box
from jaxgpu.evolution.problems import dtlz
from jaxgpu.runs import checkpoint

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
SPHERE = Problem(box(-5.0, 5.0, 4), lambda x: jnp.sum(x * x, keepdims=True))
FRONT = dtlz.dtlz2(3, 5)


# made once, so that every run uses the programs of the first one
def objectives(state):
    return state.population.f


def best(state):
    return state.best.f


def evolved(name, generations, **where):
    """The algorithm on a sphere, of three objectives or of one."""
    many = name in MANY
    spec, problem = (MANY | ONE)[name], FRONT if many else SPHERE
    measure, key = objectives if many else best, jax.random.key(KEY)
    return protocol.run(spec, problem, key, generations, measure=measure, **where)


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """The folder of a process that made 60 generations with each, and was killed."""
    out = tmp_path_factory.mktemp("killed")
    root = Path(__file__).parents[2]
    path = {"PYTHONPATH": os.pathsep.join([str(root), str(root / "tests/helpers")])}
    command = [sys.executable, __file__, out]
    done = subprocess.run(command, env=os.environ | path, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    return out


RESUMED = "rvea", "bipop", "lshade"


@pytest.mark.slow
@pytest.mark.parametrize("name", RESUMED)
def test_100_generations_are_60_a_killed_process_and_40(name, killed):
    again = evolved(name, 100, out=killed / name, resume=True)
    assert again.timing.steps == 40
    whole = evolved(name, 100)
    np.testing.assert_array_equal(again.history, whole.history)
    same(again.state, whole.state)


@pytest.mark.parametrize("name", MANY | ONE)
def test_the_state_of_an_algorithm_survives_its_checkpoint_to_the_bit(name, tmp_path):
    spec, problem = (MANY | ONE)[name], FRONT if name in MANY else SPHERE
    rng = np.random.default_rng(0)

    def filled(leaf):
        """Bits of chance: any number, infinity or nan."""
        bits = rng.integers(0, 256, (*leaf.shape, leaf.dtype.itemsize), np.uint8)
        bits = bits % 2 if leaf.dtype == bool else bits
        return bits.view(leaf.dtype)[..., 0]

    like = jax.eval_shape(lambda key: spec.init(key, problem), jax.random.key(0))
    state = jax.tree.map(filled, like)
    checkpoint.save(tmp_path / "state.npz", state)
    got, _ = checkpoint.load(tmp_path / "state.npz", state)
    assert jax.tree.structure(got) == jax.tree.structure(like)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(state)):
        a = np.asarray(a)
        assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())


def test_every_algorithm_is_here():
    public = [getattr(module, name) for module in (multi, single) for name in module.__all__]
    here = {type(spec) for spec in (MANY | ONE).values()}
    kinds = [kind for kind in public if isinstance(kind, type)]
    assert here == {kind for kind in kinds if issubclass(kind, protocol.Algorithm)}


if __name__ == "__main__":
    for algorithm in RESUMED:
        evolved(algorithm, 60, out=Path(sys.argv[1]) / algorithm)
    os.kill(os.getpid(), signal.SIGKILL)
