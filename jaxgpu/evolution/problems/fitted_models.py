"""Designs of the RE suite with fitted models as objectives: vehicles, a ship, an injector, drains.

Tanabe & Ishibuchi (2020), doi:10.1016/j.asoc.2020.106078, with the sources of each; the constants
are those of the suite. A design maps its variables to its objectives and its margins, which should
not be negative.
"""

import jax.numpy as jnp
from jax import Array

Design = tuple[list[Array], list[Array]]


def car_crash(x: Array) -> Design:
    """Return mass, acceleration and intrusion in a frontal crash; five thicknesses."""
    a, b, c, d, e = x
    mass = 1640.2823 + 2.3573285 * a + 2.3220035 * b + 4.5688768 * c + 7.7213633 * d
    mass += 4.4559504 * e
    acceleration = 6.5856 + 1.15 * a - 1.0427 * b + 0.9738 * c + 0.8364 * d
    acceleration += -0.3695 * a * d + 0.0861 * a * e + 0.3628 * b * d - 0.1106 * a * a
    acceleration += -0.3437 * c * c + 0.1764 * d * d
    intrusion = -0.0551 + 0.0181 * a + 0.1024 * b + 0.0421 * c - 0.0073 * a * b
    intrusion += 0.024 * b * c - 0.0118 * b * d - 0.0204 * c * d - 0.008 * c * e
    intrusion += -0.0241 * b * b + 0.0109 * d * d
    return [mass, acceleration, intrusion], []


def rocket_injector(x: Array) -> Design:
    """Return face, wall and tip temperatures of a rocket injector, scaled."""
    a, h, o, t = x  # flow angle, changes of the areas, tip thickness
    face = 0.692 + 0.477 * a - 0.687 * h - 0.080 * o - 0.0650 * t - 0.167 * a * a
    face += -0.0129 * h * a + 0.0796 * h * h - 0.0634 * o * a - 0.0257 * o * h
    face += 0.0877 * o * o - 0.0521 * t * a + 0.00156 * t * h + 0.00198 * t * o
    face += 0.0184 * t * t
    wall = 0.153 - 0.322 * a + 0.396 * h + 0.424 * o + 0.0226 * t + 0.175 * a * a
    wall += 0.0185 * h * a - 0.0701 * h * h - 0.251 * o * a + 0.179 * o * h
    wall += 0.0150 * o * o + 0.0134 * t * a + 0.0296 * t * h + 0.0752 * t * o
    wall += 0.0192 * t * t
    tip = 0.370 - 0.205 * a + 0.0307 * h + 0.108 * o + 1.019 * t - 0.135 * a * a
    tip += 0.0141 * h * a + 0.0998 * h * h + 0.208 * o * a - 0.0301 * o * h
    tip += -0.226 * o * o + 0.353 * t * a - 0.0497 * t * o - 0.423 * t * t
    tip += 0.202 * h * a * a - 0.281 * o * a * a - 0.342 * h * h * a - 0.245 * h * h * o
    tip += 0.281 * o * o * h - 0.184 * t * t * a - 0.281 * h * a * o
    return [face, wall, tip], []


def car_side_impact(x: Array) -> Design:
    """Return mass, pubic force and mean velocity of a car in a side impact; seven thicknesses."""
    a, b, c, d, e, f, g = x
    mass = 1.98 + 4.9 * a + 6.67 * b + 6.98 * c + 4.01 * d + 1.78 * e + 0.00001 * f + 2.73 * g
    force = 4.72 - 0.5 * d - 0.19 * b * c
    velocity_pillar = 10.58 - 0.674 * a * b - 0.67275 * b
    velocity_door = 16.45 - 0.489 * c * g - 0.843 * e * f
    margins = [
        1 - (1.16 - 0.3717 * b * d - 0.0092928 * c),
        0.32
        - (0.261 - 0.0159 * a * b - 0.06486 * a - 0.019 * b * g + 0.0144 * c * e)
        - 0.0154464 * f,
        0.32
        - (0.214 + 0.00817 * e - 0.045195 * a - 0.0135168 * a + 0.03099 * b * f)
        + 0.018 * b * g
        - 0.007176 * c
        - 0.023232 * c
        + 0.00364 * e * f
        + 0.018 * b * b,
        0.32 - (0.74 - 0.61 * b - 0.031296 * c - 0.031872 * g + 0.227 * b * b),
        32 - (28.98 + 3.818 * c - 4.2 * a * b + 1.27296 * f - 2.68065 * g),
        32 - (33.86 + 2.95 * c - 5.057 * a * b - 3.795 * b - 3.4431 * g + 1.45728),
        32 - (46.36 - 9.9 * b - 4.4505 * a),
        4 - force,
        9.9 - velocity_pillar,
        15.7 - velocity_door,
    ]
    velocity = (velocity_pillar + velocity_door) / 2
    return [mass, force, velocity], margins


def ship(x: Array) -> Design:
    """Return transport cost, light ship weight and minus the annual cargo of a bulk carrier."""
    length, beam, depth, draft, knots, block = x
    displacement = 1.025 * length * beam * draft * block
    froude = 0.5144 * knots / jnp.sqrt(9.8065 * length)
    a = 4977.06 * block**2 - 8105.61 * block + 4456.51
    b = -10847.2 * block**2 + 12817.0 * block - 6960.32
    power = displacement ** (2 / 3) * knots**3 / (a + b * froude)
    outfit = length**0.8 * beam**0.6 * depth**0.3 * block**0.1
    steel = 0.034 * length**1.7 * beam**0.7 * depth**0.4 * block**0.5
    light = steel + outfit + 0.17 * power**0.9
    deadweight = displacement - light
    capital = 0.2 * 1.3 * (2000 * steel**0.85 + 3500 * outfit + 2400 * power**0.8)
    # the suite multiplies by the speed, although a duration requires a division
    sea_days = 5000 / 24 * knots
    daily = 0.19 * power * 24 / 1000 + 0.2
    fuel, port = 1.05 * daily * sea_days * 100, 6.3 * deadweight**0.8
    cargo = deadweight - daily * (sea_days + 5) - 2 * deadweight**0.5
    trips = 350 / (sea_days + 2 * (cargo / 8000 + 0.5))
    annual = capital + 40000 * deadweight**0.3 + (fuel + port) * trips
    stability = 0.53 * draft + (0.085 * block - 0.002) * beam**2 / (draft * block)
    margins = [
        length / beam - 6,
        15 - length / depth,
        19 - length / draft,
        0.45 * deadweight**0.31 - draft,
        0.7 * depth + 0.7 - draft,
        500000 - deadweight,
        deadweight - 3000,
        0.32 - froude,
        stability - (1 + 0.52 * depth) - 0.07 * beam,
    ]
    return [annual / (cargo * trips), light, -cargo * trips], margins


def water(x: Array) -> Design:
    """Return costs of urban drainage: network, storage, treatment, floods and their aftermath."""
    capacity, treatment, overflow = x
    product = capacity * treatment
    objectives = [
        106780.37 * (treatment + overflow) + 61704.67,
        3000 * capacity,
        305700 * 2289 * treatment / (0.06 * 2289) ** 0.65,
        250 * 2289 * jnp.exp(-39.75 * treatment + 9.9 * overflow + 2.74),
        25 * (1.39 / product + 4940 * overflow - 80),
    ]
    margins = [
        1 - (0.00139 / product + 4.94 * overflow - 0.08),
        1 - (0.000306 / product + 1.082 * overflow - 0.0986),
        50000 - (12.307 / product + 49408.24 * overflow + 4051.02),
        16000 - (2.098 / product + 8046.33 * overflow - 696.71),
        10000 - (2.138 / product + 7883.39 * overflow - 705.04),
        2000 - (0.417 * product + 1721.26 * overflow - 136.54),
        550 - (0.164 / product + 631.13 * overflow - 54.48),
    ]
    return objectives, margins


def car_cab(x: Array, noise: Array) -> Design:
    """Return the weight of a car's cab and eight side-impact responses, relative to their limits.

    noise: four standard normal numbers, deviations of two materials and of the barrier's height and
    position.
    """
    a, b, c, d, e, f, g = x
    h, i = 0.006 * noise[0] + 0.345, 0.006 * noise[1] + 0.192
    j, k = 10 * noise[2], 10 * noise[3]
    weight = 1.98 + 4.9 * a + 6.67 * b + 6.98 * c + 4.01 * d + 1.75 * e + 0.00001 * f + 2.73 * g
    load = 1.16 - 0.3717 * b * d - 0.00931 * b * j - 0.484 * c * i + 0.01343 * f * j
    upper = 0.261 - 0.0159 * a * b - 0.188 * a * h - 0.019 * b * g + 0.0144 * c * e
    upper += 0.87570001 * e * j + 0.08045 * f * i + 0.00139 * h * k + 0.00001575 * j * k
    middle = 0.214 + 0.00817 * e - 0.131 * a * h - 0.0704 * a * i + 0.03099 * b * f
    middle += -0.018 * b * g + 0.0208 * c * h + 0.121 * c * i - 0.00364 * e * f
    middle += 0.0007715 * e * j - 0.0005354 * f * j + 0.00121 * h * k + 0.00184 * i * j
    middle += -0.018 * b * b
    lower = 0.74 - 0.61 * b - 0.163 * c * h + 0.001232 * c * j - 0.166 * g * i + 0.227 * b * b
    ribs = 28.98 + 3.818 * c - 4.2 * a * b + 0.0207 * e * j + 6.63 * f * i - 7.77 * g * h
    ribs += 0.32 * i * j + 33.86 + 2.95 * c + 0.1792 * j - 5.057 * a * b - 11 * b * h
    ribs += -0.0215 * e * j - 9.98 * g * h + 22 * h * i
    ribs += 46.36 - 9.9 * b - 12.9 * a * h + 0.1107 * c * j
    force = 4.72 - 0.5 * d - 0.19 * b * c - 0.0122 * d * j + 0.009325 * f * j + 0.000191 * k * k
    pillar = 10.58 - 0.674 * a * b - 1.95 * b * h + 0.02054 * c * j - 0.0198 * d * j + 0.028 * f * j
    door = 16.45 - 0.489 * c * g - 0.843 * e * f + 0.0432 * i * j - 0.0556 * i * k
    door += -0.000786 * k * k
    responses = [
        load,
        upper / 0.32,
        middle / 0.32,
        lower / 0.32,
        ribs / 3 / 32,
        force / 4,
        pillar / 9.9,
        door / 15.7,
    ]
    return [weight, *(jnp.maximum(one, 0) for one in responses)], []
