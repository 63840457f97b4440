"""Adam against its definition."""

import conformance
import jax
import jax.numpy as jnp
import numpy as np

from jaxgpu.rl.learners import optimizer


def test_five_steps_are_those_of_the_paper(x64):
    """Compare with Kingma & Ba, algorithm 1, with gradients clipped to the norm 2."""
    x, m, v = np.array([1.0, -2.0]), np.zeros(2), np.zeros(2)
    params = jnp.array(x)
    opt_state = jax.jit(optimizer.init)(params)
    descend = jax.jit(optimizer.descend)
    for t in range(1, 6):
        gradient = 2 * x * t
        params, opt_state = descend(params, opt_state, gradient, 0.1, 2.0)
        gradient = gradient * min(1, 2 / np.linalg.norm(gradient))
        m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
        x = x - 0.1 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-5)
        np.testing.assert_allclose(params, x, rtol=1e-12)


def test_an_order_is_that_of_jax():
    """Ties of the leading bits are an exception, in one of 30,000 permutations of 64 rows."""

    @jax.jit
    def both_orders(key):
        keys = jax.random.split(key, 20)
        theirs = jax.vmap(lambda key: jax.random.permutation(key, 64))(keys)
        return optimizer.minibatches(key, 64, 20, 2), theirs

    ours, theirs = both_orders(jax.random.key(0))
    np.testing.assert_array_equal(np.reshape(ours, (20, 64)), theirs)


def test_conforms():
    x = jnp.array([1.0, 2.0])
    f = jax.jit(lambda x, gradient: optimizer.descend(x, optimizer.init(x), gradient, 0.1, 1.0)[0])
    conformance.check(f, x, x, batched=(0, 1))


def test_minibatches_hold_every_row_once_an_epoch():
    orders = np.asarray(
        jax.jit(lambda key: optimizer.minibatches(key, 12, 5, 3))(jax.random.key(0))
    )
    assert orders.shape == (15, 4)
    rows = orders.reshape(5, 12)
    np.testing.assert_array_equal(np.sort(rows, 1), np.tile(np.arange(12), (5, 1)))
    assert len(np.unique(rows, axis=0)) == 5
