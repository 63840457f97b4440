"""What moves without inertia, and what unit forces do."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rigid_mechanisms import MUJOCO

from jaxgpu.physics import rigid
from jaxgpu.physics.rigid import Drive, Link, Simulation, State, assemble, from_mjcf, passive
from jaxgpu.physics.rigid.mobility import mobility

STEP = jax.jit(Simulation.step)


def simulation(tree, damping):
    still = jnp.zeros(tree.nv, tree.mass.dtype)
    return Simulation(tree, Drive(still, still + damping), 0.01)


def still(tree):
    return State(jnp.asarray(tree.rest_position), jnp.zeros(tree.nv, tree.mass.dtype))


@pytest.mark.parametrize(
    "links",
    [
        [Link(-1)],  # a point mass on its own axis
        [Link(-1, mass=0.0)],
        [Link(-1, com=(0.3, 0, 0.1), inertia=np.eye(3)), Link(0, mass=0.0)],  # a massless leaf
        [Link(-1, "prismatic", mass=0.0)],
        [Link(-1, "free")],
        [Link(-1, mass=0.0), Link(0, inertia=np.eye(3))],  # two hinges on one axis
        [Link(-1, axis=(1, 2, 3), com=(0.1, 0.2, 0.3))],
    ],
)
def test_what_moves_without_inertia_is_refused(links):
    """At f7b4d67 a step gave nan. Inertia, an armature, or damping in the step mend it."""
    tree = assemble(links)
    for call in (lambda s: s.init(), lambda s: s.step(still(tree))):
        with pytest.raises(ValueError, match="moves without inertia; .* an inertia or an armature"):
            call(Simulation(tree, passive(tree)))
    assert simulation(tree, 1.0).init().q.shape == (tree.nq,)
    rotor = dataclasses.replace(tree, armature=jnp.full(tree.nv, 0.1))
    assert np.isfinite(STEP(simulation(rotor, 0.0), still(rotor)).q).all()


def test_what_has_inertia_somewhere_is_taken():
    """Cardan joints, carriages and arms of random physical links, some of them without mass."""
    rng = np.random.default_rng(3)
    for seed in range(20):
        links = []
        for i in range(4):
            a, b = rng.uniform(0.1, 1, 2) * 10.0 ** rng.uniform(-6, 1)
            inertia, mass = (
                np.diag([a, b, rng.uniform(abs(a - b), a + b)]),
                10 ** rng.uniform(-3, 2),
            )
            light = i < 3 and rng.random() < 0.3
            inertia, mass = (0 * inertia, 0.0) if light else (inertia, mass)
            kind, axis = rng.choice(["revolute", "prismatic"]), rng.normal(size=3)
            place, com = rng.normal(size=(2, 3)) * 0.2
            links.append(Link(i - 1, kind, axis, place, mass=mass, com=com, inertia=inertia))
        tree = assemble(links)
        assert Simulation(tree, passive(tree)).init().q.shape == (4,), seed


@pytest.mark.slow
@pytest.mark.parametrize("i", [2, 4])
def test_mobility_is_the_inverse_mass_between_rows(x64, i):
    tree = from_mjcf(MUJOCO["trees"][i]["xml"], dtype=jnp.float64)
    q = jnp.array(MUJOCO["trees"][i]["states"][0]["q"])
    J = jax.random.normal(jax.random.key(i), (3, tree.nv))
    want = J @ np.linalg.solve(rigid.mass_matrix(tree, q), J.T)
    np.testing.assert_allclose(jax.jit(mobility)(tree, q, J), want, rtol=1e-8)
