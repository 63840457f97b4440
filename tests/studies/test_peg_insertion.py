"""The study `peg-insertion`: its pictures, its options, and a little of it in full."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu import rl
from jaxgpu.studies import peg_insertion
from jaxgpu.studies.peg_insertion import pictures


def test_a_taxel_that_is_pressed_is_bright_where_it_lies_on_its_pad():
    """The first taxel of the second pad is at its lower end: of 16 rows the last, of 7 columns."""
    env = rl.make("touch/peg-insertion")
    shapes = jax.eval_shape(env.reset, jax.random.key(0))[0]
    state = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
    field = jnp.zeros_like(state.grasp.field)
    drawn = jax.jit(lambda state: pictures.pads(env, state))
    dark = drawn(replace(state, grasp=replace(state.grasp, field=field)))
    assert not np.any(dark)
    field = field.at[1, 0, 1].set(-1.0)
    seen = drawn(replace(state, grasp=replace(state.grasp, field=field)))
    rows, columns = (np.flatnonzero(np.any(np.asarray(seen), (2, axis))) for axis in (1, 0))
    assert rows.tolist() == list(range(338, 360)) and columns.tolist() == list(range(52))
    assert len(np.unique(np.asarray(seen)[338:, :52])) == 1  # no shear: grey


@pytest.mark.slow
@pytest.mark.parametrize(("taught", "steps"), [(False, 10_240), (True, 9_984)])
def test_a_little_of_it_ends_in_a_report(taught, steps, tmp_path):
    """An update is of 8 x 32 steps by PPO, of 8 x 16 by DAgger."""
    sizes = {"steps": 10_000, "copies": 8, "seeds": 3, "episodes": 4, "measurements": 2}
    found = peg_insertion.study(peg_insertion.Options(taught=taught, **sizes), tmp_path, False)
    (row,) = found.tables[0].rows
    assert row[:2] == [3, steps] and row[2] in (0, 25, 50, 75, 100)
    assert list(found.timing) == ["DAgger" if taught else "PPO"]
    assert [figure.mime for figure in found.figures] == ["video/mp4", "image/svg+xml"]


def test_options_that_cannot_be_met_are_refused():
    with pytest.raises(ValueError, match="episodes"):
        peg_insertion.Options(episodes=0)
    with pytest.raises(ValueError, match="seeds"):
        peg_insertion.Options(seeds=2)
