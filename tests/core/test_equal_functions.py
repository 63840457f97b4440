"""Reuse of equal functions: the same code and the same captured values."""

import time
from functools import partial
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance import no_compile

from jaxgpu import rl
from jaxgpu.evolution import Real, minimize
from jaxgpu.inputs.fields import pytree, static
from jaxgpu.runs import equal_functions
from jaxgpu.runs.equal_functions import find_equal
from jaxgpu.runs.fresh_calls import call_fresh
from jaxgpu.runs.loop import rollout, run

TABLE = np.arange(3.0)
LIST = [2.0]
LARGE = np.zeros(1 << 18)


def make_scaler(rate):
    return lambda x: rate * x


def test_the_same_code_with_the_same_values_is_one_function():
    made = [lambda x: TABLE * x for _ in range(2)]
    for one, other in (
        made,
        (make_scaler(2.0), make_scaler(2.0)),
        (make_scaler(TABLE), make_scaler(TABLE)),
    ):
        assert find_equal(one) is one and find_equal(other) is one
    apart = [
        make_scaler(2.0),
        make_scaler(3.0),
        make_scaler(np.float32(2)),
        make_scaler(TABLE.copy()),
        lambda x: x,
    ]
    assert [find_equal(f) for f in apart[1:]] == apart[1:]


def test_names_docstrings_and_lines_are_no_part_of_it():
    def double(x):
        "Return twice x."
        return 2 * x

    doubling = lambda x: 2 * x
    assert find_equal(doubling) is doubling and find_equal(double) is doubling
    others = [lambda x: 2.0 * x, lambda x: True * x, lambda x: x * 2, lambda y: 2 * y]
    zeros = [lambda x: 0.0 * x, lambda x: -0.0 * x]
    assert [find_equal(f) for f in others + zeros] == others + zeros


def test_what_cannot_be_described_or_is_no_function_stays_as_it_is():
    unknown = iter(())
    first, second = make_scaler(unknown), make_scaler(unknown)
    assert find_equal(first) is first and find_equal(second) is second
    assert find_equal(jnp.sin) is jnp.sin and find_equal(3) == 3


def test_a_function_that_was_written_to_since_is_no_longer_the_same():
    first, second = ((lambda x: LIST[0] * x) for _ in range(2))
    assert find_equal(first) is first
    LIST[0] = 3.0
    assert find_equal(second) is second  # the first was known by another value
    LIST[0] = 2.0


def test_a_function_that_counts_in_the_one_around_it_is_itself_alone():
    def counter():
        count = 0

        def count_up(x):
            nonlocal count
            count += 1
            return x

        return count_up

    first, second = counter(), counter()
    assert find_equal(first) is first and find_equal(second) is second


def test_few_are_kept_and_none_that_holds_large_arrays(monkeypatch):
    large = [make_scaler(LARGE) for _ in range(2)]
    assert [find_equal(f) for f in large] == large
    monkeypatch.setattr(equal_functions, "_CACHE_SIZE", 1)
    first, again = (lambda x: 7 * x for _ in range(2))
    assert find_equal(first) is first and find_equal(lambda x: 3 * x) is not first
    assert find_equal(again) is again


def test_a_lambda_in_a_loop_is_compiled_once_and_gives_new_numbers():
    for numbers in ([2.0, 2.0, 2.0], [2.0, 3.0, 2.0]):
        for i, number in enumerate(numbers):
            LIST[0] = number
            done = run(lambda x: LIST[0] * x, jnp.float32(1), 3)
            assert done.state == number**3
            assert rollout(lambda x: LIST[0] * x, jnp.float32(1), 3)[0] == number**3
            assert i == 0 or number != numbers[i - 1] or done.timing.compile == 0


@pytree
class Scale:
    law: Any = static()

    def step(self, x):
        return self.law(x)


class Cell(nn.Module):
    act: Any

    def __call__(self, x):
        return self.act(x)


def apply(network, x):
    return network.apply({}, x)


def test_a_spec_or_network_made_anew_with_a_lambda_is_compiled_once():
    for make in (lambda law: Scale(law).step, lambda law: partial(apply, Cell(law))):
        for i, number in enumerate([2.0, 2.0, 3.0, 2.0]):
            LIST[0] = number
            done = run(make(lambda x: LIST[0] * x), jnp.float32(1), 3)
            assert done.state == number**3 and (i != 1 or done.timing.compile == 0)


def test_the_start_of_a_training_with_a_network_made_anew_is_compiled_once():
    env, key = rl.make("cartpole"), jax.random.key(0)
    ppo = lambda: rl.PPO(network=rl.MLP(hidden_sizes=(4,), activation=lambda x: x * TABLE[1]))
    init = jax.jit(lambda spec, key: spec.init(env, key, 10))
    call_fresh(init, ppo(), key)
    with no_compile():
        call_fresh(init, ppo(), key)


def test_functions_that_write_down_what_they_see_keep_their_own_notes():
    def note(x):
        seen = []

        def step(x):
            jax.debug.callback(lambda y: seen.append(float(y)), x)
            return 2 * x

        run(step, x, 2)
        return seen

    assert [note(jnp.float32(1)) for _ in range(2)] == [[1, 2]] * 2


@pytest.mark.slow
def test_a_second_minimize_with_a_new_lambda_compiles_nothing():
    """Take the fastest of eight counts, since other work slows some of them."""
    space = Real(-5.0, 5.0, (5,))

    def seconds(turn):
        began = time.process_time()
        minimize(lambda x: jnp.sum((x - TABLE[2]) ** 2), space, 400, seed=turn)
        return time.process_time() - began

    seconds(0)
    with no_compile():
        assert min(map(seconds, range(1, 9))) < 0.05
    for target in (0.0, 1.0):
        found = minimize(lambda x, to=target: jnp.sum((x - to) ** 2), space, 2000)
        np.testing.assert_allclose(found.x, target, atol=0.1)
