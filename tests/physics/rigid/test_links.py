"""What no link can be, in one sentence each; at f7b4d67 most of it was taken."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.physics.rigid import Link, Simulation, State, assemble, forward_kinematics, passive


@pytest.mark.parametrize(
    "links, message",
    [
        ([Link(-1, lower=np.nan)], "Link.lower=nan; it must be a number or infinity"),
        (
            [Link(-1, mass=np.nan)],
            "link 0: Link.mass=nan; it must be a finite number of at least 0",
        ),
        ([Link(-1, armature=-1.0)], "Link.armature=-1; it must be a finite number of at least 0"),
        ([Link(-1, damping=-1.0)], "Link.damping=-1; it must be"),
        ([Link(-1, axis=(np.nan, 0, 1))], r"Link.axis=nan at \[0\]; it must be a finite number"),
        ([Link(-1, position=(1, 2))], r"position of shape \[2\]; it must be of shape \[3\]"),
        ([Link(-1, inertia=-np.eye(3))], "moments -1, -1 and -1 .* none may be negative"),
        ([Link(-1, inertia=np.diag([1, 1, 10.0]))], "nor exceed the sum of the other two"),
        ([Link(-1, inertia=np.eye(3) + np.eye(3, k=1))], "it must be symmetric"),
        ([Link(-1, inertia=np.ones(3))], r"inertia of shape \[3\]; it must be of shape \[3, 3\]"),
        ([Link(-1, rotation=np.ones((3, 3)))], "must be orthonormal with determinant 1"),
        ([Link(-1, rotation=np.diag([1, 1, -1]))], "must be orthonormal with determinant 1"),
        ([Link(-1, "free", stiffness=2.0)], "is free but has stiffness=2; springs and limits act"),
        ([Link(-1, "free", upper=2.0)], "is free but has upper=2"),
    ],
)
def test_a_link_that_cannot_be_is_named(links, message):
    with pytest.raises(ValueError, match=message):
        assemble(links)


@pytest.mark.parametrize(
    "links, options, message",
    [
        (Link(-1), {}, "links is not a list of `Link`; give one"),
        ([Link("base")], {}, "parent='base'; it must be of real numbers"),
        ([Link(-1, mass=[1, [2]])], {}, "mass=.* it must be of real numbers"),
        ([Link(-1)], {"dtype": int}, "it must be a floating type"),
        ([Link(-1)], {"gravity": "down"}, "gravity='down'; it must be"),
    ],
)
def test_what_is_no_number_is_named(links, options, message):
    with pytest.raises(TypeError, match=message):
        assemble(links, **options)


def test_inertias_of_random_bodies_are_taken_in_any_dtype():
    """Sums over random points are physical, also after rounding to float32 and to four digits."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(5, 3)) * 10.0 ** rng.uniform(-4, 2, 3)
        I = np.sum(x * x) * np.eye(3) - x.T @ x
        R = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        R = np.round(R * np.sign(np.linalg.det(R)), 5)
        link = Link(-1, mass=1.0, inertia=I.astype(np.float32), rotation=R)
        assert assemble([link]).inertia.shape == (1, 3, 3)


@pytest.mark.slow
def test_masses_and_inertias_are_leaves_to_differentiate_and_to_batch(x64):
    """The torque that holds a rod level is m g l; its acceleration is m g l / (I + m l^2)."""
    level = jnp.array([0.0])

    def tree_of(mass, inertia):
        return assemble(
            [Link(-1, axis=(0, 1, 0), mass=mass, com=(0.4, 0, 0), inertia=inertia * jnp.eye(3))],
            dtype=jnp.float64,
        )

    def falls(mass, inertia):
        tree = tree_of(mass, inertia)
        spec = Simulation(tree, passive(tree), 1e-3)
        return spec.step(State(level, level)).v[0] / 1e-3

    arm = lambda m, i: m * 9.81 * 0.4 / (i + m * 0.16)
    m, i = jnp.array([0.5, 2.0]), jnp.array([0.1, 0.7])
    np.testing.assert_allclose(jax.jit(jax.vmap(falls))(m, i), arm(m, i), rtol=1e-10)
    for k in (0, 1):
        got = jax.jit(jax.vmap(jax.grad(falls, k)))(m, i)
        np.testing.assert_allclose(got, jax.vmap(jax.grad(arm, k))(m, i), rtol=1e-9)
    same = jax.jit(tree_of)(0.5, 0.1)
    np.testing.assert_allclose(same.inertia, tree_of(0.5, 0.1).inertia)
    with pytest.raises(ValueError, match=r"link 0 has mass of shape \[2\]; it must be of shape"):
        jax.jit(lambda m: tree_of(m, 0.1).mass)(m)


def test_a_rotation_may_be_traced(x64):
    """A tip 2 m along a link that is turned about z by a moves by 2 (-sin a, cos a) m a radian."""

    def tip(a):
        zero, one = jnp.zeros_like(a), jnp.ones_like(a)
        turned = [
            [jnp.cos(a), -jnp.sin(a), zero],
            [jnp.sin(a), jnp.cos(a), zero],
            [zero, zero, one],
        ]
        links = [Link(-1, rotation=jnp.array(turned)), Link(0, position=(2.0, 0.0, 0.0))]
        return forward_kinematics(assemble(links, dtype=jnp.float64), jnp.zeros(2)).x[1]

    a = jnp.array(0.3)
    np.testing.assert_allclose(tip(a), [2 * np.cos(0.3), 2 * np.sin(0.3), 0], atol=1e-15)
    found = jax.jit(jax.jacfwd(tip))(a)
    np.testing.assert_allclose(found, [-2 * np.sin(0.3), 2 * np.cos(0.3), 0], atol=1e-15)
