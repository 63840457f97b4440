"""A scene on several devices behaves as on one device, and so does its derivative."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from continuum_run import jit_unoptimized, positions, velocities

from jaxgpu.devices import mesh
from jaxgpu.geometry import sdf
from jaxgpu.physics.continuum import (
    Body,
    Collector,
    Collider,
    Grid,
    Liquid,
    NeoHookean,
    Scene,
    devices,
    fill_box,
    simulate,
    simulation,
)
from jaxgpu.physics.continuum.grid.device_grids import Cut, Replica, Slab
from jaxgpu.physics.continuum.grid.faces import PAD
from jaxgpu.physics.continuum.partition import cuts, make_partition, min_slab_planes

LIQUID = Liquid(2e4, 0.3, volume_correction=0.1)
FACES = ("slip", "periodic")  # so that x is the axis that is cut


def scene(materials, dtype=jnp.float64, cells=32, **grid):
    """Make two blocks of unlike particles, one on the other, that fall on a moving ball."""
    dx = 1 / cells
    rng, bodies = np.random.default_rng(12), ()
    for law, low, density in zip(materials, (0.3, 0.52), (1300.0, 700.0)):
        x = fill_box((0.1, low), (0.7, low + 0.2), dx / 2).astype(dtype)
        volume = jnp.asarray((dx / 2) ** 2 * rng.uniform(0.6, 1.4, len(x)), dtype)
        bodies += (Body(x, law, volume, density),)
    ball = Collider(sdf.Ball(0.1), (0.4, 0.15), v=(0.0, 0.5), mass=20.0, inertia=0.1)
    return Scene(bodies, Grid(dx, (cells, cells), **grid), (0.0, -9.81), (ball,)).prepare()


def assert_same(one, many, atol=1e-9):
    """Compare a state, particle by particle and tool by tool, with one device's."""
    for a, b in zip(one.bodies, many.bodies):
        np.testing.assert_allclose(positions(b), positions(a), atol=atol)
        np.testing.assert_allclose(velocities(b), velocities(a), atol=1e3 * atol)
    for a, b in zip(one.tools, many.tools):
        np.testing.assert_allclose(b.v, a.v, atol=atol)


def top(state):
    """Return positions [8, D] of a few particles of the first body."""
    return state.bodies[0].x[:400:50]


def is_late_or_fast(state):
    return (state.t > 0.07) | (jnp.max(jnp.abs(state.bodies[1].v)) > 2.0)


def runs_seen(monkeypatch):
    """Return a list of the runs of `simulate`, with states that are spread over the devices."""
    seen, run = [], simulation.run

    def keep_run(*args, **kwargs):
        seen.append(run(*args, **kwargs))
        return seen[-1]

    monkeypatch.setattr(simulation, "run", keep_run)
    return seen


@pytest.mark.slow
def test_devices_change_nothing_and_a_run_on_them_resumes_to_the_same_bits(
    x64, monkeypatch, tmp_path
):
    """Share two programs, one for one device and one for three."""
    run, three = scene((LIQUID, NeoHookean(2e4)), faces=FACES), mesh.make_mesh(3)
    how = {"measure": top, "until": is_late_or_fast}
    one = simulate(run, 0.1, frames=4, **how)
    seen = runs_seen(monkeypatch)
    many = simulate(run, 0.1, frames=4, mesh=three, **how)
    assert len(many.state.bodies[0].chunks.m.sharding.device_set) == 3
    assert len(many.history) == 4 and int(seen[0].state.whole) == 0
    np.testing.assert_allclose(many.history, one.history, atol=1e-10)
    assert_same(one.state, many.state)

    simulate(run, 0.05, frames=2, mesh=three, out=tmp_path, **how)
    again = simulate(run, 0.1, frames=4, mesh=three, out=tmp_path, resume=True, **how)
    np.testing.assert_array_equal(again.history, many.history)
    for a, b in zip(jax.tree.leaves(many.state), jax.tree.leaves(again.state)):
        np.testing.assert_array_equal(a, b)

    # The start is at rest, so sixteen steps seem to be free, but the body falls two cells in them.
    pull = 2 * run.grid.dx / (16 * float(run.dt)) ** 2 * 2
    run = dataclasses.replace(run, gravity=(pull, 0.0))
    t = 64 * float(run.dt)
    one = simulate(run, t, frames=4, **how)
    many = simulate(run, t, frames=4, mesh=three, **how)
    assert len(one.history) == 2 and int(seen[-1].state.whole) == 16
    assert_same(one.state, many.state)

    # Without faces there is no cut: all steps use the whole grid.
    run = dataclasses.replace(run, grid=dataclasses.replace(run.grid, faces=("periodic",) * 2))
    many = simulate(run, t, frames=4, mesh=three, **how)
    assert seen[-1].state.partition is None and int(seen[-1].state.whole) == 16
    assert_same(one.state, many.state)


@pytest.mark.slow
def test_slabs_in_space_follow_matter_that_crosses_the_box(x64):
    """A dam breaks along the cut axis: most particles change their device."""
    dx, steps, three = 1 / 16, 306, mesh.make_mesh(3)
    x = fill_box((0.0, 0.0, 0.0), (0.45, 0.6, 0.2), dx / 2).astype(jnp.float64)
    water = Body(x, LIQUID, (dx / 2) ** 3)
    run = Scene((water,), Grid(dx, (24, 12, 4)), (0.0, -9.81, 0.0)).prepare()
    start = devices.shard_state(run, three)
    shares = jax.jit(devices.shard_frame(run, three, steps))(start)
    moved = dx * np.asarray(shares.cuts - start.cuts)[1:-1]  # m
    assert int(shares.whole) == 0 and np.all(moved >= 1 / 16)
    assert_same(simulate(run, steps * float(run.dt)).state, devices.gather_state(run, shares))


@pytest.mark.slow
def test_the_derivative_is_that_of_one_device(x64):
    run, two = scene((NeoHookean(2e4),)), mesh.make_mesh(2)
    start = devices.shard_state(run, two)

    def fall_energy(young, shared):
        now = dataclasses.replace(
            run, bodies=(dataclasses.replace(run.bodies[0], material=NeoHookean(young)),)
        )
        if shared:
            end = _repeat_step(devices.shard_step(now, two), start)
            end = devices.gather_state(now, end)
        else:
            end = _repeat_step(now.step, run.init())
        push = jnp.sum(end.tools[0].v ** 2)
        return push + jnp.sum(end.bodies[0].m * end.bodies[0].x[:, 1] ** 2)

    # Forward mode on one device compiles faster and is equally exact.
    one_device = lambda young: jax.jvp(lambda young: fall_energy(young, False), (young,), (1.0,))[1]
    many = jax.grad(lambda young: fall_energy(young, True))
    slopes = [jit_unoptimized(slope)(2e4) for slope in (one_device, many)]
    np.testing.assert_allclose(*slopes, rtol=1e-10)


def _repeat_step(step, state, steps=6):
    return jax.lax.scan(lambda state, _: (step(state), None), state, length=steps)[0]


@pytest.mark.slow
def test_particles_are_spread_evenly_and_come_back_in_their_order():
    run, count = scene((Liquid(2e4, volume_correction=None),), jnp.float32, cells=60), 8
    shares = devices.shard_state(run, mesh.make_mesh(count))
    each = np.sum(np.asarray(shares.ids[0]).reshape(count, -1) > 0, 1)
    assert each.sum() == len(run.bodies[0].x) and each.max() < 1.3 * each.mean()
    back = devices.gather_state(run, shares)
    for a, b in zip(jax.tree.leaves(run.init(count)), jax.tree.leaves(back)):
        np.testing.assert_array_equal(a, b)


def test_a_grid_that_is_too_narrow_is_not_cut():
    run = scene((NeoHookean(2e4),), jnp.float32)
    chunks = [body.chunks for body in run.init().bodies]
    assert make_partition(run, chunks, 7)[0].cut.devices == 7  # 34 of its 37 planes are needed
    assert make_partition(run, chunks, 1) is None and make_partition(run, chunks, 8) is None


def slabs(function, cut, grid, at, *rows):
    """Evaluate a function of a slab and of rows on each device of a mesh, and stack the results."""
    row = jax.sharding.Mesh(np.array(jax.devices()[: cut.devices]), ("row",))

    def on_device(*rows):
        slab = Slab.from_grid(grid, cut, "row", jnp.asarray(at, jnp.int32))
        found = function(slab, *(a[0] for a in rows))
        return jax.tree.map(lambda a: a[None], found)

    spec = jax.sharding.PartitionSpec("row")
    return jax.jit(jax.shard_map(on_device, mesh=row, in_specs=spec, out_specs=spec))(*rows)


@pytest.mark.parametrize("axis", [0, 1])
def test_planes_about_a_cut_are_the_sum_of_what_both_sides_spread(axis):
    """Add the scattered fields of each of three devices on the whole grid."""
    grid, reach, planes, at = Grid(0.1, (30, 26)), 2, 22, [0, 11, 19, (35, 31)[axis]]
    whole = [35, 31]
    cut = Cut(axis=axis, planes=planes, reach=reach, devices=3)
    start = [0, 11 - reach, whole[axis] - planes]
    shape = [planes if i == axis else n for i, n in enumerate(whole)]
    rng, total, spread = np.random.default_rng(7), np.zeros((whole[axis], whole[1 - axis], 4)), []
    for k in range(3):  # matter is at home, and reaches no further than planes beyond its cuts
        low, high = max(at[k] - reach, 0), min(at[k + 1] + reach + 2, whole[axis])
        mine = np.zeros_like(total)
        mine[low:high] = rng.integers(1, 9, mine[low:high].shape)
        total += mine
        part = np.moveaxis(mine[start[k] : start[k] + planes], 0, axis)
        spread.append(part.reshape(-1, 4))
    add = lambda slab, field: (slab.start, slab.sum_copies(field))
    found, got = slabs(add, cut, grid, at, np.stack(spread).astype(np.float32))
    np.testing.assert_array_equal(found, start)
    got = np.asarray(got)
    for k in range(3):
        rows = np.moveaxis(got[k].reshape(*shape, 4), axis, 0)
        low, high = max(at[k] - reach, 0), min(at[k + 1] + reach + 2, whole[axis])
        np.testing.assert_array_equal(rows[low - start[k] : high - start[k]], total[low:high])


def test_each_plane_is_counted_once_and_has_its_place(x64):
    grid, at = Grid(0.1, (30, 26), lower=(2.0, -1.0)), [0, 11, 19, 35]
    cut = Cut(axis=0, planes=22, reach=2, devices=3)
    mass = np.ones((3, 22 * 31))
    rows = np.tile(np.arange(22 * 31, dtype=np.int32), (3, 1))
    x = np.full((3, 1), 3.23)  # in units of dx: 12.3 from the lower face

    def slab_values(slab, mass, rows, x):
        places, home = slab.axis_positions(0, jnp.float64), slab.coordinate(x, 0)
        return slab.start, slab.owned_mass(mass, rows), places, slab.has_faces(0), home

    start, owned, places, faced, home = slabs(slab_values, cut, grid, at, mass, rows, x)
    start, owned = np.asarray(start), np.asarray(owned).reshape(3, 22, 31)
    for k in range(3):
        mine = np.arange(22) + start[k]
        mine = (mine >= at[k]) & (mine < at[k + 1])
        np.testing.assert_array_equal(owned[k], np.tile(mine[:, None], (1, 31)))
    np.testing.assert_allclose(places, 2.0 + (start[:, None] + np.arange(22) - PAD) * 0.1)
    np.testing.assert_array_equal(np.stack(faced), [[True, False, False], [False, False, True]])
    np.testing.assert_allclose(np.asarray(home)[:, 0] + start, 12.3 + PAD, rtol=1e-12)


def test_particles_are_held_within_a_plane_of_home(x64):
    """Devices with planes from c to d hold particles with first nodes b: c - 1 <= b <= d.

    The first and the last device also hold particles outside the box, but none with nan or infinite
    positions. A particle at (b + 1) dx from the first plane is half a cell from where b changes.
    """
    grid, at, base = Grid(0.1, (30, 26), lower=(2.0, -1.0)), [0, 11, 19, 35], np.arange(-4, 40)
    cut = Cut(axis=0, planes=22, reach=2, devices=3)
    x = np.append(2.0 + 0.1 * (base + 1 - PAD), [np.nan, np.inf, -np.inf])
    x, full = np.tile(x, (3, 1)), np.ones((3, len(x)))
    is_held = lambda slab, x, m: jax.vmap(lambda x, m: slab.contains(x[None], m[None]))(x, m)
    held_masks = lambda slab, x, m: (
        is_held(slab, x, m),
        is_held(slab, x, 0 * m),
        slab.contains(x, m),
    )
    each, empty, together = map(np.asarray, slabs(held_masks, cut, grid, at, x, full))
    low, high = np.array([-np.inf, 10, 18])[:, None], np.array([11, 19, np.inf])[:, None]
    np.testing.assert_array_equal(each[:, :-3], (base >= low) & (base <= high))
    assert empty.all() and not each[:, -3:].any() and not together.any()


@pytest.mark.parametrize("seed", range(5))
def test_cuts_leave_room_and_move_by_a_plane(seed):
    rng, n, planes = np.random.default_rng(seed), 5, 61
    cut = Cut(axis=0, planes=2 * -(-planes // n) + 6, reach=2, devices=n)
    counts = np.zeros(planes, np.int32)
    low, high = np.sort(rng.choice(np.arange(2, planes - 2), 2, replace=False))
    counts[low : high + 1] = rng.integers(1, 1000, high + 1 - low)
    shared = jax.jit(cuts, static_argnames="cut")
    before = np.asarray(shared(jnp.asarray(counts), cut))
    room, least = cut.planes - cut.zone, min_slab_planes(cut.reach, n)
    ends = (0 if low < least[0] else low, planes if high + 1 > planes - least[-1] else high + 1)
    assert (before[0], before[-1]) == ends
    assert before[1] >= least[0] and before[-2] <= planes - least[-1]
    assert np.all(np.diff(before)[1:-1] >= least[1]) and np.all(np.diff(before) <= room)
    moved = np.asarray(shared(jnp.asarray(np.roll(counts, 1)), cut, jnp.asarray(before)))
    assert np.all(np.abs(moved - before)[1:-1] <= 1)


def test_sources_are_refused():
    drain = Collector(sdf.Ball(0.1))
    run = dataclasses.replace(scene((Liquid(2e4),), jnp.float32), sources=(drain,))
    with pytest.raises(ValueError, match="runs on one device"):
        simulate(run, 0.1, mesh=mesh.make_mesh(2))


def test_no_mesh_is_refused():
    with pytest.raises(TypeError, match="simulate: mesh=2; it must be a mesh"):
        simulate(scene((Liquid(2e4),), jnp.float32), 0.1, mesh=2)


@pytest.mark.parametrize("axis", [0, 1])
def test_a_box_is_cut_where_matter_is_long_and_across_no_fall(axis):
    """Test a bar of 16 x 2 cells, and a square that is cut along the other axis than its fall.

    A bar cut along its length has half on each device; across it, one device may have all.
    """

    def axis_of(low, gravity=()):
        x = fill_box(tuple(low), tuple(1 - low), 0.025)
        scene = Scene((Body(x, NeoHookean(), 0.025**2),), Grid(0.05, (20, 20)), gravity).prepare()
        chunks = [body.chunks for body in scene.init().bodies]
        return make_partition(scene, chunks, 2)[0].cut.axis

    thin = np.full(2, 0.45)
    thin[axis] = 0.1
    assert axis_of(thin) == axis
    fall = np.zeros(2)
    fall[1 - axis] = -9.81
    assert axis_of(np.full(2, 0.2), tuple(fall)) == axis


@dataclasses.dataclass
class Counted:
    """Stand-in for shares of a scene without a cut; its state is the sum of corrections."""

    state: int
    whole: int
    partition: None = None


def test_without_a_cut_every_step_is_taken_and_counted_on_the_whole_grid(monkeypatch):
    def step(scene, state, correction, grid):
        assert isinstance(grid, Replica)
        return state + correction

    monkeypatch.setattr(devices.engine, "step", step)
    run = scene((NeoHookean(2e4),), jnp.float32)
    shares = Counted(jnp.int32(0), jnp.int32(10))
    end = devices._advance_shares(run, shares, "row", 3, 5, lambda i: i)
    assert end.state == 3 + 4 + 5 + 6 + 7 and end.whole == 15
