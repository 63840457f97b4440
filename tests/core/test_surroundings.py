"""Reuse of programs and resuming of runs: only where nothing that they read has changed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu import evolution, rl
from jaxgpu.evolution import single
from jaxgpu.physics import continuum, nbody
from jaxgpu.runs.checkpoint import CheckpointError
from jaxgpu.runs.loop import run
from tests.helpers.captured_data import KINDS, make_change

ONE, KEY = np.float32(1), jax.random.key(0)
OTHER = "written by a run with another"


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_step_reads_is_what_it_reads_now(kind, tmp_path):
    step, change = make_change(kind)
    given = {"out": tmp_path, "resume": True}
    assert run(step(), ONE, 1, **given).state == 2
    assert run(step(), ONE, 2, **given).state == 4
    change()
    assert run(step(), ONE, 1).state == 3
    with pytest.raises(CheckpointError, match=OTHER):
        run(step(), ONE, 3, **given)


# Each setting of JAX has a step that depends on it and a value that is not the default.
SETTINGS = {
    "jax_threefry_partitionable": (lambda x, key: jax.random.normal(key, (3,))[1], False),
    "jax_random_seed_offset": (lambda x, key: jax.random.normal(jax.random.key(3)), 5),
    "jax_default_prng_impl": (lambda x, key: jax.random.normal(jax.random.key(3)), "rbg"),
    "jax_high_dynamic_range_gumbel": (lambda x, key: jax.random.gumbel(key), True),
    "jax_enable_x64": (lambda x, key: jnp.float32(jnp.sin(jnp.ones(3)).sum()), True),
    "jax_numpy_dtype_promotion": (lambda x, key: x + jnp.float32(1), "strict"),
    "jax_default_matmul_precision": (lambda x, key: jnp.full(3, x) @ jnp.full(3, x), "highest"),
    "jax_accurate_erf_inv": (lambda x, key: jax.scipy.special.erfinv(0.5 * x), None),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_that_changes_numbers_is_read_and_named(name, tmp_path):
    step, value = SETTINGS[name]
    before = getattr(jax.config, name)
    given = {"key": KEY, "measure": lambda x: x}
    run(step, ONE, 1, **given, out=tmp_path)
    first = run(step, ONE, 1, **given).state
    try:
        jax.config.update(name, (not before) if value is None else value)
        now = step(ONE, jax.random.fold_in(KEY, 0))
        np.testing.assert_allclose(run(step, ONE, 1, **given).state, now, rtol=1e-6)
        if name != "jax_numpy_dtype_promotion":  # which refuses, and changes no number
            with pytest.raises(CheckpointError, match=f"{name} was {before}, is "):
                run(step, ONE, 2, **given, out=tmp_path, resume=True)
            assert run(step, ONE, 2, **given, out=tmp_path, resume=(name,)).timing.steps == 1
    finally:
        jax.config.update(name, before)
    assert run(step, ONE, 1, **given).state == first


# Part of each form shows the value of `f` at one: two, or three after the change.


def run_measure(f, length, **out):
    return run(lambda x: x, ONE, length, measure=lambda _: f(ONE), **out).history[-1]


def run_until(f, length):
    return run(lambda x: x + 1, ONE, 9, until=lambda x: x >= f(ONE)).state


def run_minimize(f, length, **out):
    return evolution.minimize(
        lambda x: f(ONE) + 0 * x["a"],
        {"a": evolution.Real(-1.0, 1.0)},
        8 * length,
        algorithm=single.SNES(4),
        **out,
    ).f


def run_simulate(f, length, **out):
    drop = continuum.Body(jnp.full((8, 2), 0.5), continuum.NeoHookean(), volume=1e-3)
    scene = continuum.Scene((drop,), continuum.Grid(0.1, (10, 10)), dt=1e-3)
    return continuum.simulate(
        scene, 1e-3 * length, frames=length, measure=lambda _: f(ONE), **out
    ).history[-1]


def run_evolve(f, length, **out):
    x = np.eye(3)
    steps = nbody.Hermite(interval=0.125, softening=0.1)
    return nbody.evolve(
        x,
        0 * x,
        np.ones(3),
        0.125 * length,
        spec=steps,
        measure=lambda _: {"f": f(ONE)},
        tolerance=np.inf,
        **out,
    ).history["f"][-1]


class Paid:
    """An environment of one step whose reward is the number that it read at reset."""

    observation_space = rl.Box(0.0, 9.0, (1,))
    action_space = rl.Box(-1.0, 1.0, (1,))
    differentiable = False

    def __init__(self, f):
        self.f = f

    def reset(self, key):
        return self.f(ONE), jnp.ones(1)

    def step(self, state, action, key):
        done = jnp.ones((), bool)
        return rl.Step(state, jnp.ones(1), jnp.asarray(state), done, ~done, {})


def run_train(f, length, **out):
    ppo = rl.PPO(num_envs=2, num_steps=2, num_minibatches=1)
    done = rl.train(Paid(f), ppo, KEY, 4 * length, schedule=8, **out)
    return done.history["episode_return"][-1]


FORMS = [run_measure, run_until, run_minimize, run_simulate, run_evolve, run_train]


def hold(form, kind, out):
    f, change = make_change(kind)
    keeps = form is not run_until  # a condition may be another when a run is resumed
    given = {"out": out, "resume": True} if keeps else {}
    assert form(f(), 1, **given) == 2
    change()
    assert form(f(), 1) == 3
    if keeps:
        with pytest.raises(CheckpointError, match=OTHER):
            form(f(), 2, **given)


@pytest.mark.parametrize("kind", ["constant of a class", "method reached by name"])
@pytest.mark.parametrize("form", [run_measure, run_until])
def test_what_a_form_reads_is_what_it_reads_now(form, kind, tmp_path):
    hold(form, kind, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_every_form_reads_what_is_there_now(form, tmp_path):
    """Cheap forms test every kind of change, the others every twentieth, with shifted starts."""
    first, each = (FORMS.index(form), 20) if FORMS.index(form) > 1 else (0, 1)
    for kind in [*KINDS][first::each]:
        hold(form, kind, tmp_path / kind)
