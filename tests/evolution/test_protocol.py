"""One protocol for every algorithm, one's own included."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.evolution import protocol
from jaxgpu.evolution.problem import Problem, box
from jaxgpu.pytree import pytree


@pytree
class Walk:
    """An algorithm of five lines: a random step is kept where it is better."""

    step: float = 0.1


@protocol.init.register
def _(spec: Walk, key, problem):
    return jnp.full((1, 2), 0.9), jnp.full((1, 1), jnp.inf)


@protocol.ask.register
def _(spec: Walk, state, key):
    return state[0] + spec.step * jax.random.normal(key, state[0].shape)


@protocol.tell.register
def _(spec: Walk, state, x, f, violation):
    return jnp.where(f < state[1], x, state[0]), jnp.minimum(f, state[1])


SPHERE = Problem(box(-1.0, 1.0, 2), lambda x: jnp.sum(x * x, keepdims=True))


def test_an_algorithm_of_ones_own_is_registered_and_runs():
    run = jax.jit(lambda step, key: protocol.evolve(Walk(step), SPHERE, key, 300)[1])
    best = jax.vmap(run, (None, 0))(0.1, jax.random.split(jax.random.key(0), 5))
    assert best.max() < 0.02  # from 1.62, with steps of 0.1


def test_the_loop_on_the_host_ends_where_the_pure_one_does():
    key = jax.random.key(4)
    pure = jax.jit(lambda key: protocol.evolve(Walk(), SPHERE, key, 8))(key)
    host = protocol.run(Walk(), SPHERE, key, 8, measure=lambda state: state[1])
    np.testing.assert_allclose(host.state[0], pure[0], rtol=1e-6)
    assert host.history.shape == (8, 1, 1) and host.history[-1] == pure[1]


def test_what_is_no_algorithm_is_named():
    for call in (protocol.init, protocol.ask):
        with pytest.raises(TypeError, match="str is no registered algorithm"):
            call("nsga2", None, jax.random.key(0))
