"""A bound pair counts as one body in the virial radius of a cluster and in its escapes."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance import check
from nbody_inputs import halves, points

from jaxgpu.physics.nbody.clusters import Cluster, Hermite, cluster, evolve, multiples
from jaxgpu.physics.nbody.forces import potentials
from jaxgpu.physics.nbody.forces.tide import Origin, Tide
from jaxgpu.physics.nbody.models import plummer

RUN_ONCE = {"xla_backend_optimization_level": 0}
draw = jax.jit(plummer, static_argnums=1)


@partial(jax.jit, compiler_options=RUN_ONCE)
def virial_radii(x, m):
    """Return the bodies, their virial radius, and the virial radius of the single stars."""
    stars = multiples.singles(x, m)
    bodies = multiples.merge_bound(stars)
    return bodies, multiples.virial_radius(bodies), multiples.virial_radius(stars)


def orbits(rng, gm, low, high):
    """Return states [6, B] of randomly rotated pairs, with thermal eccentricities up to 0.9."""
    a, e = np.exp(rng.uniform(np.log(low), np.log(high), gm.size)), 0.9 * rng.random(gm.size) ** 0.5
    f, p = rng.uniform(0, 2 * np.pi, gm.size), a * (1 - e * e)
    r, speed = p / (1 + e * np.cos(f)), np.sqrt(gm / p)
    way, _ = np.linalg.qr(rng.normal(size=(gm.size, 3, 2)))
    x = r * (np.cos(f) * way[:, :, 0].T + np.sin(f) * way[:, :, 1].T)
    v = speed * ((e + np.cos(f)) * way[:, :, 1].T - np.sin(f) * way[:, :, 0].T)
    return np.concatenate([x, v])


def sphere(seed, count, binaries, a):
    """Make systems with unequal masses and binaries; return positions, masses, and systems."""
    rng = np.random.default_rng(seed)
    x, m = points(draw(jax.random.key(seed), count)), rng.uniform(0.2, 1.8, count)
    m /= m.sum()
    part = rng.uniform(0.05, 0.95, binaries)
    d = orbits(rng, m[:binaries], *a)
    stars = np.hstack([x, x[:, :binaries] + part * d])
    stars[:, :binaries] -= (1 - part) * d
    masses = np.append(m, m[:binaries] * (1 - part))
    masses[:binaries] *= part
    return stars, masses, (x, m)


@pytest.mark.parametrize("a", [1e-6, 1e-4, 1e-2])
def test_binaries_take_nothing_from_the_virial_radius(x64, a):
    """All lengths in its unit are as without binaries; at f7b4d67 down to 0.004 times."""
    binaries = 77
    stars, m, (x, whole) = sphere(84, 256, binaries, (a, 1.01 * a))
    found, radius, _ = virial_radii(stars, m)
    # Compare with the systems one by one; distant massless bodies make them as many as the stars.
    apart = np.tile(1e3 * (1 + np.arange(binaries)), (6, 1))
    rest = np.hstack([x, apart]), np.append(whole, np.zeros(binaries))
    want = float(virial_radii(*rest)[2])
    assert radius == pytest.approx(want, rel=0.02)
    assert radius / int(found.count) == pytest.approx(want / 256, rel=0.04)
    if a < 1e-3:
        both = found.body_states()
        np.testing.assert_allclose(both[:, :binaries], both[:, 256:], atol=1e-12)
        np.testing.assert_allclose(both[:, :256], x, atol=1e-9)


@pytest.mark.slow
def test_singles_stay_single_and_a_triple_is_one(x64):
    """Chance pairs of a cold sphere are rare; of a hierarchy the outer orbit counts."""
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.normal(size=(3, 64)), np.zeros((3, 64))])
    assert virial_radii(x, rng.uniform(0.5, 1.5, 64) / 64)[0].count >= 62
    m = np.array([0.5, 0.2, 0.3])
    inner = np.array([1e-3, 0, 0, 0, np.sqrt(0.7 / 1e-3), 0])
    outer = np.array([0, 0.1, 0, np.sqrt(1 / 0.1), 0, 0])
    x = np.stack([-inner * 2 / 7 - 0.3 * outer, inner * 5 / 7 - 0.3 * outer, 0.7 * outer], 1)
    found, radius, _ = virial_radii(x, m)
    assert found.keeper.tolist() == [found.keeper[0]] * 3
    np.testing.assert_allclose(found.body_states(), 0, atol=1e-12)
    assert radius == pytest.approx(1 / (2 * 0.7 * 0.3 / 0.1), rel=1e-9)


@pytest.mark.slow
def test_conforms(x64):
    """The total centre of mass is conserved, also in batches."""
    f = lambda x, m: multiples.merge_bound(multiples.singles(x, m)).x[:, 0]
    stars, m, _ = sphere(1, 16, 4, (1e-3, 1e-2))
    check(jax.jit(f), jnp.asarray(stars), jnp.asarray(m), batched=(0,))


@partial(jax.jit, compiler_options=RUN_ONCE)
def find_escapes(spec, stars, m):
    """Return the escapes that a step without motion finds; `standing` makes it one."""
    return spec.step(spec.init(*halves(stars), m)).stars_gone


@pytest.fixture
def frozen_step(monkeypatch):
    monkeypatch.setattr(Hermite, "step", lambda spec, state: state)


@pytest.mark.slow
def test_members_of_a_pair_leave_with_it_or_not_at_all(x64, frozen_step):
    """Distant pairs at rest stay, though members move at 30; an escaping pair leaves whole."""
    stars, m, (x, _) = sphere(5, 40, 6, (1e-5, 1e-4))
    both = np.array([0, 1, 40, 41])
    stars[:, both] -= np.repeat(x[:, :2], 2, axis=1)[:, [0, 2, 1, 3]]  # two pairs, to be moved
    stars[:3, [0, 40]] += np.array([[8.0], [0], [0]])
    stars[:, [1, 41]] += np.array([[0], [9.0], [0], [0], [2.0], [0]])
    gone = jax.tree.map(np.asarray, find_escapes(Cluster(Hermite(), edge=5.0), stars, m))
    assert np.flatnonzero(gone.gone).tolist() == [1, 41]
    speed = np.linalg.norm([0, 2, 0] - (stars @ m)[3:])  # not that of a member
    np.testing.assert_allclose(gone.speed[[1, 41]], speed, rtol=1e-9)
    assert gone.energy[1] == gone.energy[41] > 0


@pytest.mark.parametrize("unbound", [True, False])
def test_who_escapes_is_said_and_not_guessed_from_the_field(x64, frozen_step, unbound):
    """Test a distant body at rest in a zero field: the study's isolated cluster."""
    stars, m, _ = sphere(2, 16, 0, (1e-3, 1e-2))
    stars[:, 3] = [25, 0, 0, 0, 0, 0]
    origin = Origin(jnp.array([800.0, 0, 0]), jnp.zeros(3))
    field = Tide(potentials.PointMass(jnp.asarray(0.0)), origin)
    spec = Cluster(Hermite(tide=field), edge=20.0, unbound=jnp.asarray(unbound))
    gone = find_escapes(spec, stars, m)
    assert np.flatnonzero(gone.gone).tolist() == ([] if unbound else [3])


@pytest.mark.slow
@pytest.mark.parametrize("low", [1e-6, 1e-3])
def test_no_false_escapes_with_half_of_the_systems_binaries(low):
    """Binaries cover a decade of semi-major axes; edge and close are as without them, to 3 %."""
    with jax.enable_x64(True):
        stars, m, (x, whole) = sphere(11, 64, 32, (low, 10 * low))
    done = evolve(*halves(stars), m, 0.25)
    assert not done.state.stars_gone.gone.any()
    with jax.enable_x64(True):
        count, radius = cluster.count_systems(x, whole)
        alone = cluster.make_pairing(64, int(count), radius)
    assert float(done.spec.steps.pairing.close) == pytest.approx(float(alone.close), rel=0.03)
    total = done.history["kinetic"] + done.history["potential"]
    assert abs(total / total[0] - 1).max() < 1e-5
