"""Constitutive laws against matrix functions, textbook states and each other."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from continuum_run import jit_unoptimized
from scipy.linalg import expm, polar

from jaxgpu.physics.continuum.materials import Corotated, HerschelBulkley, Liquid, NeoHookean, lame
from jaxgpu.physics.continuum.materials.plastic import DruckerPrager, Snow, VonMises

E, NU = 3.1e4, 0.27
MU, LAM = E / 2.54, E * 0.27 / (1.27 * 0.46)  # by the definition, with these numbers

# One program serves all parameter values of a law.
stress = jit_unoptimized(lambda law, matter, flow, dt: law.stress(matter, flow, dt))


def mat(a):
    return tuple(tuple(np.float64(x) for x in row) for row in a)


def array(m):
    return np.array([[np.asarray(x) for x in row] for row in m])


def strain_once(law, f, d):
    """Return the state and stress after one step from rest to the deformation f."""
    matter, tau = stress(law, law.rest(jnp.ones(()), d), mat(f - np.eye(d)), 1.0)
    return matter, array(tau)


def random_stretch(seed, d, size=0.25):
    return np.eye(d) + size * np.random.default_rng(seed).uniform(-1, 1, (d, d))


@pytest.mark.parametrize("d", [2, 3])
def test_elastic_stresses_are_those_of_the_matrix_formulas(x64, d):
    for seed in range(5):
        f = random_stretch(seed, d)
        j, eye = np.linalg.det(f), np.eye(d)
        r = polar(f)[0]
        expected = {
            NeoHookean(E, NU): MU * (f @ f.T - eye) + LAM * np.log(j) * eye,
            Corotated(E, NU): 2 * MU * (f - r) @ f.T + LAM * (j - 1) * j * eye,
        }
        for law, want in expected.items():
            np.testing.assert_allclose(strain_once(law, f, d)[1], want, rtol=1e-11, atol=1e-9 * E)


def test_small_strain_is_hooke(x64):
    strain = 1e-7 * np.array([[1.0, 0.3, 0.0], [0.3, -0.5, 0.2], [0.0, 0.2, 0.4]])
    want = 2 * MU * strain + LAM * np.trace(strain) * np.eye(3)
    laws = [NeoHookean(E, NU), Corotated(E, NU), VonMises(E, NU, 1e9), Snow(E, NU, hardening=0.0)]
    for law in laws:
        got = strain_once(law, np.eye(3) + strain, 3)[1]
        # The error is of second order in a strain of 1e-7.
        np.testing.assert_allclose(got, want, atol=1e-12 * E, err_msg=type(law).__name__)
    np.testing.assert_allclose(lame(E, NU), (MU, LAM))


def test_liquid_pressure_and_viscous_stress_by_hand(x64):
    rate = np.array([[0.2, 1.0, 0.0], [0.0, -0.1, 0.5], [0.0, 0.0, 0.3]])
    dt, eta, bulk = 1e-3, 3.0, 2e4
    j = 1 + dt * 0.4
    sym = (rate + rate.T) / 2
    dev = sym - 0.4 / 3 * np.eye(3)
    matter, tau = stress(Liquid(bulk, eta, tension=1e9), jnp.ones(()), mat(rate), dt)
    p = bulk / 7 * (j**-7 - 1)
    np.testing.assert_allclose(matter, j)
    np.testing.assert_allclose(array(tau), j * (-p * np.eye(3) + 2 * eta * dev), rtol=1e-12)
    plane = rate[:2, :2]  # in the plane trace and deviator are still those of space
    tau = stress(Liquid(bulk, eta, tension=1e9), jnp.ones(()), mat(plane), dt)[1]
    dev = (plane + plane.T) / 2 - 0.1 / 3 * np.eye(2)
    p = bulk / 7 * ((1 + 1e-4) ** -7.0 - 1)
    np.testing.assert_allclose(array(tau), (1 + 1e-4) * (-p * np.eye(2) + 2 * eta * dev))


def test_liquid_parts_at_its_tension_limit(x64):
    expand = mat(np.eye(3) * 0.5)
    for limit in (0.0, 40.0):
        tau = array(stress(Liquid(1e5, tension=limit), jnp.ones(()), expand, 0.1)[1])
        np.testing.assert_allclose(tau, limit * 1.15 * np.eye(3))  # Kirchhoff: times J


def test_parted_liquid_bears_shear_by_its_own_volume(x64):
    rate = np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    for volume in (0.99, 1.0, 3.0, 900.0):
        tau = array(stress(Liquid(1e5, 5.0), jnp.asarray(volume), mat(rate), 0.1)[1])
        np.testing.assert_allclose(tau[0, 1], 5.0 * 2.0 * min(volume, 1), rtol=1e-12)
    lone = mat(np.eye(3) * 50.0)  # a drop alone keeps its rate: 6 times as large every step
    volume = jnp.ones(())
    for _ in range(500):
        volume, tau = stress(Liquid(1e5, 5.0), volume, lone, 0.1)
    assert np.isfinite(volume) and not array(tau).any()


@pytest.mark.parametrize("index", [0.6, 1.0, 1.4])
def test_herschel_bulkley_flow_curve(x64, index):
    law = HerschelBulkley(1e5, 12.0, 2.0, index, growth=1e4)
    for shear in (0.1, 1.0, 30.0):
        rate = np.zeros((3, 3))
        rate[0, 1] = shear
        tau = array(stress(law, jnp.ones(()), mat(rate), 1e-9)[1])
        np.testing.assert_allclose(tau[0, 1], 12 + 2 * shear**index, rtol=1e-6)
    shear_stress = lambda g: law.stress(jnp.ones(()), ((0.0, g), (0.0, 0.0)), 1e-9)[1][0][1]
    slope = jit_unoptimized(jax.grad(shear_stress))
    assert np.isfinite(slope(0.0)) and slope(0.0) > 0


@pytest.mark.parametrize("hardening", [0.0, 5e3])
def test_von_mises_in_uniaxial_strain_and_shear(x64, hardening):
    law = VonMises(E, NU, yield_stress=900.0, hardening=hardening)
    # The stretch keeps volume: dev e = e, trial |e| = sqrt(3/2) a along (2, -1, -1) / sqrt 6.
    a = 0.2
    matter, tau = strain_once(law, np.diag(np.exp([a, -a / 2, -a / 2])), 3)
    # The equivalent stress is 3 mu a - 3 mu p = sigma_y + H p.
    p = (3 * MU * a - 900.0) / (3 * MU + hardening)
    np.testing.assert_allclose(matter.history, p, rtol=1e-10)
    np.testing.assert_allclose(tau[0, 0] - tau[1, 1], 900.0 + hardening * p, rtol=1e-10)
    below = strain_once(law, expm(np.array([[0, 0.01, 0], [0.01, 0, 0], [0, 0, 0]])), 3)
    np.testing.assert_allclose(below[1][0, 1], 2 * MU * 0.01, rtol=1e-10)  # elastic
    assert below[0].history == 0


@pytest.mark.parametrize(
    "law",
    [
        DruckerPrager(E, NU, 0.6),
        *(
            pytest.param(law, marks=pytest.mark.slow)
            for law in (VonMises(E, NU, 500.0, 1e3), DruckerPrager(E, NU, 0.6, grain=0.1), Snow(E))
        ),
    ],
)
def test_plane_strain_is_space_without_flow_out_of_the_plane(x64, law):
    for seed in (0, 1):
        rng = np.random.default_rng(seed)
        flat, full = law.rest(jnp.ones(()), 2), law.rest(jnp.ones(()), 3)
        for _ in range(6):
            rate = rng.normal(size=(2, 2)) - 0.3 * np.eye(2)
            deep = np.zeros((3, 3))
            deep[:2, :2] = rate
            flat, tau = stress(law, flat, mat(rate), 0.05)
            full, want = stress(law, full, mat(deep), 0.05)
            np.testing.assert_allclose(array(tau), array(want)[:2, :2], rtol=1e-9, atol=1e-8 * E)
            np.testing.assert_allclose(flat.history, full.history, rtol=1e-9, atol=1e-12)


def test_sand_stays_on_or_inside_the_mohr_coulomb_cone(x64):
    phi, touched = 0.55, 0
    law = DruckerPrager(E, NU, phi)
    slope = np.sqrt(2 / 3) * 2 * np.sin(phi) / (3 - np.sin(phi))
    for seed in range(5):
        rng, matter = np.random.default_rng(seed), law.rest(jnp.ones(()), 3)
        for _ in range(20):
            rate = rng.normal(size=(3, 3))
            rate -= (np.trace(rate) / 3 + 0.1) * np.eye(3)  # shear under slowly growing pressure
            matter, tau = stress(law, matter, mat(rate), 0.05)
            tau = array(tau)
            dev = np.linalg.norm(tau - np.trace(tau) / 3 * np.eye(3))
            assert dev <= -slope * np.trace(tau) + 1e-9 * E
            touched += np.isclose(dev, -slope * np.trace(tau), rtol=1e-6)
    assert touched > 15  # it does flow


def test_sand_in_triaxial_compression_fails_at_the_friction_angle(x64):
    # The definition of phi is sigma_1 / sigma_3 = (1 + sin phi) / (1 - sin phi).
    phi = 0.5
    tau = strain_once(DruckerPrager(E, NU, phi), np.diag(np.exp([-0.3, 0.1, 0.1])), 3)[1]
    ratio = tau[0, 0] / tau[1, 1]
    np.testing.assert_allclose(ratio, (1 + np.sin(phi)) / (1 - np.sin(phi)), rtol=1e-8)


def test_sand_fitted_to_plane_strain_fails_there_at_the_friction_angle(x64):
    phi = 0.5
    law = DruckerPrager(E, NU, phi, plane=True)
    matter, tau = strain_once(law, np.diag([0.98, 0.98]), 2)
    for _ in range(40):  # shear at constant area until the stress out of the plane has settled
        matter, tau = stress(law, matter, mat(np.diag([-0.5, 0.5])), 0.01)
    low, high = np.sort(np.diag(array(tau)))
    np.testing.assert_allclose(low / high, (1 + np.sin(phi)) / (1 - np.sin(phi)), rtol=1e-3)


def test_sand_gives_back_the_volume_it_gained_before_it_presses(x64):
    law, matter = DruckerPrager(E, NU), DruckerPrager(E, NU).rest(jnp.ones(()), 3)
    grow, shrink = mat(np.eye(3) * 0.1), mat(-np.eye(3) * 0.1)
    for rate in (grow, grow, shrink):
        matter, tau = stress(law, matter, rate, 1.0)
        np.testing.assert_array_equal(array(tau), 0)
    np.testing.assert_allclose(matter.history, 3 * np.log(1.1 * 1.1 * 0.9), rtol=1e-12)
    for _ in range(2):
        matter, tau = stress(law, matter, shrink, 1.0)
    # ln J = 3 ln(1.1^2 0.9^3) < 0 of all five steps creates the pressure.
    want = (3 * LAM + 2 * MU) * np.log(1.1**2 * 0.9**3)
    np.testing.assert_allclose(np.diag(array(tau)), want, rtol=1e-9)


def test_snow_keeps_stretches_within_limits_and_hardens(x64):
    law = Snow(E, NU, compression=0.025, stretch=0.0075, hardening=10.0)
    matter, tau = strain_once(law, np.diag([0.9, 1.0, 1.05]), 3)
    s = np.diag(array(matter.F))
    np.testing.assert_allclose(s, [0.975, 1.0, 1.0075])
    ratio = 0.9 * 1.05 / (0.975 * 1.0075)
    np.testing.assert_allclose(matter.history, ratio)
    harder = np.exp(10 * (1 - ratio))
    j = s.prod()
    want = harder * (2 * MU * (s - 1) * s + LAM * (j - 1) * j)
    np.testing.assert_allclose(np.diag(tau), want, rtol=1e-10)


LAWS = [
    Liquid(E, 2.0), HerschelBulkley(E), NeoHookean(E, NU), Corotated(E, NU),
    VonMises(E, NU, 500.0, 1e3), DruckerPrager(E, NU), DruckerPrager(E, NU, grain=0.1), Snow(E, NU),
]  # fmt: skip


@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
def test_stress_does_not_depend_on_the_observer(x64, law, d=3):
    rng = np.random.default_rng(7)
    q = np.linalg.qr(rng.normal(size=(d, d)))[0]
    plain = turned = law.rest(jnp.ones(()), d)
    for _ in range(3):
        rate = rng.normal(size=(d, d)) - 0.5 * np.eye(d)
        plain, tau = stress(law, plain, mat(rate), 0.03)
        turned, tau_turned = stress(law, turned, mat(q @ rate @ q.T), 0.03)
        np.testing.assert_allclose(array(tau_turned), q @ array(tau) @ q.T, atol=1e-9 * E)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
def test_every_parameter_has_its_derivative(x64, law):
    # In a fast compression with shear, every branch except separation is active.
    rate = mat([[-0.6, 0.9], [0.2, -0.5]])

    def work(law, rate):
        step = lambda matter, _: law.stress(matter, rate, 0.05)
        tau = jax.lax.scan(step, law.rest(jnp.ones(()), 2), length=2)[1]
        return sum((i + 2 * j + 1) * tau[i][j][1] for i in range(2) for j in range(2)) / E

    leaves, tree = jax.tree.flatten(law)
    values = [np.asarray(float(a)) for a in leaves]
    f = jit_unoptimized(jax.value_and_grad(lambda v: work(jax.tree.unflatten(tree, v), rate)))
    slope = f(values)[1]
    for i, value in enumerate(values):
        size = max(abs(float(value)), 0.1)

        def central(h, i=i):
            ahead, behind = (
                f([v + s * h * (k == i) for k, v in enumerate(values)])[0] for s in (1, -1)
            )
            return (ahead - behind) / (2 * h)

        # Errors are rounding, 1e-16 / 1e-5, and third derivatives, 1e-10, of a work of order 0.1.
        best = min(abs(central(h * size) - slope[i]) for h in (1e-4, 1e-5))
        assert best <= 1e-6 * abs(slope[i]) + 1e-10 / size, (i, slope[i])


@pytest.mark.slow
@pytest.mark.parametrize("law", [LAWS[4], LAWS[6]], ids=lambda law: type(law).__name__)
def test_a_law_of_stretches_has_its_curvature(x64, law):
    """Differentiate along changes of the flow and of all parameters at once."""
    leaves, tree = jax.tree.flatten(law)
    values = [float(a) for a in leaves]
    rng = np.random.default_rng(11)
    way = [0.1 * v * rng.normal() for v in values], 0.2 * rng.normal(size=(2, 2))

    bent = stress(law, law.rest(jnp.ones(()), 2), mat([[-0.6, 0.9], [0.2, -0.5]]), 0.05)[0]

    def work(h):
        law = jax.tree.unflatten(tree, [a + h * b for a, b in zip(values, way[0])])
        rate = jnp.array([[-0.5, 0.2], [0.7, -0.6]]) + h * way[1]
        _, tau = law.stress(bent, tuple(map(tuple, rate)), 0.05)
        return sum((i + 2 * j + 1) * tau[i][j] for i in range(2) for j in range(2)) / E

    both = jit_unoptimized(lambda h: jax.jvp(jax.grad(work), (h,), (1.0,)))
    curvature, slope = both(0.0)[1], lambda h: both(h)[0]
    # Rounding 1e-16 / h competes with third derivatives h^2.
    best = min(abs((slope(h) - slope(-h)) / (2 * h) - curvature) for h in (1e-3, 1e-4, 1e-5))
    assert best <= 1e-6 * abs(curvature) + 1e-9


@pytest.mark.parametrize("law", [NeoHookean(E, NU), Corotated(E, NU)], ids=["hyper", "corotated"])
def test_what_is_elastic_is_not_viscous(law):
    assert law.kinematic_viscosity(1000.0) == 0
