"""External gravitational fields: point mass, disc, halo, bulge, and a model of the Milky Way.

MWPotential2014 of Bovy (2015), doi:10.1088/0067-0049/216/2/29, table 1: a bulge of density
r^-1.8 exp(-(r / 1.9 kpc)^2), the disc of Miyamoto & Nagai (1975) and the halo of Navarro, Frenk &
White (1997), which contribute 5, 60 and 35 % of the squared circular speed at the Sun.

A field has `potential(x)` and `pull(x)` for positions [..., 3], in the units of its parameters.
All fields are differentiable in parameters and positions.
"""

from typing import Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import gammainc, gammaln

from jaxgpu.geometry.vectors import length
from jaxgpu.inputs import ranges
from jaxgpu.inputs.explanations import explain_errors, on_host
from jaxgpu.inputs.fields import number, pytree

from .. import units


class Field(Protocol):
    """A gravitational field that is constant in time."""

    def potential(self, x: Array) -> Array:
        """Return the potential [...] at positions [..., 3]."""
        ...

    def pull(self, x: Array) -> Array:
        """Return the acceleration [..., 3], minus the gradient of the potential."""
        ...


@pytree
class PointMass:
    """Field of a point mass, -GM / r."""

    gm: Array | float = number(least=0)  # [] gravitational parameter

    def potential(self, x: Array) -> Array:
        """Return the potential [...] at positions [..., 3].

        >>> float(PointMass(8.0).potential(jnp.array([0.0, 2, 0])))
        -4.0
        """
        return -self.gm / _radius(x)

    def pull(self, x: Array) -> Array:
        """Return the acceleration [..., 3]."""
        return -self.gm / _radius(x)[..., None] ** 3 * x


@pytree
class Cusp:
    """Field of a sphere with the density A r^-slope exp(-(r / cut)^2)."""

    amplitude: Array | float = number(least=0)  # [] G A, for r in the unit of length
    slope: Array | float = number(below=2)  # []
    cut: Array | float = number(above=0)  # [] length

    def potential(self, x: Array) -> Array:
        """Return the potential [...] at positions [..., 3], zero at infinity."""
        r = _radius(x)
        u = (r / self.cut) ** 2
        a = jnp.asarray(1 - self.slope / 2, r.dtype)
        # the enclosed mass contributes M / r; the shells outside contribute `outer`
        outer = jnp.exp(gammaln(a)) * (1 - gammainc(jnp.broadcast_to(a, u.shape), u))
        return (
            -self._enclosed_mass(u) / r
            - 2 * np.pi * self.amplitude * self.cut ** (2 - self.slope) * outer
        )

    def pull(self, x: Array) -> Array:
        """Return the acceleration [..., 3]."""
        r = _radius(x)
        return -(self._enclosed_mass((r / self.cut) ** 2) / r**3)[..., None] * x

    def _enclosed_mass(self, u: Array) -> Array:
        b = jnp.asarray((3 - self.slope) / 2, u.dtype)
        full = 2 * np.pi * self.amplitude * self.cut ** (3 - self.slope) * jnp.exp(gammaln(b))
        return full * gammainc(jnp.broadcast_to(b, u.shape), u)


@pytree
class MiyamotoNagai:
    """Field of a disc, -GM / sqrt(x^2 + y^2 + (a + sqrt(z^2 + b^2))^2)."""

    gm: Array | float = number(least=0)  # [] gravitational parameter
    a: Array | float = number(least=0)  # [] scale length of the disc
    b: Array | float = number(above=0)  # [] thickness; at 0 the pull is undefined in the plane

    def potential(self, x: Array) -> Array:
        """Return the potential [...] at positions [..., 3]."""
        x, y, z = _components(x)
        height = self.a + jnp.sqrt(z * z + self.b**2)
        return -self.gm / jnp.sqrt(x * x + y * y + height * height)

    def pull(self, x: Array) -> Array:
        """Return the acceleration [..., 3]."""
        x, y, z = _components(x)
        thick = jnp.sqrt(z * z + self.b**2)
        height = self.a + thick
        scale = -self.gm / (x * x + y * y + height * height) ** 1.5
        return scale[..., None] * jnp.stack([x, y, z * height / thick], -1)


@pytree
class NavarroFrenkWhite:
    """Field of a halo, -GM ln(1 + s / a) / s, where s^2 = x^2 + y^2 + (z / q)^2."""

    gm: Array | float = number(least=0)  # [] gravitational parameter of the mass 4 pi rho_0 a^3
    a: Array | float = number(above=0)  # [] length
    q: Array | float = number(default=1.0, above=0)  # [] flattening of the potential; 1 is a sphere

    def potential(self, x: Array) -> Array:
        """Return the potential [...] at positions [..., 3]."""
        s = self._flattened_radius(x)
        return -self.gm * jnp.log1p(s / self.a) / s

    def pull(self, x: Array) -> Array:
        """Return the acceleration [..., 3]."""
        s = self._flattened_radius(x)
        u = s / self.a
        # for small u, ln(1 + u) - u / (1 + u) suffers from cancellation
        series = u * u * (0.5 - u * (2 / 3 - u * (0.75 - 0.8 * u)))
        within = jnp.where(u < 1e-3, series, jnp.log1p(u) - u / (1 + u))
        scale = -self.gm * within / s**3
        x, y, z = _components(x)
        return scale[..., None] * jnp.stack([x, y, z / self.q**2], -1)

    def _flattened_radius(self, x: Array) -> Array:
        x, y, z = _components(x)
        z = z / self.q
        return jnp.sqrt(x * x + y * y + z * z)


@pytree
class Sum:
    """Sum of several fields."""

    parts: tuple[Field, ...]

    def potential(self, x: Array) -> Array:
        """Return the potential [...] at positions [..., 3]."""
        return sum((part.potential(x) for part in self.parts), jnp.zeros(x.shape[:-1], x.dtype))

    def pull(self, x: Array) -> Array:
        """Return the acceleration [..., 3]."""
        return sum((part.pull(x) for part in self.parts), jnp.zeros_like(x))


@explain_errors
@on_host
def milky_way(radius: Array | float = 8.0, speed: Array | float = 220.0) -> Sum:
    """Make MWPotential2014 with the circular speed `speed` at `radius` from the centre.

    Args:
        radius: radius of the Sun's orbit in the desired unit of length; 8 for kpc.
        speed: circular speed there in the desired unit of velocity; 220 for km/s.

    >>> field = milky_way()
    >>> x = jnp.array([8.0, 0, 0])
    >>> round(float(jnp.sqrt(-x[0] * field.pull(x)[0])), 3)
    220.0
    """
    ranges.numbers("milky_way: radius", radius, (), above=0)
    ranges.numbers("milky_way: speed", speed, (), above=0)
    v2 = speed * speed
    at = jnp.array([1.0, 0, 0], float)
    parts = (
        Cusp(1.0, 1.8, 1.9 / 8),
        MiyamotoNagai(1.0, 3 / 8, 0.28 / 8),
        NavarroFrenkWhite(1.0, 2.0),
    )
    bulge, disc, halo = (w / -p.pull(at)[0] for w, p in zip((0.05, 0.6, 0.35), parts))
    return Sum(
        (
            Cusp(bulge * v2 * radius ** (1.8 - 2), 1.8, 1.9 / 8 * radius),
            MiyamotoNagai(disc * v2 * radius, 3 / 8 * radius, 0.28 / 8 * radius),
            NavarroFrenkWhite(halo * v2 * radius, 2.0 * radius),
        )
    )


def scaled_milky_way(scale: units.Scale) -> Sum:
    """Make `milky_way` in N-body units."""
    return milky_way(8000 / scale.length, 220 / scale.velocity)


@explain_errors
def pull_derivatives(field: Field, x: Array, v: Array, a: Array) -> tuple[Array, Array, Array]:
    """Return the pull and its first and second time derivative along a path, each [..., 3].

    Args:
        field: the gravitational field.
        x: positions [..., 3].
        v: velocities there [..., 3].
        a: total accelerations there [..., 3], from all forces.
    """
    pull_and_jerk = lambda x, v: jax.jvp(field.pull, (x,), (v,))
    (pull, jerk), (_, snap) = jax.jvp(pull_and_jerk, (x, v), (v, a))
    return pull, jerk, snap


@explain_errors
def tidal_radius(mass: Array | float, enclosed: Array | float, radius: Array | float) -> Array:
    """Return R (M / 3 M_G)^(1/3), the Jacobi radius of a cluster on a circle about a point mass.

    King (1962), doi:10.1086/108756. For a flat rotation curve the 3 becomes 2.

    >>> round(float(tidal_radius(3.0, 1e9, 1000.0)), 6)
    1.0
    """
    ranges.numbers("tidal_radius: mass", mass, least=0)
    ranges.numbers("tidal_radius: enclosed", enclosed, above=0)
    ranges.numbers("tidal_radius: radius", radius, least=0)
    return radius * jnp.cbrt(jnp.asarray(mass, float) / (3 * enclosed))


def _components(x: Array) -> tuple[Array, Array, Array]:
    return x[..., 0], x[..., 1], x[..., 2]


def _radius(x: Array) -> Array:
    """Return the distance [...] of positions [..., 3] from the centre."""
    return length(_components(x))
