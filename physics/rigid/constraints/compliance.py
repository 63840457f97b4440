"""Compliant contacts: springs and dampers at the end of the step, with a continuous force.

A contact with gap g, normal velocity v and normal acceleration a has the normal force

    f = max(0, -K (g + h v + h^2 a) - B (v + h a)),

of a spring K and a damper B at the position and velocity after the step h. The damper grows with
the depth at the beginning of the step, up to its full value at the width of solimp (Hunt and
Crossley 1975, doi:10.1115/1.3423596, with a bound), so it does not act across a gap. The
tangential force opposes the velocity at the end of the step with the coefficient (B + K h) impratio
and is bounded by the friction cone: regularised Coulomb friction. All forces are gradients of a
convex function of a, so the problem is that of soft constraints with other constants, and the same
solver and derivative apply.

The force is continuous in the state, because a contact begins and ends with zero force; an open gap
that would close within the step is included. The force is taken at the end of the step, by backward
Euler (Anitescu and Hart 2004, doi:10.1007/s10107-003-0404-1, without the spring), so it dissipates
energy and returns no more than the spring stored, at any mass.

K and B follow from the file's solref and solimp at the largest impedance.
"""

import jax.numpy as jnp
from jax import Array

from ..collision.shape import FAR
from ..models.mechanism import Mechanism
from . import impedance
from .cones import Cone


def compliant_cone(
    model: Mechanism,
    parameters: tuple[Array, Array, Array],
    gap: Array,
    J: Array,
    speed: Array,
    inverse: Array,
) -> Cone:
    """Return the constraint rows of compliant contacts.

    Args:
        model: the mechanism, for its time step and options.
        parameters: friction [C, 5], solref [C, 2] and solimp [C, 5].
        gap: distance minus margin [C], m.
        J: [C, d, V] Jacobians in the contact frames.
        speed: J times the velocities [C, d].
        inverse: inverse inertia [C] at the contacts, 1/kg.
    """
    friction, solref, solimp = parameters
    h, d = model.option.timestep, J.shape[1]
    far = jnp.maximum(solimp[:, 2], 1)  # outside the width, at the largest impedance
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
