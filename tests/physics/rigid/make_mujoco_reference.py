"""Writes mujoco_reference.json: random trees and what MuJoCo's C library makes of them, in float64.
Writes mujoco_variants.json too: one model, changed in one place at a time, and its motion or error.

    pip install mujoco && python tests/physics/rigid/make_mujoco_reference.py

Each record holds the XML, states with their accelerations, the mass matrix at the first state, and
the end of a short run of MuJoCo's Euler integrator. Joint springs are left out of the runs (MuJoCo
takes them explicitly, jaxgpu implicitly) by records without stiffness.
"""

import json
import os
import re
from pathlib import Path

import mujoco
import numpy as np

STEPS, DT = 50, 0.002


def vector(x):
    return " ".join(repr(float(a)) for a in x)


def joint(rng, i, springs):
    spring = f'stiffness="{rng.uniform(1, 20):.3f}" springref="{rng.uniform(-30, 30):.3f}"'
    return (
        f'<joint name="j{i}" type="{rng.choice(["hinge", "hinge", "slide"])}" '
        f'axis="{vector(rng.normal(size=3))}" pos="{vector(0.1 * rng.normal(size=3))}" '
        f'armature="{rng.uniform(0, 0.05):.4f}" damping="{rng.uniform(0, 2):.3f}" '
        f"{spring if springs else ''}/>"
    )


def inertia(rng, i):
    place = f'pos="{vector(0.1 * rng.normal(size=3))}" quat="{vector(rng.normal(size=4))}"'
    if i % 3 == 0:
        a = np.sort(rng.uniform(0.01, 0.03, 3))
        return f'<inertial {place} mass="{rng.uniform(0.3, 2):.3f}" diaginertia="{vector(a)}"/>'
    shapes = {
        "sphere": "0.1",
        "box": "0.1 0.05 0.2",
        "ellipsoid": "0.1 0.07 0.15",
        "cylinder": "0.06 0.2",
        "capsule": "0.05 0.15",
    }
    kind = rng.choice(list(shapes))
    second = '<geom type="capsule" fromto="0 0 0 0.1 0.05 0.2" size="0.02" density="700"/>'
    return f'<geom type="{kind}" size="{shapes[kind]}" {place}/>' + second


def body(rng, i, children, springs, free):
    place = f'pos="{vector(0.3 * rng.normal(size=3))}" quat="{vector(rng.normal(size=4))}"'
    count = 1 + (i % 4 == 1) - (i % 5 == 4)  # some bodies have two joints, some none
    joints = "".join(joint(rng, f"{i}_{k}", springs) for k in range(count))
    joints = f'<freejoint name="f{i}"/>' if free else joints
    inner = "".join(body(rng, c, children, springs, False) for c in children.get(i, []))
    return f"<body {place}>{joints}{inertia(rng, i)}{inner}</body>"


def model(seed, bodies, springs, free):
    rng = np.random.default_rng(seed)
    children, roots = {}, []
    for i in range(bodies):
        parent = int(rng.integers(-1, i)) if i else -1
        roots.append(i) if parent < 0 else children.setdefault(parent, []).append(i)
    roots = "".join(body(rng, i, children, springs, free and i == 0) for i in roots)
    gravity = vector(3 * rng.normal(size=3))
    flag = '<flag contact="disable"/>'
    option = f'<option timestep="{DT}" gravity="{gravity}">{flag}</option>'
    return f'<mujoco><compiler angle="degree"/>{option}<worldbody>{roots}</worldbody></mujoco>'


def record(seed, bodies, springs, free):
    xml = model(seed, bodies, springs, free)
    m = mujoco.MjModel.from_xml_string(xml)
    d, rng, states = mujoco.MjData(m), np.random.default_rng(seed), []
    for _ in range(3):
        d.qpos[:] = rng.normal(size=m.nq)
        mujoco.mj_normalizeQuat(m, d.qpos)
        d.qvel[:] = rng.normal(size=m.nv)
        d.qfrc_applied[:] = 3 * rng.normal(size=m.nv)
        mujoco.mj_forward(m, d)
        states.append(
            {
                "q": d.qpos.tolist(),
                "v": d.qvel.tolist(),
                "force": d.qfrc_applied.tolist(),
                "a": d.qacc.tolist(),
            }
        )
    M = np.zeros((m.nv, m.nv))
    mujoco.mj_resetData(m, d)
    d.qpos[:] = states[0]["q"]
    d.qvel[:] = states[0]["v"]
    mujoco.mj_forward(m, d)
    mujoco.mj_fullM(m, d, M)
    mujoco.mj_step(m, d, nstep=STEPS)
    end = {"q": d.qpos.tolist(), "v": d.qvel.tolist()}
    return {"xml": xml, "springs": springs, "states": states, "M": M.tolist(), "end": end}


BASE = """<mujoco>
<compiler angle="degree"/>
<option timestep="0.002" gravity="0.3 0.2 -9.81"><flag contact="disable"/></option>
<worldbody>
<body name="float" pos="0.3 -0.2 1" quat="0.5 0.1 -0.7 0.3">
  <freejoint name="loose"/><geom name="brick" type="box" size="0.1 0.2 0.3" pos="0.02 0.01 -0.03"/>
</body>
<body name="arm" pos="1 0 1" axisangle="0 1 0 30">
  <joint name="hip" axis="0 1 0.3" pos="0 0 0.1" damping="0.3" armature="0.02"/>
  <geom name="bone" type="capsule" fromto="0 0 0 0.1 0 0.4" size="0.05"/>
  <body name="hand" pos="0 0.1 0.4">
    <joint name="rail" type="slide" axis="1 0.2 0" damping="1"/>
    <inertial pos="0 0 0.02" mass="0.7" diaginertia="0.02 0.03 0.04"/>
    <geom name="palm" size="0.05"/><body name="nail" pos="0.1 0 0"><geom size="0.02"/></body>
  </body>
</body>
</worldbody>
</mujoco>"""
START = (0.3, -0.2, 0.5, 1.0, -2.0, 0.7, 1.5, -0.4)  # velocities


def sets(tag, **values):
    """Variants in which the attributes of the element that begins with `tag` are given."""
    for name, value in values.items():
        old = f"<{tag}"
        at = BASE.index(old)
        end = BASE.index(">", at)
        element = BASE[at : end + 1]
        kept = re.sub(rf' {name}="[^"]*"', "", element)
        for one in value if isinstance(value, tuple) else (value,):
            new = kept.replace(old, f'{old} {name}="{one}"', 1)
            yield name, BASE.replace(element, new)


def holds(tag, **elements):
    """Variants in which elements stand before the end of the element named `tag`."""
    for name, text in elements.items():
        at = BASE.index(f"</{tag}>") if tag else BASE.index("<worldbody>")
        yield name, BASE[:at] + text + BASE[at:]


def swaps(**pairs):
    """Variants in which one text is replaced by another."""
    for name, (old, new) in pairs.items():
        assert old in BASE, old
        yield name, BASE.replace(old, new)


def variants():
    yield "nothing", BASE
    yield from sets("option", gravity=("0 0 1", "0 0", "0 0 nan"), density="500", viscosity="2")
    yield from sets("option", integrator=("Euler", "RK4", "implicit", "implicitfast"))
    yield from sets("option", wind="9 0 0", impratio="3", cone="elliptic", solver="PGS")
    yield from sets("option", iterations="3", tolerance="1e-3", magnetic="0 1 0", o_margin="1")
    off, on = "disable", "enable"
    yield from sets("flag", gravity=off, constraint=off, limit=off, spring=off, damper=off)
    yield from sets("flag", eulerdamp=off, sleep=on, contact=on, energy=on, warmstart=off)
    yield from sets("flag", filterparent=off, gravity=("no", off), island=off, diagexact=on)
    yield from sets("compiler", angle=("radian", "gradian"), autolimits=("false", "no"))
    yield from sets("compiler", coordinate=("local", "global"), boundmass="50", boundinertia="9")
    yield from sets("compiler", settotalmass="3", balanceinertia="true", alignfree="true")
    yield from sets("compiler", inertiafromgeom=("auto", "true", "false"), eulerseq="zyx")
    yield from sets("compiler", inertiagrouprange="0 0", fusestatic="true", discardvisual="true")
    arm, hip, float_ = 'body name="arm"', 'joint name="hip"', 'body name="float"'
    yield from sets(arm, pos=("0 1 2", "1 2", "a b c"), euler="9 8 7", gravcomp="0.5", user="1")
    yield from sets(arm, mocap="true", childclass="x", quat="0 1 0 0", sleep="never")
    yield from sets('body name="hand"', xyaxes="0 1 0 -1 0 0", zaxis="0 1 1", quat="0 0 0 0")
    yield from sets('body name="hand"', axisangle=("0 0 0 9", "0 1 1 40"), gravcomp="1")
    yield from sets(float_, pos="0 0 5", quat=("0 1 0 0", "-1 2 0 0", "0 0 0 0"), gravcomp="1")
    yield from sets('freejoint name="loose"', align=("true", "false"), group="1")
    yield from sets(hip, pos="0.2 0 0", axis=("0 0 2", "0 0 0"), armature="0.5", damping="2")
    yield from sets(hip, type=("ball", "slide", "free"), range=("-90 90", "1"), group="2")
    yield from sets(hip, limited=("yes", "true", "false"), frictionloss="3", ref="20")
    yield from sets(hip, springdamper="0.1 1", springyield="1", margin="0.1", user="2")
    yield from sets(hip, damping="1 2", actuatorgravcomp="true", actuatorfrcrange="-1 1")
    yield from sets("inertial", pos="0.1 0 0", mass="2", diaginertia=("9 1 1", "-1 1 1", "1 1 1"))
    yield from sets("inertial", quat="1 1 0 0", axisangle="0 1 0 20", euler="1 2 3")
    yield from sets("inertial", fullinertia="0.02 0.03 0.04 0.001 0.002 0.003")
    bone, brick = 'geom name="bone"', 'geom name="brick"'
    yield from sets(bone, mass=("2", "0", "-1"), density="300", type=("cylinder", "box", "sphere"))
    yield from sets(bone, type="ellipsoid", size="0.1 0.2", pos="1 0 0", group="1", rgba="1 0 0 1")
    yield from sets(brick, type=("ellipsoid", "cylinder", "plane", "mesh"), size=("0.2", "1 2 -3"))
    yield from sets(brick, quat="1 2 3 4", axisangle="1 0 0 50", euler="1 2 3", zaxis="0 1 1")
    yield from sets(brick, shellinertia="true", fluidshape="ellipsoid", friction="1 0.1 0.1")
    yield from sets(brick, contype="3", condim="4", margin="1", solref="0.1 1", priority="2")
    yield from sets(brick, adhesion="2", surfacevel="1 0 0 0 0 0", solmix="2", gap="0.1")
    yield from swaps(
        damping=('<freejoint name="loose"/>', '<joint type="free" damping="3"/>'),
        armature=('<freejoint name="loose"/>', '<joint type="free" armature="3" pos="1 0 0"/>'),
        stiffness=('<freejoint name="loose"/>', '<joint type="free" stiffness="3"/>'),
        fullinertia=('diaginertia="0.02 0.03 0.04"', 'fullinertia="2 3 4 0.1 0.2 0.3"'),
        inertial=('<inertial pos="0 0 0.02" mass="0.7" diaginertia="0.02 0.03 0.04"/>', ""),
        mass=('mass="0.7" ', ""),
        spring=("<flag ", '<flag spring="disable" gravity="disable" '),
        fromto=('size="0.05"/>\n  <body', "/>\n  <body"),
        orientation=('pos="0 0.1 0.4"', 'quat="0 1 0 0" axisangle="0 0 1 90"'),
    )
    inner = '<joint axis="0 0 1"/><geom size="0.1"/>'
    yield from holds("worldbody", plane='<geom type="plane" size="1 1 1"/>', site="<site/>")
    yield from holds("worldbody", light='<light pos="0 0 3"/>', camera="<camera/>")
    yield from holds("worldbody", frame=f'<frame pos="1 0 0"><body name="x">{inner}</body></frame>')
    yield from holds("worldbody", joint="<joint/>", freejoint="<freejoint/>")
    yield from holds(
        "worldbody", replicate=f'<replicate count="2"><body>{inner}</body></replicate>'
    )
    yield from holds("body", inertial='<inertial pos="0 0 0" mass="1"/>', joint="<joint/>")
    position = '<position joint="hip" kp="100" ctrlrange="1 2"/>'
    yield from holds("", actuator=f"<actuator>{position}</actuator>", size='<size njmax="50"/>')
    fixed = '<fixed stiffness="90"><joint joint="hip" coef="1"/></fixed>'
    yield from holds("", tendon=f"<tendon>{fixed}</tendon>", statistic='<statistic extent="2"/>')
    yield from holds("", equality='<equality><weld body1="arm"/></equality>', asset="<asset/>")
    yield from holds("", keyframe='<keyframe><key qvel="1 1 1 1 1 1 1 1"/></keyframe>')
    yield from holds("", default='<default><geom density="9"/></default>', visual="<visual/>")
    yield from holds("", custom='<custom><numeric name="n" data="1"/></custom>', sensor="<sensor/>")
    yield from holds("", option='<option density="9"/>', compiler='<compiler eulerseq="zyx"/>')


def patch(xml):
    """The variant as a cut in the base and what is put there."""
    head = len(os.path.commonprefix([BASE, xml]))
    tail = len(os.path.commonprefix([BASE[head:][::-1], xml[head:][::-1]]))
    return {"cut": [head, len(BASE) - tail], "put": xml[head : len(xml) - tail]}


def moved(xml):
    """Where the variant begins and where it is after 20 steps, or MuJoCo's error."""
    try:
        m = mujoco.MjModel.from_xml_string(xml)
    except ValueError as error:
        return {"error": str(error).splitlines()[0]}
    d = mujoco.MjData(m)
    start = d.qpos.tolist()
    d.qvel[: min(m.nv, 8)] = START[: m.nv]
    mujoco.mj_step(m, d, nstep=20)
    return {"start": start, "end": d.qpos.tolist()}


if __name__ == "__main__":
    cases = [(1, 3, 0, 0), (2, 6, 0, 0), (3, 7, 1, 0), (4, 4, 0, 1), (5, 5, 1, 1)]
    records = [record(*(int(x) for x in case)) for case in cases]
    out = Path(__file__).with_name("mujoco_reference.json")
    header = {"mujoco": mujoco.__version__, "dt": DT, "steps": STEPS}
    out.write_text(json.dumps({**header, "trees": records}))
    changed = [{"name": name, **patch(xml), **moved(xml)} for name, xml in variants()]
    extra = {"steps": 20, "v": START, "base": BASE, "variants": changed}
    body = json.dumps({**header, **extra})
    out.with_name("mujoco_variants.json").write_text(body)
