"""Every one-call form that writes a folder, small and with a history, as a function of the folder.

A form runs with `resume=True`, which starts from scratch if there is nothing to resume. The result
is written next to the folder as plain arrays, to be compared bit for bit.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxgpu import evolution, numerics, physics, rl
from jaxgpu.inputs import arguments
from jaxgpu.rl.plan import Descent, plan
from jaxgpu.runs import loop as run


def _run(**where: Any) -> Any:
    spin = lambda z: jnp.sin(3 * z + jnp.roll(z, 1))
    start = jax.random.normal(jax.random.key(0), (2000,))
    return run.run(spin, start, 60_000, measure=jnp.mean, chunk=6000, **where)


def _minimize(**where: Any) -> Any:
    bowl = lambda x: jnp.sum((x - 0.3) ** 2) + jnp.sum(jnp.cos(9 * x))
    space = [evolution.Real(-4.0, 4.0)] * 6
    return evolution.minimize(lambda x: bowl(jnp.stack(x)), space, 60_000, **where)


def _evolve(**where: Any) -> Any:
    pick = np.random.default_rng(2)
    x, v = pick.normal(size=(32, 3)), 0.3 * pick.normal(size=(32, 3))
    spec = physics.nbody.Hermite(softening=0.05)
    return physics.nbody.evolve(x, v, np.full(32, 1 / 32), 24.0, spec=spec, tolerance=1.0, **where)


def _integrate(**where: Any) -> Any:
    spec = physics.nbody.WisdomHolman(gm=np.array([1.0, 1e-3, 2e-3]), dt=0.125)
    x = np.array([[0.0, 0, 0], [1, 0, 0], [0, 2.1, 0]])
    v = np.array([[0.0, 0, 0], [0, 1, 0.1], [-0.7, 0, 0]])
    return physics.nbody.integrate(spec, x, v, 8000.0, measure=spec.to_inertial, **where)


def _simulate(**where: Any) -> Any:
    continuum = physics.continuum
    x = 0.3 + 0.4 * np.random.default_rng(1).random((400, 2)).astype(np.float32)
    body = continuum.Body(x, continuum.Liquid(1e3), 4e-4, density=1000.0)
    scene = continuum.Scene((body,), continuum.Grid(0.05, (20, 20)), (0.0, -9.8), dt=0.001)
    return continuum.simulate(scene, 3.0, frames=300, **where)


def _learner() -> Any:
    return rl.PPO(num_envs=4, num_steps=16, num_minibatches=2, hidden_sizes=(8,))


def _train(**where: Any) -> Any:
    return rl.train(rl.make("cartpole"), _learner(), jax.random.key(3), 64 * 400, **where)


def _sweep(**where: Any) -> Any:
    keys = jax.random.split(jax.random.key(4), 2)
    return rl.sweep(rl.make("cartpole"), _learner(), keys, parts=100, every=2, **where)


def _plan(**where: Any) -> Any:
    bowl = lambda actions: jnp.sum(jnp.sin(actions) - 0.5) ** 2
    planner = Descent(optax.adam(0.01))
    start = 0.1 * jnp.arange(40.0)[:, None]
    return plan(bowl, start, planner, 3000, key=jax.random.key(0), **where)


def _fit_mixture(**where: Any) -> Any:
    x = jax.random.normal(jax.random.key(0), (3000, 8))
    x = x / jnp.linalg.norm(x, axis=1, keepdims=True)
    return numerics.fit_mixture(x, 6, jax.random.key(1), steps=800, **where)


FORMS: dict[str, Callable[..., Any]] = {
    "run": _run,
    "minimize": _minimize,
    "nbody.evolve": _evolve,
    "nbody.integrate": _integrate,
    "simulate": _simulate,
    "train": _train,
    "sweep": _sweep,
    "plan": _plan,
    "fit_mixture": _fit_mixture,
}


def resume_form(name: str, out: Path) -> int:
    """Run a form in `out`, or resume it there, write its result, and return an exit code."""
    try:
        done = FORMS[name](out=out, resume=True)
    except KeyboardInterrupt:  # it has saved its state and reported this
        return 130
    np.savez(out.with_suffix(".npz"), **numbers(done))
    return 0


def numbers(done: Any) -> dict[str, np.ndarray]:
    """Return the state and the history of a run as plain arrays."""
    leaves = jax.tree.leaves((done.state, done.history))
    plain = [jax.random.key_data(leaf) if arguments.is_key(leaf) else leaf for leaf in leaves]
    return {str(i): np.asarray(leaf) for i, leaf in enumerate(plain)}
