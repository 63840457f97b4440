"""Contacts as springs and dampers at the end of the step: their force begins and ends with none.

A contact of a gap g, seen along its normal with the speed v and the acceleration a, pushes with

    f = max(0, -K (g + h v + h^2 a) - B (v + h a)),

the force of a spring K and a damper B where and as fast as it will be after the step h. The damper
grows with the depth at the step's beginning, to its full strength at the width of solimp (Hunt and
Crossley 1975, doi:10.1115/1.3423596, with a bound), so that it holds nothing apart. Across the
normal it drags with (B + K h) impratio per metre and second of what the speed will be, as far as
the cone of friction lets it: Coulomb's law, regularised. All are slopes of a convex function of a,
so that the problem is that of soft constraints with other constants, and its solver and derivative
hold.

The force is continuous in all that moves, as a contact begins and ends with none; a gap that is
open and would close within the step counts. The force is that at the end of the step, so that it
takes energy and gives back no more than the spring held, at any mass: backward Euler (Anitescu and
Hart 2004, doi:10.1007/s10107-003-0404-1, without the spring).

K and B are those that the file's solref and solimp have where the impedance is largest.
"""

import jax.numpy as jnp
from jax import Array

from ..collision.shape import FAR
from ..models.model import Mechanism
from . import impedance
from .cones import Cone


def cone(
    model: Mechanism,
    parameters: tuple[Array, Array, Array],
    gap: Array,
    J: Array,
    speed: Array,
    inverse: Array,
) -> Cone:
    """The rows of contacts.

    Args:
        model: whose step and option are taken.
        parameters: friction [C, 5], solref [C, 2] and solimp [C, 5].
        gap: distance less the margin [C], m.
        J: [C, d, V] the contacts' frames by freedoms.
        speed: J times the velocities [C, d].
        inverse: inverse inertia [C] that contacts see, 1/kg.
    """
    friction, solref, solimp = parameters
    h, d = model.option.timestep, J.shape[1]
    far = jnp.maximum(solimp[:, 2], 1)  # beyond the width: the largest impedance
    k, b = impedance.spring(model, solref, solimp)
    mass = impedance.weight(solimp, far, inverse)
    width = jnp.maximum(solimp[:, 2], impedance.TINY)
    K, B = mass * k * impedance.impedance(solimp, far), mass * b * jnp.clip(-gap / width, 0, 1)
    D = h * (K * h + B)
    normal = -(K * gap + (K * h + B) * speed[:, 0]) / D
    aref = jnp.concatenate([normal[:, None], -speed[:, 1:] / h], 1)
    return Cone(
        elliptic=True,
        J=J,
        aref=aref,
        D=jnp.where(gap < FAR / 2, D, 0),
        friction=friction[:, : d - 1],
        mu=friction[:, 0] / jnp.sqrt(model.option.impratio),
    )
