"""Components of the BBOB functions; equations of Finck et al. (2009).

Each takes the transformed vector z, which is 0 at the optimum, and is 0 there.
"""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax import Array


def oscillate(x: Array) -> Array:
    """Apply T_osz: smooth oscillations about the identity, on a logarithmic scale."""
    size = jnp.where(x == 0, 1, jnp.abs(x))
    log = jnp.log(size)
    up = jnp.sin(10 * log) + jnp.sin(7.9 * log)
    down = jnp.sin(5.5 * log) + jnp.sin(3.1 * log)
    bent = jnp.sign(x) * jnp.exp(log + 0.049 * jnp.where(x > 0, up, down))
    return jnp.where(x == 0, x, bent)


def skew(x: Array, beta: float) -> Array:
    """Apply T_asy: positive values grow, more so for later variables."""
    d = x.shape[0]
    share = jnp.asarray(beta * np.arange(d) / (d - 1), x.dtype)
    positive = jnp.where(x > 0, x, 1)
    return jnp.where(x > 0, positive ** (1 + share * jnp.sqrt(positive)), x)


def bound_penalty(x: Array) -> Array:
    """Return f_pen, the squared distance to the box [-5, 5]^D."""
    return jnp.sum(jnp.maximum(0, jnp.abs(x) - 5) ** 2)


def rastrigin(z: Array) -> Array:
    """Return 10 (D - sum cos 2 pi z) + |z|^2."""
    return jnp.sum(20 * jnp.sin(jnp.pi * z) ** 2 + z * z)


def sector(best: np.ndarray) -> Callable[[Array], Array]:
    """Return function 6: a hundred times steeper on the side of the optimum's sign."""

    def f(z: Array) -> Array:
        steep = jnp.where(z * jnp.asarray(best, z.dtype) > 0, 100, 1)
        total = jnp.sum((steep * z) ** 2)
        return jnp.where(total > 0, oscillate(jnp.where(total > 0, total, 1)) ** 0.9, 0)

    return f


def ridge(z: Array) -> Array:
    """Evaluate function 13: a sharp ridge along the first axis."""
    return z[0] ** 2 + 100 * jnp.sqrt(jnp.sum(z[1:] ** 2))


def katsuura(z: Array) -> Array:
    """Evaluate function 23: rugged on 32 scales."""
    d = z.shape[0]
    scale = jnp.asarray(2.0 ** np.arange(1, 33), z.dtype)[None]
    y = scale * z[:, None]
    rough = jnp.sum(jnp.abs(y - jnp.round(y)) / scale, axis=1)
    place = jnp.arange(1, d + 1).astype(z.dtype)
    return 10 / d**2 * jnp.expm1(10 / d**1.2 * jnp.sum(jnp.log1p(place * rough)))


def rosenbrock_terms(w: Array) -> Array:
    """Return Rosenbrock's terms at z = w + 1, [D - 1]."""
    w, after = w[:-1], w[1:]
    return 100 * (w * w + 2 * w - after) ** 2 + w * w


def weierstrass(z: Array) -> Array:
    """Evaluate function 16: sums of cosines of increasing frequency."""
    k = np.arange(12)
    half, three = jnp.asarray(0.5**k, z.dtype)[None], jnp.asarray(3.0**k, z.dtype)[None]
    # cos(2 pi 3^k (z + 1/2)) - cos(pi 3^k) for odd 3^k; whole turns are subtracted first
    turn = three * z[:, None]
    waves = 2 * half * jnp.sin(jnp.pi * (turn - jnp.round(turn))) ** 2
    return 10 * jnp.mean(jnp.sum(waves, axis=1)) ** 3


def schaffers(z: Array) -> Array:
    """Evaluate functions 17 and 18: Schaffer's F7."""
    square = z[:-1] ** 2 + z[1:] ** 2
    s = jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1)), 0)
    root = jnp.sqrt(s)
    return jnp.mean(root + root * jnp.sin(50 * s**0.2) ** 2) ** 2


def schwefel(x: Array) -> Array:
    """Evaluate function 20 at 2 sign x."""
    d, best = x.shape[0], 4.2096874637
    z = x + 0.25 * jnp.append(jnp.zeros(1, x.dtype), x[:-1] - best)
    z = 100 * (jnp.asarray(10 ** (0.5 * np.arange(d) / (d - 1)), x.dtype) * (z - best) + best)
    f = 0.01 * (418.9828872724339 - jnp.mean(z * jnp.sin(jnp.sqrt(jnp.abs(z)))))
    return f + 100 * bound_penalty(z / 100)


def lunacek_funnels(y: Array) -> Array:
    """Return the funnels of function 24, about the better one."""
    d = y.shape[0]
    s = 1 - 1 / (2 * (d + 20) ** 0.5 - 8.2)
    other = -(((2.5**2 - 1) / s) ** 0.5)
    return jnp.minimum(jnp.sum(y * y), d + s * jnp.sum((y + 2.5 - other) ** 2))
