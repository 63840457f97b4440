"""Which geoms MuJoCo would let collide; the rules are those of its manual."""

import pytest

from jaxgpu.physics.rigid import from_mjcf

BALL = '<body pos="0 0 1" quat="0 1 0 0"><freejoint/><geom size="0.1"/></body>'
PLANE, SMALL = '<geom type="plane" size="1 1 1"/>', '<geom size="0.1"/>'
CHAIN = f"<body><joint/>{SMALL}<body><joint/>{{}}<body><joint/>{SMALL}</body></body></body>"
OFF = '<option><flag contact="disable"/></option>'


def wrap(inner, before=""):
    return f"<mujoco>{before}<worldbody>{inner}</worldbody></mujoco>"


COLLIDE = [
    wrap(PLANE + BALL),
    wrap(BALL + BALL),
    wrap(CHAIN.format(SMALL)),
    wrap(BALL + '<body><geom size="1" contype="6" conaffinity="3"/></body>'),
    wrap(CHAIN.format("").replace("<body><joint/><body>", "<body><body>") + BALL),
    wrap(f"<body><joint/>{SMALL}<body><joint/>{SMALL}</body></body>").replace(
        "<worldbody>", '<option><flag filterparent="disable"/></option><worldbody>'
    ),
]


@pytest.mark.parametrize("text", COLLIDE)
def test_geoms_that_could_collide_are_refused_unless_contact_is_left_out(text):
    with pytest.raises(ValueError, match=r"can collide, and .* ignore=\('contact',\)"):
        from_mjcf(text)
    assert from_mjcf(text, ignore=("contact",)).nv > 0
    assert from_mjcf(text.replace("<worldbody>", OFF + "<worldbody>")).nv > 0


@pytest.mark.parametrize(
    "text",
    [
        wrap(
            f"{PLANE}<body>{PLANE}</body>{BALL.replace('/></body>', ' contype="0"/></body>')}"
        ).replace('type="plane"', 'type="plane" contype="0"'),
        wrap(f"<body><joint/>{SMALL}<body>{SMALL}<body><joint/>{SMALL}</body></body></body>"),
        wrap(BALL + '<body><geom size="1" contype="6" conaffinity="2"/></body>'),
    ],
)
def test_geoms_that_cannot_collide_do_no_harm(text):
    assert from_mjcf(text).nv > 0
