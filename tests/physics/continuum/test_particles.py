"""Bodies as slots of particles: filling, storage, and modification."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.physics.continuum import Body, Grid, Liquid, NeoHookean, Scene, Snow, VonMises
from jaxgpu.physics.continuum.particles import Particles, chunk_shape, fill

GRID = Grid(0.1, (10, 12, 14), lower=(1.0, -1.0, 0.5))
COUNT = 1500


def body(material, capacity=0):
    """Make unlike particles in a box with an offset corner, with one value per particle."""
    rng = np.random.default_rng(5)
    x = np.add(GRID.lower, rng.uniform(0.2, 0.8, (COUNT, 3)))
    volume, density = rng.uniform(1e-6, 2e-6, COUNT), rng.uniform(500, 2000, COUNT)
    numbers = (x, volume, density, rng.normal(size=(COUNT, 3)))
    x, volume, density, v = (jnp.asarray(a, jnp.float32) for a in numbers)
    return Body(x, material, volume, density, v, capacity)


@pytest.mark.parametrize(
    "slots, shares, want",
    [
        (1, 1, (1, 8)),
        (8, 1, (1, 8)),
        (9, 1, (1, 16)),
        (1024, 1, (1, 1024)),
        (1025, 1, (2, 520)),
        (1500, 4, (4, 376)),
        (5000, 2, (6, 840)),
    ],
)
def test_chunks_are_alike_of_whole_vectors_and_at_most_1024_slots(slots, shares, want):
    """Count by hand: fewest chunks, a multiple of the shares; slots in multiples of eight."""
    assert chunk_shape(slots, shares) == want


@pytest.mark.parametrize("capacity", [pytest.param(0, marks=pytest.mark.slow), 2000])
def test_particles_fill_the_first_slots_and_the_others_wait_without_mass(capacity):
    given = body(VonMises(1e4), capacity)
    filled = fill(given, GRID, 1)
    slots = filled.m.size
    assert slots == (2000 if capacity else 1504)  # two chunks of eights
    np.testing.assert_array_equal(filled.active, np.arange(slots) < COUNT)
    for name in ("x", "v", "volume"):
        np.testing.assert_array_equal(getattr(filled, name)[:COUNT], getattr(given, name))
    np.testing.assert_allclose(filled.m[:COUNT], given.volume * given.density, rtol=1e-6)
    middle = np.tile(np.float32([1.5, -0.4, 1.2]), (slots - COUNT, 1))
    np.testing.assert_allclose(filled.x[COUNT:], middle, rtol=1e-6)
    for name in ("v", "m", "volume"):
        assert (np.asarray(getattr(filled, name))[COUNT:] == 0).all()
    assert filled.C.shape == (slots, 3, 3) and (np.asarray(filled.C) == 0).all()


@pytest.mark.parametrize("law, history", [(VonMises(1e4), 0.0), (Snow(1e4), 1.0)])
def test_matter_begins_undeformed(law, history):
    """F is the unit matrix, J of a liquid is one, and plastic strain is zero; empty slots, too."""
    plastic = fill(body(law), GRID, 1).internal
    unit = np.broadcast_to(np.eye(3), (1504, 3, 3))
    np.testing.assert_array_equal(plastic.F, unit)
    np.testing.assert_array_equal(plastic.history, np.full(1504, history))
    np.testing.assert_array_equal(fill(body(NeoHookean(1e4)), GRID, 1).internal, unit)
    np.testing.assert_array_equal(fill(body(Liquid()), GRID, 1).internal, np.ones(1504))


def test_a_number_for_all_is_one_for_each():
    given = dataclasses.replace(body(Liquid()), volume=2e-6, density=700.0, v=(1.0, 2.0, 3.0))
    filled = fill(given, GRID, 2)
    assert filled.chunks.m.shape == (2, 752)
    np.testing.assert_allclose(filled.m[:COUNT], np.full(COUNT, 1.4e-3), rtol=1e-6)
    np.testing.assert_array_equal(filled.v[:COUNT], np.tile([1.0, 2.0, 3.0], (COUNT, 1)))


def test_what_is_put_into_slots_comes_out_of_them():
    """Slot n is entry (n // P, n % P) of each component, also for tensors within a state."""
    filled = fill(body(VonMises(1e4)), GRID, 1)
    rng, n = np.random.default_rng(6), filled.m.size
    C, F = (jnp.asarray(rng.normal(size=(n, 3, 3)), jnp.float32) for _ in range(2))
    x, m = (jnp.asarray(rng.normal(size=s), jnp.float32) for s in ((n, 3), (n,)))
    internal = dataclasses.replace(filled.internal, F=F, history=m)
    moved = filled.replace(x=x, m=m, C=C, internal=internal, v=(7.0, 8.0, 9.0))
    for name, want in (("x", x), ("m", m), ("C", C)):
        np.testing.assert_array_equal(getattr(moved, name), want)
    np.testing.assert_array_equal(moved.internal.F, F)
    np.testing.assert_array_equal(moved.internal.history, m)
    np.testing.assert_array_equal(moved.v, np.tile([7.0, 8.0, 9.0], (n, 1)))
    np.testing.assert_array_equal(moved.volume, filled.volume)
    entry = 800 // 752, 800 % 752
    assert moved.chunks.C[2][0][entry] == C[800, 2, 0] and moved.chunks.x[1][entry] == x[800, 1]
    both = jax.tree.map(lambda *a: jnp.stack(a), filled, moved)
    np.testing.assert_array_equal(both.x, np.stack([filled.x, moved.x]))
    np.testing.assert_array_equal(both.internal.F[1], F)
    assert isinstance(moved, Particles) and filled.chunks.x[0].shape == (2, 752)
    with pytest.raises(ValueError, match="broadcast"):
        filled.replace(x=x[:3])


def test_a_view_shows_filled_slots_alone():
    few = dataclasses.replace(body(Liquid(), 9), x=body(Liquid()).x[:5], volume=1e-6, density=1.0)
    scene = Scene((dataclasses.replace(few, v=0.0),), GRID)
    shown = scene.init().view()
    assert list(shown) == ["body 1"] and shown["body 1"].shape == (16, 3)
    np.testing.assert_array_equal(shown["body 1"][:5], few.x)
    assert np.isnan(shown["body 1"][5:]).all()


def test_what_a_law_keeps_is_an_array_whose_axes_are_those_of_its_tuples():
    """Convert a number, a vector of one component and a non-square tensor, there and back."""
    like = {"J": jnp.zeros(()), "one": (0.0,), "F": ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))}

    class Law(NeoHookean):
        def rest(self, zero, d):
            return jax.tree.map(lambda _: zero, like)

    particles = fill(body(Law(1e4)), GRID, 1)
    slots = particles.m.size
    rng = np.random.default_rng(0)
    shapes = {"J": (slots,), "one": (slots, 1), "F": (slots, 2, 3)}
    want = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    got = particles.replace(internal=want).internal
    jax.tree.map(np.testing.assert_array_equal, got, want)
