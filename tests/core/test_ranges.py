"""Ranges of numbers: checked where their values are known, reported in one sentence."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu import rl
from jaxgpu.inputs import ranges, type_hints
from jaxgpu.inputs.fields import number, pytree, size


@pytree
class Spring:
    stiffness: object = number(1.0, above=0, unit="N/m")
    turns: object = size(2, least=1)
    rest: object = number(None, least=0, none=True)
    inner: object = ()


WRONG = [
    ({"stiffness": np.nan}, "Spring.stiffness=nan; it must be a finite number above 0, in N/m"),
    ({"stiffness": jnp.array([1.0, -jnp.inf])}, r"Spring.stiffness=-inf at \[1\]; it must be"),
    ({"stiffness": 0}, "Spring.stiffness=0; it must be"),
    ({"stiffness": jnp.bfloat16(-1)}, "Spring.stiffness=-1; it must be"),
    ({"stiffness": "stiff"}, "Spring.stiffness='stiff'; it must be"),
    ({"stiffness": None}, "Spring.stiffness=None; it must be"),
    ({"stiffness": True}, "Spring.stiffness=True of type bool; it must be"),
    ({"stiffness": {1.0}}, "Spring.stiffness=a value of type set; it must be"),
    ({"stiffness": 1j}, "Spring.stiffness=1j of type complex128; it must be"),
    ({"turns": 2.0}, "turns=2 of type float64; it must be a whole number of at least 1"),
    ({"turns": [2]}, r"turns=an array of shape \[1\]; it must be a whole number"),
    ({"rest": -1.0}, "rest=-1; it must be a finite number of at least 0, or None"),
    ({"stiffness": 1e300}, "stiffness=1e.300, which is inf in float32; it must be"),
    ({"stiffness": 1e-300}, "stiffness=1e-300, which is 0 in float32; it must be"),
    ({"stiffness": 2**63}, "stiffness=9.22337e.18, a whole number beyond its bits; it must be"),
    ({"turns": 2**63}, "turns=9.22337e.18, a whole number beyond 64 bits; it must be"),
    ({"inner": (Spring(), Spring(-1.0))}, "Spring.stiffness=-1; it must be"),
    ({"inner": {"left": [Spring(-1.0)]}}, "Spring.stiffness=-1; it must be"),
]


@pytest.mark.parametrize("fields, sentence", WRONG)
def test_the_first_number_outside_its_range_is_named(fields, sentence):
    with pytest.raises((ValueError, TypeError), match=f"^pull: .*{sentence}"):
        ranges.check("pull", Spring(**fields))


def test_what_is_right_or_cannot_be_seen_passes():
    good = [1, 2.5, np.float32(3), jnp.ones(3), [1.0, 2.0], jax.ShapeDtypeStruct((), float)]
    for value in good:
        ranges.check("pull", Spring(value))
    jax.jit(lambda spring: ranges.check("pull", spring))(Spring(-1.0))  # traced: no values yet
    part = lambda a: ranges.check("pull", Spring((a, 1.0)))  # one component of a vector is traced
    jax.jit(part)(-1.0)
    for value in (np.inf, -np.inf, 3.0):
        assert ranges.Range(infinite=True).violation(value) is None
    assert ranges.Range(above=0, infinite=True).violation(-np.inf) == "-inf"
    assert ranges.Range(below=0, infinite=True).violation(np.inf) == "inf"
    assert ranges.Range(below=0).violation(-1.0) is None
    assert ranges.Range(below=0).violation(-1e-300) == "-1e-300, which is 0 in float32"
    jax.tree.map(lambda leaf: -leaf, Spring())  # a gradient may have any sign


def test_numbers_that_float64_holds_pass_where_it_is_used(x64):
    for value in (1e300, 1e-300, 1 << 40):
        ranges.check("pull", Spring(value))


def test_infinity_passes_where_it_is_meant():
    assert ranges.numbers("f: light", np.inf, above=0, infinite=True) == np.inf
    for bad in (-np.inf, np.nan, 0.0):
        with pytest.raises(ValueError, match="it must be a number or infinity above 0"):
            ranges.numbers("f: light", bad, above=0, infinite=True)


def test_arguments_are_held_against_shapes_and_ranges():
    assert ranges.numbers("f: x", [[1, 2, 3]], ("N", 3)).tolist() == [[1, 2, 3]]
    wrong = {
        r"f: x has shape \[2, 3\]; it must be \[N, N\]": (np.ones((2, 3)), ("N", "N")),
        r"f: x=nan at \[1\]; it must be": ([0.0, np.nan], ("N",)),
        "f: x=None; it must be": (None, None),
        "f: x=a value of type list; it must be": ([[1], [1, 2]], None),
    }
    for sentence, (value, shape) in wrong.items():
        with pytest.raises((ValueError, TypeError), match=sentence):
            ranges.numbers("f: x", value, shape)
    shape = jax.eval_shape(lambda x: ranges.numbers("f: x", x, (2,), above=0), jnp.ones(2)).shape
    assert shape == (2,)


def test_the_table_gives_what_the_documents_show():
    assert dict(ranges.field_ranges(Spring))["turns"] == "a whole number of at least 1"


def test_numbers_that_are_being_traced_are_passed_over_in_tuples_too():
    @pytree
    class Pull:
        along: tuple[float, ...] = number(default=(), unit="m")
        times: tuple[int, ...] = number(default=(1,), least=1, whole=True)

    def total(x):
        ranges.check("pull", Pull((x, 0.0)))
        return x

    assert jax.jit(total)(1.0) == 1
    with pytest.raises(TypeError, match="pull: Pull.times=2; it must be a tuple"):
        ranges.check("pull", Pull(times=2))


def test_what_lacks_the_methods_of_a_protocol_is_told_those_and_no_others():
    said = "an Environment, with reset and step"
    assert type_hints.requirement(3, rl.Environment) == said
    assert type_hints.requirement(rl.make("pendulum"), rl.Environment) is None


def test_a_whole_number_that_no_array_of_jax_holds_is_told_the_most():
    for value in (2**31, -(2**31) - 1, 10**30):
        assert type_hints.requirement(value, int) == "a whole number of at most 2147483647"
        assert type_hints.requirement(value, float) == "a number of at most 2147483647"
        assert (
            type_hints.requirement(value, int | None)
            == "a whole number of at most 2147483647 or None"
        )
    assert [type_hints.requirement(value, int) for value in (2**31 - 1, True)] == [None, None]
    assert [type_hints.requirement("7", hint) for hint in (int, float)] == [
        "a whole number",
        "a number",
    ]
