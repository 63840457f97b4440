"""Compliant contact of spheres on links with a surface given by its signed distance.

Normal force k d (1 + c d')+ at the depth d (Hunt & Crossley 1975, doi:10.1115/1.3423596). Friction
remembers: a tangential spring holds the point where the sphere first stuck, and slips where it
would pull harder than mu times the normal force (Cundall & Strack 1979,
doi:10.1680/geot.1979.29.1.47).
`push_smooth` is the variant without memory and without kinks, for optimisation by gradients.

Forces are held over a step, so springs that the step cannot follow are softened, and dashpots
limited, by the mass that each contact meets: see `contact_limits`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.pytree import number, pytree, static
from jaxgpu.ranges import check, numbers

from .contact_limits import dashpot, dissipation, ease, spring
from .kinematics import (
    Frames,
    check_position,
    check_rows,
    cross,
    frames_of,
    lift,
    link_velocities,
    project,
)
from .simulate import State
from .tree import Tree

type Surface = Callable[[Array], Array]  # signed distance [K, ...] of points [K, 3, ...], m


@pytree
class Spheres:
    """Spheres that touch, each fixed to a link."""

    centre: Array = number(unit="m")  # [K, 3] in the link's frame, m
    radius: Array = number(least=0, unit="m")  # [K] m
    link: tuple[int, ...] = static()


@pytree
class Material:
    """How a pair of bodies pushes and rubs."""

    stiffness: Array | float = number(default=1e4, least=0, unit="N/m")  # [] k, N/m
    dissipation: Array | float = number(default=0.5, least=0, unit="s/m")  # [] c, s/m
    friction: Array | float = number(default=0.5, least=0)  # [] mu
    tangential_stiffness: Array | float = number(
        default=5e3, above=0, unit="N/m"
    )  # [] stuck spring, N/m
    tangential_damping: Array | float = number(
        default=10.0, least=0, unit="N s/m"
    )  # [] its dashpot, N s/m


class _Touch(NamedTuple):
    frames: Frames
    point: Array  # [K, 3, ...] of contact, m
    normal: Array  # [K, 3, ...] out of the surface
    depth: Array  # [K, ...] m, negative when apart
    approach: Array  # [K, ...] rate of the depth, m/s
    sliding: Array  # [K, 3, ...] tangential velocity, m/s


def init(spheres: Spheres, batch: tuple[int, ...] = ()) -> Array:
    """The stretch of the friction springs before any contact, [K, 3, ...batch]."""
    _check_spheres("init", spheres)
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
    state = _checked("push", tree, state, spheres, material, dt)
    touch = _touch(tree, state, spheres, surface)
    stretch = numbers("push: stretch", stretch)
    if stretch.shape != touch.point.shape:
        want = list(touch.point.shape)
        raise ValueError(f"push: stretch has shape {list(stretch.shape)}; it must be {want}")
    pressing = touch.depth > 0
    w, across = _ease(tree, state, spheres, touch, pressing)
    k, delay = spring(material.stiffness, dt, w)
    depth = jnp.where(pressing, jnp.maximum(touch.depth + delay * touch.approach, 0.0), 0.0)
    normal_force = k * depth
    c = dissipation(material.dissipation, dt, w, normal_force)
    normal_force = normal_force * jnp.maximum(1 + c * touch.approach, 0.0)

    k, delay = (x[:, None] for x in spring(material.tangential_stiffness, dt, across))
    b = dashpot(jnp.maximum(material.tangential_damping, k * delay), dt, across[:, None])
    stretch = stretch + dt * touch.sliding
    stretch = stretch - _along(stretch, touch.normal) * touch.normal
    damping = b * touch.sliding
    pull = k * stretch + damping
    square = jnp.sum(pull * pull, 1)
    strength = jnp.sqrt(jnp.where(square > 0, square, 1.0))
    held = jnp.minimum(1.0, material.friction * normal_force / strength)
    pull = pull * held[:, None]
    stretch = (pull - damping) / k
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
    dt: Array | float = 0.005,
) -> Array:
    """Forces [N, ...] of the contact without memory: infinitely differentiable in the state.

    The depth is softened over `width` (m), and the friction grows as tanh of the speed over `slow`
    (m/s); both tend to `push` in slipping as they tend to zero. `dt` is the step over which the
    forces will be held, s; they are softened to what it can follow.
    """
    state = _checked("push_smooth", tree, state, spheres, material, dt)
    for name, x in (("width", width), ("slow", slow)):
        numbers(f"push_smooth: {name}", x, (), above=0)
    touch = _touch(tree, state, spheres, surface)
    w, across = _ease(tree, state, spheres, touch, touch.depth > -10 * width)
    normal_force = width * jax.nn.softplus(touch.depth / width)
    normal_force = spring(material.stiffness, dt, w)[0] * normal_force
    rate = 1 + dissipation(material.dissipation, dt, w, normal_force) * touch.approach
    normal_force = normal_force * jax.nn.softplus(8 * rate) / 8
    square = jnp.sum(touch.sliding * touch.sliding, 1)
    moving = square > 0
    speed = jnp.sqrt(jnp.where(moving, square, 1.0))
    gain = jnp.where(moving, jnp.tanh(speed / slow) / speed, 1 / slow)
    b = dashpot(material.friction * normal_force * gain, dt, across)
    pull = b[:, None] * touch.sliding
    return _to_freedoms(tree, spheres, touch, normal_force, pull)


def _checked(
    name: str, tree: Tree, state: State, spheres: Spheres, material: Material, dt: Any
) -> State:
    """The state as arrays; raise one sentence, which begins with `name`, for what cannot be."""
    _check_spheres(name, spheres)
    check(name, material)
    for field, value in vars(material).items():
        if jnp.size(value) == 0:
            raise ValueError(f"{name}: Material.{field} is empty; it must be a number")
    numbers(f"{name}: dt", dt, (), above=0, unit="s")
    links = len(tree.parent)
    if not all(0 <= link < links for link in spheres.link):
        raise ValueError(f"{name}: Spheres.link={spheres.link}; there are links 0 to {links - 1}")
    q = check_position(name, tree, state.q)
    return State(q, check_rows(name, "v", state.v, tree.freedoms))


def _check_spheres(name: str, spheres: Spheres) -> None:
    check(name, spheres)
    numbers(f"{name}: Spheres.centre", spheres.centre, (len(spheres.link), 3))
    numbers(f"{name}: Spheres.radius", spheres.radius, (len(spheres.link),))


def _ease(
    tree: Tree, state: State, spheres: Spheres, touch: _Touch, near: Array
) -> tuple[Array, Array]:
    return ease(tree, state.q, touch.frames, spheres.link, touch.point, touch.normal, near)


def _touch(tree: Tree, state: State, spheres: Spheres, surface: Surface) -> _Touch:
    frames = frames_of(tree, state.q)
    link = np.array(spheres.link)
    arm = jnp.sum(frames.R[link] * lift(spheres.centre, state.q)[:, None], 2)
    centre = frames.x[link] + arm
    distance, back = jax.vjp(surface, centre)
    if distance.shape != (len(link), *centre.shape[2:]):
        want = [len(link), *centre.shape[2:]]
        raise ValueError(
            f"push: surface gives shape {list(distance.shape)}; it must give one distance for each "
            f"point, {want}"
        )
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
