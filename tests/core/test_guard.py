"""Guarded runs: they stop before they save a value that is not finite, and report it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.runs.loop import run

START = {"n": jnp.int32(0), "x": jnp.linspace(0.5, 1.0, 4)}


def break_at_step(at, state):
    """Advance a map that produces nan in one of its four numbers from step `at` on."""
    n, x = state["n"] + 1, jnp.cos(state["x"])
    return {"n": n, "x": jnp.where((n >= at) & (jnp.arange(4) == 2), jnp.nan, x)}


def breaking_map(at):
    return jax.tree_util.Partial(break_at_step, jnp.int32(at))


def saved_steps(folder):
    return [int(file.stem[5:]) for file in sorted(folder.glob("step-*.npz"))]


def test_names_the_array_and_the_steps_and_keeps_the_checkpoint_before(tmp_path):
    with pytest.raises(FloatingPointError) as caught:
        run(breaking_map(25), START, 60, chunk=10, out=tmp_path, guard=True)
    assert str(caught.value) == (
        "run: state ['x'] is not finite, in steps 21 to 30; "
        f"the last good checkpoint is of step 20 in {tmp_path}; chunk=1 finds the step"
    )
    assert saved_steps(tmp_path) == [10, 20]
    with pytest.raises(
        FloatingPointError, match=r"\['x'\] is not finite, at step 25; the last .* 24 "
    ):
        run(breaking_map(25), START, 60, chunk=1, out=tmp_path, resume=True, guard=True)
    assert saved_steps(tmp_path) == [23, 24]
    whole = run(breaking_map(25), START, 24)  # what was kept is the run itself
    kept = run(breaking_map(25), START, 24, out=tmp_path, resume=True, guard=True)
    assert kept.timing.steps == 0
    np.testing.assert_array_equal(whole.state["x"], kept.state["x"])


def test_changes_no_bit_of_a_run_that_is_well(tmp_path):
    row_sum = lambda state: jnp.sum(state["x"])
    plain = run(breaking_map(1000), START, 50, measure=row_sum)
    held = run(breaking_map(1000), START, 50, measure=row_sum, chunk=7, guard=True)
    assert plain.history.tobytes() == held.history.tobytes()
    np.testing.assert_array_equal(plain.state["x"], held.state["x"])


def test_the_step_of_a_row_that_is_not_finite_is_told():
    pole = lambda state: {"n": state["n"], "pole": 1 / (state["n"] - 13).astype("float32")}
    message = (
        r"history \['pole'\] from step 13 on is not finite, in steps 1 to 20; nothing was saved"
    )
    with pytest.raises(FloatingPointError, match=message):
        run(breaking_map(1000), START, 40, measure=pole, chunk=20, guard=True)


def test_a_start_and_a_checkpoint_that_are_not_finite_are_refused(tmp_path):
    with pytest.raises(
        FloatingPointError, match="run: state all is not finite, at the start; give"
    ):
        run(jnp.sin, jnp.float32(np.inf), 3, guard=True)
    run(breaking_map(5), START, 8, chunk=4, out=tmp_path)  # without a guard it is saved
    with pytest.raises(
        FloatingPointError, match="at step 8 in .*; remove that checkpoint to resume"
    ):
        run(breaking_map(5), START, 9, out=tmp_path, resume=True, guard=True)
    (tmp_path / "step-000000000008.npz").unlink()
    assert run(breaking_map(5), START, 4, out=tmp_path, resume=True, guard=True).timing.steps == 0


def test_keys_and_whole_numbers_are_no_fault():
    state = {"key": jax.random.key(0), "n": jnp.int32(3), "flag": jnp.bool_(True)}
    assert (
        run(lambda state: state, state, 3, measure=lambda s: s["n"], guard=True).timing.steps == 3
    )


def test_a_word_is_no_flag():
    for name in ("guard", "resume"):
        with pytest.raises(TypeError, match=f"run: {name}='no'; it must be True or False"):
            run(breaking_map(5), START, 3, **{name: "no"})
