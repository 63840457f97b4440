"""Compliant contact of spheres on links with a surface given by its signed distance.

Normal force k d (1 + c d')+ at the depth d (Hunt & Crossley 1975, doi:10.1115/1.3423596). Friction
remembers: a tangential spring holds the point where the sphere first stuck, and slips where it
would pull harder than mu times the normal force (Cundall & Strack 1979,
doi:10.1680/geot.1979.29.1.47).
`push_smooth` is the variant without memory and without kinks, for optimisation by gradients.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.physics.rigid.kinematics import (
    Frames,
    cross,
    kinematics,
    lift,
    link_velocities,
    project,
)
from jaxgpu.physics.rigid.simulate import State
from jaxgpu.physics.rigid.tree import Tree
from jaxgpu.pytree import pytree, static

type Surface = Callable[[Array], Array]  # signed distance [K, ...] of points [K, 3, ...], m


@pytree
class Spheres:
    """Spheres that touch, each fixed to a link."""

    centre: Array  # [K, 3] in the link's frame, m
    radius: Array  # [K] m
    link: tuple[int, ...] = static()


@pytree
class Material:
    """How a pair of bodies pushes and rubs."""

    stiffness: Array | float = 1e4  # [] k, N/m
    dissipation: Array | float = 0.5  # [] c, s/m
    friction: Array | float = 0.5  # [] mu
    tangential_stiffness: Array | float = 5e3  # [] of the stuck spring, N/m
    tangential_damping: Array | float = 10.0  # [] of the stuck spring, N s/m


class _Touch(NamedTuple):
    frames: Frames
    point: Array  # [K, 3, ...] of contact, m
    normal: Array  # [K, 3, ...] out of the surface
    depth: Array  # [K, ...] m, negative when apart
    approach: Array  # [K, ...] rate of the depth, m/s
    sliding: Array  # [K, 3, ...] tangential velocity, m/s


def init(spheres: Spheres, batch: tuple[int, ...] = ()) -> Array:
    """The stretch of the friction springs before any contact, [K, 3, ...batch]."""
    return jnp.zeros((*spheres.centre.shape, *batch), spheres.centre.dtype)


def push(
    tree: Tree,
    state: State,
    spheres: Spheres,
    surface: Surface,
    material: Material,
    stretch: Array,
    dt: Array | float,
) -> tuple[Array, Array]:
    """Forces of the contact on the degrees of freedom, with stick and slip.

    Args:
        tree: the mechanism.
        state: where it is.
        spheres: what may touch.
        surface: what is touched.
        material: how they push and rub.
        stretch: of the friction springs [K, 3, ...], m, from `init` or the last call.
        dt: time since the last call, s.

    Returns:
        Forces [N, ...] for `step(..., force=)`, and the new stretch.
    """
    touch = _touch(tree, state, spheres, surface)
    pressing = touch.depth > 0
    depth = jnp.where(pressing, touch.depth, 0.0)
    normal_force = material.stiffness * depth
    normal_force = normal_force * jnp.maximum(1 + material.dissipation * touch.approach, 0.0)

    stretch = stretch + dt * touch.sliding
    stretch = stretch - _along(stretch, touch.normal) * touch.normal
    damping = material.tangential_damping * touch.sliding
    pull = material.tangential_stiffness * stretch + damping
    square = jnp.sum(pull * pull, 1)
    strength = jnp.sqrt(jnp.where(square > 0, square, 1.0))
    held = jnp.minimum(1.0, material.friction * normal_force / strength)
    pull = pull * held[:, None]
    stretch = (pull - damping) / material.tangential_stiffness
    stretch = jnp.where(pressing[:, None], stretch, 0.0)
    return _to_freedoms(tree, spheres, touch, normal_force, pull), stretch


def push_smooth(
    tree: Tree,
    state: State,
    spheres: Spheres,
    surface: Surface,
    material: Material,
    width: Array | float = 1e-4,
    slow: Array | float = 1e-2,
) -> Array:
    """Forces [N, ...] of the contact without memory: infinitely differentiable in the state.

    The depth is softened over `width` (m), and the friction grows as tanh of the speed over `slow`
    (m/s); both tend to `push` in slipping as they tend to zero.
    """
    touch = _touch(tree, state, spheres, surface)
    depth = width * jax.nn.softplus(touch.depth / width)
    rate = 1 + material.dissipation * touch.approach
    normal_force = material.stiffness * depth * jax.nn.softplus(8 * rate) / 8
    square = jnp.sum(touch.sliding * touch.sliding, 1)
    moving = square > 0
    speed = jnp.sqrt(jnp.where(moving, square, 1.0))
    gain = jnp.where(moving, jnp.tanh(speed / slow) / speed, 1 / slow)
    pull = (material.friction * normal_force * gain)[:, None] * touch.sliding
    return _to_freedoms(tree, spheres, touch, normal_force, pull)


def _touch(tree: Tree, state: State, spheres: Spheres, surface: Surface) -> _Touch:
    frames = kinematics(tree, state.q)
    link = np.array(spheres.link)
    arm = jnp.sum(frames.R[link] * lift(spheres.centre, state.q)[:, None], 2)
    centre = frames.x[link] + arm
    distance, back = jax.vjp(surface, centre)
    (normal,) = back(jnp.ones_like(distance))
    point = centre - distance[:, None] * normal
    V = link_velocities(tree, frames, state.v)[link]
    velocity = V[:, 3:] + cross(V[:, :3], point)
    rate = _along(velocity, normal)
    depth = lift(spheres.radius, distance) - distance
    return _Touch(frames, point, normal, depth, -rate[:, 0], velocity - rate * normal)


def _to_freedoms(
    tree: Tree, spheres: Spheres, touch: _Touch, normal_force: Array, pull: Array
) -> Array:
    force = normal_force[:, None] * touch.normal - pull
    wrench = jnp.concatenate([cross(touch.point, force), force], 1)
    links = jnp.zeros((len(tree.parent), *wrench.shape[1:]), wrench.dtype)
    for i, link in enumerate(spheres.link):
        links = links.at[link].add(wrench[i])
    return project(tree, touch.frames, links)


def _along(x: Array, normal: Array) -> Array:
    return jnp.sum(x * normal, 1, keepdims=True)
