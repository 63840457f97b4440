"""Forward kinematics of an arm by matrix products in NumPy: an oracle for chains of joints."""

import numpy as np
from scipy.spatial.transform import Rotation


def tip_pose(arm, q):
    """Return position [3], m, and orientation [3, 3] of the tip, at joints [J]."""
    T = np.eye(4)
    for (alpha, a, theta, d), sliding, value in zip(arm.dh, arm.prismatic, q):
        theta, d = (theta, d + value) if sliding else (theta + value, d)
        for R, p in (
            (Rotation.from_euler("x", alpha), (a, 0, 0)),
            (Rotation.from_euler("z", theta), (0, 0, d)),
        ):
            step = np.eye(4)
            step[:3, :3], step[:3, 3] = R.as_matrix(), p
            T = T @ step
    return T[:3, 3] + T[:3, :3] @ arm.tip, T[:3, :3]
