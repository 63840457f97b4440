"""100 generations equal 60, a killed process, and 40, bitwise.

Resuming is done by `run`, the same for all algorithms: this module resumes a population, a schedule
of runs and an archive. For every algorithm it checks that the state survives a checkpoint.
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
from conformance import assert_same
from steppers import ALGORITHMS, REF_DIRS

from jaxgpu.evolution import multi, protocol, single
from jaxgpu.evolution.problem import Problem, box
from jaxgpu.evolution.problems import dtlz
from jaxgpu.runs import checkpoint

SPECS = ALGORITHMS | {
    "MOEAD, weighted sum": multi.MOEAD(REF_DIRS, 5, "weighted_sum"),
    "HypE, one by one": multi.HypE(pop_size=16, rays=64, rounds=2, depth=1),
    "Restarts, large runs": single.Restarts(8, doublings=2, small_runs=False),
}
KEY = 3
SPHERE = Problem(box(-5.0, 5.0, 4), lambda x: jnp.sum(x * x, keepdims=True))
FRONT = dtlz.dtlz2(3, 5)


# Functions are defined once, so that every run reuses the programs of the first one.
def objectives(state):
    return state.population.f


def best(state):
    return state.best.f


def problem_of(spec):
    return SPHERE if type(spec).__module__.startswith(single.__name__) else FRONT


def run_spec(name, generations, **where):
    """Run the algorithm on the problem with one or with three objectives."""
    spec, problem = SPECS[name], problem_of(SPECS[name])
    measure, key = best if problem is SPHERE else objectives, jax.random.key(KEY)
    return protocol.run(spec, problem, key, generations, measure=measure, **where)


@pytest.fixture(scope="module")
def killed_run(tmp_path_factory):
    """Return the folder of a process that ran 60 generations with each algorithm and was killed."""
    out = tmp_path_factory.mktemp("killed")
    root = Path(__file__).parents[2]
    path = {"PYTHONPATH": os.pathsep.join([str(root), str(root / "tests/helpers")])}
    command = [sys.executable, __file__, out]
    done = subprocess.run(command, env=os.environ | path, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    return out


RESUMED = "RVEA", "Restarts", "LSHADE"


@pytest.mark.slow
@pytest.mark.parametrize("name", RESUMED)
def test_100_generations_are_60_a_killed_process_and_40(name, killed_run):
    again = run_spec(name, 100, out=killed_run / name, resume=True)
    assert again.timing.steps == 40
    whole = run_spec(name, 100)
    np.testing.assert_array_equal(again.history, whole.history)
    assert_same(again.state, whole.state)


@pytest.mark.parametrize("name", SPECS)
def test_the_state_of_an_algorithm_survives_its_checkpoint_to_the_bit(name, tmp_path):
    spec, problem = SPECS[name], problem_of(SPECS[name])
    rng = np.random.default_rng(0)

    def random_leaf(leaf):
        """Return random bits: any number, infinity or nan."""
        bits = rng.integers(0, 256, (*leaf.shape, leaf.dtype.itemsize), np.uint8)
        bits = bits % 2 if leaf.dtype == bool else bits
        return bits.view(leaf.dtype)[..., 0]

    like = jax.eval_shape(lambda key: spec.init(key, problem), jax.random.key(0))
    state = jax.tree.map(random_leaf, like)
    checkpoint.save(tmp_path / "state.npz", state)
    got, _ = checkpoint.load(tmp_path / "state.npz", state)
    assert jax.tree.structure(got) == jax.tree.structure(like)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(state)):
        a = np.asarray(a)
        assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())


def test_every_algorithm_is_here():
    public = [getattr(module, name) for module in (multi, single) for name in module.__all__]
    here = {type(spec) for spec in SPECS.values()}
    kinds = [kind for kind in public if isinstance(kind, type)]
    assert here == {kind for kind in kinds if issubclass(kind, protocol.Algorithm)}


if __name__ == "__main__":
    for algorithm in RESUMED:
        run_spec(algorithm, 60, out=Path(sys.argv[1]) / algorithm)
    os.kill(os.getpid(), signal.SIGKILL)
