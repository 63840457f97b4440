"""Contacts of two shapes by MuJoCo's C library: the oracle of the collision kernels."""

import mujoco
import numpy as np

SCENE = """<mujoco><option><flag gravity="disable"/></option>{asset}<worldbody>
<body><freejoint/><geom name="one" type="{one}" {size_one} mass="1"/></body>
<body><freejoint/><geom name="two" type="{two}" {size_two} mass="1"/></body></worldbody>
<contact><pair geom1="one" geom2="two" margin="{margin}"/></contact></mujoco>"""
PLANES = """<mujoco><option><flag gravity="disable"/></option>{asset}<worldbody>
<body mocap="true"><geom name="one" type="plane" {size_one}/></body>
<body><freejoint/><geom name="two" type="{two}" {size_two} mass="1"/></body></worldbody>
<contact><pair geom1="one" geom2="two" margin="{margin}"/></contact></mujoco>"""


class Pair:
    """Two shapes of MuJoCo that can be moved and resized, and their contacts."""

    def __init__(self, one, two, margin=0.0, asset="", mesh=()):
        words = {
            name: f'mesh="{name}"' if name in mesh else 'size="1 1 1"' for name in ("one", "two")
        }
        scene = PLANES if one == "plane" else SCENE
        self.model = mujoco.MjModel.from_xml_string(
            scene.format(
                one=one,
                two=two,
                margin=margin,
                asset=asset,
                size_one=words["one"],
                size_two=words["two"],
            )
        )
        self.data = mujoco.MjData(self.model)
        self.plane = one == "plane"
        self.mesh = mesh

    def place(self, sizes, positions, quaternions):
        """Set sizes and positions [2, 3] and quaternions [2, 4], and return MuJoCo's contacts."""
        model, data = self.model, self.data
        for i, name in enumerate(("one", "two")):
            if name not in self.mesh and not (self.plane and i == 0):
                model.geom_size[i] = sizes[i]
                model.geom_rbound[i] = 4 * np.sum(sizes[i])
        poses = np.concatenate([positions, quaternions], 1)
        if self.plane:
            data.mocap_pos[0], data.mocap_quat[0] = poses[0, :3], poses[0, 3:]
            data.qpos[:] = poses[1]
        else:
            data.qpos[:] = poses.reshape(-1)
        mujoco.mj_kinematics(model, data)
        mujoco.mj_collision(model, data)
        shapes = (data.geom_xpos.copy(), data.geom_xmat.reshape(2, 3, 3).copy(), np.array(sizes))
        rows = [(c.dist, c.pos.copy(), c.frame.reshape(3, 3).copy()) for c in data.contact]
        return shapes, rows
