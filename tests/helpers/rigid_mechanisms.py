"""Mechanisms and references that several tests share."""

import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from jaxgpu.physics.rigid import Link, assemble

MUJOCO = json.loads((Path(__file__).parents[1] / "physics/rigid/mujoco_reference.json").read_text())


def arm(joints=7, dtype=jnp.float32, **changes):
    """A serial arm, axes in turn along z and y, of unlike rods of some 1 kg and 15 cm.

    Masses span a factor of 5; the centres of mass lie beside the rods, and their principal axes
    are turned.
    """
    rng = np.random.default_rng(15)
    links = []
    for i in range(joints):
        mass, length = rng.uniform(0.4, 2), rng.uniform(0.1, 0.2)
        axes = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        thin, wide = sorted(rng.uniform(1e-3, 3e-3, 2))
        link = Link(
            i - 1,
            axis=((0, 0, 1), (0, 1, 0))[i % 2],
            position=(0, 0, length),
            mass=mass,
            com=(*rng.uniform(-0.02, 0.02, 2), length / 2),
            inertia=mass * axes @ np.diag([thin, wide, rng.uniform(wide - thin, wide)]) @ axes.T,
        )
        links.append(Link(**{**vars(link), "armature": 0.01, "damping": 1.0, **changes}))
    return assemble(links, dtype=dtype)


def pendulum(masses, lengths, dtype=jnp.float64):
    """Point masses on weightless rods, kg and m, in the xz plane, hanging at q = 0."""
    joints = zip(masses, lengths, [0.0, *lengths])
    links = [
        Link(i - 1, "revolute", (0, -1, 0), (0, 0, -above), mass=mass, com=(0, 0, -length))
        for i, (mass, length, above) in enumerate(joints)
    ]
    return assemble(links, dtype=dtype)
