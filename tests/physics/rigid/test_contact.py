"""Contact against elementary mechanics: weights, inclined planes, bounces."""

import conformance
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.geometry import sdf
from jaxgpu.physics.rigid import Contact, Link, Simulation, Spheres, State, assemble, passive
from jaxgpu.pytree import pytree

RADIUS, MASS, G, DT = 0.05, 2.0, 9.81, 2e-4
PUSH, SMOOTH = jax.jit(Contact.force), jax.jit(Contact.smooth_force)
FLOOR = sdf.HalfSpace((0.0, 0.0, 1.0))
ROUGH = {"stiffness": 1e4, "dissipation": 2.0, "friction": 0.5, "tangential_damping": 200.0}


def block(tilt, dtype=jnp.float64):
    """A point mass on three slides (no rolling), gravity tilted by `tilt` against the floor."""
    axes = np.eye(3)
    links = [Link(i - 1, "prismatic", axes[i], mass=MASS * (i == 2)) for i in range(3)]
    down = (G * np.sin(tilt), 0.0, -G * np.cos(tilt))
    tree = assemble(links, down, dtype)
    ball = Spheres(jnp.zeros((1, 3), dtype), jnp.full(1, RADIUS, dtype), (2,))
    return Simulation(tree, passive(tree), DT), ball


def slide(tilt, material, steps, start, v=(0.0, 0.0, 0.0)):
    spec, ball = block(tilt)
    contact = Contact(ball, FLOOR, **material)

    def advance(carry, _):
        state, stretch = carry
        force, stretch = contact.force(spec.tree, state, stretch, DT)
        new = spec.step(state, None, force)
        return (new, stretch), new

    begin = State(jnp.array(start), jnp.array(v)), contact.init().astype(jnp.float64)
    return jax.jit(lambda c: jax.lax.scan(advance, c, length=steps))(begin)


def resting(tilt):
    return [0.0, 0.0, RADIUS - MASS * G * np.cos(tilt) / 1e4]


def test_a_ball_at_rest_sinks_in_by_its_weight_over_the_stiffness(x64):
    (end, _), _ = slide(0.0, ROUGH, 20_000, [0.0, 0.0, RADIUS])
    np.testing.assert_allclose(end.q[2], resting(0.0)[2], atol=1e-9)


def test_it_sticks_below_the_angle_of_friction_and_does_not_creep(x64):
    tilt = np.arctan(0.45)  # mu = 0.5
    (_, stretch), path = slide(tilt, ROUGH, 10_000, resting(tilt))
    np.testing.assert_allclose(stretch[0, 0], MASS * G * np.sin(tilt) / 5e3, rtol=1e-6)
    assert abs(path.q[-1, 0] - path.q[-2000, 0]) < 1e-9


def test_it_slides_above_with_the_acceleration_of_coulomb(x64):
    tilt = np.arctan(0.8)
    _, path = slide(tilt, ROUGH, 5_000, resting(tilt))
    gained = path.v[-1, 0] - path.v[-2501, 0]
    np.testing.assert_allclose(
        gained, G * (np.sin(tilt) - 0.5 * np.cos(tilt)) * 2500 * DT, rtol=1e-6
    )


@pytest.mark.parametrize("dissipation", [0.0, 0.25, 0.5])
def test_a_bounce_loses_as_hunt_and_crossley_say(x64, dissipation):
    """Restitution is 1 - 2/3 c v to first order in c v; the tolerance is its square."""
    v, height, steps = 0.2, 1e-4, 100
    material = {"stiffness": 1e6, "dissipation": dissipation, "tangential_damping": 1.0}
    (end, _), _ = slide(0.0, material, steps, [0.0, 0.0, RADIUS + height], (0.0, 0.0, -v))
    assert end.q[2] > RADIUS
    energy = lambda v, q: 0.5 * v**2 + G * (q - RADIUS)
    rebound = np.sqrt(energy(end.v[2], end.q[2]) / energy(v, RADIUS + height))
    np.testing.assert_allclose(rebound, 1 - 2 / 3 * dissipation * v, atol=0.01)


def test_apart_there_is_no_force_and_no_memory():
    spec, ball = block(0.0, jnp.float32)
    state = State(jnp.array([0.0, 0.0, 1.0]), jnp.ones(3))
    stretch = jnp.ones((1, 3))
    force, stretch = PUSH(Contact(ball, FLOOR, **ROUGH), spec.tree, state, stretch, DT)
    np.testing.assert_array_equal(force, 0)
    np.testing.assert_array_equal(stretch, 0)


@pytest.mark.slow
def test_the_smooth_variant_tends_to_the_sharp_one(x64):
    spec, ball = block(0.0)
    state = State(jnp.array([0.0, 0.0, RADIUS - 0.002]), jnp.array([0.3, -0.4, -0.1]))
    contact = Contact(ball, FLOOR, **ROUGH)
    slipped = jnp.array([[0.3, -0.4, 0.0]])  # far beyond what friction holds
    sharp, _ = PUSH(contact, spec.tree, state, slipped, DT)
    smooth = SMOOTH(contact, spec.tree, state, 0.005, 1e-5, 1e-3)
    np.testing.assert_allclose(smooth, sharp, rtol=1e-3)
    apart = State(jnp.array([0.0, 0.0, RADIUS + 1e-4]), jnp.zeros(3))
    push = lambda q: contact.smooth_force(spec.tree, State(q, apart.v), 0.005)[2]
    assert jax.jit(jax.grad(push))(apart.q)[2] < 0  # where the sharp one has no slope yet


def test_contact_at_the_tip_of_an_arm_is_its_jacobian_transposed(x64):
    links = [Link(-1, axis=(0, -1, 0)), Link(0, axis=(0, -1, 0), position=(1, 0, 0))]
    tree = assemble(links, dtype=jnp.float64)
    tip = Spheres(jnp.array([[1.0, 0, 0]]), jnp.array([0.1]), (1,))
    a, b = 0.3, -0.5
    height = np.sin(a) + np.sin(a + b)
    state = State(jnp.array([a, b]), jnp.zeros(2))
    below = sdf.HalfSpace((0.0, 0.0, 1.0), height - 0.09)  # 1 cm deep
    force, _ = PUSH(Contact(tip, below, **ROUGH), tree, state, jnp.zeros((1, 3)), DT)
    across = np.array([np.cos(a) + np.cos(a + b), np.cos(a + b)])  # d height / d q
    np.testing.assert_allclose(force, 1e4 * 0.01 * across, rtol=1e-12)


@pytree
class Whole:
    """A shape that gives the points themselves."""

    def distance(self, x):
        return jnp.stack(x, 1)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"friction": -1.0}, "force: Contact.friction=-1; it must be"),
        ({"stiffness": np.nan}, "force: Contact.stiffness=nan; it must be"),
        ({"dt": 0.0}, "force: dt=0; it must be a finite number above 0"),
        ({"stretch": jnp.zeros((3, 1))}, r"force: stretch has shape \[3, 1\]; it must be \[1, 3\]"),
        ({"surface": Whole()}, r"force: surface gives shape \[1, 3\]; it must give one"),
        ({"spheres": Spheres(jnp.zeros((1, 3)), jnp.ones(1), (7,))}, r"link=\(7,\); there are"),
        ({"spheres": Spheres(jnp.zeros((1, 3)), jnp.ones(2), (0,))}, r"radius has shape \[2\]"),
    ],
)
def test_bad_contact_is_named(change, message):
    spec, ball = block(0.0, jnp.float32)
    good = {"spheres": ball, "surface": FLOOR, **ROUGH, "dt": DT}
    good |= {"stretch": Contact(ball, FLOOR).init()} | change
    stretch, dt = good.pop("stretch"), good.pop("dt")
    with pytest.raises(ValueError, match=message):
        Contact(**good).force(spec.tree, spec.init(), stretch, dt)


@pytest.mark.slow
def test_conforms():
    spec, ball = block(0.0, jnp.float32)
    state = State(jnp.array([0.0, 0.0, 0.0499]), jnp.array([0.01, 0.0, 0.0]))

    @jax.jit
    def push(state, stretch):
        return Contact(ball, FLOOR, **ROUGH).force(spec.tree, state, stretch, DT)

    conformance.check(push, state, jnp.full((1, 3), 1e-6), differentiable=(0, 1), batched=(1,))


def test_copies_lead_and_meet_the_surface_alone(x64):
    spec, ball = block(0.3)
    contact = Contact(ball, FLOOR, **ROUGH)
    rng = np.random.default_rng(5)
    q = jnp.asarray([0, 0, RADIUS] + rng.normal(0, 1e-3, (4, 2, 3)))
    state, stretch = State(q, jnp.asarray(rng.normal(size=(4, 2, 3)))), contact.init((4, 2)) + 1e-6
    force, after = PUSH(contact, spec.tree, state, stretch, DT)
    assert force.shape == (4, 2, 3) and after.shape == (4, 2, 1, 3)
    one = State(q[2, 1], state.v[2, 1])
    alone = PUSH(contact, spec.tree, one, stretch[2, 1], DT)
    np.testing.assert_allclose(force[2, 1], alone[0], rtol=1e-12)
    np.testing.assert_allclose(after[2, 1], alone[1], rtol=1e-12)


def test_a_ball_that_leaves_fast_is_not_pulled_back(x64):
    """Hunt and Crossley's force, k d (1 + c d'), would be -9 times the spring's at 5 m/s."""
    spec, ball = block(0.0)
    leaving = State(jnp.array([0.0, 0.0, RADIUS - 1e-3]), jnp.array([0.0, 0.0, 5.0]))
    force, _ = PUSH(Contact(ball, FLOOR, **ROUGH), spec.tree, leaving, jnp.zeros((1, 3)), DT)
    np.testing.assert_array_equal(force, 0)


def test_friction_pulls_along_the_surface_though_its_spring_was_stretched_on_another_side(x64):
    """On a round surface the normal turns: what of the stretch is along it now does not pull."""
    spec, ball = block(0.0)
    contact = Contact(ball, sdf.Ball(1.0), **(ROUGH | {"friction": 5.0}))
    n = np.array([0.6, 0.0, 0.8])
    pressing = State(jnp.array((1.0 + RADIUS - 1e-3) * n), jnp.zeros(3))
    flat, tilted = (jnp.array([[0.0, 1e-5, 0.0] + part * n]) for part in (0.0, 2e-4))
    (want, _), (force, stretch) = (
        PUSH(contact, spec.tree, pressing, s, DT) for s in (flat, tilted)
    )
    np.testing.assert_allclose(force, want, atol=1e-9)
    assert abs(stretch[0] @ n) < 1e-12 and float(force[1]) < 0
