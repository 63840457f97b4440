"""The loop of runs: the same bits however it is split, stopped or resumed."""

import functools
import gc
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance import no_compile
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxgpu.devices import memory
from jaxgpu.inputs.fields import number, pytree
from jaxgpu.runs import program
from jaxgpu.runs.checkpoint import CheckpointError
from jaxgpu.runs.loop import _ChunkPace, rollout, run

KEY = jax.random.key(0)


def walk(state, key):
    """Advance a chaotic, noisy map, in which a difference of one bit grows."""
    x = 3.9 * state["x"] * (1 - state["x"])
    noise = 1e-3 * jax.random.uniform(key, x.shape, x.dtype)
    return {"x": jnp.clip(x + noise, 0.01, 0.99), "n": state["n"] + 1}


def start():
    return {"x": np.linspace(0.1, 0.9, 33), "n": np.int32(0)}


def mean(state):
    return {"mean": jnp.mean(state["x"]), "n": state["n"]}


def same_bits(a, b):
    same = jax.tree.map(lambda x, y: np.asarray(x).tobytes() == np.asarray(y).tobytes(), a, b)
    return jax.tree.all(same)


def test_is_a_plain_loop(x64):
    state, rows = start(), [mean(start())]
    for i in range(50):
        state = walk(state, jax.random.fold_in(KEY, i))
        rows.append(mean(state))
    got = run(walk, start(), 50, key=KEY, measure=mean)
    np.testing.assert_allclose(got.state["x"][:3], state["x"][:3], rtol=1e-3)  # chaotic
    np.testing.assert_array_equal(got.history["n"], [row["n"] for row in rows])
    np.testing.assert_allclose(got.history["mean"][:5], [row["mean"] for row in rows[:5]])
    assert got.timing.steps == 50 and got.timing.compile > 0


def test_keeps_float64_with_the_global_flag_off():
    got = run(walk, start(), 3, key=KEY, measure=mean)
    assert got.state["x"].dtype == np.float64 and got.history["mean"].dtype == np.float64


@pytest.mark.slow
@given(st.lists(st.integers(1, 40), min_size=1, max_size=4))
@settings(deadline=None, max_examples=8)
def test_any_split_gives_the_same_bits(cuts):
    whole = run(walk, start(), sum(cuts), key=KEY, measure=mean)
    with tempfile.TemporaryDirectory() as out:
        for i in range(len(cuts)):
            part = run(
                walk,
                start(),
                sum(cuts[: i + 1]),
                key=KEY,
                measure=mean,
                chunk=cuts[i],
                out=out,
                resume=i > 0,
            )
    assert same_bits((whole.state, whole.history), (part.state, part.history))


def test_100_steps_are_60_then_40(tmp_path):
    whole = run(walk, start(), 100, key=KEY, measure=mean)
    run(walk, start(), 60, key=KEY, measure=mean, out=tmp_path)
    rest = run(walk, start(), 100, key=KEY, measure=mean, out=tmp_path, resume=True)
    assert rest.timing.steps == 40
    assert same_bits((whole.state, whole.history), (rest.state, rest.history))


def test_keys_in_the_state_resume_too(tmp_path):
    def split(state):
        key, now = jax.random.split(state["key"])
        return {"key": key, "x": state["x"] + jax.random.normal(now)}

    first = {"key": KEY, "x": jnp.float32(0)}
    whole = run(split, first, 20)
    run(split, first, 7, out=tmp_path)
    rest = run(split, first, 20, out=tmp_path, resume=True)
    np.testing.assert_array_equal(whole.state["x"], rest.state["x"])
    np.testing.assert_array_equal(
        jax.random.key_data(whole.state["key"]), jax.random.key_data(rest.state["key"])
    )


def test_a_damaged_checkpoint_costs_one_chunk(tmp_path):
    whole = run(walk, start(), 50, key=KEY, measure=mean)
    run(walk, start(), 30, key=KEY, measure=mean, chunk=10, out=tmp_path)
    newest = max(tmp_path.iterdir())
    newest.write_bytes(newest.read_bytes()[:-100])
    with pytest.warns(UserWarning, match="loading step-000000000020"):
        rest = run(walk, start(), 50, key=KEY, measure=mean, out=tmp_path, resume=True)
    assert rest.timing.steps == 30
    assert same_bits((whole.state, whole.history), (rest.state, rest.history))


def test_compiles_one_program_for_all_chunks_and_all_runs():
    other = jax.random.key(3)  # by a program of JAX's own
    run(walk, start(), 100, key=KEY, measure=mean, chunk=7)
    with no_compile():
        run(walk, start(), 130, key=other, measure=mean, chunk=9)


@pytree
class Spring:
    """A stepper with its own numbers, which are operands of the program."""

    stiffness: object = number(default=1.0, least=0)
    friction: object = number(default=0.0, least=0)

    def step(self, state):
        x, v = state
        v = v - 0.01 * (self.stiffness * x + self.friction * v)
        return x + 0.01 * v, v

    def energy(self, state):
        return (self.stiffness * state[0] ** 2 + state[1] ** 2) / 2


def faster_than(speed, state):
    return state[1] < -speed


REST = jnp.float32(1), jnp.float32(0)


def test_numbers_of_a_spec_compile_nothing_and_count():
    def swing(spring, steps=100):
        return run(spring.step, REST, steps, measure=spring.energy)

    swing(Spring())
    with no_compile():
        stiff, damped = swing(Spring(4.0)), swing(Spring(1.0, 0.5), 200)
    assert stiff.history[0] == 2 and abs(stiff.history[-1] - 2) < 0.05
    assert damped.history.shape == (201,) and damped.history[-1] < 0.2
    x = rollout(Spring(4.0).step, REST, 100)[0][0]
    np.testing.assert_allclose(stiff.state[0], x, rtol=1e-5)


def test_a_second_call_costs_a_tenth_of_a_second_at_most():
    def run_spring(stiffness):
        spring = Spring(stiffness)
        return run(spring.step, REST, 10, measure=spring.energy)

    run_spring(1.0)
    began = time.process_time()
    run_spring(2.0)
    assert time.process_time() - began < 0.1


def test_a_function_whose_surroundings_changed_is_compiled_anew():
    """Values that a function reads from outside are part of it, as they are at the call."""
    around = {"jnp": jnp, "by": 1.0, "more": np.zeros(2, np.float32)}
    exec("def step(x):\n    return x + by + more", around)
    run_step = lambda: run(around["step"], jnp.zeros(2), 3).state.tolist()
    assert run_step() == [3, 3]
    around["by"] = 2.0
    assert run_step() == [6, 6]
    around["more"][1] = 1.0
    assert run_step() == [6, 9]
    by = [1.0]
    add_entry = lambda x: x + by[0]
    assert run(add_entry, jnp.float32(0), 2).state == 2
    by[0] = 5.0
    assert run(add_entry, jnp.float32(0), 2).state == 10


class Mutable:
    by = 1.0

    def step(self, x):
        return x + self.by


def test_an_object_that_may_change_is_never_taken_for_the_same():
    thing = Mutable()
    assert run(thing.step, jnp.float32(0), 2).state == 2
    thing.by = 3.0
    assert run(thing.step, jnp.float32(0), 2).state == 6


@pytest.fixture
def collector():
    """Yield a function that collects the garbage of the test and skips older objects."""
    gc.collect()
    gc.freeze()
    yield gc.collect
    gc.unfreeze()


def test_a_function_that_is_gone_takes_its_programs_along(collector):
    """Otherwise a notebook that makes a new function for each run fills the memory."""
    programs = len(program._programs)
    for _ in range(3):
        table = jnp.zeros((3, 10**6))  # of functions that may come again less is kept
        gone = weakref.ref(table)
        step, measure = lambda x, by: x + by[:, 0], lambda x, by: by[0, 0] + x[0]
        step, measure = (lambda x, f=f, by=table: f(x, by) for f in (step, measure))
        run(step, jnp.zeros(3), 2, measure=measure)
        del table, step, measure
        collector()
        assert gone() is None and len(program._programs) == programs


def test_a_chunk_takes_as_many_steps_as_take_a_second(monkeypatch):
    """The default is one step, and then at most eight times as many as in the last chunk."""
    seconds = iter([100.0, 100.01, 100.26, 100.26 + 4.0, 200.0, 201.0, 9e9, 9e9])
    monkeypatch.setattr(time, "perf_counter", lambda: next(seconds))
    pace = _ChunkPace(1000, fixed=False)
    # The chunks take 0.01 s for 1 step, 0.25 s for 8, 4 s for 32, 95.74 s for 8, 1 s for 1, an age
    # for 1, and no time for 1.
    assert [pace.next() for _ in range(8)] == [1, 8, 32, 8, 1, 1, 1, 8]
    monkeypatch.setattr(time, "perf_counter", lambda: 5.0)
    assert [_ChunkPace(30, fixed=True).next() for _ in range(3)] == [30, 30, 30]


def test_until_ends_a_run_on_the_device(tmp_path):
    spring, fast = Spring(), functools.partial(faster_than, 0.5)
    got = run(spring.step, REST, 1000, measure=spring.energy, until=fast, out=tmp_path)
    plain = run(spring.step, REST, got.timing.steps, measure=spring.energy)
    assert 40 < got.timing.steps < 60 and same_bits(got.state, plain.state)
    assert same_bits(got.history, plain.history) and got.state[1] < -0.5
    again = run(
        spring.step, REST, 1000, measure=spring.energy, until=fast, out=tmp_path, resume=True
    )
    assert again.timing.steps == 0 and same_bits(again.state, got.state)
    assert run(spring.step, REST, 10, until=lambda state: state[0] > 0).timing.steps == 0
    with pytest.raises(TypeError, match="until cannot be traced by JAX .* compare with jax.numpy"):
        run(spring.step, REST, 10, until=lambda state: bool(state[0] > 0))
    with pytest.raises(TypeError, match=r"until returns float32\[\]; it must be one bool"):
        run(spring.step, REST, 10, until=lambda state: state[0])


def test_a_rollout_is_a_run_and_can_be_differentiated():
    first = {"x": start()["x"].astype(np.float32), "n": np.int32(0)}
    got = run(walk, first, 20, key=KEY, measure=mean)
    state, history = jax.jit(lambda s: rollout(walk, s, 20, key=KEY, measure=mean))(first)
    np.testing.assert_array_equal(history["n"], got.history["n"])
    np.testing.assert_allclose(history["mean"][:4], got.history["mean"][:4], rtol=1e-6)
    assert state["n"] == 20

    def end(stiffness):
        return rollout(Spring(stiffness).step, REST, 100)[0][0]

    slope = (end(1.01) - end(0.99)) / 0.02
    np.testing.assert_allclose(jax.grad(end)(1.0), slope, rtol=1e-3)
    assert rollout(walk, start(), 0, key=KEY, measure=mean)[1]["mean"].shape == (1,)


@pytest.mark.slow
def test_a_summary_fits_a_screen():
    many = {f"x{i}": np.zeros(3, np.float32) for i in range(40)}
    got = run(lambda s: jax.tree.map(jnp.sin, s), many, 3, measure=lambda s: s)
    assert len(repr(got).splitlines()) <= 15 and "and 35 more" in repr(got)
    assert got._repr_html_().startswith("<pre>")
    assert "float64[33]" in repr(run(walk, start(), 2, key=KEY))  # for either global flag


def test_does_not_touch_the_arrays_it_is_given():
    mine = {"x": jnp.full(4, 0.3), "n": jnp.int32(0)}
    run(walk, mine, 5, key=KEY)
    np.testing.assert_array_equal(mine["x"], np.full(4, 0.3, np.float32))


def test_no_steps_return_the_start():
    got = run(walk, start(), 0, key=KEY, measure=mean)
    assert got.history["mean"].shape == (1,) and same_bits(got.state, start())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"steps": 1, "chunk": 0}, "chunk=0; it must be a whole number of at least 1"),
        ({"steps": 1, "resume": True}, "give out="),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        run(walk, start(), key=KEY, **arguments)


@pytest.mark.parametrize(
    ("wrong", "kind", "said"),
    [
        (-1, ValueError, "-1"),
        (2.5, TypeError, "2.5 of type float64"),
        (True, TypeError, "True of type bool"),
        ("3", TypeError, "'3'"),
        (np.array([3]), TypeError, r"an array of shape \[1\]"),
        ([3, 4], TypeError, r"an array of shape \[2\]"),
    ],
)
def test_steps_and_a_chunk_are_one_count_each(wrong, kind, said):
    double, x = lambda x: 2 * x, np.float32(1)
    with pytest.raises(kind, match=f"^run: steps={said}; it must be a whole number of at least 0$"):
        run(double, x, wrong)
    with pytest.raises(kind, match=f"^rollout: steps={said}; it must be a whole number"):
        rollout(double, x, wrong)
    with pytest.raises(kind, match=f"^run: chunk={said}; .* of at least 1, or None$"):
        run(double, x, 1, chunk=wrong)


def test_a_step_that_changes_its_state_is_named():
    with pytest.raises(TypeError, match=r"changes \['x'\] float32\[\] to \['x'\] float32\[2\]"):
        run(lambda s: {"x": jnp.stack([s["x"], s["x"]])}, {"x": jnp.float32(1)}, 3)


@pytest.mark.parametrize("name", ["step", "measure", "until"])
@pytest.mark.parametrize(
    "wrong, what",
    [
        (lambda: 0.0, "=a function that cannot be called with 1 arguments; it must take 1"),
        (lambda a, b: a, "=a function that cannot be called with 1 arguments; it must take 1"),
        (lambda state: "fast", " returns 'fast'; it must return numbers, or arrays of numbers"),
        (
            lambda state: {"x": "fast"},
            r" returns \['x'\]='fast'; it must return numbers, or arrays",
        ),
    ],
)
def test_a_function_that_is_no_such_function_is_named(name, wrong, what):
    functions = {"step": lambda x: 2 * x} | {name: wrong}
    with pytest.raises(TypeError, match=f"^run: {name}{what}"):
        run(state=np.float32(1), steps=3, **functions)
    if name != "until":
        with pytest.raises(TypeError, match=f"^rollout: {name}{what}"):
            rollout(state=np.float32(1), steps=3, **functions)


def test_a_step_with_a_key_takes_two_arguments():
    with pytest.raises(TypeError, match="step=a function that cannot be called with 2 arguments"):
        run(lambda x: x, np.float32(1), 3, key=KEY)


@pytest.mark.parametrize("gives", [None, {"a": True}, (True,), np.array([True])])
def test_an_end_is_one_truth_value(gives):
    with pytest.raises(TypeError, match="^run: until returns .*; it must be one bool"):
        run(lambda x: x, np.float32(1), 3, until=lambda x: gives)


def test_a_whole_number_beyond_all_bits_is_no_state():
    with pytest.raises(ValueError, match="^run: state holds 9223372036854775808; a whole number"):
        run(lambda x: x, 2**63, 3)


def test_a_rollout_refuses_what_it_cannot_take():
    with pytest.raises(TypeError, match="^rollout: key=3; it must be a key"):
        rollout(lambda x, key: x, np.float32(1), 3, key=3)
    with pytest.raises(TypeError, match=r"^rollout: step changes int32\[\] to float32\[\]; it"):
        rollout(lambda x: x / 2, 3, 4)


def test_another_seed_or_an_occupied_folder_is_refused(tmp_path):
    run(walk, start(), 5, key=KEY, out=tmp_path)
    with pytest.raises(CheckpointError, match="another key"):
        run(walk, start(), 9, key=jax.random.key(1), out=tmp_path, resume=True)
    with pytest.raises(CheckpointError, match="resume=True"):
        run(walk, start(), 9, key=KEY, out=tmp_path)
    with pytest.raises(ValueError, match="already at step 5"):
        run(walk, start(), 3, key=KEY, out=tmp_path, resume=True)


def test_refuses_what_does_not_fit_and_says_how_much(monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda device=None: 1_000_000)
    with pytest.raises(MemoryError, match=r"needs 0\.\d\d GB, and 0\.00 GB are free"):
        run(lambda x: x + 1, np.zeros(2_000_000), 3)


def test_shows_no_progress_where_nobody_looks(capfd):
    run(walk, start(), 5, key=KEY)
    assert capfd.readouterr().err == ""


def test_works_in_a_thread():
    got = []
    thread = threading.Thread(target=lambda: got.append(run(walk, start(), 5, key=KEY)))
    thread.start()
    thread.join()
    assert got[0].timing.steps == 5


SLOW_WALK = """
import sys, jax, jax.numpy as jnp, numpy as np
from jaxgpu.runs.loop import run
def step(x, key):
    busy = jax.lax.fori_loop(0, 20000, lambda i, y: jnp.sin(y), x)
    return 3.9 * x * (1 - x) + 0 * busy
out, resume = sys.argv[1], sys.argv[2] == "resume"
x = np.linspace(0.1, 0.9, 64)
got = run(step, x, 100, key=jax.random.key(0), chunk=10, out=out, resume=resume)
print(np.asarray(got.state).tobytes().hex())
"""


def start_walk(out, how):
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW_WALK, str(out), how], stdout=-1, stderr=-1, text=True
    )
    while process.poll() is None and not list(out.glob("step-*")):
        time.sleep(0.01)
    return process


@pytest.mark.slow
def test_ctrl_c_leaves_a_run_that_resumes(tmp_path, monkeypatch, capsys):
    process = start_walk(tmp_path, "new")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert "run: stopped at step" in err and f"resume from {tmp_path}" in err
    rest, err = start_walk(tmp_path, "resume").communicate(timeout=60)
    monkeypatch.setattr(sys, "argv", ["walk", str(tmp_path / "whole"), "new"])
    exec(SLOW_WALK, {})
    whole = capsys.readouterr().out
    assert rest == whole and len(whole) > 100, err


def test_steps_are_counted_in_32_bits():
    with pytest.raises(ValueError, match="at most 2147483647; let a step do more"):
        run(walk, start(), 2**31, key=KEY)
