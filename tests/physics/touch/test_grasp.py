"""A part between two pads: held, dropped, slipping and pushed, against closed-form mechanics."""

from dataclasses import replace
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.geometry import rotations, sdf
from jaxgpu.physics.touch import Grasp, implicit_step, peg, peg_and_socket

PART, SOCKET = peg_and_socket("round-8")
GRASP = Grasp.from_parts(PART, SOCKET, taxels=(8, 7), substeps=2)
WEIGHT = PART.mass * GRASP.gravity
DT = GRASP.dt / GRASP.substeps
AT = jnp.array([0.2, 0.1, 0.3])  # far from the socket
OPTIONS = {"xla_backend_optimization_level": 0}  # compiled once and run a few times
BELOW = 0.022  # m, the part's centre below the hand's


@jax.jit
def step(grasp, state, shift, turn, opening):
    return grasp.step(state, shift, turn, opening)


def run(grasp, state, steps, shift=(0.0, 0.0, 0.0), turn=(0.0, 0.0, 0.0), opening=0.0):
    """Return the states of consecutive steps."""
    states = []
    for _ in range(steps):
        state = step(grasp, state, jnp.array(shift), jnp.array(turn), jnp.asarray(opening))
        states.append(state)
    return states


def held_part(grasp=GRASP):
    return grasp.init(AT, AT.at[2].add(-BELOW), opening=grasp.closed_opening(BELOW))


def loose_part(height, quat=(1.0, 0.0, 0.0, 0.0)):
    """Return a free part at a height above the table, with the gripper far away and open."""
    part = jnp.array([0.1, 0.0, height])
    return GRASP.init(AT, part, part_quat=jnp.array(quat), opening=0.04)


def energy(state):
    """Return kinetic and potential energy of the part in J."""
    velocity, spin = np.asarray(state.part_velocity, float).reshape(2, 3)
    own = np.asarray(rotations.rotate_inverse(state.part_quat, tuple(jnp.asarray(spin))), float)
    kinetic = 0.5 * PART.mass * velocity @ velocity + 0.5 * np.sum(PART.inertia * own**2)
    return kinetic + WEIGHT * float(state.part[2])


def test_a_held_peg_stays_for_four_seconds():
    """Springs with a memory do not creep: only rounding remains, 24 bits of a position of 0.3 m."""
    states = run(GRASP, held_part(), 270)
    settled, end = states[30], states[-1]
    assert jnp.abs((end.part - end.hand) - (settled.part - settled.hand)).max() < 1e-6
    assert abs(rotations.product(end.part_quat, settled.part_quat)[0]) > 1 - 1e-6
    # The pads support the weight, and press as much as the fingers' springs.
    field = np.asarray(end.field, float).sum(1)
    np.testing.assert_allclose(field.sum(0), [0, 0, -WEIGHT], atol=2e-3 * WEIGHT)
    grip = float(GRASP.grip_stiffness * end.opening)
    np.testing.assert_allclose(field[:, 1], [grip, -grip], rtol=1e-3)
    assert not jnp.any(end.reaction)


@pytest.mark.parametrize("share", [0.8, 1.2])
def test_friction_holds_what_coulomb_says(share):
    """Two pads pressed by N hold the weight where 2 friction N > m g; else the part slides down.

    The part covers the pads, so that no edge of it is pressed.
    """
    start = GRASP.init(AT, AT, opening=GRASP.closed_opening())
    grip = float(GRASP.grip_stiffness * run(GRASP, start, 10)[-1].opening)
    friction = share * WEIGHT / (2 * grip)
    grasp = replace(GRASP, pad=replace(GRASP.pad, friction=friction))
    states = run(grasp, start, 5)
    slid = float(start.part[2] - states[-1].part[2])
    gained = float(states[-1].part_velocity[2] - states[1].part_velocity[2])
    if share > 1:
        # The gripper yields to the weight at m g / D; springs stretch by friction N / k_t at most.
        rows = jnp.abs(jnp.asarray(GRASP.taxels)[:, 0]) < 1e-9
        stretch = friction * grip / (GRASP.pad.shear_stiffness * int(rows.sum()))
        assert slid < stretch + 5 * GRASP.dt * WEIGHT / GRASP.damping
        assert float(states[-1].part_velocity[2]) > -1.01 * WEIGHT / GRASP.damping
    else:
        # Check m a = m g - 2 friction N, once all taxels slip, after three steps.
        want = -(1 - share) * GRASP.gravity * 3 * GRASP.dt
        assert gained == pytest.approx(want, rel=1e-3)


@pytest.mark.parametrize("quat", [(1.0, 0.0, 0.0, 0.0), (0.8, 0.5, 0.33, 0.0)])
def test_a_drop_gains_no_energy_and_ends_at_rest(quat):
    state = loose_part(0.045, tuple(np.array(quat) / np.linalg.norm(quat)))
    before = energy(state)
    states = run(GRASP, state, 90, opening=0.04)
    energies = np.array([energy(s) for s in states])
    # Springs are part of the balance: their energy is missing from it, never added.
    assert energies.max() <= before * (1 + 1e-5)
    # In free fall, an implicit step of dt loses m g^2 t dt / 2 of it.
    lost = 0.5 * WEIGHT * GRASP.gravity * GRASP.dt * DT
    assert energies[0] == pytest.approx(before - lost, rel=1e-4)
    # It is upright, or on a side with the 16 corners of its rims; it sinks in by 0.2 to 1 um.
    rest = 0.025 if quat[0] == 1 else 0.5 * 0.007986 * np.cos(np.pi / 16)
    assert float(states[-1].part[2]) == pytest.approx(rest, abs=2e-6)
    assert abs(float(states[-1].part_velocity[2])) < 1e-3


def test_momentum_is_kept_while_nothing_acts_from_without():
    """The forces at a taxel act on pad and part at the same point."""
    none = {"stiffness": 0.0, "damping": 0.0, "turn_stiffness": 0.0, "turn_damping": 0.0}
    grasp = replace(GRASP, gravity=0.0, **none)
    state = replace(
        held_part(),
        hand_velocity=jnp.array([0.02, -0.01, 0.03, 0.3, 0.1, -0.2]),
        part_velocity=jnp.array([-0.01, 0.02, 0.05, -0.4, 0.6, 0.9]),
    )

    def momenta(s):
        hand, part = s.hand_velocity, s.part_velocity
        linear = grasp.hand_mass * hand[:3] + PART.mass * part[:3]
        spin = rotations.momentum(s.part_quat, part[3:], jnp.asarray(PART.inertia, jnp.float32))
        angular = grasp.hand_inertia * hand[3:] + spin
        for x, p in ((s.hand, grasp.hand_mass * hand), (s.part, PART.mass * part)):
            angular += jnp.cross(x - AT, p[:3])
        return np.concatenate([linear, angular])

    states = run(grasp, state, 30)
    assert jnp.linalg.norm(states[-1].part_velocity[:3] - state.part_velocity[:3]) > 0.01
    # The error is 24 bits of 0.04 kg m/s in 60 solutions of 13 equations.
    np.testing.assert_allclose(momenta(states[-1]), momenta(state), atol=2e-6)


def test_a_peg_pushed_on_to_the_rim_tilts_and_yields():
    """Circles of 4.24 and 3.99 mm, 1 mm apart, cross 1.5 mm to the side: outside the peg's axis.

    The peg therefore falls over that chord, with its upper end away from its support.
    """
    on_rim = jnp.array([0.001, 0.0, 0.028 + 0.025 + 0.0005])
    state = GRASP.init(on_rim.at[2].add(BELOW), on_rim, opening=GRASP.closed_opening(BELOW))
    state = run(GRASP, state, 12, shift=(0.0, 0.0, -0.004))[-1]
    up = rotations.rotate(state.part_quat, tuple(jnp.eye(3)[2]))
    assert float(up[0]) < -0.005
    assert abs(float(up[1])) < 1e-3
    assert float(state.reaction[2]) > 1


def test_a_peg_goes_into_its_hole():
    above = jnp.array([0.0, 0.0, 0.028 + 0.025 + 0.001])
    state = GRASP.init(above.at[2].add(BELOW), above, opening=GRASP.closed_opening(BELOW))
    state = run(GRASP, state, 40, shift=(0.0, 0.0, -0.005))[-1]
    assert float(state.part[2]) == pytest.approx(0.005 + 0.025, abs=2e-4)  # on the hole's floor
    # Next to the hole it stands on the top.
    state = GRASP.init(jnp.array([0.015, 0.0, 0.08]), jnp.array([0.015, 0.0, 0.055]))
    state = run(GRASP, state, 40, shift=(0.0, 0.0, -0.005))[-1]
    assert float(state.part[2]) > 0.05


def test_bad_numbers_are_refused():
    with pytest.raises(ValueError, match=r"Grasp.init: part_quat is of length 2"):
        GRASP.init(AT, AT, part_quat=jnp.array([2.0, 0.0, 0.0, 0.0]))
    with pytest.raises(ValueError, match=r"Grasp.init: opening"):
        GRASP.init(AT, AT, opening=-0.01)
    with pytest.raises(
        ValueError, match=r"Grasp.from_parts: part.*=nan; it must be a finite number"
    ):
        Grasp.from_parts(replace(GRASP.part, shape=sdf.Complement(jnp.nan)), GRASP.fixture)
    with pytest.raises(ValueError, match=r"peg: name='round-9'"):
        peg("round-9")


@pytest.mark.slow
def test_gradients_through_thirty_two_steps_are_those_of_differences():
    """Differentiate the held and transported peg's final position along a random shift change."""
    with jax.enable_x64():
        start = jax.tree.map(lambda x: jnp.asarray(x, jnp.float64), held_part())
        turn = jnp.array([0.0, 0.01, 0.0])

        def end(shift):
            go = lambda s, _: (GRASP.step(s, shift, turn), None)
            last = jax.lax.scan(go, start, None, length=32)[0]
            return jnp.dot(last.part, jnp.array([1.0, -2.0, 3.0]), precision="highest")

        shift, way = np.array([0.004, -0.003, 0.002]), np.array([0.5, 0.7, -0.4])
        run = jax.jit(jax.value_and_grad(end), compiler_options=OPTIONS)
        got = np.asarray(run(shift)[1])
        h = 1e-6
        want = (run(shift + h * way)[0] - run(shift - h * way)[0]) / (2 * h)
        assert np.isfinite(got).all()
        # Difference errors are h^2, 1e-16 / h, and those of taxels that change sides within h.
        np.testing.assert_allclose(got @ way, want, rtol=1e-3)


def test_a_part_stands_on_its_fixture_or_on_the_table():
    """Compute by hand the distances of a 10 cm ball at (0.3, 0, 0.2)."""
    ball = SimpleNamespace(shape=sdf.Ball(0.1))
    state = SimpleNamespace(part=jnp.array([0.3, 0.0, 0.45]), fixture=jnp.array([0.3, 0.0, 0.2]))
    for down, want in ((0.05, 0.1), (0.5, -0.05)):
        arm = tuple(jnp.array([0.0, 0.0, -down]))
        distance, normal = implicit_step._fixture_distance(
            SimpleNamespace(fixture=ball), state, arm
        )
        np.testing.assert_allclose(distance, want, atol=1e-6)
        np.testing.assert_allclose(normal, [0, 0, 1], atol=1e-6)
