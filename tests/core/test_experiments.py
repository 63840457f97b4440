"""Every one-call form that writes a folder resumes its own experiment and no other."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxgpu import rl
from jaxgpu.checkpoint import CheckpointError
from jaxgpu.evolution import Real, minimize, single
from jaxgpu.physics.continuum import Body, Grid, Liquid, Scene, simulate
from jaxgpu.rl.plan import Descent, plan


def minimized(evaluations, to=1.0, least=-4.0, sigma=0.2, seed=0, **where):
    spec = single.CMAES(8, sigma=sigma)
    f = lambda x: (x - to) ** 2
    return minimize(f, Real(least, 4.0), evaluations, algorithm=spec, seed=seed, **where)


def simulated(t, density=1000.0, gravity=-9.8, place=0.4, **where):
    body = Body(np.array([[place, 0.5]], np.float32), Liquid(1e3), 1e-2, density=density)
    scene = Scene((body,), Grid(0.1, (10, 10)), (0.0, gravity), dt=0.001)
    return simulate(scene, t, frames=round(t / 0.01), **where)


def trained(steps, rate=1e-3, gravity=9.8, **where):
    learner = rl.PPO(
        learning_rate=rate,
        num_envs=2,
        num_steps=4,
        update_epochs=1,
        num_minibatches=1,
        hidden_sizes=(4,),
    )
    env = rl.make("cartpole", gravity=gravity)
    return rl.train(env, learner, jax.random.key(0), steps, schedule=16, **where)


def planned(updates, to=0.5, rate=0.4, **where):
    bowl = lambda actions: jnp.sum((actions - to) ** 2)
    planner, key = Descent(optax.sgd(rate)), jax.random.key(0)
    return plan(bowl, jnp.zeros((3, 1)), planner, updates, key=key, **where)


FORMS = {
    "minimize": (minimized, 80, 160, [{"to": 2.0}, {"least": -3.0}, {"sigma": 0.3}, {"seed": 1}]),
    "simulate": (simulated, 0.02, 0.04, [{"density": 900.0}, {"gravity": -1.0}, {"place": 0.5}]),
    "train": (trained, 16, 32, [{"rate": 2e-3}, {"gravity": 3.0}]),
    "plan": (planned, 2, 4, [{"to": 1.0}, {"rate": 0.1}]),
}


@pytest.mark.slow
@pytest.mark.parametrize("form, first, more, others", FORMS.values(), ids=FORMS)
def test_another_experiment_is_refused(tmp_path, form, first, more, others):
    form(first, out=tmp_path)
    for other in others:
        with pytest.raises(CheckpointError, match="written by a run with another"):
            form(more, **other, out=tmp_path, resume=True)
    assert form(more, out=tmp_path, resume=True).timing.steps > 0  # a longer one is the same
