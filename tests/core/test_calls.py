"""Calls of public functions outside `jit`: each is one program, and its checks still run."""

import re
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance import no_compile, programs
from jax.typing import ArrayLike

from jaxgpu.evolution import Problem, Real, box, minimize, multi, problems
from jaxgpu.inputs import number, pytree
from jaxgpu.inputs.calls import CompiledFunction, defer_check
from jaxgpu.inputs.explanations import explain_errors, keeps_64_bits, on_host
from jaxgpu.numerics import VonMisesFisher


@pytree
class Spring:
    stiffness: float = number(default=2.0, above=0, unit="N/m")
    rest: Any = 0.0

    @explain_errors
    def force(self, x: ArrayLike) -> jax.Array:
        return -self.stiffness * (jnp.sin(x) * jnp.cos(x) - self.rest)

    @explain_errors
    def stiffer(self, by: ArrayLike) -> "Spring":
        return Spring(self.stiffness * jnp.asarray(by), self.rest)


def refuse_negative(x):
    if np.min(x) < 0:
        raise ValueError(f"force: x={np.min(x):g}; it must be at least 0")


def new_wrapper(function):
    """Wrap a function in a new one, of which nothing is compiled yet."""
    return explain_errors(lambda *args, **kwargs: function(*args, **kwargs))


def test_the_first_call_is_one_program_and_later_ones_compile_nothing():
    x = np.linspace(0, 1, 7, dtype=np.float32)
    with programs() as seen:
        Spring().force(x)
    assert len(seen) == 1
    Spring(2.0, 1).force(x)
    with no_compile():  # the same spec, rebuilt with other numbers
        y = Spring(3.0, 0.25).force(x)
        Spring(2.0, 2).force(x)
    np.testing.assert_allclose(y, -3 * (np.sin(x) * np.cos(x) - 0.25), rtol=1e-6)


def test_what_is_wrong_is_refused_before_anything_is_compiled():
    force = new_wrapper(lambda x: (defer_check(refuse_negative, x), jnp.tanh(x))[1])
    with no_compile(), pytest.raises(ValueError, match="x=-2; it must be at least 0"):
        force(np.array([1.0, -2.0], np.float32))


def test_what_a_program_computes_is_checked_after_it():
    def force(x):
        y = jnp.asarray(x) - 3
        defer_check(refuse_negative, y)
        return jnp.sqrt(y)

    shown = new_wrapper(force)
    assert shown(np.float32(7.0)) == 2
    with pytest.raises(ValueError, match="x=-2; it must be at least 0"):
        shown(np.float32(1.0))
    for transformed in (jax.jit(shown), jax.vmap(shown)):
        assert np.isnan(transformed(np.ones(2, np.float32))).all()  # values of a user's trace


def test_checks_see_numbers_as_they_were_given():
    seen = []
    noted = new_wrapper(lambda x, y: (defer_check(lambda *v: seen.append(v), x, y), x + y)[1])
    x = jnp.ones(2)
    noted(x, 5.0)
    assert seen[0][0] is x and type(seen[0][1]) is float
    noted(x, 6.0)
    assert [values[1] for values in seen] == [5.0, 6.0]


def test_an_array_that_was_checked_is_not_checked_again():
    seen = []
    noted = new_wrapper(lambda x: (defer_check(seen.append, x), 2 * x)[1])
    x, y = jnp.ones(2), np.ones(2, np.float32)
    for _ in range(3):
        noted(x)
    assert len(seen) == 1
    for _ in range(3):
        noted(y)  # which its owner may have written into
    assert len(seen) == 4


def test_arrays_of_numpy_come_back_as_those_of_jax_and_fields_of_a_spec_as_they_are():
    same = new_wrapper(lambda x: jnp.asarray(x))
    assert isinstance(same(np.ones(2, np.float32)), jax.Array)
    rest = np.full(3, 1 / 3)
    stiff = Spring(2.0, rest).stiffer(np.float32(2.0))
    assert stiff.rest is rest and stiff.stiffness == 4  # its 64 bits are not rounded


def test_an_array_in_a_result_is_the_callers():
    table = new_wrapper(lambda x: (np.arange(3), x + 1))
    table(jnp.ones(2))[0][:] = 7
    assert table(jnp.ones(2))[0].tolist() == [0, 1, 2]


def test_whole_numbers_are_sizes_unless_an_array_is_asked_for():
    @explain_errors
    def tile(x: jax.Array, count: int, by: ArrayLike = 1) -> jax.Array:
        return jnp.tile(x, count) * by

    x = jnp.ones(2)
    assert tile(x, 3, 2).shape == (6,)
    with no_compile():
        assert tile(x, 3, 5).tolist() == [5] * 6
    assert tile(x, 2, 2.5).tolist() == [2.5] * 4


def test_what_cannot_be_traced_runs_as_written():
    calls = []

    def biggest(x):
        calls.append(type(x))
        return float(np.asarray(x).max())

    shown = new_wrapper(lambda x: biggest(x))
    assert [shown(jnp.arange(3.0)) for _ in range(3)] == [2.0] * 3
    assert len([kind for kind in calls if kind is type(jnp.ones(1))]) == 3
    assert len(calls) == 4  # it was traced once


def test_a_function_on_the_host_is_never_traced():
    kinds = []

    @explain_errors
    @on_host
    def save(x: jax.Array) -> jax.Array:
        kinds.append(type(x))
        return x

    x = jnp.ones(2)
    assert save(x) is x and kinds == [type(x)]


@pytest.mark.parametrize("lower", [0.0, np.zeros(5), jnp.zeros(5)])
@pytest.mark.parametrize(
    "mine, kind, words",
    [
        (lambda x: {}["spam"], KeyError, "'spam'"),
        (lambda x: jnp.sum(x).summ(), AttributeError, "summ"),
    ],
)
def test_an_error_of_the_users_function_reaches_the_user(lower, mine, kind, words):
    with pytest.raises(kind, match=words) as caught:
        minimize(mine, Real(lower, 1.0, (5,)), 64)
    assert "compare their" not in str(caught.value)


def test_python_numbers_have_no_dtype_of_their_own(x64):
    north = jnp.array([0.0, 0.0, 1.0], jnp.float32)
    spread, key = VonMisesFisher(north, 5.0), jax.random.key(0)
    found = [spread.entropy(), spread.log_prob(north), spread.sample(key, 2)]
    assert {a.dtype for a in found} == {np.dtype(np.float32)}
    like = VonMisesFisher(north, jnp.float32(5.0))
    np.testing.assert_array_equal(found[2], like.sample(key, 2))


def test_64_bits_are_kept_by_those_that_say_so():
    x = np.full(2, 1 / 3)
    plain = explain_errors(lambda x: jnp.asarray(x) * 2)
    kept = explain_errors(keeps_64_bits(lambda x: jnp.asarray(x) * 2))
    assert plain(x).dtype == np.float32
    assert kept(x).dtype == np.float64 and np.asarray(kept(x)).tolist() == [2 / 3] * 2
    assert kept(x.astype(np.float32)).dtype == np.float32


def test_with_jit_disabled_it_runs_as_written():
    force = new_wrapper(lambda x: jnp.tanh(x) + (1 if x > 0 else 0))
    with jax.disable_jit():
        assert force(jnp.float32(0.0)) == 0


def test_a_function_remembers_so_many_programs():
    program = CompiledFunction(lambda x: x + 1)
    for n in range(1, 70):
        program((np.zeros(n, np.float32),), {})
    assert len(program._known) <= 64


ROOT = Path(__file__).parents[2]
MAY_ASK_FOR_TRACERS = {
    "jaxgpu/devices/allocation.py": "sizes of numbers",
    "jaxgpu/devices/mesh.py": "what is placed on devices",
    "jaxgpu/evolution/variables.py": "how wide ranges are drawn",
    "jaxgpu/runs/saving/identity.py": "what can be told of a function",
    "numerics/arguments.py": "lists that hold arrays",
    "physics/continuum/checks.py": "what is prepared on the host",
    "rl/evaluation.py": "what works on the host alone",
}


def test_checks_of_values_are_put_off_and_never_dropped():
    """A check that skips tracers would never run where the call is a single program."""
    tops = [ROOT / top for top in ("jaxgpu", "physics", "numerics", "rl")]
    for file in sorted(file for top in tops for file in top.rglob("*.py")):
        name = str(file.relative_to(ROOT))
        if not name.startswith("jaxgpu/inputs/") and name not in MAY_ASK_FOR_TRACERS:
            asks = re.search(r"\bTracer\b", file.read_text())
            assert not asks, f"{name}: give the check to jaxgpu.inputs.calls.defer_check"


RATE = {"rate": 2.0}


class Gain:
    rate = 2.0

    def __call__(self, x):
        return self.rate * x


def test_what_a_users_function_reads_counts_as_it_is_at_the_call():
    x = np.ones((3, 2), np.float32)

    def evaluate_rate():
        return Problem(box(0.0, 1.0, 2), lambda x: jnp.sum(x) * RATE["rate"]).evaluate(x)[0][0, 0]

    assert evaluate_rate() == 4
    with no_compile():  # the same lambda, defined again
        assert evaluate_rate() == 4
    try:
        RATE["rate"] = 3.0
        assert evaluate_rate() == 6
    finally:
        RATE["rate"] = 2.0


def test_a_constant_of_a_users_class_counts_as_it_is_at_the_call():
    gain, x = Gain(), np.ones((3, 2), np.float32)
    problem = Problem(box(0.0, 1.0, 2), lambda x: gain(jnp.sum(x)))
    found = []
    for rate in (2.0, 3.0, 2.0):
        Gain.rate = rate
        found.append(float(problem.evaluate(x)[0][0, 0]))
    assert found == [4, 6, 4]


def test_problems_that_are_made_anew_share_their_programs():
    key = jax.random.key(0)
    multi.NSGA2(8).init(key, problems.zdt1(5))
    with no_compile():
        multi.NSGA2(8).init(key, problems.zdt1(5))
