"""Joints of Surgical Gym's `psm.usd` and `ecm.usd`, read with OpenUSD 26; an oracle for chains.

A joint rotates about, or slides along, the first axis of its frame in the parent body, given by a
position in m and a quaternion w, x, y, z. The child body's frame is that of the joint after the
inverse of a second quaternion.
"""

import numpy as np

S = 0.70710677
TURN = (S, 0, -S, 0)
PSM = [
    ((0, 0, 0.1524), TURN, TURN),
    ((0, 0, 0), (-0.0000012516975, 0.7071081, -0.7071055, 0.0000013113022), TURN),
    ((0, 0, 0.0296), (0.42229897, -0.5671544, -0.5671523, 0.42230052), TURN),
    ((0.15, 0, 0), (0.4223072, 0.5671478, -0.4223072, 0.5671478), TURN),
    ((0.516, 0, 0), TURN, TURN),
    ((0.043, -0.28809, 0), (0.7071055, -0.0000012516975, -0.0000013113022, 0.707108), TURN),
    ((0, 0, 0.4162), (0.4999991, -0.5000009, -0.4999991, -0.5000009), TURN),
]
ECM = [
    ((0.0732, 0, 0.10146), (0.7071067, 0.7071067, 0, 0), TURN),
    ((0, 0, 0.199), (0, 0.99999964, -0.0007962742, 0), TURN),
    ((-0.103000864, -0.286805, 0), TURN, TURN),
    ((0.34040007, -0.00013562055, 0), TURN, TURN),
    ((0.042, -0.086143, 0), (0.4999991, -0.5000009, -0.4999991, 0.5000009), TURN),
    ((0.061, 0, 0), (S, 0, S, 0), (S, 0, S, 0)),
]
# joints, position of the base (rotated by 180 degrees), center of the goals, distance of the tip
# from the last pitching link; all in m
SCENES = {
    "psm": (PSM, (1.0, 0.0, 0.5), (1.0, -0.5, 0.6), 0.025),
    "ecm": (ECM, (1.0, 0.0, -0.5), (0.2, 0.0, 1.0), 0.375),
}


def goal_offset(name, q):
    """Return the tip minus the center of the goals, [3] m in scene axes, at the joints `q`."""
    joints, base, centre, ahead = SCENES[name]
    slide, M, bodies = len(q) - 1, np.eye(4), []
    for i, (place, before, after) in enumerate(joints):
        own = np.eye(4)
        if i == slide:
            own[0, 3] = q[i]
        elif i < slide:
            c, s = np.cos(q[i]), np.sin(q[i])
            own[1:3, 1:3] = [[c, -s], [s, c]]
        M = M @ _frame(place, before) @ own @ np.linalg.inv(_frame((0, 0, 0), after))
        bodies.append(M)
    tip = bodies[-1][:3, 3] + ahead * bodies[slide - 1][:3, 1]
    return np.array(base) + np.array([-1, -1, 1]) * tip - np.array(centre)


def _frame(place, quaternion):
    w, x, y, z = np.array(quaternion) / np.linalg.norm(quaternion)
    M = np.eye(4)
    M[:3, 3] = place
    M[:3, :3] = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    return M
