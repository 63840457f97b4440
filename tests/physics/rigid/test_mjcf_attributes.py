"""Values that cannot be, and words that are left out."""

import pytest

from jaxgpu.physics.rigid import from_mjcf

SMALL = '<geom size="0.1"/>'
BALL = '<body pos="0 0 1" quat="0 1 0 0"><freejoint/><geom size="0.1"/></body>'


def wrap(inner, before=""):
    return f"<mujoco>{before}<worldbody>{inner}</worldbody></mujoco>"


def body(inside):
    return wrap(f'<body>{inside}<geom size="0.1"/></body>')


@pytest.mark.parametrize(
    "text, message",
    [
        (body('<joint name="hip" range="1"/>'), r'<joint name="hip" range="1"> has the wrong nu'),
        (body('<joint axis="nan 0 1"/>'), r'axis="nan 0 1"> cannot be read; it must be 3 finite'),
        (body('<joint damping="-1"/>'), r'damping="-1"> cannot be .* one finite number of at le'),
        (body('<joint range="2 1"/>'), r'range="2 1"> of a limited joint is 2 to 1; the first'),
        (body('<joint/><geom type="capsule" fromto="0 0 0 0 0 1"/>'), "fromto=.* needs a size"),
        (body('<joint/><geom size="nan"/>'), 'size="nan"> cannot be read; it must be 1 to 3'),
        (body('<joint/><geom size="-1"/>'), r"sizes \[-1.0\] for a sphere; they must be above 0"),
        (wrap('<body euler="0 0 1"/>'), r"<body euler=\"0 0 1\"> is .* ignore=\('euler',\)"),
        (wrap("<body><joint/></body>"), "<body> moves but has no mass or no inertia; give it"),
        (wrap(BALL.replace("<freejoint/>", "<freejoint/><joint/>")), "free beside or below ano"),
        (wrap(f"<body><body><joint/>{SMALL}{BALL}</body></body>"), "free beside or below another"),
        (wrap(BALL, '<option timestep="1" integrator="RK4"/>'), r"RK4\"> is .*\('integrator',\)"),
        (wrap(BALL, "<keyframe><key/></keyframe>"), r"<keyframe> is not .*\('keyframe',\)"),
        (wrap(BALL, '<size nkey="1"/><compiler foo="a b"/>'), r"ignore=\('foo',\)"),
    ],
)
def test_what_cannot_be_is_named_with_its_element(text, message):
    with pytest.raises(ValueError, match=message):
        from_mjcf(text)


def test_what_is_left_out_is_not_read():
    damped = body('<joint damping="3" euler="0 0 1"/>')
    assert from_mjcf(damped, ignore=("euler", "damping")).damping[0] == 0
    with pytest.raises(TypeError, match=r"ignore='contact'; it must be a tuple of names"):
        from_mjcf(damped, ignore="contact")
