"""What is read of MJCF, beyond what test_dynamics.py compares with MuJoCo itself."""

import numpy as np
import pytest

from jaxgpu.physics.rigid import from_mjcf


def wrap(inner, before=""):
    return f"<mujoco>{before}<worldbody>{inner}</worldbody></mujoco>"


def body(inside):
    return wrap(f'<body>{inside}<geom size="0.1"/></body>')


def test_limits_springs_and_angles():
    inside = '<joint type="{}" range="-90 30" stiffness="2" springref="45"/>'
    hinge, slide = (from_mjcf(body(inside.format(kind))) for kind in ("hinge", "slide"))
    np.testing.assert_allclose([hinge.lower[0], hinge.upper[0]], [-np.pi / 2, np.pi / 6])
    np.testing.assert_allclose(hinge.rest, np.pi / 4)
    np.testing.assert_allclose([slide.lower[0], slide.rest[0]], [-90, 45])
    loose = from_mjcf(body('<joint range="-90 30" limited="false"/>'))
    assert np.isinf(loose.lower[0])
    radian = wrap(
        '<body><joint range="-1 1"/><geom size="1"/></body>', '<compiler angle="radian"/>'
    )
    np.testing.assert_allclose(from_mjcf(radian).upper, 1)


def test_a_weld_adds_to_its_parent_and_the_world_stays():
    text = wrap(
        '<geom size="1"/><body><joint/><geom size="0.1" mass="2"/>'
        '<body pos="0 0 1" axisangle="0 0 1 90"><geom size="0.1" mass="2" pos="1 0 0"/></body>'
        "</body>"
    )
    tree = from_mjcf(text)
    np.testing.assert_allclose(tree.com[0], [0, 0.5, 0.5], atol=1e-7)
    assert tree.mass[0] == 4


@pytest.mark.parametrize(
    "text, message",
    [
        ("<mujoco", "not XML"),
        ("<robot/>", "the root is <robot>; it must be <mujoco>"),
        (wrap("", "<tendon/>"), r"<tendon> is not supported; .* ignore=\('tendon',\)"),
        (body('<joint type="ball"/>'), '<joint type="ball"> is not supported'),
        (body('<joint frictionloss="1"/>'), r"ignore=\('frictionloss',\)"),
        (body('<joint/><geom type="mesh"/>'), "kind='mesh'; use one of"),
        (wrap("<frame/>"), "<frame> in a body is not supported"),
        (wrap(""), "no links"),
    ],
)
def test_what_is_not_supported_is_named(text, message):
    with pytest.raises(ValueError, match=message):
        from_mjcf(text)


def test_what_is_named_can_be_left_out():
    text = body('<joint frictionloss="1"/>').replace("<worldbody>", "<tendon/><worldbody>")
    assert from_mjcf(text, ignore=("frictionloss", "tendon")).freedoms == 1
