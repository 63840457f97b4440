"""The doors of `jaxgpu.physics.rigid`."""

import jax
import jax.numpy as jnp
import numpy as np
from doors import Door

from jaxgpu.geometry import sdf
from jaxgpu.physics import rigid
from jaxgpu.physics.rigid import Contact, solids

ROD = {"com": (0.0, 0.0, -0.4), "inertia": np.diag([0.2, 0.3, 0.1])}
TREE = rigid.assemble(
    [
        rigid.Link(-1, axis=(0, 1, 0), mass=1.3, lower=-2.0, upper=2.0, **ROD),
        rigid.Link(0, "prismatic", (1, 0, 0), (0.1, 0, -0.8), mass=0.6, **ROD),
    ]
)
SPEC = rigid.Simulation(TREE, rigid.Drive(jnp.array([3.0, 5.0]), jnp.array([0.3, 0.5])), 0.01)
LINK = rigid.Link(-1, axis=(0, 1, 0), mass=1.3, rest=0.1, lower=-2.0, upper=2.0, **ROD)
Q, V, F = (np.array(x, np.float32) for x in ([0.3, 2.0], [1.0, -2.0], [2.0, 1.0]))
ZERO = tuple(
    f"{name}: {kind}"
    for name in ("q", "v", "a", "force", "implicit", "target")
    for kind in ("zero", "negative")
)
BALL = rigid.Spheres(jnp.zeros((1, 3)), jnp.array([1.5]), (1,))
CONTACT = Contact(BALL, sdf.HalfSpace(np.array([0.0, 0.6, 0.8], np.float32), 0.1))


def _force(contact, tree, q, v, stretch, dt):
    return contact.force(tree, rigid.State(q, v), stretch, dt)


def _smooth_force(contact, q, v, dt, width, slow):
    return contact.smooth_force(TREE, rigid.State(q, v), dt, width, slow)


def _dtype(x):
    """In which a mechanism is put together: that of its numbers, where they are floating."""
    floating = hasattr(x, "dtype") and jnp.issubdtype(x.dtype, jnp.floating)
    return jax.dtypes.canonicalize_dtype(x.dtype) if floating else jnp.float32


def _inertia(link):
    return rigid.assemble([link], dtype=_dtype(link.inertia)).inertia


def _gravity(gravity):
    return rigid.assemble([LINK], gravity, _dtype(gravity)).gravity


DOORS = [
    Door("physics.rigid.assemble", _inertia, {"link": LINK}),
    Door(
        "physics.rigid.assemble: gravity",
        _gravity,
        {"gravity": np.array([0.0, 1.0, -9.0], np.float32)},
        right=("gravity: zero", "gravity: negative"),
    ),
    Door(
        "physics.rigid.forward_kinematics",
        rigid.forward_kinematics,
        {"tree": TREE, "q": Q},
        right=ZERO,
    ),
    Door("physics.rigid.mass_matrix", rigid.mass_matrix, {"tree": TREE, "q": Q}, right=ZERO),
    Door(
        "physics.rigid.inverse_dynamics",
        rigid.inverse_dynamics,
        {"tree": TREE, "q": Q, "v": V, "a": F},
        right=ZERO,
    ),
    Door(
        "physics.rigid.forward_dynamics",
        rigid.forward_dynamics,
        {"tree": TREE, "q": Q, "v": V, "force": F, "implicit": F},
        right=ZERO,
    ),
    Door("physics.rigid.Simulation.init", lambda spec: spec.init(), {"spec": SPEC}),
    Door(
        "physics.rigid.Drive",
        lambda tree, drive: rigid.Simulation(tree, drive).init(),
        {"tree": TREE, "drive": SPEC.drive},
    ),
    Door(
        "physics.rigid.Simulation.step",
        lambda spec, q, v, target, force: spec.step(rigid.State(q, v), target, force),
        {"spec": SPEC, "q": Q, "v": V, "target": F, "force": F},
        right=(*ZERO, "target: None", "force: None"),
    ),
    Door("physics.rigid.passive", rigid.passive, {"tree": TREE}),
    Door(
        "physics.rigid.Spheres",
        lambda spheres: Contact(spheres, sdf.Ball(1.0)).init(),
        {"spheres": BALL},
    ),
    Door(
        "physics.rigid.Contact.force",
        _force,
        {
            "contact": CONTACT,
            "tree": TREE,
            "q": Q,
            "v": V,
            "stretch": np.full((1, 3), 1e-3, np.float32),
            "dt": 0.01,
        },
        right=(*ZERO, "stretch: zero", "stretch: negative"),
    ),
    Door(
        "physics.rigid.Contact.smooth_force",
        _smooth_force,
        {"contact": CONTACT, "q": Q, "v": V, "dt": 0.01, "width": 1e-3, "slow": 1e-2},
        right=ZERO,
    ),
    Door(
        "physics.rigid.solid",
        lambda size, mass, density: vars(solids.solid("box", size, mass, density)),
        {"size": np.array([0.5, 1.0, 2.0], np.float32), "mass": 2.0, "density": 300.0},
        right=("mass: zero", "mass: None", "density: zero"),
    ),
]
