"""Mechanisms and references that several tests share."""

import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from jaxgpu.physics.rigid import Link, assemble

MUJOCO = json.loads((Path(__file__).parent / "physics/rigid/mujoco_reference.json").read_text())


def arm(joints=7, dtype=jnp.float32, **changes):
    """A serial arm, axes in turn along z and y, each link a rod 15 cm long."""
    inertia = np.diag([2.1e-3, 2.1e-3, 4e-4])
    links = [
        Link(i - 1, "revolute", ((0, 0, 1), (0, 1, 0))[i % 2], (0, 0, 0.15), com=(0, 0, 0.075))
        for i in range(joints)
    ]
    common = {"inertia": inertia, "armature": 0.01, "damping": 1.0} | changes
    return assemble([Link(**{**vars(link), **common}) for link in links], dtype=dtype)


def pendulum(joints, dtype=jnp.float64):
    """Point masses of 1 kg on weightless rods of 1 m, in the xz plane, hanging at q = 0."""
    links = [
        Link(i - 1, "revolute", (0, -1, 0), (0, 0, -1.0 * (i > 0)), com=(0, 0, -1))
        for i in range(joints)
    ]
    return assemble(links, dtype=dtype)
