"""A bound pair is one body where a cluster is weighed, and where it is judged who has left."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance import check
from nbody_inputs import halves, points

from jaxgpu.physics.nbody.clusters import Cluster, Hermite, centres, cluster, evolve
from jaxgpu.physics.nbody.forces import potentials
from jaxgpu.physics.nbody.forces.tide import Alone, Origin, Tide
from jaxgpu.physics.nbody.models import binary_orbits, paired, plummer

weighed = jax.jit(
    lambda x, m: (lambda bodies: (bodies, centres.virial_radius(bodies)))(
        centres.joined(centres.singles(x, m))
    )
)


def sphere(seed, count, binaries, a):
    """Systems of unequal masses and binaries of unequal stars; places, masses, and the systems."""
    by_place, by_orbit = jax.random.split(jax.random.key(seed))
    rng = np.random.default_rng(seed)
    (x, v), m = plummer(by_place, count), rng.uniform(0.2, 1.8, count)
    m /= m.sum()
    part = rng.uniform(0.05, 0.95, binaries)
    first = m.copy()
    first[:binaries] *= part
    orbit = binary_orbits(by_orbit, binaries, a)
    *stars, masses = paired(x, v, jnp.asarray(first), jnp.asarray(m[:binaries] * (1 - part)), orbit)
    return points(stars), np.array(masses), (points((x, v)), m)


@pytest.mark.slow
@pytest.mark.parametrize("a", [1e-6, 1e-4, 1e-2])
def test_binaries_take_nothing_from_the_virial_radius(x64, a):
    """It, and what is measured in it, are as without them; at f7b4d67 down to 0.004 of that."""
    binaries = 77
    stars, m, (x, whole) = sphere(84, 256, binaries, (a, 1.01 * a))
    found, radius = weighed(stars, m)
    want = centres.virial_radius(centres.singles(jnp.asarray(x), jnp.asarray(whole)))
    assert radius == pytest.approx(float(want), rel=0.02)
    assert radius / int(found.count) == pytest.approx(float(want) / 256, rel=0.04)
    if a < 1e-3:
        both = found.of_stars()
        np.testing.assert_allclose(both[:, :binaries], both[:, 256:], atol=1e-12)
        np.testing.assert_allclose(both[:, :256], x, atol=1e-9)


def test_singles_stay_single_and_a_triple_is_one(x64):
    """Chance pairs of a cold sphere are few; of a hierarchy the outer orbit counts."""
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.normal(size=(3, 64)), np.zeros((3, 64))])
    assert weighed(x, rng.uniform(0.5, 1.5, 64) / 64)[0].count >= 62
    m = np.array([0.5, 0.2, 0.3])
    inner = np.array([1e-3, 0, 0, 0, np.sqrt(0.7 / 1e-3), 0])
    outer = np.array([0, 0.1, 0, np.sqrt(1 / 0.1), 0, 0])
    x = np.stack([-inner * 2 / 7 - 0.3 * outer, inner * 5 / 7 - 0.3 * outer, 0.7 * outer], 1)
    found, radius = weighed(x, m)
    assert found.keeper.tolist() == [found.keeper[0]] * 3
    np.testing.assert_allclose(found.of_stars(), 0, atol=1e-12)
    assert radius == pytest.approx(1 / (2 * 0.7 * 0.3 / 0.1), rel=1e-9)


@pytest.mark.slow
def test_conforms(x64):
    """The centre of mass of all is kept, in batches too."""
    f = lambda x, m: centres.joined(centres.singles(x, m)).x[:, 0]
    stars, m, _ = sphere(1, 16, 4, (1e-3, 1e-2))
    check(f, jnp.asarray(stars), jnp.asarray(m), batched=(0,))


def judged(monkeypatch, stars, m, *, unbound, edge=5.0, tide=None):
    """Whom a step that moves nobody finds to have gone."""
    monkeypatch.setattr(Hermite, "step", lambda spec, state: state)
    spec = Cluster(Hermite(tide=tide or Alone()), edge=edge, unbound=unbound)

    @jax.jit
    def one(x):
        now = spec.init(*halves(x), jnp.asarray(m))
        return spec.step(now).stars_gone

    return jax.tree.map(np.asarray, one(jnp.asarray(stars)))


@pytest.mark.slow
def test_members_of_a_pair_leave_with_it_or_not_at_all(x64, monkeypatch):
    """Far pairs at rest stay, though their members' speeds are 30; one that is off leaves whole."""
    stars, m, (x, _) = sphere(5, 40, 6, (1e-5, 1e-4))
    both = np.array([0, 1, 40, 41])
    stars[:, both] -= np.repeat(x[:, :2], 2, axis=1)[:, [0, 2, 1, 3]]  # two pairs, to be moved
    stars[:3, [0, 40]] += np.array([[8.0], [0], [0]])
    stars[:, [1, 41]] += np.array([[0], [9.0], [0], [0], [2.0], [0]])
    gone = judged(monkeypatch, stars, m, unbound=True)
    assert np.flatnonzero(gone.gone).tolist() == [1, 41]
    speed = np.linalg.norm([0, 2, 0] - (stars @ m)[3:])  # not that of a member
    np.testing.assert_allclose(gone.speed[[1, 41]], speed, rtol=1e-9)
    assert gone.energy[1] == gone.energy[41] > 0


@pytest.mark.parametrize("unbound", [True, False])
def test_who_escapes_is_said_and_not_guessed_from_the_field(x64, monkeypatch, unbound):
    """A body at rest far off, in a field that is nothing: the study's cluster that is alone."""
    stars, m, _ = sphere(2, 16, 0, (1e-3, 1e-2))
    stars[:, 3] = [25, 0, 0, 0, 0, 0]
    origin = Origin(jnp.array([800.0, 0, 0]), jnp.zeros(3))
    field = Tide(potentials.PointMass(jnp.asarray(0.0)), origin)
    how = {"edge": 20.0, "tide": field, "unbound": jnp.asarray(unbound)}
    gone = judged(monkeypatch, stars, m, **how)
    assert np.flatnonzero(gone.gone).tolist() == ([] if unbound else [3])


@pytest.mark.slow
@pytest.mark.parametrize("low", [1e-6, 1e-5, 1e-4, 1e-3])
def test_no_false_escapes_with_half_of_the_systems_binaries(low):
    """Over a decade of semi-major axes each; edge and close as without binaries, to 3 %."""
    with jax.enable_x64(True):
        stars, m, (x, whole) = sphere(11, 256, 128, (low, 10 * low))
    done = evolve(*halves(stars), m, 0.25)
    assert not done.state.stars_gone.gone.any()
    with jax.enable_x64(True):
        count, radius = cluster.systems(x, whole)
        alone = cluster.pairing(256, int(count), radius)
    assert float(done.spec.steps.pairing.close) == pytest.approx(float(alone.close), rel=0.03)
    total = done.history["kinetic"] + done.history["potential"]
    assert abs(total / total[0] - 1).max() < 1e-5
