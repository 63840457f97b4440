"""Nodes without mass are skipped on a CPU: states and slopes equal those of the whole grid."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from continuum_run import jit_unoptimized

from jaxgpu.geometry import sdf
from jaxgpu.physics.continuum import Body, Collider, Grid, Liquid, Scene, fill_box, rollout
from jaxgpu.physics.continuum.grid import sparse
from jaxgpu.physics.continuum.grid.sparse import map_occupied

CELLS = ["blocks", "blocks of slabs"]  # both grids are above FEW


def scene(cells):
    """Make a drop that falls on a sticking wall and a free ball, followed by a controlled one."""
    d, dx = len(cells), 0.01
    place = lambda x, y: (x, y, 0.18)[:d]
    x = fill_box((0.02, 0.02, 0.15)[:d], (0.08, 0.08, 0.21)[:d], dx / 2)
    tools = (
        Collider(sdf.Ball(0.02), place(0.06, 0.10), v=(0.0, -0.3, 0.0)[:d], friction=0.3),
        Collider(sdf.HalfSpace((0.1, 1.0, 0.2)[:d]), place(0.0, 0.02), stick=True),
        Collider(sdf.Ball(0.02), place(0.10, 0.05), mass=0.05, inertia=(1e-5,) * (2 * d - 3)),
    )
    body = Body(x, Liquid(2e4, 0.5), (dx / 2) ** d, v=np.float32([1.0, -0.5, 0.2])[:d])
    return Scene((body,), Grid(dx, cells), (0.0, -9.81, 0.0)[:d], tools).prepare()


def run_pushes(run, pushes):
    """Return the state after frames of two steps, in which `pushes` [T] control the first tool."""

    def lead(scene, state, push):
        tool = dataclasses.replace(state.tools[0], v=state.tools[0].v.at[0].add(push))
        return scene, dataclasses.replace(state, tools=(tool, *state.tools[1:]))

    return rollout(run, run.init(), pushes, lead, substeps=2)[0]


@pytest.mark.slow
@pytest.mark.parametrize("cells", [(100, 90), (12, 36, 36)], ids=CELLS)
def test_steps_are_those_of_the_whole_grid(x64, cells, monkeypatch):
    """Compare the states; the test of rows below compares slopes."""
    run = jax.tree.map(lambda a: np.asarray(a, np.float64), scene(cells))
    pushes = np.array([0.4, -0.2, 0.3])
    # A new function has no cached trace, so JAX reads FEW again.
    lower_run = lambda: jax.jit(partial(run_pushes, run)).lower(pushes)
    ways = [lower_run()]
    monkeypatch.setattr(sparse, "SMALL_GRID", 10**9)
    ways.append(lower_run())
    assert ways[0].as_text() != ways[1].as_text()
    found, whole = (way.compile()(pushes) for way in ways)
    assert abs(whole.tools[2].v[0]) > 0  # the free ball was hit
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-11, atol=1e-13), found, whole)


@pytest.mark.parametrize("shape", [(90, 100), (7, 33, 41)], ids=CELLS)
def test_rows_sums_and_derivatives_are_those_of_all_rows(x64, shape):
    rng, nodes = np.random.default_rng(0), int(np.prod(shape))
    field = np.zeros((nodes, 4))
    some = rng.choice(nodes, 30, replace=False)
    field[some] = rng.uniform(0.5, 1, (30, 4))
    field = jnp.asarray(field)
    d = len(shape)

    def act(a, first, rows):
        place = (first + jnp.arange(len(rows), dtype=jnp.int32)).astype(rows.dtype) / nodes
        here = rows * jnp.sin(a * rows) / (1 + place[:, None])
        return here, jnp.sum(rows[:, d] * here[:, 0])

    def total(run, field, a):
        rows, mass = run(lambda first, rows: act(a, first, rows), field)
        return jnp.sum(rows * field) + mass

    sparsely = lambda act, field: map_occupied(act, field, shape, block=500)
    wholly = lambda act, field: act(0, field)
    orders = (lambda f: jax.grad(f, (0, 1)), lambda f: jax.jacfwd(jax.grad(f, 1), 1))

    @jit_unoptimized
    def all_orders(field, a):
        ways = [partial(total, run) for run in (sparsely, wholly)]
        return [[order(way)(field, a) for order in orders] for way in ways]

    for a, b in zip(*map(jax.tree.leaves, all_orders(field, 2.0))):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def test_blocks_without_mass_are_not_visited():
    """Values that are not finite do not enter them, and the last block may be shorter."""
    field = jnp.zeros((9000, 4)).at[jnp.array([3, 8999]), 2].set(2.0)
    bad = lambda first, rows: (rows / rows[:, 2:3].sum(), jnp.float32(first))
    rows, starts = jax.jit(lambda f: map_occupied(bad, f, (90, 100), block=70))(field)
    assert bool(jnp.all(jnp.isfinite(rows))) and float(starts) == 8960
    assert float(rows[3, 2]) == float(rows[8999, 2]) == 1


@pytest.mark.parametrize("face, held", [("stick", (0, 1, 2)), ("slip", (1,))])
def test_a_face_that_sticks_holds_all_components_and_one_that_slips_those_across(face, held):
    """Check face nodes with material that approaches the lower face and leaves the upper one.

    Each pair of mirrored nodes has equal masses and mirrored velocities, so held components vanish.
    Material leaves a slip face unchanged.
    """
    grid = Grid(0.1, (5, 6, 7), faces=("periodic", face, "periodic"))
    comes = np.array([0.3, -0.5, 0.7, 0.0], np.float32)
    nodes = int(np.prod(grid.shape))
    v = jax.jit(grid.apply_faces)(jnp.tile(comes, (nodes, 1)), jnp.ones(nodes))
    v = v.reshape(*grid.shape, 4)
    lower = [0 if i in held else comes[i] for i in range(4)]
    np.testing.assert_array_equal(v[:, 2], np.broadcast_to(lower, v[:, 2].shape))
    upper = comes if face == "slip" else lower
    np.testing.assert_array_equal(v[:, -3], np.broadcast_to(upper, v[:, -3].shape))
    np.testing.assert_array_equal(v[:, 5], np.broadcast_to(comes, v[:, 5].shape))
