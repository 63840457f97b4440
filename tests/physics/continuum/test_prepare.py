"""Bad input is refused with one clear sentence, and the chosen step is stable."""

import dataclasses
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.physics.continuum import (
    Body,
    Collider,
    DruckerPrager,
    Grid,
    Liquid,
    NeoHookean,
    Scene,
    Soft,
    init,
    lattice,
    lost,
    prepare,
    sdf,
    simulate,
    step,
)

GRID = Grid(0.1, (10, 10))
BODY = Body(lattice((0.3, 0.3), (0.7, 0.7), 0.05), NeoHookean(1e4), 0.05**2)


def refused(scene, words):
    with pytest.raises(ValueError, match=re.escape(words)) as caught:
        prepare(scene)
    assert "\n" not in str(caught.value)


def changed(**fields):
    return Scene((dataclasses.replace(BODY, **fields),), GRID)


def led(**fields):
    return Scene((BODY,), GRID, colliders=(Collider(sdf.Ball(0.1), (0.5, 0.5), **fields),))


def test_scenes_that_cannot_run_are_refused():
    refused(Scene((), GRID), "the scene has no bodies")
    refused(changed(x=jnp.zeros((0, 2))), "bodies[0].x has shape [0, 2]")
    refused(changed(x=jnp.zeros((4, 3))), "must be [N, 2]")
    refused(changed(x=BODY.x.at[3].set(2.0)), "1 of 64 particles are outside the box")
    refused(changed(x=BODY.x.at[5, 0].set(jnp.nan)), "1 of 64 particles are outside the box")
    refused(changed(v=(jnp.nan, 0.0)), "1 entries that are not finite")
    refused(changed(v=jnp.zeros(3)), "bodies[0].v has shape [3]")
    refused(changed(volume=0.0), "bodies[0].volume=0; it must be above zero")
    refused(changed(density=-1.0), "bodies[0].density=-1")
    refused(changed(material=NeoHookean(1e4, 0.5)), "poisson=0.5; it must lie in (-1, 0.5)")
    refused(changed(material=NeoHookean(jnp.nan)), "material.young is not a finite number")
    refused(changed(material=Liquid(viscosity=-1.0)), "viscosity=-1; it must not be negative")
    refused(changed(material=DruckerPrager(grain=0.0)), "grain=0; it must be above zero")
    refused(changed(material=DruckerPrager(friction_rise=-0.1)), "rise=-0.1; it must not be neg")
    refused(Scene((BODY,), GRID, gravity=(0.0, 0.0, -9.81)), "gravity has 3 numbers")
    refused(led(mass=0.0), "colliders[0].mass=0; it must be above zero")
    refused(led(friction=-0.5), "colliders[0].friction=-0.5; it must not be negative")
    refused(led(soft=Soft(0.0)), "colliders[0].soft.length=0; it must be above zero")
    refused(led(soft=Soft(0.1, jnp.nan)), "colliders[0].soft.rate=nan; it must be above zero")
    with pytest.raises(ValueError, match="face 'open'"):
        Grid(0.1, (10, 10), faces=("slip", "open"))
    with pytest.raises(ValueError, match="no point of spacing"):
        lattice((0.0, 0.0), (1.0, 1.0), 0.5, sdf.Ball(0.1))
    with pytest.raises(ValueError, match="the scene has no dt"):
        step(changed(), init(changed()))


def test_an_unstable_step_is_refused_with_the_figure():
    limit = 0.8 * 0.1 / float(BODY.material.speed(1000.0))
    scene = Scene((BODY,), GRID, dt=1.01 * limit)
    refused(scene, f"it must lie in (0, {limit:.3g}]")
    assert prepare(dataclasses.replace(scene, dt=0.99 * limit)).dt == 0.99 * limit


@pytest.mark.parametrize("factor, stable", [(0.99, True), (2.0, False)])
def test_the_limit_is_where_motion_blows_up(factor, stable):
    limit = 0.8 * 0.1 / float(BODY.material.speed(1000.0))
    rng = np.random.default_rng(0)
    v = jnp.asarray(0.05 * rng.normal(size=BODY.x.shape), jnp.float32)
    scene = Scene((dataclasses.replace(BODY, v=v),), GRID, dt=factor * limit)
    run = jax.jit(lambda s: jax.lax.fori_loop(0, 300, lambda _, s: step(scene, s), s))
    speed = jnp.max(jnp.abs(jnp.stack(run(init(scene)).bodies[0].v)))
    assert bool(speed < 0.5) == stable  # nan is no small speed


def test_lost_counts_what_is_outside_or_no_number():
    scene = changed()
    state = init(scene)
    body = state.bodies[0]
    far = body.x[0].at[0, 0].set(9.0).at[0, 1].set(jnp.nan).at[0, 2].set(-0.05)
    body = dataclasses.replace(body, x=(far, body.x[1]))
    assert int(lost(scene, dataclasses.replace(state, bodies=(body,)))) == 2
    assert int(lost(scene, state)) == 0


def test_a_resumed_run_has_the_bits_of_one_never_stopped(tmp_path):
    scene = Scene((BODY,), GRID, gravity=(0.0, -9.81))
    whole = simulate(scene, 0.1, frames=4)
    with pytest.raises(ValueError, match="both must be above zero"):
        simulate(scene, -1.0)
    dt = 0.1 / 4
    simulate(scene, 2 * dt, frames=2, out=tmp_path)
    resumed = simulate(scene, 4 * dt, frames=4, out=tmp_path, resume=True)
    for a, b in zip(jax.tree.leaves(whole.state), jax.tree.leaves(resumed.state)):
        np.testing.assert_array_equal(a, b)
