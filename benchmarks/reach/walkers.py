"""MJCF of two robots on a floor: a body on four legs and a human figure, of simple shapes.

They have the sizes of the tasks named ant and humanoid: 14 and 23 DoFs, 8 and 17
actuators. Only the floor touches the ant; limbs of the figure also touch each other.
"""

_FLOOR = '<geom type="plane" size="20 20 1" condim="3" friction="1 0.5 0.5"/>'


def ant() -> str:
    """Return a ball on four legs, each with a hip that rotates about the vertical and a knee."""
    legs, motors = [], []
    for i, (x, y) in enumerate(((1, 1), (-1, 1), (-1, -1), (1, -1))):
        hip, knee = f"{0.2 * x} {0.2 * y} 0", f"{0.4 * x} {0.4 * y} 0"
        legs.append(
            f'<body pos="{hip}"><joint name="hip{i}" axis="0 0 1" range="-30 30"/>'
            f'<geom type="capsule" fromto="0 0 0 {hip}" size="0.08"/>'
            f'<body pos="{hip}"><joint name="knee{i}" axis="{-y} {x} 0" range="30 70"/>'
            f'<geom type="capsule" fromto="0 0 0 {knee}" size="0.08"/></body></body>'
        )
        motors += [f'<motor joint="{part}{i}" gear="150"/>' for part in ("hip", "knee")]
    return f"""<mujoco><option timestep="0.01"/>
<default><joint armature="1" damping="1" limited="true"/><motor ctrlrange="-1 1"/>
<geom density="5" contype="1" conaffinity="0" margin="0.01"/></default>
<worldbody>{_FLOOR.replace("/>", ' conaffinity="1"/>')}
<body pos="0 0 0.75"><freejoint/><geom size="0.25"/>{"".join(legs)}</body></worldbody>
<actuator>{"".join(motors)}</actuator></mujoco>"""


def humanoid() -> str:
    """Return a trunk of three parts with a head, two legs with feet and two arms with hands."""
    return f"""<mujoco><option timestep="0.003"/>
<default><joint damping="5" armature="0.01" stiffness="10" limited="true"/>
<geom type="capsule" margin="0.001" condim="1"/><motor ctrlrange="-0.4 0.4"/></default>
<worldbody>{_FLOOR}
<body name="chest" pos="0 0 1.4"><freejoint/>
<geom fromto="0 -0.07 0 0 0.07 0" size="0.07"/><geom type="sphere" pos="0 0 0.19" size="0.09"/>
{_arm_mjcf("right", -1)}{_arm_mjcf("left", 1)}
<body name="waist" pos="0 0 -0.26"><joint name="waist_z" axis="0 0 1" range="-45 45"/>
<joint name="waist_y" axis="0 1 0" range="-75 30"/>
<geom fromto="0 -0.06 0 0 0.06 0" size="0.06"/>
<body name="pelvis" pos="0 0 -0.165"><joint name="waist_x" axis="1 0 0" range="-35 35"/>
<geom fromto="0 -0.07 0 0 0.07 0" size="0.09"/>{_leg_mjcf("right", -1)}{_leg_mjcf("left", 1)}
</body></body></body></worldbody><actuator>{"".join(_actuators())}</actuator></mujoco>"""


def _leg_mjcf(side: str, y: int) -> str:
    """Return a thigh on three hinges, a shin on one hinge, and a fixed foot."""
    return f"""<body pos="0 {0.1 * y} -0.04">
<joint name="{side}_hip_x" axis="{-y} 0 0" range="-25 5"/>
<joint name="{side}_hip_z" axis="0 0 {-y}" range="-60 35"/>
<joint name="{side}_hip_y" axis="0 1 0" range="-110 20"/>
<geom fromto="0 0 0 0 0 -0.34" size="0.06"/>
<body pos="0 0 -0.4"><joint name="{side}_knee" axis="0 -1 0" range="-160 -2"/>
<geom fromto="0 0 0 0 0 -0.3" size="0.05"/>
<geom type="sphere" pos="0 0 -0.35" size="0.075"/></body></body>"""


def _arm_mjcf(side: str, y: int) -> str:
    """Return an upper arm on two hinges, a lower arm on one hinge, and a fixed hand."""
    return f"""<body pos="0 {0.17 * y} 0.06">
<joint name="{side}_shoulder_1" axis="2 {-y} 1" range="-60 85"/>
<joint name="{side}_shoulder_2" axis="0 {y} 1" range="-60 85"/>
<geom fromto="0 0 0 0.16 {0.16 * y} -0.16" size="0.04"/>
<body pos="0.18 {0.18 * y} -0.18"><joint name="{side}_elbow" axis="0 -1 {-y}" range="-90 50"/>
<geom fromto="0 0 0 0.17 {-0.17 * y} 0.17" size="0.03"/>
<geom type="sphere" pos="0.18 {-0.18 * y} 0.18" size="0.04"/></body></body>"""


def _actuators() -> list[str]:
    joints = ["waist_x", "waist_y", "waist_z"]
    for side in ("right", "left"):
        joints += [f"{side}_{part}" for part in ("hip_x", "hip_y", "hip_z", "knee")]
        joints += [f"{side}_{part}" for part in ("shoulder_1", "shoulder_2", "elbow")]
    return [f'<motor joint="{joint}" gear="100"/>' for joint in joints]
