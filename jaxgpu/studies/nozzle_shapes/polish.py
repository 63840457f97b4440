"""Every member of a front led by its own gradients to where neither objective can get better.

The step goes against the shortest vector in the hull of the two objectives' gradients, which makes
both less wherever that can be (multiple-gradient descent: Desideri 2012,
doi:10.1016/j.crma.2012.03.014; Fliege & Svaiter 2000, doi:10.1007/s001860000043). Its length is
fixed by a trust region: a step that makes either objective worse is taken back, and the next is
half as long.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import number, pytree, static

from .nozzle import IDEAL, REFERENCE, with_slopes

GROWTH, SHRINKAGE = 1.3, 0.4  # of the length of a step that was kept, or taken back


@pytree
class Front:
    """Where the members are, and what each tries next."""

    x: Array  # [N, D] designs, shares of the box
    f: Array  # [N, 2] their objectives
    trial: Array  # [N, D] designs that are evaluated next
    slopes: Array  # [N, 2, D] of the objectives at x, in shares of their ranges
    reach: Array  # [N] length of the next step, a share of the box


@pytree
class Polish:
    """What to run: `init` takes the members of a population, and every `step` costs a gradient."""

    lower: Array = number(unit="m")  # [D] of the box
    upper: Array = number(unit="m")  # [D]
    objectives: Callable[[Array], Array] = static()
    reach: Array | float = number(default=0.08, above=0, one=True)  # [] of the first step

    def init(self, x: Array, f: Array) -> Front:
        """Members [N, D] of these objectives [N, 2]; the first step takes their gradients."""
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
        """The members, [N, D] m."""
        return self.lower[None] + front.x * (self.upper - self.lower)[None]

    def step(self, front: Front) -> Front:
        """The front after the trials have been evaluated, each with its gradient."""
        width = self.upper - self.lower
        f, slopes = with_slopes(self.objectives, self.lower[None] + front.trial * width[None])
        slopes = slopes * width[None, None] / scale(f)[None, :, None]
        finite = jnp.all(jnp.isfinite(slopes), (1, 2)) & jnp.all(jnp.isfinite(f), 1)
        still = jnp.all(front.trial == front.x, 1)  # of the first step: objectives are known
        kept = finite & (still | jnp.all(f <= front.f, 1))
        pick = lambda new, old: jnp.where(kept.reshape(-1, *[1] * (new.ndim - 1)), new, old)
        x, slopes = pick(front.trial, front.x), pick(slopes, front.slopes)
        grown = jnp.where(still, 1.0, jnp.where(kept, GROWTH, SHRINKAGE))
        reach = front.reach * grown
        trial = jnp.clip(x + reach[:, None] * descent(x, slopes), 0, 1)
        return Front(x=x, f=pick(f, front.f), trial=trial, slopes=slopes, reach=reach)


def scale(f: Array) -> Array:
    """The ranges of the objectives, [2]."""
    return jnp.asarray(REFERENCE, f.dtype) - jnp.asarray(IDEAL, f.dtype)


def descent(x: Array, slopes: Array) -> Array:
    """Directions of length one, [N, D], along which both objectives fall; 0 where none does.

    The shortest vector a g_1 + (1 - a) g_2, of gradients that do not lead out of the box.

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
    """Designs and objectives, to be kept after each step."""
    return {"x": front.x, "f": front.f}
