"""Forces on the taxels of a soft pad: springs that stick to an object up to the friction limit.

Taxel i is at a signed distance d_i from an object, negative inside, with n_i the gradient of that
distance; v_i is the velocity of the object's surface there relative to the pad. It is pressed by

    depth  h = max(-d, 0),     normal force  f_n = max(k h + c n . v, 0) where h > 0, else 0,

along n: damped, and never attracted by the object. The two laws differ in the shear force.
"""

import jax.numpy as jnp
from jax import Array

from jaxgpu.geometry.vectors import Vec, dot, length
from jaxgpu.inputs import ranges
from jaxgpu.inputs.fields import number, pytree

from .pad import as_float, check_unit


@pytree
class ForceField:
    """The law of anchored springs: stick and slip, with memory.

    Each taxel in contact carries its anchor u, the tangential stretch of its spring. Over a step

        u <- P u + v_t dt where h > 0, else 0;   u <- u min(1, friction f_n / (k_t |u|)),

    with P the projection onto the present tangent plane at constant length, and the force on the
    pad is f = f_n n + k_t u. Under load at rest the shear force remains; losing contact resets u.
    A bed of such springs has its own law, as an elastic half space has that of Cattaneo and Mindlin
    (Johnson 1985, doi:10.1017/CBO9781139171731): under a ball pressed by P and shifted by s,

        Q = friction P (1 - (1 - s / s*)^2),   s* = friction k_n h / k_t,   h the greatest depth.

    Derivatives are those of the active branch; at the friction cone, those of sticking.

    >>> field = ForceField(stiffness=100.0, shear_stiffness=50.0, friction=0.5)
    >>> up = jnp.array([[0.0, 0.0, 1.0]])
    >>> slide = jnp.array([[0.01, 0.0, 0.0]])
    >>> force, anchors = field.force(field.init(1), jnp.array([-1e-3]), up, slide, 0.1)
    >>> [round(float(f), 4) for f in force[0]]  # 50 N/m times 1 mm is what 0.5 times 0.1 N holds
    [0.05, 0.0, 0.1]
    """

    stiffness: Array | float = number(above=0, unit="N/m", one=True)  # [] of a taxel, normal
    shear_stiffness: Array | float = number(above=0, unit="N/m", one=True)  # [] of a taxel
    friction: Array | float = number(least=0, one=True)  # [] coefficient of Coulomb
    damping: Array | float = number(default=0.0, least=0, unit="N s/m", one=True)  # [] normal

    def init(self, taxels: int, dtype=None) -> Array:
        """Return the anchors [T, 3], m, of taxels that touch nothing yet."""
        return _initial_anchors("ForceField.init", self, taxels, 3, dtype)

    def force(
        self, anchors: Array, distance: Array, normal: Array, velocity: Array, dt: Array | float
    ) -> tuple[Array, Array]:
        """Return the force [..., T, 3] on the pad at each taxel, N, and the new anchors.

        Args:
            anchors: [..., T, 3] of the previous step, m; initially those of `init`.
            distance: [..., T] signed distance of the object, m, negative where it is pressed in.
            normal: [..., T, 3] out of the object, of length one, or zero where there is none.
            velocity: [..., T, 3] of the object's surface relative to the pad, m/s.
            dt: the time step, s.
        Raises:
            ValueError: shapes that do not match, numbers that are not finite or out of range,
                normals of another length.
        """
        name = "ForceField.force"
        ranges.check(name, self)
        ranges.numbers(f"{name}: dt", dt, (), above=0, unit="s")
        anchors = as_float(ranges.numbers(f"{name}: anchors", anchors, unit="m"))
        d, n, v = _check_inputs(name, distance, normal, velocity, anchors, 3)
        force, moved = self.force_components(tuple(jnp.moveaxis(anchors, -1, 0)), d, n, v, dt)
        return jnp.stack(force, -1), jnp.stack(moved, -1)

    def force_components(
        self, anchors: Vec, distance: Array, normal: Vec, velocity: Vec, dt: Array | float
    ) -> tuple[Vec, Vec]:
        """Return `force` for vectors by components [..., T], unchecked; parameters may be [T]."""
        pressed, load, slide = _contact_loads(self, distance, normal, velocity)
        turned = _rotate_anchors(anchors, normal)
        moved = tuple(jnp.where(pressed, a + b * dt, 0) for a, b in zip(turned, slide))
        stretch = length(moved)
        most = self.friction * load / self.shear_stiffness
        slips = stretch > most
        share = jnp.where(slips, most / jnp.where(slips, stretch, 1), 1)
        moved = tuple(share * a for a in moved)
        force = tuple(load * a + self.shear_stiffness * b for a, b in zip(normal, moved))
        return force, moved

    @classmethod
    def from_elastomer(
        cls,
        young: Array | float,
        poisson: Array | float,
        radius: Array | float,
        load: Array | float,
        friction: Array | float,
        area: Array | float,
    ) -> "ForceField":
        """Return springs whose bed is closest to an elastic pad under a ball.

        At the load P the contact has Hertz's radius, a^3 = 3 P R / (4 E*), and full slip begins at
        1.184 times the shift of Cattaneo and Mindlin, 3 friction P / (16 G* a). This factor has the
        smallest maximum error of the shear force while loading, 2.9 % of friction P; over a
        reversal it is 4.3 % of the span, 2 friction P. At other loads the contact radius scales
        with the fourth root of the load, in Hertz's law with its cube root.

        Args:
            young: the pad's Young's modulus, Pa; its thickness is many times the contact radius.
            poisson: its Poisson's ratio, from 0 to 0.5.
            radius: of the ball, R, m.
            load: P, N.
            friction: between ball and pad.
            area: of a taxel, m^2.

        >>> pad = ForceField.from_elastomer(1e5, 0.48, 4e-3, 0.5, 0.6, area=1e-6)
        >>> round(float(pad.stiffness), 2), round(float(pad.shear_stiffness), 2)
        (97.6, 28.2)
        """
        name = "ForceField.from_elastomer"
        ranges.numbers(f"{name}: young", young, (), above=0, unit="Pa")
        ranges.numbers(f"{name}: poisson", poisson, (), least=0, most=0.5)
        ranges.numbers(f"{name}: radius", radius, (), above=0, unit="m")
        ranges.numbers(f"{name}: load", load, (), above=0, unit="N")
        ranges.numbers(f"{name}: friction", friction, (), above=0)
        ranges.numbers(f"{name}: area", area, (), above=0, unit="m^2")
        # These moduli are of the pad only, because the ball is rigid.
        normal, shear = young / (1 - poisson**2), young / (2 * (1 + poisson) * (2 - poisson))
        contact = jnp.cbrt(0.75 * load * radius / normal)
        depth = contact**2 / (2 * radius)  # of the bed, whose springs move independently
        stiffness = load / (jnp.pi * radius * depth**2)
        slip = 1.184 * 3 * friction * load / (16 * shear * contact)
        across = friction * stiffness * depth / slip
        return cls(stiffness=stiffness * area, shear_stiffness=across * area, friction=friction)


@pytree
class ViscousField:
    """The published law without memory: shear that is viscous up to the friction limit.

        f = f_n n + v_t / |v_t| min(b |v_t|, friction f_n)

    At rest its shear force is zero regardless of the past, so it shows slip and not load.
    Akinola et al. (2024), TacSL, doi:10.48550/arXiv.2408.06506, whose k_t is b here, as it
    multiplies a velocity. Departure: the damping added to the spring's force is not times depth.

    >>> field = ViscousField(stiffness=1.0, shear_damping=0.1, friction=2.0)
    >>> up, still = jnp.array([[0.0, 0.0, 1.0]]), jnp.zeros((1, 3))
    >>> field.force(field.init(1), jnp.array([-2.0]), up, still, 0.1)[0].tolist()
    [[0.0, 0.0, 2.0]]
    """

    stiffness: Array | float = number(above=0, unit="N/m", one=True)  # [] of a taxel, normal
    shear_damping: Array | float = number(above=0, unit="N s/m", one=True)  # [] of a taxel
    friction: Array | float = number(least=0, one=True)  # [] coefficient of Coulomb
    damping: Array | float = number(default=0.0, least=0, unit="N s/m", one=True)  # [] normal

    def init(self, taxels: int, dtype=None) -> Array:
        """Return an empty array [T, 0], in the place of the anchors of other laws."""
        return _initial_anchors("ViscousField.init", self, taxels, 0, dtype)

    def force(
        self, anchors: Array, distance: Array, normal: Array, velocity: Array, dt: Array | float
    ) -> tuple[Array, Array]:
        """Return the force [..., T, 3] on the pad at each taxel, N, and unchanged anchors.

        Arguments and errors are those of `ForceField.force`, except for anchors [..., T, 0].
        """
        name = "ViscousField.force"
        ranges.check(name, self)
        ranges.numbers(f"{name}: dt", dt, (), above=0, unit="s")
        anchors = as_float(ranges.numbers(f"{name}: anchors", anchors))
        d, n, v = _check_inputs(name, distance, normal, velocity, anchors, 0)
        _, load, slide = _contact_loads(self, d, n, v)
        speed = length(slide)
        slips = self.shear_damping * speed > self.friction * load
        least = jnp.where(slips, self.friction * load / jnp.where(slips, speed, 1), 0)
        rate = jnp.where(slips, least, self.shear_damping)
        force = [load * a + rate * b for a, b in zip(n, slide)]
        return jnp.stack(force, -1), anchors


def _initial_anchors(
    name: str, field: ForceField | ViscousField, taxels: int, width: int, dtype
) -> Array:
    ranges.check(name, field)
    ranges.refuse(f"{name}: taxels", taxels, ranges.Range(whole=True, one=True, least=1))
    return jnp.zeros((taxels, width), dtype)


def _check_inputs(
    name: str, distance: Array, normal: Array, velocity: Array, anchors: Array, width: int
) -> tuple[Array, Vec, Vec]:
    """Check the inputs of a field; return them with vectors by components [..., T]."""
    distance = ranges.numbers(f"{name}: distance", distance, unit="m")
    normal = ranges.numbers(f"{name}: normal", normal)
    velocity = ranges.numbers(f"{name}: velocity", velocity, unit="m/s")
    given = {"normal": (normal, 3), "velocity": (velocity, 3), "anchors": (anchors, width)}
    for word, (value, size) in given.items():
        want = (*distance.shape, size)
        if not distance.ndim or value.shape != want:
            raise ValueError(
                f"{name}: {word} has shape {list(value.shape)}, distance {list(distance.shape)}; "
                f"they must be [..., T, {size}] and [..., T]"
            )
    check_unit(f"{name}: normal", normal, zero=True)
    to_components = lambda a: tuple(jnp.moveaxis(as_float(a), -1, 0))
    return as_float(distance), to_components(normal), to_components(velocity)


def _contact_loads(
    field: ForceField | ViscousField, distance: Array, normal: Vec, velocity: Vec
) -> tuple[Array, Array, Vec]:
    """Return a mask of pressed taxels [..., T], their normal force, and tangential velocity."""
    pressed = distance < 0
    approach = dot(normal, velocity)
    load = field.stiffness * -distance + field.damping * approach
    load = jnp.where(pressed, jnp.maximum(load, 0), 0)
    return pressed, load, tuple(v - approach * n for v, n in zip(velocity, normal))


def _rotate_anchors(anchors: Vec, normal: Vec) -> Vec:
    """Rotate anchors into the plane across the normals, preserving their lengths.

    The derivative at an anchor of zero is that of the projection, since the ratio is one there.
    """
    out = dot(anchors, normal)
    flat = tuple(u - out * n for u, n in zip(anchors, normal))
    before, after = length(anchors), length(flat)
    lies = after > 0
    ratio = jnp.where(lies, before / jnp.where(lies, after, 1), 1)
    return tuple(ratio * u for u in flat)
