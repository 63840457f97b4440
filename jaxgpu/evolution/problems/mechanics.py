"""Designs of the RE suite that are computed from mechanics: beams, vessels, gears, brakes.

Tanabe & Ishibuchi (2020), doi:10.1016/j.asoc.2020.106078, with the sources of each; the constants
are those of the suite. A design maps its variables to its objectives and its margins, which should
not be negative. Discrete variables are rounded to integers, or to the nearest of a list.
"""

import jax.numpy as jnp
import numpy as np
from jax import Array

from .fitted_models import Design

# areas in square inches; the suite has 3 and 10 instead of 3.10, which is kept here
_AREAS = np.array(
    """0.20 0.31 0.40 0.44 0.60 0.62 0.79 0.80 0.88 0.93 1.0 1.20 1.24 1.32 1.40 1.55 1.58 1.60 1.76
    1.80 1.86 2.0 2.17 2.20 2.37 2.40 2.48 2.60 2.64 2.79 2.80 3.0 3.08 3 10 3.16 3.41 3.52 3.60
    3.72 3.95 3.96 4.0 4.03 4.20 4.34 4.40 4.65 4.74 4.80 4.84 5.0 5.28 5.40 5.53 5.72 6.0 6.16
    6.32 6.60 7.11 7.20 7.80 7.90 8.0 8.40 8.69 9.0 9.48 10.27 11.0 11.06 11.85 12.0 13.0 14.0
    15.0""".split(),
    float,
)
_WIRES = np.array(
    """0.009 0.0095 0.0104 0.0118 0.0128 0.0132 0.014 0.015 0.0162 0.0173 0.018 0.02 0.023 0.025
    0.028 0.032 0.035 0.041 0.047 0.054 0.063 0.072 0.08 0.092 0.105 0.12 0.135 0.148 0.162 0.177
    0.192 0.207 0.225 0.244 0.263 0.283 0.307 0.331 0.362 0.394 0.4375 0.5""".split(),
    float,
)


def _round_to_list(values: np.ndarray, x: Array) -> Array:
    allowed = jnp.asarray(values, x.dtype)
    return allowed[jnp.argmin(jnp.abs(allowed - x))]


def four_bar_truss(x: Array) -> Design:
    """Return the volume and joint displacement of a four bar truss."""
    f, e, length, root = 10.0, 2e5, 200.0, 2**0.5
    volume = length * (2 * x[0] + root * x[1] + jnp.sqrt(x[2]) + x[3])
    bend = f * length / e * (2 / x[0] + 2 * root / x[1] - 2 * root / x[2] + 2 / x[3])
    return [volume, bend], []


def reinforced_beam(x: Array) -> Design:
    """Return the cost of a reinforced concrete beam; area of steel, width, depth."""
    area, width, depth = _round_to_list(_AREAS, x[0]), x[1], x[2]
    margins = [area * depth - 7.735 * area**2 / width - 180, 4 - depth / width]
    return [29.4 * area + 0.6 * width * depth], margins


def pressure_vessel(x: Array) -> Design:
    """Return the cost of a pressure vessel; thicknesses in 1/16 inch, radius, length."""
    shell, head = 0.0625 * jnp.round(x[0]), 0.0625 * jnp.round(x[1])
    r, length = x[2], x[3]
    cost = 0.6224 * shell * r * length + 1.7781 * head * r**2 + 3.1661 * shell**2 * length
    cost += 19.84 * shell**2 * r
    room = jnp.pi * r**2 * length + 4 / 3 * jnp.pi * r**3
    return [cost], [shell - 0.0193 * r, head - 0.00954 * r, room - 1296000]


def hatch_cover(x: Array) -> Design:
    """Return the weight of a ship's hatch cover; thickness of the flange, height of the beam."""
    t, h = x
    bending, modulus = 4500 / (t * h), 700000.0
    margins = [
        1 - bending / 700,
        1 - 1800 / h / 450,
        1 - 56.2e4 / (modulus * t * h**2) / 1.5,
        1 - bending / (modulus * t**2 / 100),
    ]
    return [t + 120 * h], margins


def coil_spring(x: Array) -> Design:
    """Return the volume of steel wire of a spring; coils, outer diameter, wire diameter."""
    coils, outer, wire = jnp.round(x[0]), x[1], _round_to_list(_WIRES, x[2])
    ratio = outer / wire
    factor = (4 * ratio - 1) / (4 * ratio - 4) + 0.615 / ratio
    stiffness = 11.5e6 * wire**4 / (8 * coils * outer**3)
    most, preload = 1000.0, 300.0
    solid = 1.05 * (coils + 2) * wire
    length, stroke = most / stiffness + solid, (most - preload) / stiffness
    margins = [
        189000 - 8 * factor * most * outer / (jnp.pi * wire**3),
        14 - length,
        ratio - 3,
        6 - preload / stiffness,
        # this repeats the length and is 0 up to rounding, as in the suite
        length - preload / stiffness - stroke - solid,
        1.25 - stroke,
    ]
    return [jnp.pi**2 * outer * wire**2 * (coils + 2) / 4], margins


def two_bar_truss(x: Array) -> Design:
    """Return the volume and stress of a two bar truss; two areas, height of the joint."""
    first, second, y = x
    long, short = jnp.sqrt(16 + y * y), jnp.sqrt(1 + y * y)
    volume, stress = first * long + second * short, 20 * long / (first * y)
    return [volume, stress], [0.1 - volume, 1e5 - stress, 1e5 - 80 * short / (y * second)]


def welded_beam(x: Array) -> Design:
    """Return cost and deflection of a welded beam; height and length of weld, depth, thickness."""
    h, length, depth, b = x
    load, reach, young, shear = 6000.0, 14.0, 30e6, 12e6
    arm = ((h + depth) / 2) ** 2
    radius = jnp.sqrt(length**2 / 4 + arm)
    throat = 2**0.5 * h * length
    inertia = 2 * throat * (length**2 / 12 + arm)
    direct = load / throat
    twist = load * (reach + length / 2) * radius / inertia
    stress = jnp.sqrt(direct**2 + direct * twist * length / radius + twist**2)
    buckling = 4.013 * young * depth * b**3 / 6 / reach**2
    buckling *= 1 - depth / (2 * reach) * (young / (4 * shear)) ** 0.5
    cost = 1.10471 * h**2 * length + 0.04811 * depth * b * (14 + length)
    bend = 4 * load * reach**3 / (young * b * depth**3)
    margins = [13600 - stress, 30000 - 6 * load * reach / (b * depth**2), b - h, buckling - load]
    return [cost, bend], margins


def disc_brake(x: Array) -> Design:
    """Return mass and stopping time of a disc brake; inner and outer radius, force, surfaces."""
    r, big, force, n = x
    square, cube = big**2 - r**2, big**3 - r**3
    margins = [
        big - r - 20,
        0.4 - force / (3.14 * square),
        1 - 2.22e-3 * force * cube / square**2,
        2.66e-2 * force * n * cube / square - 900,
    ]
    return [4.9e-5 * square * (n - 1), 9.82e6 * square / (force * n * cube)], margins


def speed_reducer(x: Array) -> Design:
    """Return weight and stress of a speed reducer; face, module, teeth, shaft sizes."""
    face, module, teeth, one, two, thin, thick = x
    teeth = jnp.round(teeth)
    weight = 0.7854 * face * module**2 * (10 * teeth**2 / 3 + 14.933 * teeth - 43.0934)
    weight += -1.508 * face * (thin**2 + thick**2) + 7.477 * (thin**3 + thick**3)
    weight += 0.7854 * (one * thin**2 + two * thick**2)
    pitch = module * teeth
    stress = jnp.sqrt((745 * one / pitch) ** 2 + 1.69e7) / (0.1 * thin**3)
    other = jnp.sqrt((745 * two / pitch) ** 2 + 1.575e8) / (0.1 * thick**3)
    margins = [
        1 / 27 - 1 / (face * module * pitch),
        1 / 397.5 - 1 / (face * pitch**2),
        1 / 1.93 - one**3 / (pitch * thin**4),
        1 / 1.93 - two**3 / (pitch * thick**4),
        40 - pitch,
        12 - face / module,
        face / module - 5,
        one - 1.5 * thin - 1.9,
        two - 1.1 * thick - 1.9,
        1300 - stress,
        1100 - other,
    ]
    return [weight, stress], margins


def gear_train(x: Array) -> Design:
    """Return the error of a gear train's ratio, and its largest wheel; four numbers of teeth."""
    teeth = jnp.round(x)
    error = jnp.abs(6.931 - teeth[2] / teeth[0] * (teeth[3] / teeth[1]))
    return [error, jnp.max(teeth)], [0.5 - error / 6.931]
