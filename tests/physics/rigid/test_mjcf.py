"""What is read of MJCF, beyond what test_dynamics.py compares with MuJoCo itself."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.physics import rigid
from jaxgpu.physics.rigid import from_mjcf

CHANGED = json.loads(Path(__file__).with_name("mujoco_variants.json").read_text())
LOADED = """nothing gravity integrator wind impratio cone solver iterations tolerance magnetic
o_margin constraint limit spring damper energy warmstart filterparent island diagexact angle
coordinate inertiafromgeom eulerseq fusestatic discardvisual pos user sleep quat axisangle align
group axis armature damping type range limited actuatorgravcomp actuatorfrcrange mass diaginertia
fullinertia inertial density size rgba fluidshape friction contype condim margin solref priority
adhesion surfacevel solmix gap plane site light camera statistic asset visual custom sensor compiler
autolimits""".split()


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
    tree = from_mjcf(text, ignore=("contact",))
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
    assert from_mjcf(text, ignore=("frictionloss", "tendon")).nv == 1


@jax.jit
def rollout(spec, state):
    advance = lambda state, _: (spec.step(state), None)
    return jax.lax.scan(advance, state, length=CHANGED["steps"])[0].q


@pytest.mark.slow
def test_a_change_of_a_model_moves_it_as_in_mujoco_or_is_refused_by_name(x64):
    """Every attribute and element that MuJoCo knows of bodies, joints, masses and options.

    MuJoCo ran each model from qpos0, which holds the poses of free bodies and the sign of their
    quaternions to a factor. What it refuses, and what would be nan, is refused here too.
    """
    base, loaded, faults = CHANGED["base"], set(), []
    for variant in CHANGED["variants"]:
        (start, stop), name = variant["cut"], variant["name"]
        try:
            tree = from_mjcf(base[:start] + variant["put"] + base[stop:], dtype=jnp.float64)
        except ValueError as error:
            known = name in str(error) or "error" in variant
            faults += [] if known else [f"{name}: {error}"]
            continue
        spec = rigid.Simulation(tree, rigid.passive(tree), CHANGED["dt"])
        begin = spec.init()
        close = "error" not in variant and begin.q.shape == np.shape(variant["start"])
        if close:
            turned = np.sign(np.dot(begin.q[3:7], variant["start"][3:7]))
            sign = np.where(np.isin(np.arange(len(begin.q)), range(3, 7)), turned, 1.0)
            v = jnp.resize(jnp.array(CHANGED["v"] + 20 * [0.0]), tree.nv)
            end = rollout(spec, rigid.State(begin.q, v))
            close = np.allclose(begin.q * sign, variant["start"], atol=1e-14)
            close &= np.allclose(end * sign, variant["end"], atol=1e-9)
        loaded |= {name}
        faults += [] if close else [f"{name}: moves otherwise than in MuJoCo: {variant['put']}"]
    assert not faults, "\n".join(faults)
    assert sorted(set(LOADED) - loaded) == []


BALL = '<body pos="0 0 1" quat="0 1 0 0"><freejoint/><geom size="0.1"/></body>'


def test_a_free_body_begins_where_the_file_has_it():
    tree = from_mjcf(wrap(BALL))
    np.testing.assert_array_equal(tree.rest_position, [0, 0, 1, 0, 1, 0, 0])
    begin = rigid.Simulation(tree, rigid.passive(tree)).init((2,))
    np.testing.assert_array_equal(begin.q, [tree.rest_position] * 2)


SMALL = '<geom size="0.1"/>'


def test_later_sections_change_what_they_say_and_keep_the_rest():
    twice = '<compiler angle="radian"/><compiler autolimits="true"/><option gravity="0 0 -1"/>'
    tree = from_mjcf(body('<joint range="-1 1"/>').replace("<world", twice + "<option/><world"))
    np.testing.assert_allclose(tree.upper, 1)
    np.testing.assert_array_equal(tree.gravity, [0, 0, -1])


def test_files_may_nest_deeply():
    text = wrap(f"<body>{3000 * '<body>'}<joint/>{SMALL}{3000 * '</body>'}</body>")
    assert from_mjcf(text).nv == 1


ENTITY = '<!DOCTYPE mujoco [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'


@pytest.mark.parametrize(
    "text",
    [
        ENTITY + "<mujoco model='&b;'/>",
        '<!DOCTYPE mujoco SYSTEM "file:///etc/hostname"><mujoco/>',
        f'<?xml version="1.0"?>{ENTITY}<mujoco>&undefined;</mujoco>',
    ],
)
def test_document_types_and_entities_are_refused_before_they_are_read(text):
    for given in (text, text.encode()):
        with pytest.raises(ValueError, match="^from_mjcf: has a <!DOCTYPE>, which MJCF does not"):
            from_mjcf(given)


def test_nesting_that_is_no_mechanism_is_refused_as_it_is_read():
    endless = "<mujoco><worldbody>" + 10_000 * "<body>"  # it never closes, and need not
    with pytest.raises(ValueError, match="^from_mjcf: nests more than 10000 elements; give a file"):
        from_mjcf(endless)
