"""Rods of a mechanism's shapes: their ends and their radii."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxgpu.physics import rigid
from jaxgpu.rl.envs.surgical.contact.drawing import RODS, geom_rods

TEXT = """<mujoco><worldbody><geom type="plane" size="1 1 1"/><body name="thing" pos="0 0 1">
<freejoint/><geom type="capsule" size="0.1 0.3"/><geom type="box" size="0.1 0.2 0.5" pos="1 0 0"/>
<geom size="0.2" pos="0 2 0"/></body></worldbody></mujoco>"""


def test_rods_lie_where_the_shapes_do():
    """A rotation by a right angle about y maps z to x and x to -z."""
    model = rigid.load(TEXT)
    half = np.sqrt(0.5)
    state = model.init(jnp.array([0, 0, 1, half, 0, half, 0.0]))
    start, end, radius = jax.jit(lambda m, s: geom_rods(m, s)[:3])(model, state)
    body = geom_rods(model, state)[3]
    y = np.linspace(-0.1, 0.1, RODS)
    rods = [[[x, a, 0.0] for a in y] for x in (-0.4, 0.4)]
    np.testing.assert_allclose(start, [[-0.3, 0, 1], *rods[0], [0, 2, 1]], atol=1e-6)
    np.testing.assert_allclose(end, [[0.3, 0, 1], *rods[1], [0, 2, 1]], atol=1e-6)
    np.testing.assert_allclose(radius, [0.1] * (1 + RODS) + [0.2], rtol=1e-6)
    assert body.tolist() == [1] * (2 + RODS)
