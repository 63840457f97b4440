"""The doors of `jaxgpu.physics.rigid`."""

import jax.numpy as jnp
import numpy as np
from doors import Door

from jaxgpu.physics import rigid
from jaxgpu.physics.rigid import contact, sdf, solids

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
BALL = contact.Spheres(jnp.zeros((1, 3)), jnp.array([1.5]), (1,))
P = np.array([[0.5, 2.0, 3.0], [1.0, -1.0, 0.2]], np.float32)
POINTS = ("p: zero", "p: negative", "p: wrong length", "p: empty")


def floor(p):
    return sdf.half_space(p, (0.0, 0.0, 1.0))


def _push(tree, q, v, spheres, material, stretch, dt):
    state = rigid.State(q, v)
    return contact.push(tree, state, spheres, floor, material, stretch, dt)


def _smooth(q, v, material, width, slow, dt):
    state = rigid.State(q, v)
    return contact.push_smooth(TREE, state, BALL, floor, material, width, slow, dt)


DOORS = [
    Door("physics.rigid.assemble", lambda link: rigid.assemble([link]).inertia, {"link": LINK}),
    Door(
        "physics.rigid.assemble",
        lambda gravity: rigid.assemble([LINK], gravity).gravity,
        {"gravity": np.array([0.0, 1.0, -9.0], np.float32)},
        right=("gravity: zero", "gravity: negative"),
    ),
    Door("physics.rigid.kinematics", rigid.kinematics, {"tree": TREE, "q": Q}, right=ZERO),
    Door("physics.rigid.mass_matrix", rigid.mass_matrix, {"tree": TREE, "q": Q}, right=ZERO),
    Door(
        "physics.rigid.inverse", rigid.inverse, {"tree": TREE, "q": Q, "v": V, "a": F}, right=ZERO
    ),
    Door(
        "physics.rigid.forward",
        rigid.forward,
        {"tree": TREE, "q": Q, "v": V, "force": F, "implicit": F},
        right=ZERO,
    ),
    Door("physics.rigid.init", rigid.init, {"spec": SPEC}),
    Door(
        "physics.rigid.init",
        lambda drive: rigid.init(rigid.Simulation(TREE, drive)),
        {"drive": SPEC.drive},
    ),
    Door(
        "physics.rigid.step",
        lambda spec, q, v, target, force: rigid.step(spec, rigid.State(q, v), target, force),
        {"spec": SPEC, "q": Q, "v": V, "target": F, "force": F},
        right=(*ZERO, "target: None", "force: None"),
    ),
    Door("physics.rigid.passive", rigid.passive, {"tree": TREE}),
    Door("physics.rigid.contact.init", contact.init, {"spheres": BALL}),
    Door(
        "physics.rigid.contact.push",
        _push,
        {
            "tree": TREE,
            "q": Q,
            "v": V,
            "spheres": BALL,
            "material": contact.Material(),
            "stretch": np.full((1, 3), 1e-3, np.float32),
            "dt": 0.01,
        },
        right=(*ZERO, "stretch: zero", "stretch: negative"),
    ),
    Door(
        "physics.rigid.contact.push_smooth",
        _smooth,
        {"q": Q, "v": V, "material": contact.Material(), "width": 1e-3, "slow": 1e-2, "dt": 0.01},
        right=ZERO,
    ),
    Door(
        "physics.rigid.sdf.half_space",
        sdf.half_space,
        {"p": P, "normal": np.array([0.0, 0.6, 0.8], np.float32), "height": 0.4},
        right=(*POINTS, "normal: negative", "height: zero", "height: negative"),
        normalised=("normal",),
    ),
    Door(
        "physics.rigid.sdf.sphere",
        sdf.sphere,
        {"p": P, "radius": 0.4},
        right=(*POINTS, "radius: zero"),
    ),
    Door(
        "physics.rigid.sdf.box",
        sdf.box,
        {"p": P, "half": np.array([0.5, 1.0, 2.0], np.float32)},
        right=(*POINTS, "half: zero"),
    ),
    Door(
        "physics.rigid.sdf.capsule",
        sdf.capsule,
        {"p": P, "half": 0.4, "radius": 0.2},
        right=(*POINTS, "half: zero", "radius: zero"),
    ),
    Door(
        "physics.rigid.sdf.torus",
        sdf.torus,
        {"p": P, "ring": 0.4, "tube": 0.2},
        right=(*POINTS, "ring: zero", "tube: zero"),
    ),
    Door(
        "physics.rigid.sdf.plate_with_hole",
        sdf.plate_with_hole,
        {"p": P, "radius": 0.4, "thickness": 0.2},
        right=POINTS,
    ),
    Door(
        "physics.rigid.solids.solid",
        lambda size, mass, density: vars(solids.solid("box", size, mass, density)),
        {"size": np.array([0.5, 1.0, 2.0], np.float32), "mass": 2.0, "density": 300.0},
        right=("mass: zero", "mass: None", "density: zero"),
    ),
]
