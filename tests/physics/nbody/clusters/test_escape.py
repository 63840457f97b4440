"""Escapes: detected on the way out, once, with the values of a straight flight."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from conformance import check
from nbody_inputs import halves

from jaxgpu.physics.nbody.clusters import escape

noted = jax.jit(partial(escape.add_escapes, radius=5.0), static_argnames="unbound")
CENTRE = np.array([1.0, 0, 0, 0.5, 0, 0])


def test_each_body_is_noted_once_when_it_is_out(x64):
    """Three bodies fly off from a moving centre; the third is bound and stays inside."""
    escapes = escape.init_escapes(3, jnp.zeros(()))
    v = np.array([[2.5, 0.5, 0.7], [0, -1, 0], [0, 0, 0]])
    for t in np.arange(0, 12, 0.5):
        centre = CENTRE.copy()
        centre[0] += 0.5 * t
        x = CENTRE[:3, None] + v * t
        potential = np.array([-0.1, -0.1, -1.0])
        d = np.concatenate([x, v]) - centre[:, None]
        escapes = noted(escapes, t, *halves(d), potential)
    assert escapes.gone.tolist() == [True, True, False]
    # Velocities 2 and 1 from the centre reach radius 5 at 2.5 and 5; detection is one moment later.
    np.testing.assert_allclose(escapes.time, [3.0, 5.5, 0])
    np.testing.assert_allclose(escapes.speed, [2, 1, 0])
    np.testing.assert_allclose(escapes.energy, [2 - 0.1, 0.5 - 0.1, 0])
    far = np.zeros((6, 3)) + 100 - centre[:, None]
    late = noted(escapes, 99.0, *halves(far), potential, unbound=False)
    np.testing.assert_allclose(late.time, [3.0, 5.5, 99])  # in a tide the bound one counts too


def test_conforms(x64):
    f = lambda t, x, v, potential: noted(escape.init_escapes(4, x), t, x, v, potential)
    x, v = jnp.asarray(np.random.default_rng(0).normal(size=(2, 4, 3)) * 5)
    check(f, jnp.asarray(1.5), x, v, -jnp.ones(4), batched=(1,))
