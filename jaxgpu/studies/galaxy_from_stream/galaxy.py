"""Model of the Galaxy with four free parameters, and their prior ranges.

A halo of Navarro, Frenk & White (1997) with a flattened potential, a disc of Miyamoto & Nagai
(1975) and a fixed bulge, with the lengths of MWPotential2014 (Bovy 2015,
doi:10.1088/0067-0049/216/2/29). Units are kpc and km/s; times are in kpc / (km/s), 0.978 Gyr.
"""

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.physics.nbody.forces import potentials

NAMES = "halo speed, km/s", "halo length, kpc", "flattening", "disc mass"
SYMBOLS = "$v_{15}$, km/s", "$a$, kpc", "$q$", "$M_d$"  # axis labels
LOW = np.array([120.0, 8.0, 0.75, 0.5])
HIGH = np.array([190.0, 32.0, 1.25, 1.5])
HALO_RADIUS = 15.0  # kpc: radius of the halo's circular speed
DISC, LENGTH, HEIGHT = 6.82e10, 3.0, 0.28  # solar masses, kpc, kpc
_G = 4.30091e-6  # kpc (km/s)^2 / solar mass
_BULGE = 0.05 * 220.0**2 * 8.0  # GM within 8 kpc, where the bulge ends


def galaxy(theta: Array) -> potentials.Sum:
    """Return the potential of the Galaxy, kpc and km/s.

    Args:
        theta: [4] circular speed of the halo alone in its plane at 15 kpc, km/s; its length, kpc;
            the flattening of its potential, 1 for a sphere; the disc's mass in units of 6.82e10
            solar masses.

    >>> pull = galaxy(jnp.array([155.0, 16.0, 0.9, 0.0])).parts[2].pull(jnp.array([15.0, 0, 0]))
    >>> round(float(jnp.sqrt(-15 * pull[0])), 2)
    155.0
    """
    speed, length, flattening, disc = theta
    u = HALO_RADIUS / length
    gm = HALO_RADIUS * speed**2 / (jnp.log1p(u) - u / (1 + u))
    # Beyond 5 kpc, where the streams are, the bulge's density has decreased by exp(-7).
    bulge = potentials.PointMass(jnp.asarray(_BULGE, speed.dtype))
    thin = potentials.MiyamotoNagai(disc * _G * DISC, LENGTH, HEIGHT)
    return potentials.Sum((bulge, thin, potentials.NavarroFrenkWhite(gm, length, flattening)))


def from_fractions(shares: Array) -> Array:
    """Return parameters [..., 4] from fractions of their prior ranges (0: lower end, 1: upper end).

    >>> from_fractions(jnp.full(4, 0.5)).tolist()
    [155.0, 20.0, 1.0, 1.0]
    """
    low, width = (jnp.asarray(np.broadcast_to(q, shares.shape)) for q in (LOW, HIGH - LOW))
    return low + width * shares
