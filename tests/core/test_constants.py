"""Constants of float64 programs: without true float64, no device may turn one into 0 or inf.

A TPU's float64 is two float32, with float32's exponents. `conformance.check_program` tests every
public program as it is traced. Here, steps are tested as they are lowered for a TPU, which also
shows the kernels and derivatives inside primitives.
"""

import re

import jax
import numpy as np
import pytest
import steppers
from api_cases import as_users
from conformance import vanishing

# Together they run every primitive with kernels: sums over pairs, transfers, decompositions.
NAMES = ("continuum.Scene", "nbody.Planetary", "nbody.Hermite6")
STEPPERS = [
    pytest.param(m, id=m.name, marks=pytest.mark.slow) for m in steppers.STEPPERS if m.name in NAMES
]


def test_the_machines_are_there():
    assert len(STEPPERS) == len(NAMES)


_CONSTANT = re.compile(r"stablehlo\.constant dense<([^>]*)> : tensor<([^>]*)f64>")


def constants(text):
    """Return every float64 constant [N] in the text of a lowered program."""
    found = [np.zeros(0)]
    for value, _ in _CONSTANT.findall(text):
        if value.startswith('"0x'):
            found.append(np.frombuffer(bytes.fromhex(value[3:-1]), np.float64))
        else:
            words = re.findall(r"0x[0-9A-F]{16}|[-+.0-9eE]+", value)
            bits = [np.uint64(int(w, 16)).view(np.float64) if "x" in w else float(w) for w in words]
            found.append(np.array(bits))
    return np.concatenate(found)


@pytest.mark.parametrize("machine", STEPPERS)
def test_no_constant_vanishes_on_a_tpu(machine):
    with jax.enable_x64(True), as_users():
        init, step = machine.make(np.float64)
        traced = jax.jit(step).trace(jax.eval_shape(init, steppers.KEY), steppers.KEY)
        numbers = constants(traced.lower(lowering_platforms=("tpu",)).as_text())
    assert numbers.size > 2
    assert not vanishing(numbers).size, np.unique(vanishing(numbers))


def test_a_constant_that_vanishes_is_found(x64):
    add_guard = lambda x: x + 1e-150 + jax.numpy.array([1e200, 1.0, np.pi])
    text = jax.jit(add_guard).lower(np.ones(3)).as_text()
    assert sorted(vanishing(constants(text))) == [1e-150, 1e200]
