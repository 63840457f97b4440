"""How the strategies, which sample a normal distribution, search a box with its sides.

The distribution has no bounds: its samples y are free, and each is evaluated at a point T(y) of the
box. Where candidates were moved into the box and learnt from as such, half of the distribution
would be missing at a side, and its covariance with it. T is that of pycma (`BoundTransform`;
Hansen, Akimoto & Baudis 2019, doi:10.5281/zenodo.2559634, `BoxConstraintsLinQuadTransformation`).
For a variable between l and u, with margins a = (u - l) / 40, y is first mirrored at l - a and
u + a, again and again, until it lies between them; then

    T(y) = l + (y - l + a)^2 / (4 a)   where y < l + a
    T(y) = y                           where l + a <= y <= u - a
    T(y) = u - (u + a - y)^2 / (4 a)   where y > u - a

T and its slope are continuous. A function that is linear in x at a side is quadratic in y, with its
best point at y = l - a, where x = l exactly; so a best point on a side is nothing special. Only
ranks are used, as everywhere in these strategies: there is no penalty to be weighed against f. The
other way, a penalty on the distance from the box (Hansen et al. 2009, doi:10.1109/TEVC.2008.924423;
pycma's `BoundPenalty`), found the best point in 16 of 40 runs in which this one found it in 40.

Departure: pycma's margins are 0.05 max(|l|, 1) and 0.05 max(|u|, 1), which change when the origin
moves; ours are the same in [-5, 5].

T cannot be inverted: y and its mirror image have the same x. `tell` sees x alone, so it must be
able to draw y again, and the candidates that leave the part where T(y) = y come from a key that the
state keeps. Each candidate is drawn twice, from the state's key and from that of `ask`. If the
first is outside that part, it is taken; else the second is taken, or the first where the second is
outside. Both are samples of one distribution, independent, so what is taken is one too; and a run
that stays away from the sides is the same as without bounds, to the bit.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.core import Tracer

from jaxgpu.pytree import pytree

from ..problem import Box
from .ranking import width

MARGIN = 1 / 40  # of a side's length
REACH = 9.0  # deviations: beyond the largest normal number that JAX draws, 8.3 in float64
ROUNDING = 1000  # units in the last place between two programs that draw the same candidate


@pytree
class Cloud:
    """A distribution to draw candidates from."""

    mean: Array  # [D] free
    deviation: Array  # [D] of each variable, or an upper bound of it


Draw = Callable[[Array], Array]  # of a key, to free candidates [N, D]


def first_key(key: Array) -> Array:
    """The key that a state keeps, from that of `init`, which also draws the first mean."""
    return jax.random.fold_in(key, 2**31 - 1)


def next_key(key: Array) -> Array:
    """The key of the state after one `tell`."""
    return jax.random.fold_in(key, 0)


def point(box: Box, y: Array) -> Array:
    """T(y), the point of the box at which a free candidate is evaluated. [..., D].

    >>> side = Box(jnp.zeros(1), jnp.full(1, 40.0))
    >>> print(point(side, jnp.array([[-1.0], [0.0], [1.0], [7.5], [40.0], [-43.0]])).ravel())
    [ 0.    0.25  1.    7.5  39.75 40.  ]
    """
    a, low, high = _sides(box, y)
    around = low - a
    period = 2 * (high - low + 2 * a)
    far = (y < around) | (y > high + a)
    # within half a period of the lower fold, about which T is even
    turned = jnp.abs(y - around - period * jnp.round((y - around) / period))
    y = jnp.where(far, around + turned, y)
    up, down = y - around, high + a - y
    x = jnp.where(y < low + a, low + up * up / (4 * a), y)
    x = jnp.where(y > high - a, high - down * down / (4 * a), x)
    return jnp.clip(x, low, high)


def free(box: Box, x: Array) -> Array:
    """The y between the folds with T(y) = x. [..., D]."""
    a, low, high = _sides(box, x)
    x = jnp.clip(x, low, high)
    y = jnp.where(x < low + a, low - a + 2 * jnp.sqrt(a * (x - low)), x)
    return jnp.where(x > high - a, high + a - 2 * jnp.sqrt(a * (high - x)), y)


def settled(box: Box, mean: Array) -> Array:
    """The mean [D] moved by whole periods of T to where it keeps its digits; nothing else changes.

    One that lies within half a period of the middle of the box stays as it is, to the bit.
    """
    a, low, high = _sides(box, mean)
    period = 2 * (high - low + 2 * a)
    return mean - period * jnp.round((mean - (low + high) / 2) / period)


def _sides(box: Box, like: Array) -> tuple[Array, ...]:
    """The margins and the bounds, with the leading axes of the points `like` [..., D]."""
    axes = tuple(range(like.ndim - 1))
    return tuple(jnp.expand_dims(a, axes) for a in (MARGIN * width(box), box.lower, box.upper))


def _stays(box: Box, y: Array) -> Array:
    """Whether T(y) = y in all variables. [N, D] -> [N] bool."""
    a, low, high = _sides(box, y)
    return jnp.all((y >= low + a) & (y <= high - a), axis=1)


def _apart(box: Box, cloud: Cloud) -> Array:
    """Whether no candidate can come near a side. [] bool."""
    ends = (cloud.mean + sign * REACH * cloud.deviation for sign in (-1, 1))
    return jnp.all(_stays(box, jnp.stack([*ends])))


def candidates(
    box: Box, own: Array, key: Array, cloud: Cloud, draw: Draw, twins: bool = False
) -> Array:
    """What `ask` returns: points of the box, [N, D].

    Args:
        own: the key that the state keeps.
        key: that of `ask`.
        twins: the second half mirrors the first about the mean, and pairs stay together.
    """

    def together(which: Array) -> Array:
        return which & jnp.roll(which, which.shape[0] // 2) if twins else which

    def near() -> Array:
        mine = draw(_drawn(own))
        stays = together(_stays(box, mine))
        other = _either(jnp.any(stays), lambda: draw(key), lambda: mine)
        second = together(_stays(box, other))
        return point(box, jnp.where((stays & second)[:, None], other, mine))

    return _either(_apart(box, cloud), lambda: draw(key), near)


def samples(box: Box, own: Array, x: Array, cloud: Cloud, draw: Draw) -> Array:
    """The free candidates [N, D] that the candidates x came from, for `tell` to learn from.

    A point that was not asked for is learnt from as `free` gives it.
    """

    def near() -> Array:
        mine = draw(_drawn(own))
        slack = ROUNDING * jnp.finfo(x.dtype).eps * (jnp.abs(mine) + width(box)[None])
        asked = jnp.all(jnp.abs(point(box, mine) - x) <= slack, axis=1)
        taken = asked & ~_stays(box, mine)
        return jnp.where(taken[:, None], mine, free(box, x))

    return _either(_apart(box, cloud), lambda: free(box, x), near)


def _either(which: Array, yes: Callable[[], Array], no: Callable[[], Array]) -> Array:
    """`lax.cond`, which compiles anew at each call outside of `jit`; there the answer is known."""
    if isinstance(which, Tracer):
        return lax.cond(which, yes, no)
    return yes() if which else no()


def _drawn(own: Array) -> Array:
    return jax.random.fold_in(own, 1)
