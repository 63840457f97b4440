"""Needle driver of the contact tasks: a tip moved by servos, and two blades.

The model is an MJCF text, as for any robot. The instrument points down. Servos of at most 3 N move
it along x, y and z, and a servo rotates it about the vertical; its weight is compensated, as by an
arm that follows its inverse kinematics. The blades rotate about one pin, 10.2 mm above the tip,
each by its own servo. They end 1 mm below the tip, the center of the held object. They touch only
the object, and pass through tray, board and pegs.
"""

PIN = 0.0102  # m above the tip, of the large needle driver
THICK, WIDE, LONG, END = 0.0016, 0.003, 0.011, 0.001  # m, of a blade; its end below the tip
OPEN, SHUT = 0.45, -0.15  # rad, targets of each blade from the center
JOINTS = 6  # of the tool: x, y, z, yaw, and both blades

# Contacts are stiff: pressed with 0.4 N, a blade penetrates a needle of 0.4 g by some 0.1 mm.
SETTINGS = """
<option timestep="0.004" integrator="implicitfast" cone="elliptic"/>
<default>
  <geom solref="0.008 1" solimp="0.99 0.998 0.0001" friction="1 0.002 0.0001" condim="4"/>
</default>"""

_ACTUATORS = """
<actuator>
  <position name="x" joint="x" kp="800" kv="25" forcerange="-3 3"/>
  <position name="y" joint="y" kp="800" kv="25" forcerange="-3 3"/>
  <position name="z" joint="z" kp="800" kv="25" forcerange="-3 3"/>
  <position name="yaw" joint="yaw" kp="0.5" kv="0.014"/>
  <position name="right" joint="right" kp="0.02" kv="0.0004"/>
  <position name="left" joint="left" kp="0.02" kv="0.0004"/>
</actuator>"""


def scene_mjcf(floor: float, around: str, thing: str) -> str:
    """Return the MJCF text of the tool over a floor at a height, m, surroundings, and an object.

    Geoms of the object have contype 1, for the blades, and the bits 8 and 4 of conaffinity if they
    touch the floor and the surroundings.
    """
    return f"""<mujoco>{SETTINGS}<worldbody>
<geom name="floor" type="plane" pos="0 0 {floor}" size="0.1 0.1 0.1" contype="8" conaffinity="0"/>
{around}
<body name="tool" pos="0 0 0" gravcomp="1">
  <inertial pos="0 0 0.05" mass="0.2" diaginertia="1e-4 1e-4 1e-5"/>
  <joint name="x" type="slide" axis="1 0 0"/>
  <joint name="y" type="slide" axis="0 1 0"/>
  <joint name="z" type="slide" axis="0 0 1"/>
  <joint name="yaw" axis="0 0 1" armature="1e-4"/>
  {_blade("right", 1)}{_blade("left", -1)}
</body>
{thing}
</worldbody>{_ACTUATORS}</mujoco>"""


def _blade(name: str, side: int) -> str:
    return f"""
  <body name="{name}" pos="0 0 {PIN}" gravcomp="1">
    <joint name="{name}" axis="0 {-side} 0" armature="2e-6"/>
    <geom name="{name}" type="box" size="{THICK / 2} {WIDE / 2} {LONG / 2}" mass="0.001"
      pos="{side * THICK / 2} 0 {-PIN - END + LONG / 2}" contype="2" conaffinity="1"/>
  </body>"""
