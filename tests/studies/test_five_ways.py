"""The study `five-ways`: its task, its race on a pendulum, and known gradients."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu import rl
from jaxgpu.inputs.fields import pytree, size, static
from jaxgpu.rl import Step
from jaxgpu.rl.envs.classic import Pendulum
from jaxgpu.rl.plan import trajectory
from jaxgpu.studies import five_ways
from jaxgpu.studies.five_ways import race as race_module
from jaxgpu.studies.five_ways.gradient_quality import quality
from jaxgpu.studies.five_ways.gradients import Probe, WindowResult, run_probe
from jaxgpu.studies.five_ways.race import Budget, Curve, Setup, run_race

STEPS = 12


@pytree
class Walk:
    """A point that actions move, with a quadratic reward of its position or one of two values."""

    max_steps: int = size(default=STEPS, least=1)
    controls: tuple[str, ...] = static(default=("x", "y"))
    stepped: bool = static(default=False)

    def step(self, x, action, key):
        x = x + action
        reward = jnp.where(x[0] > 0, 1.0, 0.0) if self.stepped else x[0] - 0.5 * jnp.sum(x * x)
        false = jnp.bool_(False)
        return Step(x, x, reward, false, false, {})


def look_at(env, sigma, pairs, samples, plans=16):
    random = np.random.default_rng(1)
    probe = Probe(
        env,
        jnp.asarray(random.normal(size=(plans, 2)) * 0.1, jnp.float32),
        jnp.asarray(random.normal(size=(plans, STEPS, 2)) * 0.1, jnp.float32),
        jnp.array([1, 4, STEPS]),
        sigma=sigma,
        pairs=pairs,
        samples=samples,
    )
    seen = jax.tree.map(lambda a: a[1:], run_probe(probe, jax.random.key(0)).history)
    return seen, quality(seen, 3)


def test_gradients_of_a_quadratic_gain_are_its_smoothed_slope_with_the_noise_of_its_hessian():
    seen, found = look_at(Walk(), sigma=0.3, pairs=512, samples=32)
    assert (np.abs(found.exact[:, 0] - 1) < 0.1).all()
    assert (found.exact[:, 1] <= found.exact[:, 0]).all()
    # g(a + sigma e) = g(a) + sigma H e; for returns of n steps, H is the sum over t of ones [t, t].
    slope = np.linalg.norm(np.asarray(seen.exact).reshape(16, 3, -1), axis=-1)
    for i, n in enumerate((1, 4, STEPS)):
        hessian = sum(np.outer(np.arange(n) <= t, np.arange(n) <= t) * 1.0 for t in range(n))
        variance = 2 * 0.3**2 * np.sum(hessian**2)  # of two axes
        measured = found.spread_of_gradients[i, 0] * np.mean(slope[:, i] ** 2)
        assert abs(measured / variance - 1) < 0.25


def test_a_reward_that_jumps_has_a_slope_that_gradients_do_not_see():
    seen, found = look_at(Walk(stepped=True), sigma=0.3, pairs=64, samples=2)
    assert not np.asarray(seen.exact).any() and not np.asarray(seen.shifted).any()
    assert (found.exact == 0).all() and np.abs(np.asarray(seen.differences)).max() > 0.1


def test_frames_beyond_a_window_have_no_part_in_it():
    seen, found = look_at(Walk(), sigma=0.3, pairs=2, samples=2, plans=2)
    assert np.isnan(found.exact[-1]).all()  # so few pairs tell nothing of so many actions
    for part in (
        seen.exact[:, :, None],
        seen.shifted.swapaxes(1, 2),
        seen.differences.swapaxes(1, 2),
    ):
        part = np.asarray(part).reshape(2, 3, STEPS, -1)
        for i, n in enumerate((1, 4, STEPS)):
            assert part[:, i, :n].any() and not part[:, i, n:].any()


def test_cosines_are_those_of_vectors_that_are_known(x64):
    """One plan points along the gradient, two are at 60 degrees to it, with symmetric noise."""
    random = np.random.default_rng(0)
    slope = np.array([1.0, 0.0])
    noise = random.normal(size=(3, 4000, 1, 2))
    pairs = slope + np.concatenate([noise, -noise], 1)
    g = np.array([[2.0, 0.0], [0.5, 0.75**0.5], [3.0, 27**0.5]])[:, None]
    look = WindowResult(
        index=jnp.int32(0),
        exact=jnp.asarray(g),
        discounted=jnp.asarray(-g),
        shifted=jnp.asarray(np.stack([g, g], 1)),
        differences=jnp.asarray(pairs),
    )
    found = quality(look, 1)
    np.testing.assert_allclose(found.exact[0, 0], 2 / 3, atol=0.03)
    np.testing.assert_allclose(found.discounted[0, 0], -2 / 3, atol=0.03)
    np.testing.assert_allclose(found.spread_of_pairs[0, 0], 2.0, rtol=0.1)
    assert found.spread_of_gradients[0, 0] == 0
    np.testing.assert_allclose(found.norms[0], [2.0, 1.5, 4.0])


def test_a_curve_is_read_between_two_looks():
    curve = Curve(np.array([0.0, 10.0]), np.array([[0.0, 1.0], [1.0, 3.0]]))
    np.testing.assert_allclose(curve.interpolate(5), [0.5, 2.0])


@pytree
class Swing(Pendulum):
    """A pendulum whose initial plan is zero."""

    controls: tuple[str, ...] = static(default=("torque",))

    def initial_actions(self):
        return jnp.zeros((75, 1))


def test_every_start_of_a_field_is_another_and_returns_are_those_of_its_episode():
    """Compare with semi-implicit Euler without torque; a field depends only on its seed."""
    field, again, other = (Setup.create(Swing(max_steps=75), 4, 4, seed) for seed in (0, 0, 1))
    same = jax.tree.map(lambda a, b: bool(jnp.all(a == b)), field.starts, again.starts)
    assert all(jax.tree.leaves(same)) and bool(jnp.all(field.keys == again.keys))
    drawn = [part.state.angle for one in (field, other) for part in (one.starts, one.unseen)]
    drawn.append(race_module.make_starts(field.env, field.keys).state.angle)  # learners draw others
    assert len(np.unique(np.concatenate(drawn))) == 20
    assert len(np.unique(jax.random.key_data(jnp.stack([field.keys, other.keys])), axis=0)) == 2
    for starts in (field.starts, field.unseen):
        angle, w = (
            np.asarray(a, float) for a in (starts.state.angle, starts.state.angular_velocity)
        )
        want = np.stack([np.cos(angle), np.sin(angle), w], 1)
        np.testing.assert_allclose(starts.observation, want, atol=1e-6)
    cost = np.zeros(4)
    for _ in range(75):  # from the unseen starts
        cost += (np.mod(angle + np.pi, 2 * np.pi) - np.pi) ** 2 + 0.1 * w**2
        w = np.clip(w + 0.05 * 15 * np.sin(angle), -8, 8)
        angle = angle + 0.05 * w
    plans = jnp.zeros((2, 75, 1))
    np.testing.assert_allclose(race_module.replay_plans(field, plans), [-cost, -cost], rtol=1e-3)


def test_plans_that_are_known_tilt_the_glass_as_they_say_and_few_particles_are_observed():
    """A liquid's 8 particles have two positions and two velocities, the tool has six numbers."""
    env = five_ways.make_task("coarse")
    assert env.observation_space.shape == (2 * 8 * (2 + 2) + 6 + 1,)  # and the clock
    guess, known = env.first_guess(), five_ways.known_plans(env)
    assert list(known) == ["first guess", "holding still", "by hand"]
    assert not known["first guess"].any() and not (guess + known["holding still"]).any()
    played = np.asarray(guess + known["by hand"])
    assert not played[:, :2].any()
    frame = env.substeps * float(env.simulation.dt)
    turned = np.rad2deg(frame * float(env.speed[2]) * np.cumsum(played[:, 2]))
    t = frame * np.arange(1, 76)
    np.testing.assert_allclose(np.abs(turned[(t > 0.399) & (t < 0.861)]), 86, atol=0.5)
    np.testing.assert_allclose(turned[t > 1.259], 0, atol=0.01)


@pytest.mark.slow
def test_a_race_on_a_pendulum_resumes_to_the_same_bits(tmp_path, monkeypatch):
    monkeypatch.setattr(race_module, "LEARNERS", {"SHAC": race_module.LEARNERS["SHAC"]})
    field = Setup.create(Swing(max_steps=75), seeds=2, unseen=3, seed=0)
    budget, fixed = Budget(32, 2), {"still": jnp.zeros((75, 1))}
    race = run_race(field, budget, fixed, 0, tmp_path, False)
    lengths = {name: curve.episodes[-1] for name, curve in race.curves.items()}
    assert lengths == {"SHAC": 32, "Adam": 32, "CEM": 64}
    assert all(one.shape == (2,) and np.isfinite(one).all() for one in race.new.values())
    # A plan is optimized for its own start: there it beats no action, elsewhere it need not.
    still = np.asarray(
        jax.vmap(lambda s: trajectory(field.env, s, fixed["still"]))(field.starts.state)[1][
            "reward"
        ]
    )
    assert (race.own["Adam"] > still.sum(1)).all() and (race.own["CEM"] > still.sum(1)).all()
    again = run_race(field, budget, fixed, 0, tmp_path, True)
    for name in race.own:
        np.testing.assert_array_equal(race.own[name], again.own[name])
        np.testing.assert_array_equal(race.new[name], again.new[name])
    assert race.price == again.price


@pytest.mark.slow
def test_an_episode_begins_with_sloshing_water_and_corrects_the_first_guess():
    env = five_ways.make_task("coarse")
    keys = jax.random.split(jax.random.key(0), 32)
    state, observation = jax.jit(jax.vmap(env.reset))(keys)
    water, milk = (state.matter.bodies[i] for i in (1, 0))
    v = np.asarray(jax.vmap(lambda p: p.v.mean(0))(water))
    assert np.abs(v[:, 0]).max() <= 0.4 and v[:, 0].std() > 0.15 and not v[:, 1].any()
    assert not np.asarray(milk.v).any() and not np.asarray(observation[:, -1]).any()
    plain: Any = rl.make("matter/pouring", size="coarse", observed_particles=8)
    first = jax.tree.map(lambda a: a[0], state)
    step = jax.jit(lambda env, action: env.step(first, action, jax.random.key(0)))
    mine, theirs = step(env, jnp.zeros(3)), step(plain, plain.initial_actions()[0])
    assert float(mine.reward) == float(theirs.reward)
    np.testing.assert_allclose(mine.observation[-1], 1 / 75)
    assert mine.observation.shape == env.observation_space.shape
