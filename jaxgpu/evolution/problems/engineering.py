"""Real-world engineering problems of the RE suite, with their published bounds.

Tanabe & Ishibuchi (2020), doi:10.1016/j.asoc.2020.106078; numbers are those of the suite. Where the
original problem has constraints, the suite makes their total violation the last objective.
"""

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array

from jaxgpu.evolution.problem import Box, Problem


def four_bar_truss() -> Problem:
    """RE2-4-1 (RE21): volume and joint displacement of a four bar truss."""
    f, e, length, sigma = 10.0, 2e5, 200.0, 10.0
    a, root = f / sigma, 2**0.5

    def function(x: Array) -> Array:
        volume = length * (2 * x[0] + root * x[1] + jnp.sqrt(x[2]) + x[3])
        bend = f * length / e * (2 / x[0] + 2 * root / x[1] - 2 * root / x[2] + 2 / x[3])
        return jnp.stack([volume, bend])

    return _problem(function, 2, [a, root * a, root * a, a], [3 * a] * 4)


def disc_brake() -> Problem:
    """RE3-4-3 (RE33): mass, stopping time and violation of a disc brake."""

    def function(x: Array) -> Array:
        r, big, force, n = x
        square, cube = big**2 - r**2, big**3 - r**3
        mass = 4.9e-5 * square * (n - 1)
        time = 9.82e6 * square / (force * n * cube)
        margins = [
            big - r - 20,
            0.4 - force / (3.14 * square),
            1 - 2.22e-3 * force * cube / square**2,
            2.66e-2 * force * n * cube / square - 900,
        ]
        return jnp.stack([mass, time, _violation(margins)])

    return _problem(function, 3, [55.0, 75.0, 1000.0, 11.0], [80.0, 110.0, 3000.0, 20.0])


def car_crash() -> Problem:
    """RE3-5-4 (RE34): mass, acceleration and intrusion in a frontal crash of a vehicle."""

    def function(x: Array) -> Array:
        a, b, c, d, e = x
        mass = 1640.2823 + 2.3573285 * a + 2.3220035 * b + 4.5688768 * c + 7.7213633 * d
        mass += 4.4559504 * e
        acceleration = 6.5856 + 1.15 * a - 1.0427 * b + 0.9738 * c + 0.8364 * d
        acceleration += -0.3695 * a * d + 0.0861 * a * e + 0.3628 * b * d - 0.1106 * a * a
        acceleration += -0.3437 * c * c + 0.1764 * d * d
        intrusion = -0.0551 + 0.0181 * a + 0.1024 * b + 0.0421 * c - 0.0073 * a * b
        intrusion += 0.024 * b * c - 0.0118 * b * d - 0.0204 * c * d - 0.008 * c * e
        intrusion += -0.0241 * b * b + 0.0109 * d * d
        return jnp.stack([mass, acceleration, intrusion])

    return _problem(function, 3, [1.0] * 5, [3.0] * 5)


def rocket_injector() -> Problem:
    """RE3-4-7 (RE37): face, wall and tip temperatures of a rocket injector, scaled."""

    def function(x: Array) -> Array:
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
        return jnp.stack([face, wall, tip])

    return _problem(function, 3, [0.0] * 4, [1.0] * 4)


def car_side_impact() -> Problem:
    """RE4-7-1 (RE41): mass, force, velocity and violation of a car hit from the side."""

    def function(x: Array) -> Array:
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
        return jnp.stack([mass, force, velocity, _violation(margins)])

    lower = [0.5, 0.45, 0.5, 0.5, 0.875, 0.4, 0.4]
    return _problem(function, 4, lower, [1.5, 1.35, 1.5, 1.5, 2.625, 1.2, 1.2])


def _violation(margins: list[Array]) -> Array:
    """Sum of what the margins, which must not be negative, lack."""
    return jnp.sum(jnp.maximum(-jnp.stack(margins), 0))


def _problem(
    function: Callable[[Array], Array], m: int, lower: list[float], upper: list[float]
) -> Problem:
    return Problem(Box(jnp.asarray(lower, float), jnp.asarray(upper, float)), function, m)
