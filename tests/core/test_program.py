"""Functions of programs: what is an operand, and what is part of the program."""

import functools

import jax.numpy as jnp
import numpy as np

from jaxgpu.inputs.fields import number, pytree, size
from jaxgpu.runs import program
from jaxgpu.runs.loop import run
from jaxgpu.runs.placement import device_copy
from jaxgpu.runs.program import Call, Loop, mark_slow


@pytree
class Spec:
    rate: object = number(default=0.5)
    count: int = size(default=3)

    def step(self, x, more=0.0):
        return x * self.rate + self.count + more


def test_numbers_are_operands_and_sizes_are_not():
    call = Call(functools.partial(Spec(0.25).step, more=2.0))
    assert call.operands == [0.25, 2.0] and call.function is Spec.step
    assert call.bind([0.5, 1.0])(jnp.float32(4)) == 6
    assert call.key() == Call(functools.partial(Spec(0.75).step, more=1.0)).key()
    assert call.key() != Call(functools.partial(Spec(0.25, 4).step, more=2.0)).key()


def test_whole_numbers_words_and_functions_of_a_partial_are_static():
    def power(n, how, scale, x):
        return scale * how(x) ** n

    call = Call(functools.partial(power, 2, jnp.abs, np.float32(3)))
    assert call.operands == [3] and call.bind(call.operands)(jnp.float32(-2)) == 12
    assert call.key() != Call(functools.partial(power, 3, jnp.abs, np.float32(3))).key()
    assert call.key() != Call(functools.partial(power, 2, jnp.sign, np.float32(3))).key()


def test_an_own_copy_is_strongly_typed_whatever_it_is_made_of():
    for given, kind in ((2.0, "float32"), (3, "int32"), (np.arange(2.0), "float32")):
        made = device_copy(given)
        assert made.dtype == kind and not made.weak_type
        np.testing.assert_array_equal(made, given)


def test_what_a_function_of_c_carries_is_named_by_its_place():
    assert Call(functools.partial(max, 2.0)).named_arguments() == {"[0]": 2.0}
    assert Call(Spec(0.25).step).named_arguments().keys() == {"self"}


def test_of_the_programs_of_a_function_those_used_last_are_kept(monkeypatch):
    monkeypatch.setattr(program, "_CACHE_SIZE", 2)

    def program_of(count):
        return Loop(Spec(0.5, count).step, jnp.sum, None, jnp.float32(1), None, 4).program

    first, second = program_of(1), program_of(2)
    assert (
        program_of(1) is first and program_of(3) is not first
    )  # which leaves no room for the second
    assert program_of(1) is first and program_of(2) is not second


def test_the_measure_of_a_long_step_is_one_program_and_gives_the_same_rows():
    def double(x):
        return 2 * x

    @mark_slow
    def slowly(x):
        return 2 * x

    traced = []

    def measure(x):
        traced.append(x)
        return {"x": x, "pair": jnp.stack([x, -x])}

    one = jnp.float32(1)
    loop = Loop(slowly, measure, None, one, None, 8)
    loop.compile()
    rows, steps, ended = loop.advance(0, 3)
    assert (float(loop.state), steps, ended) == (8, 3, False) and len(traced) == 1
    np.testing.assert_array_equal(rows["pair"], [[2, -2], [4, -4], [8, -8]])
    for until in (None, lambda x: x >= 4, lambda x: x > 0):
        first, second = (run(f, one, 5, measure=measure, until=until) for f in (double, slowly))
        assert first.state == second.state
        np.testing.assert_array_equal(first.history["pair"], second.history["pair"])


def test_a_long_step_that_nobody_measures_has_no_rows():
    assert run(mark_slow(lambda x: 2 * x), jnp.float32(1), 3).history == ()
