"""Refinement of a Pareto front: multi-objective gradient descent of every member.

The step is against the shortest vector in the convex hull of the two objectives' gradients, which
reduces both wherever possible (multiple-gradient descent: Desideri 2012,
doi:10.1016/j.crma.2012.03.014; Fliege & Svaiter 2000, doi:10.1007/s001860000043). A trust region
sets its length: a step that worsens either objective is rejected, and the next one is shortened.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import number, pytree, static

from .nozzle import IDEAL, REFERENCE, with_slopes

GROWTH, SHRINKAGE = 1.3, 0.4  # factors of the step length after acceptance and rejection


@pytree
class Front:
    """Members of the front, and their next trial designs."""

    x: Array  # [N, D] designs, as fractions of the box
    f: Array  # [N, 2] their objectives
    trial: Array  # [N, D] designs to evaluate next
    slopes: Array  # [N, 2, D] gradients at x, scaled by the box and by the ranges of the objectives
    reach: Array  # [N] length of the next step, a fraction of the box


@pytree
class Polish:
    """Spec of the refinement; each `step` costs one episode with gradient per member."""

    lower: Array = number(unit="m")  # [D] lower corner of the box
    upper: Array = number(unit="m")  # [D] upper corner of the box
    objectives: Callable[[Array], Array] = static()
    reach: Array | float = number(default=0.08, above=0, one=True)  # [] initial step length

    def init(self, x: Array, f: Array) -> Front:
        """Return the initial state for members [N, D] with objectives [N, 2], without gradients."""
        shares = (x - self.lower[None]) / (self.upper - self.lower)[None]
        slopes = jnp.zeros((x.shape[0], 2, x.shape[1]), x.dtype)
        return Front(
            x=shares,
            f=f,
            trial=shares,
            slopes=slopes,
            reach=jnp.full(x.shape[0], self.reach, x.dtype),
        )

    def designs(self, front: Front) -> Array:
        """Return the members, [N, D] m."""
        return self.lower[None] + front.x * (self.upper - self.lower)[None]

    def step(self, front: Front) -> Front:
        """Evaluate the trials with their gradients, and accept or reject them."""
        width = self.upper - self.lower
        f, slopes = with_slopes(self.objectives, self.lower[None] + front.trial * width[None])
        slopes = slopes * width[None, None] / scale(f)[None, :, None]
        finite = jnp.all(jnp.isfinite(slopes), (1, 2)) & jnp.all(jnp.isfinite(f), 1)
        still = jnp.all(front.trial == front.x, 1)  # in the first step, with known objectives
        kept = finite & (still | jnp.all(f <= front.f, 1))
        pick = lambda new, old: jnp.where(kept.reshape(-1, *[1] * (new.ndim - 1)), new, old)
        x, slopes = pick(front.trial, front.x), pick(slopes, front.slopes)
        grown = jnp.where(still, 1.0, jnp.where(kept, GROWTH, SHRINKAGE))
        reach = front.reach * grown
        trial = jnp.clip(x + reach[:, None] * descent(x, slopes), 0, 1)
        return Front(x=x, f=pick(f, front.f), trial=trial, slopes=slopes, reach=reach)


def scale(f: Array) -> Array:
    """Return the ranges of the objectives, [2]."""
    return jnp.asarray(REFERENCE, f.dtype) - jnp.asarray(IDEAL, f.dtype)


def descent(x: Array, slopes: Array) -> Array:
    """Return unit directions [N, D] in which both objectives decrease, or 0 where there is none.

    The shortest vector a g_1 + (1 - a) g_2, of gradients projected to stay within the box.

    >>> descent(jnp.full((1, 2), 0.5), jnp.array([[[1.0, 0.0], [0.0, 1.0]]])).round(3).tolist()
    [[-0.7070000171661377, -0.7070000171661377]]
    """
    held = ((x <= 0)[:, None] & (slopes > 0)) | ((x >= 1)[:, None] & (slopes < 0))
    one, two = jnp.moveaxis(jnp.where(held, 0, slopes), 1, 0)
    apart = jnp.sum((one - two) ** 2, 1)
    share = jnp.sum((two - one) * two, 1) / jnp.where(apart > 0, apart, 1)
    share = jnp.clip(share, 0, 1)[:, None]
    down = -(share * one + (1 - share) * two)
    size = jnp.sqrt(jnp.sum(down**2, 1, keepdims=True))
    return down / jnp.where(size > 1e-6, size, jnp.inf)


def measure(front: Front) -> dict[str, Any]:
    """Return designs and objectives, recorded after each step."""
    return {"x": front.x, "f": front.f}
