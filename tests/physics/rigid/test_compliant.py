"""Compliant contacts: energy, statics, friction and slopes, against mechanics and differences."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.physics import rigid
from jaxgpu.physics.rigid.constraints import compliance
from jaxgpu.runs.loop import rollout

G, STEP = 9.81, 0.002
OPTIONS = {"xla_backend_optimization_level": 0}  # compiled once and run once
FLOOR = '<geom type="plane" size="9 9 .1" friction="{}" {}/>'
BALL = '<body pos="0 0 .03"><freejoint/><geom size=".01" mass="1" friction="{}" {}/></body>'


def world(bodies, friction=1.0, more="", **sizes):
    floor = FLOOR.format(friction, more)
    text = f'<mujoco><option timestep="{STEP}"/><worldbody>{floor}{bodies}</worldbody></mujoco>'
    return rigid.load(text, contact="compliant", **sizes)


def weighing(model, mass):
    """Return the model with masses times a number, and with constraints of matching softness."""
    bodies = model.bodies
    heavy = dataclasses.replace(bodies, mass=mass * bodies.mass, inertia=mass * bodies.inertia)
    return rigid.update_invweight(dataclasses.replace(model, bodies=heavy))


# solref, and the spring's stiffness per kilogram: k d^2 / (1 - d), d the largest impedance.
SHARE = 0.95**2 / 0.05
SPRINGS = {
    "damped": ("", SHARE / (0.95 * 0.02) ** 2),
    "bouncing": ('solref="-500 -1"', SHARE * 500 / 0.95**2),
}


@functools.cache
def balls(spring):
    """Return masses [24], and for each step the balls' energy per kilogram and their height.

    They are dropped, thrown along the floor and spun.
    """
    solref, stiffness = SPRINGS[spring]
    model = world(BALL.format(1, solref), more=solref, contacts=1)
    mass = np.repeat(np.geomspace(1e-3, 100, 6), 4)
    speed, spin = np.tile([0.0, 0, 2, 2], 6), np.tile([0.0, 30, 0, 200], 6)
    energy, height = drop_balls(model, mass, speed, spin, stiffness)
    return mass, np.asarray(energy), np.asarray(height)


@functools.partial(jax.jit, compiler_options=OPTIONS)
@functools.partial(jax.vmap, in_axes=(None, 0, 0, 0, None))
def drop_balls(model, mass, speed, spin, stiffness):
    heavy = weighing(model, mass)
    zero = jnp.zeros_like(mass)
    start = heavy.init(qvel=jnp.stack([speed, zero, zero, spin, 2 * spin, zero]))

    def measure(state):  # per kilogram
        depth = jnp.maximum(0.01 - state.qpos[2], 0)
        energy = sum(rigid.energy(heavy, state)) / mass + stiffness * depth**2 / 2
        return energy, state.qpos[2]

    _, (energy, height) = rollout(heavy.step, start, 1000, measure=measure)
    return jnp.concatenate([measure(start)[0][None], energy]), height


@pytest.mark.parametrize("spring", SPRINGS)
def test_no_ball_gains_energy_at_any_mass(spring, x64):
    """Test 1 g to 100 kg; the energy includes motion, height and spring."""
    _, energy, height = balls(spring)
    assert np.diff(energy, axis=1).max() < 1e-9
    np.testing.assert_allclose(height[:, -1], 0.01 - G / SPRINGS[spring][1], atol=1e-4)
    highest = height[::4, 60:].max(1)  # of those that only fall, after the first touch
    assert (highest > 0.013).all() if spring == "bouncing" else (highest < 0.011).all()


def test_a_ball_at_rest_lies_as_deep_as_its_weight_presses_the_spring(x64):
    """Check K = k d^2 m / (1 - d), k = 1 / (d T zeta)^2, d the largest impedance; m is 1 / A."""
    k, d = 1 / (0.95 * 0.02) ** 2, 0.95
    depth = 0.01 - balls("damped")[2][::4, -1]
    np.testing.assert_allclose(depth, G * (1 - d) / (k * d**2), rtol=1e-6)


def test_the_damper_grows_with_the_depth_up_to_the_width(x64):
    """Check D = h (K h + B): no damper at a gap, half at half of the width, full outside it."""
    model, inverse, h = world(BALL.format(1, "")), 2.0, STEP
    gap = np.array([0.001, 0.0, -0.002, -0.004, -0.008])
    rows = lambda x: np.repeat([x], len(gap), 0)
    given = rows(np.ones(5)), rows([0.02, 1.0]), rows([0.9, 0.95, 0.004, 0.5, 2])
    J, speed, share = (
        np.zeros((len(gap), 3, 6)),
        np.zeros((len(gap), 3)),
        np.full(len(gap), inverse),
    )
    got = jax.jit(lambda *rows: compliance.compliant_cone(model, *rows).D)(
        given, gap, J, speed, share
    )
    K = SHARE / inverse / (0.95 * 0.02) ** 2
    B = SHARE / 0.95 / inverse * 2 / (0.95 * 0.02) * np.array([0, 0, 0.5, 1, 1])
    np.testing.assert_allclose(got, h * (K * h + B), rtol=1e-12)


@pytest.mark.slow
def test_a_block_sticks_below_the_angle_of_friction_and_slides_above_it(x64):
    """The block slides with a = g (sin t - mu cos t), or creeps as the regularisation permits."""
    block = (
        '<body pos="0 0 .0199"><freejoint/><geom type="box" size=".2 .2 .02" friction=".5"/></body>'
    )
    model = world(block, friction=0.5)

    def speed(angle):
        g = jnp.stack([G * jnp.sin(angle), jnp.zeros_like(angle), -G * jnp.cos(angle)])
        here = dataclasses.replace(model, option=dataclasses.replace(model.option, gravity=g))
        return rollout(here.step, here.init(), 500, measure=lambda s: s.qvel[0])[1]

    angles = np.array([0.2, 0.4, 0.6, 0.8])
    v = np.asarray(jax.jit(jax.vmap(speed), compiler_options=OPTIONS)(angles))
    assert (np.abs(v[:2, -1]) < 0.02).all()
    got = (v[2:, -1] - v[2:, 249]) / (250 * STEP)
    np.testing.assert_allclose(got, G * (np.sin(angles) - 0.5 * np.cos(angles))[2:], rtol=0.03)


@pytest.mark.slow
def test_slopes_of_a_rollout_are_those_of_differences(x64):
    """A spinning ball falls, touches and slips: slopes in its initial state and friction."""
    model = world(BALL.format(0.3, ""), friction=0.3, contacts=1)
    weights = np.random.default_rng(0).normal(size=13)

    def value(x):
        rough = dataclasses.replace(model.geoms, friction=model.geoms.friction.at[:, 0].set(x[6]))
        here = dataclasses.replace(model, geoms=rough)
        q = here.qpos0.at[2].set(0.0102)
        end, _ = rollout(here.step, here.init(q, x[:6]), 32)
        return weights @ jnp.concatenate([end.qpos, end.qvel])

    run = jax.jit(jax.vmap(jax.value_and_grad(value)))
    rng, e = np.random.default_rng(1), 1e-6
    draw = lambda: [*rng.normal(size=3) * [1, 1, 0.2], *rng.normal(size=3) * 20, 0.3]
    x = np.array([draw() for _ in range(12)])
    got = np.asarray(run(x)[1])
    want = [(run(x + e * w)[0] - run(x - e * w)[0]) / (2 * e) for w in np.eye(7)]
    want = np.stack(want, 1)
    close = np.abs(got - want).max(1) < 1e-4 * (1 + np.abs(want).max(1))
    assert np.sum(close) >= 11  # a step may end on the edge of a zone


@pytest.mark.slow
def test_the_force_begins_and_ends_with_none(x64):
    """The force of a falling ball is continuous in its height, where a soft contact jumps."""

    def push(model):
        def force_at(z):
            state = model.init(model.qpos0.at[2].set(z), np.array([0, 0, -1.0, 0, 0, 0]))
            return model.forward(state).constraint[2]

        run = jax.jit(jax.vmap(force_at), compiler_options=OPTIONS)
        return np.asarray(run(np.linspace(0.0095, 0.0125, 601)))

    text = f'<mujoco><option timestep="{STEP}"/><worldbody>{FLOOR.format(1, "")}'
    text += f"{BALL.format(1, '')}</worldbody></mujoco>"
    kinds = {kind: push(rigid.load(text, contact=kind)) for kind in ("soft", "compliant")}
    jump = {kind: np.abs(np.diff(f)).max() / f.max() for kind, f in kinds.items()}
    assert jump["compliant"] < 0.05 < 0.3 < jump["soft"]
    assert kinds["compliant"][-1] == 0 and kinds["compliant"][0] > 0


def test_another_kind_of_contact_is_refused():
    with pytest.raises(ValueError, match="load: contact='hard'; it must be"):
        rigid.load("<mujoco/>", contact="hard")
    with pytest.raises(ValueError, match="with RK4"):
        rigid.load('<mujoco><option integrator="RK4"/></mujoco>', contact="compliant")
