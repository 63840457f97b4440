"""The 24 noiseless BBOB functions, without the offsets that COCO adds to their values.

Finck, Hansen, Ros & Auger (2009), "Real-parameter black-box optimization benchmarking 2009:
presentation of the noiseless functions"; instances as in COCO (Hansen et al. 2021,
doi:10.1080/10556788.2020.1808977). The optimal value is 0, and every function is written so that
nothing cancels near its optimum (1 - cos as a sine squared, 1 - exp as expm1, Rosenbrock's about
its optimum). With the offset, up to 1000, float32 could not resolve values below 1e-5. The optimum
is stored as a sum of two floats, so that a float32 value is exact for the float32 point. Only
Schwefel's function (20) has a floor, of less than 1e-6.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.inputs.explanations import explain_errors

from ..problem import Problem, box, check_integers
from . import bbob_data as data
from . import bbob_shapes as shapes
from .float_pairs import subtract

Function = Callable[[Array], Array]


@explain_errors
def bbob(function: int, dimension: int, instance: int = 1) -> Problem:
    """Return a BBOB function over [-5, 5]^D; COCO's value is this plus `bbob_data.optimal_value`.

    Args:
        function: 1 to 24.
        dimension: D, at least 2.
        instance: 1 to 15 in COCO's experiments; any positive number.

    >>> best = jnp.asarray(data.optimum(2, 10001), float)
    >>> float(bbob(1, 2).function(best)[0]) < 1e-12
    True
    """
    check_integers("bbob", function=function, dimension=dimension, instance=instance)
    if not 1 <= function <= 24 or dimension < 2 or instance < 1:
        raise ValueError(
            f"bbob: function={function}, dimension={dimension}, instance={instance}; need 1 to 24, "
            "at least 2, at least 1"
        )
    s = data.instance_seed(function, instance)
    inner = _FAMILIES[function](function, dimension, s)
    return Problem(box(-5.0, 5.0, dimension), lambda x: inner(x)[None])


def _rotate(matrix: np.ndarray, x: Array) -> Array:
    return jnp.sum(jnp.asarray(matrix, x.dtype) * x[None], axis=1)


def _powers(base: float, d: int) -> np.ndarray:
    """Return base^(i / (D - 1)), [D]."""
    return base ** (np.arange(d) / (d - 1))


def _rotation_pair(d: int, s: int) -> tuple[np.ndarray, np.ndarray]:
    """Return COCO's two rotations: R, used by most functions, and Q."""
    return data.rotation(d, s + 1000000), data.rotation(d, s)


def _separable(function: int, d: int, s: int) -> Function:
    """Return one of functions 1 to 4: separable."""
    best = data.optimum(d, s)
    if function == 4:
        best[::2] = np.abs(best[::2])
    stretch = _powers(10**0.5, d)
    far = np.where(np.arange(d) % 2 == 0, 10.0, 1.0)

    def inner(x: Array) -> Array:
        z = subtract(x, best)
        if function == 1:
            return jnp.sum(z * z)
        z = shapes.oscillate(z)
        if function == 2:
            return jnp.sum(jnp.asarray(_powers(1e6, d), x.dtype) * z * z)
        if function == 3:
            return shapes.rastrigin(jnp.asarray(stretch, x.dtype) * shapes.skew(z, 0.2))
        z = jnp.where(z > 0, jnp.asarray(far, x.dtype) * z, z) * jnp.asarray(stretch, x.dtype)
        return shapes.rastrigin(z) + 100 * shapes.bound_penalty(x)

    return inner


def _linear_slope(function: int, d: int, s: int) -> Function:
    """Return function 5: linear, with the optimum in a corner of the box."""
    sign = np.where(data.optimum(d, s) < 0, -1.0, 1.0)

    def inner(x: Array) -> Array:
        towards = jnp.minimum(jnp.asarray(sign, x.dtype) * x, 5)
        return jnp.sum(jnp.asarray(_powers(10.0, d), x.dtype) * (5 - towards))

    return inner


def _two_rotations(function: int, d: int, s: int) -> Function:
    """Return one of functions 6, 13, 23: z = R L Q (x - best)."""
    best = data.optimum(d, s)
    r, q = _rotation_pair(d, s)
    matrix = (r * _powers(10.0 if function == 23 else 10**0.5, d)[None]) @ q
    kind = {6: shapes.sector(best), 13: shapes.ridge, 23: shapes.katsuura}[function]

    def inner(x: Array) -> Array:
        f = kind(_rotate(matrix, subtract(x, best)))
        return f + shapes.bound_penalty(x) if function == 23 else f

    return inner


def _step_ellipsoid(function: int, d: int, s: int) -> Function:
    """Return function 7: an ellipsoid of plateaus."""
    best = data.optimum(d, s)
    r, q = _rotation_pair(d, s)
    matrix = _powers(10**0.5, d)[:, None] * q

    def inner(x: Array) -> Array:
        y = _rotate(matrix, subtract(x, best))
        z = jnp.where(jnp.abs(y) > 0.5, jnp.floor(0.5 + y), jnp.floor(0.5 + 10 * y) / 10)
        z = _rotate(r, z)
        f = jnp.sum(jnp.asarray(_powers(100.0, d), x.dtype) * z * z)
        return 0.1 * jnp.maximum(jnp.abs(y[0]) / 1e4, f) + shapes.bound_penalty(x)

    return inner


def _rosenbrock(function: int, d: int, s: int) -> Function:
    """Return one of functions 8, 9, 19: Rosenbrock's, about its optimum."""
    factor = max(1.0, d**0.5 / 8)
    matrix = np.eye(d) if function == 8 else data.rotation(d, s)
    best = 0.75 * data.optimum(d, s) if function == 8 else matrix.T @ np.full(d, 0.5 / factor)

    def inner(x: Array) -> Array:
        terms = shapes.rosenbrock_terms(factor * _rotate(matrix, subtract(x, best)))
        if function != 19:
            return jnp.sum(terms)
        return 10 * jnp.mean(terms / 4000 + 2 * jnp.sin(terms / 2) ** 2)

    return inner


def _one_rotation(function: int, d: int, s: int) -> Function:
    """Return one of functions 10, 11, 12, 14: a single rotation."""
    best = data.optimum(d, s + 1000000 if function == 12 else s)
    r = data.rotation(d, s + 1000000)

    def inner(x: Array) -> Array:
        z = _rotate(r, subtract(x, best))
        if function == 10:
            return jnp.sum(jnp.asarray(_powers(1e6, d), x.dtype) * shapes.oscillate(z) ** 2)
        if function == 11:
            z = shapes.oscillate(z)
            return 1e6 * z[0] ** 2 + jnp.sum(z[1:] ** 2)
        if function == 12:
            z = _rotate(r, shapes.skew(z, 0.5))
            return z[0] ** 2 + 1e6 * jnp.sum(z[1:] ** 2)
        return jnp.sqrt(jnp.sum(jnp.abs(z) ** jnp.asarray(2 + 4 * np.arange(d) / (d - 1), x.dtype)))

    return inner


def _multimodal(function: int, d: int, s: int) -> Function:
    """Return one of functions 15 to 18: multi-modal with adequate global structure."""
    best = data.optimum(d, s)
    r, q = _rotation_pair(d, s)
    condition = {15: 10**0.5, 16: 0.1, 17: 10**0.5, 18: 1000**0.5}[function]
    matrix = _powers(condition, d)[:, None] * q
    if function < 17:
        matrix = r @ matrix

    def inner(x: Array) -> Array:
        z = _rotate(r, subtract(x, best))
        if function == 15:
            z = shapes.skew(shapes.oscillate(z), 0.2)
            return shapes.rastrigin(_rotate(matrix, z))
        if function == 16:
            f = shapes.weierstrass(_rotate(matrix, shapes.oscillate(z)))
            return f + 10 / d * shapes.bound_penalty(x)
        f = shapes.schaffers(_rotate(matrix, shapes.skew(z, 0.5)))
        return f + 10 * shapes.bound_penalty(x)

    return inner


def _schwefel(function: int, d: int, s: int) -> Function:
    """Return function 20: the better optima are in the corners."""
    sign = np.where(data.uniform(d, s) < 0.5, -1.0, 1.0)

    def inner(x: Array) -> Array:
        return shapes.schwefel(2 * jnp.asarray(sign, x.dtype) * x)

    return inner


def _gallagher(function: int, d: int, s: int) -> Function:
    """Return function 21 or 22: the best of 101 or 21 random peaks."""
    heights, places, scales = data.peaks(d, 101 if function == 21 else 21, s)
    rotation = data.rotation(d, s)

    def inner(x: Array) -> Array:
        apart = jax.vmap(lambda z: _rotate(rotation, z))(subtract(x[None], places))
        q = jnp.sum(jnp.asarray(scales, x.dtype) * apart * apart, axis=1) / (2 * d)
        h = jnp.asarray(heights, x.dtype)
        low = jnp.min(jnp.asarray(10 - heights, x.dtype) - h * jnp.expm1(-q))
        return shapes.oscillate(low) ** 2 + shapes.bound_penalty(x)

    return inner


def _lunacek(function: int, d: int, s: int) -> Function:
    """Return function 24: two funnels, the wider one worse."""
    sign = np.where(data.normal(d, s) < 0, -1.0, 1.0)
    r, q = _rotation_pair(d, s)
    matrix = (r * _powers(10.0, d)[None]) @ q

    def inner(x: Array) -> Array:
        y = 2 * jnp.asarray(sign, x.dtype) * x - 2.5
        z = _rotate(matrix, y)
        waves = 20 * jnp.sum(jnp.sin(jnp.pi * z) ** 2)
        return shapes.lunacek_funnels(y) + waves + 1e4 * shapes.bound_penalty(x)

    return inner


_FAMILIES: dict[int, Callable[[int, int, int], Function]] = (
    dict.fromkeys((1, 2, 3, 4), _separable)
    | {5: _linear_slope, 7: _step_ellipsoid, 20: _schwefel, 24: _lunacek}
    | dict.fromkeys((6, 13, 23), _two_rotations)
    | dict.fromkeys((8, 9, 19), _rosenbrock)
    | dict.fromkeys((10, 11, 12, 14), _one_rotation)
    | dict.fromkeys((15, 16, 17, 18), _multimodal)
    | dict.fromkeys((21, 22), _gallagher)
)
