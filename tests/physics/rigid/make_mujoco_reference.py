"""Writes mujoco_reference.json: random trees and what MuJoCo's C library makes of them, in float64.

    pip install mujoco && python tests/physics/rigid/make_mujoco_reference.py

Each record holds the XML, states with their accelerations, the mass matrix at the first state, and
the end of a short run of MuJoCo's Euler integrator. Joint springs are left out of the runs (MuJoCo
takes them explicitly, jaxgpu implicitly) by records without stiffness.
"""

import json
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
    option = f'<option timestep="{DT}" gravity="{vector(3 * rng.normal(size=3))}"/>'
    return f'<mujoco><compiler angle="degree"/>{option}<worldbody>{roots}</worldbody></mujoco>'


def record(seed, bodies, springs, free):
    xml = model(seed, bodies, springs, free)
    m = mujoco.MjModel.from_xml_string(xml)
    m.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
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


if __name__ == "__main__":
    cases = [(1, 3, 0, 0), (2, 6, 0, 0), (3, 7, 1, 0), (4, 4, 0, 1), (5, 5, 1, 1)]
    records = [record(*(int(x) for x in case)) for case in cases]
    out = Path(__file__).with_name("mujoco_reference.json")
    header = {"mujoco": mujoco.__version__, "dt": DT, "steps": STEPS}
    out.write_text(json.dumps({**header, "trees": records}))
