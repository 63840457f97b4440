"""The BBOB functions have COCO's values and optima."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance import check_program

from jaxgpu.evolution.problems import bbob
from jaxgpu.evolution.problems import bbob_data as data

# Values of coco-experiment 2.8.3 at two points of [-6, 6]^D, D = 2, 5, 10, instances 1 and 7, for
# each "function dimension instance".
COCO = json.loads(Path(__file__).with_name("bbob.json").read_text())
# High-frequency waves multiply the rounding of x: by up to 3^11 pi (16), 2e3 (18), s = 1e6 in cos s
# (19) and 2^32 / 2^32 summed 32 D times (23), at points far from the optimum.
ROUGH = {16, 18, 19, 23}


@pytest.mark.slow
@pytest.mark.parametrize("function", range(1, 25))
def test_values_are_those_of_coco(x64, function):
    cases = [key.split() for key in COCO if key.split()[0] == str(function)]
    assert len(cases) == 6
    for _, dimension, instance in cases:
        d, i = int(dimension), int(instance)
        x = np.random.default_rng(d).uniform(-6, 6, (2, d))
        inner = bbob(function, d, i).function
        got = jax.jit(jax.vmap(inner))(x)[:, 0] + data.optimal_value(function, i)
        want = COCO[f"{function} {dimension} {instance}"]
        scale = np.abs(want) + abs(data.optimal_value(function, i))
        error = np.abs(np.subtract(got, want)) / scale
        assert error.max() < (1e-10 if function in ROUGH else 1e-12), (d, i, error)


@pytest.mark.slow
def test_the_optimum_has_its_value_in_float32_and_nothing_is_below_it():
    """The value is 0 if the optimum is a float32, and otherwise float64's value at the float32."""
    d = 3
    for function in (1, 2, 8, 10, 15, 16, 23):
        best = data.optimum(d, data.instance_seed(function, 1)) * (0.75 if function == 8 else 1)
        problem = bbob(function, d, 1)
        rng = np.random.default_rng(function)
        x = jnp.float32(np.concatenate([best[None] + 1e-3 * rng.normal(size=(30, d)), [best]]))
        f, _ = problem.evaluate(x)
        assert (f[:, 0] > 0).all(), function
        with jax.enable_x64(True):
            exact = bbob(function, d, 1).function
            at_float = float(exact(jnp.asarray(np.float64(x[-1])))[0])
            at_best = float(exact(jnp.asarray(best))[0])
        assert at_best == 0, function
        assert float(f[-1, 0]) == pytest.approx(at_float, rel=1e-3), function


@pytest.mark.slow
def test_every_function_keeps_float32_and_its_gradient():
    for function in (3, 6, 9, 14, 17, 21, 24):
        problem = bbob(function, 4, 2)
        x = jnp.float32(np.random.default_rng(0).uniform(-4, 4, 4))
        assert problem.function(x).dtype == jnp.float32
        assert np.isfinite(jax.grad(lambda x, f=problem.function: f(x)[0])(x)).all()
        check_program(problem.function, x)


def test_numbers_out_of_range_are_named():
    with pytest.raises(ValueError, match="function=25, dimension=3, instance=1"):
        bbob(25, 3)
