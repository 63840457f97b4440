"""Compliant contact of spheres on links with a surface given by its signed distance.

Normal force k d (1 + c d')+ at the depth d (Hunt & Crossley 1975, doi:10.1115/1.3423596). Friction
remembers: a tangential spring holds the point where the sphere first stuck, and slips where it
would pull harder than mu times the normal force (Cundall & Strack 1979,
doi:10.1680/geot.1979.29.1.47).
`smooth_force` is the variant without memory and without kinks, for optimisation by gradients.

Forces are held over a step, so springs that the step cannot follow are softened, and dashpots
limited, by the mass that each contact meets: see `contact_limits`.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.pytree import number, pytree, static
from jaxgpu.ranges import check, numbers

from .contact_limits import dashpot, dissipation, inverse_masses, spring
from .kinematics import (
    Frames,
    batch_first,
    batch_last,
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


@pytree
class Spheres:
    """Spheres that touch, each fixed to a link."""

    centre: Array = number(unit="m")  # [K, 3] in the link's frame, m
    radius: Array = number(least=0, unit="m")  # [K] m
    link: tuple[int, ...] = static()  # [K] the link that each is fixed to


class _Touch(NamedTuple):  # batch axes last
    frames: Frames
    point: Array  # [K, 3, ...] of contact, m
    normal: Array  # [K, 3, ...] out of the surface
    depth: Array  # [K, ...] m, negative when apart
    approach: Array  # [K, ...] rate of the depth, m/s
    sliding: Array  # [K, 3, ...] tangential velocity, m/s


@pytree
class Contact:
    """What may touch, what is touched, and how they push and rub.

    >>> from jaxgpu.geometry import sdf
    >>> from jaxgpu.physics.rigid import Link, Simulation, assemble, passive
    >>> tree = assemble([Link(-1, "prismatic", mass=2.0)])
    >>> ball = Spheres(jnp.zeros((1, 3)), jnp.array([0.1]), (0,))
    >>> contact = Contact(ball, sdf.HalfSpace((0.0, 0.0, 1.0)))
    >>> state = Simulation(tree, passive(tree)).init()  # 0.1 m deep
    >>> bool(contact.force(tree, state, contact.init(), 0.005)[0][0] > 0)
    True
    """

    spheres: Spheres
    surface: Any  # a shape of `geometry.sdf`, in space
    stiffness: Array | float = number(default=1e4, least=0, unit="N/m", one=True)  # [] k
    dissipation: Array | float = number(default=0.5, least=0, unit="s/m", one=True)  # [] c
    friction: Array | float = number(default=0.5, least=0, one=True)  # [] mu
    # of the stuck spring, and of its dashpot
    tangential_stiffness: Array | float = number(default=5e3, above=0, unit="N/m", one=True)  # []
    tangential_damping: Array | float = number(default=10.0, least=0, unit="N s/m", one=True)  # []

    def init(self, batch: tuple[int, ...] = ()) -> Array:
        """The stretch of the friction springs before any contact, [...batch, K, 3]."""
        _check_spheres("Contact.init", self.spheres)
        return jnp.zeros((*batch, *self.spheres.centre.shape), self.spheres.centre.dtype)

    def force(
        self, tree: Tree, state: State, stretch: Array, dt: Array | float
    ) -> tuple[Array, Array]:
        """Forces of the contact on the degrees of freedom, with stick and slip.

        Args:
            tree: the mechanism.
            state: where it is.
            stretch: of the friction springs [..., K, 3], m, from `init` or the last call.
            dt: time since the last call, s.

        Returns:
            Forces [..., N] for `Simulation.step(..., force=)`, and the new stretch.
        """
        q, v = self._checked("Contact.force", tree, state, dt)
        touch = _touch("Contact.force", tree, q, v, self)
        stretch = numbers("Contact.force: stretch", stretch)
        want = batch_first(touch.point, 2).shape
        if stretch.shape != want:
            raise ValueError(
                f"Contact.force: stretch has shape {list(stretch.shape)}; it must be {list(want)}"
            )
        stretch = batch_last(jnp.asarray(stretch), 2)
        pressing = touch.depth > 0
        w, across = _inverse_masses(tree, q, self.spheres, touch, pressing)
        k, delay = spring(self.stiffness, dt, w)
        depth = jnp.where(pressing, jnp.maximum(touch.depth + delay * touch.approach, 0.0), 0.0)
        normal_force = k * depth
        c = dissipation(self.dissipation, dt, w, normal_force)
        normal_force = normal_force * jnp.maximum(1 + c * touch.approach, 0.0)

        k, delay = (x[:, None] for x in spring(self.tangential_stiffness, dt, across))
        b = dashpot(jnp.maximum(self.tangential_damping, k * delay), dt, across[:, None])
        stretch = stretch + dt * touch.sliding
        stretch = stretch - _along(stretch, touch.normal) * touch.normal
        damping = b * touch.sliding
        pull = k * stretch + damping
        square = jnp.sum(pull * pull, 1)
        strength = jnp.sqrt(jnp.where(square > 0, square, 1.0))
        held = jnp.minimum(1.0, self.friction * normal_force / strength)
        pull = pull * held[:, None]
        # the spring is as long as what it pulls with says: it slips where friction gives way
        stretch = jnp.where(pressing[:, None], (pull - damping) / k, 0.0)
        force = _to_dofs(tree, self.spheres, touch, normal_force, pull)
        return batch_first(force), batch_first(stretch, 2)

    def smooth_force(
        self,
        tree: Tree,
        state: State,
        dt: Array | float,
        width: Array | float = 1e-4,
        slow: Array | float = 1e-2,
    ) -> Array:
        """Forces [..., N] of the contact without memory: infinitely differentiable in the state.

        The depth is softened over `width` (m), and the friction grows as tanh of the speed over
        `slow` (m/s); both tend to `force` in slipping as they tend to zero. `dt` is the step over
        which the forces will be held, s; they are softened to what it can follow.
        """
        name = "Contact.smooth_force"
        q, v = self._checked(name, tree, state, dt)
        for field, x in (("width", width), ("slow", slow)):
            numbers(f"{name}: {field}", x, (), above=0)
        touch = _touch(name, tree, q, v, self)
        w, across = _inverse_masses(tree, q, self.spheres, touch, touch.depth > -10 * width)
        normal_force = width * jax.nn.softplus(touch.depth / width)
        normal_force = spring(self.stiffness, dt, w)[0] * normal_force
        rate = 1 + dissipation(self.dissipation, dt, w, normal_force) * touch.approach
        normal_force = normal_force * jax.nn.softplus(8 * rate) / 8
        square = jnp.sum(touch.sliding * touch.sliding, 1)
        moving = square > 0
        speed = jnp.sqrt(jnp.where(moving, square, 1.0))
        gain = jnp.where(moving, jnp.tanh(speed / slow) / speed, 1 / slow)
        b = dashpot(self.friction * normal_force * gain, dt, across)
        pull = b[:, None] * touch.sliding
        return batch_first(_to_dofs(tree, self.spheres, touch, normal_force, pull))

    def _checked(self, name: str, tree: Tree, state: State, dt: Any) -> tuple[Array, Array]:
        """Coordinates and velocities, batch axes last; raise one sentence for what cannot be."""
        check(name, self)
        _check_spheres(name, self.spheres)
        numbers(f"{name}: dt", dt, (), above=0, unit="s")
        links, touching = len(tree.parent), self.spheres.link
        if not all(0 <= link < links for link in touching):
            raise ValueError(f"{name}: Spheres.link={touching}; there are links 0 to {links - 1}")
        q = check_position(name, tree, state.q)
        return q, check_rows(name, "v", state.v, tree.nv)


def _check_spheres(name: str, spheres: Spheres) -> None:
    check(name, spheres)
    numbers(f"{name}: Spheres.centre", spheres.centre, (len(spheres.link), 3))
    numbers(f"{name}: Spheres.radius", spheres.radius, (len(spheres.link),))


def _inverse_masses(
    tree: Tree, q: Array, spheres: Spheres, touch: _Touch, near: Array
) -> tuple[Array, Array]:
    return inverse_masses(tree, q, touch.frames, spheres.link, touch.point, touch.normal, near)


def _touch(name: str, tree: Tree, q: Array, v: Array, contact: Contact) -> _Touch:
    """Where and how fast the spheres meet the surface, batch axes last."""
    spheres = contact.spheres
    distance_at = lambda x: contact.surface.distance(tuple(x[:, i] for i in range(3)))
    frames = frames_of(tree, q)
    link = np.array(spheres.link)
    arm = jnp.sum(frames.R[link] * lift(spheres.centre, q)[:, None], 2)
    centre = frames.x[link] + arm
    distance, back = jax.vjp(distance_at, centre)
    if distance.shape != (len(link), *centre.shape[2:]):
        want = [len(link), *centre.shape[2:]]
        raise ValueError(
            f"{name}: surface gives shape {list(distance.shape)}; it must give one distance for "
            f"each point, {want}"
        )
    (normal,) = back(jnp.ones_like(distance))
    point = centre - distance[:, None] * normal
    V = link_velocities(tree, frames, v)[link]
    velocity = V[:, 3:] + cross(V[:, :3], point)
    rate = _along(velocity, normal)
    depth = lift(spheres.radius, distance) - distance
    return _Touch(frames, point, normal, depth, -rate[:, 0], velocity - rate * normal)


def _to_dofs(
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
