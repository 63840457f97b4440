"""Classes of defaults against the same file with every attribute written by hand."""

import jax
import numpy as np
import pytest

from jaxgpu.physics.rigid import from_mjcf

CLASSES = """<mujoco><default><joint damping="1" axis="0 1 0"/><geom size="0.1" density="50"/>
<default class="heavy"><geom density="900"/><default class="long"><geom size="0.2"/></default>
</default></default><default><joint armature="0.3"/></default><worldbody>
<body><joint/><geom/>
  <body childclass="long" pos="1 0 0"><joint damping="2"/><geom/>
    <body pos="1 0 0"><joint class="heavy"/><geom mass="3"/><geom class="heavy" pos="0 1 0"/></body>
  </body></body></worldbody><option><flag contact="disable"/></option></mujoco>"""
PLAIN = """<mujoco><worldbody>
<body><joint damping="1" axis="0 1 0" armature="0.3"/><geom size="0.1" density="50"/>
  <body pos="1 0 0"><joint damping="2" axis="0 1 0"/><geom size="0.2" density="900"/>
    <body pos="1 0 0"><joint damping="1" axis="0 1 0"/><geom size="0.2" mass="3"/>
      <geom size="0.1" density="900" pos="0 1 0"/></body>
  </body></body></worldbody><option><flag contact="disable"/></option></mujoco>"""


def test_an_element_has_what_its_class_says_and_it_does_not():
    ours, plain = from_mjcf(CLASSES), from_mjcf(PLAIN)
    for x, y in zip(jax.tree.leaves(ours), jax.tree.leaves(plain), strict=True):
        np.testing.assert_array_equal(x, y)


def test_a_class_that_is_not_there_is_named():
    with pytest.raises(ValueError, match="class='light' has no <default>; there are heavy, long"):
        from_mjcf(CLASSES.replace('<joint class="heavy"/>', '<joint class="light"/>'))
    with pytest.raises(ValueError, match="a <default> within another has no class; name it"):
        from_mjcf(CLASSES.replace('<default class="long">', "<default>"))
