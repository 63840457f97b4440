"""Which way an array of bodies lies, said where its shape cannot tell.

Massive bodies of a planetary system are rows, [N, 3]; orbits and swarms have components first,
[3, N]; so have clusters, [6, N]. A door takes the one it names and refuses another shape. The shape
of three bodies, [3, 3], is both, and so is that of six stars, [6, 6]: there one says which it is,
by `Rows(x)` or `Columns(x)`. Every door takes both of them, for any number of bodies.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.pytree import pytree

from . import bodies


@pytree
class Rows:
    """Bodies that are rows: components come last.

    >>> sun_mars_jupiter = jnp.zeros((3, 3)).at[1, 0].set(1.5).at[2, 0].set(5.0)  # a row a body
    >>> columns("drift: x", Rows(sun_mars_jupiter))[0].round(1).tolist()
    [0.0, 1.5, 5.0]
    """

    values: Any  # [..., 3] of each body its components; [..., 6] with velocities


@pytree
class Columns:
    """Bodies that are columns: components come first."""

    values: Any  # [3, ...] of each component all bodies; [6, ...] with velocities


def columns(name: str, given: Any, *sizes: int) -> Array:
    """An array with components first [3, ...] or [6, ...], where a door takes that.

    Args:
        name: of function and argument, "drift: x", which begins the sentence of a refusal.
        given: such an array or list, or one in `Rows` or `Columns`.
        sizes: 3, which is the default, or 6 for positions over velocities, or both.

    Raises:
        ValueError: another shape, a shape that can be read both ways, a number that is not finite.
        TypeError: no numbers.

    An array that is being traced has no values yet and is held against its first axis alone.
    """
    return _laid(name, given, sizes or (3,), Columns)


def rows(name: str, given: Any, size: int = 3, batch: int = 0) -> Array:
    """An array with bodies as rows [..., size], where a door takes that; else as `columns`.

    `batch` axes lead in both layouts: [M, N, 3] or [M, 3, N] for one of them.
    """
    return _laid(name, given, (size,), Rows, batch)


def like(given: Any, result: Array) -> Array:
    """A result with components first [3, ...], laid as the argument of a door was given.

    >>> like(Rows(jnp.zeros((4, 3))), jnp.zeros((3, 4))).shape
    (4, 3)
    """
    return jnp.moveaxis(result, 0, -1) if isinstance(given, Rows) else result


def _laid(name: str, given: Any, sizes: tuple[int, ...], door: type, batch: int = 0) -> Array:
    told = isinstance(given, Rows | Columns)
    lies = type(given) if told else door
    value = given.values if told else given
    value = bodies.numbers(name, value)
    ends = (value.shape[batch], value.shape[-1]) if value.ndim > batch else (0, 0)
    lead = "M, " * batch
    shape = {
        Rows: " or ".join(f"[{lead}N, {size}]" for size in sizes),
        Columns: " or ".join(f"[{lead}{size}, N]" for size in sizes),
    }
    if ends[0 if lies is Columns else 1] not in sizes:
        other = Rows if lies is Columns else Columns
        raise ValueError(
            f"{name} has shape {list(value.shape)}; it must be {shape[lies]}; say "
            f"layout.{other.__name__}(...) of an array that lies as {shape[other]}"
        )
    seen = not (told or isinstance(value, jax.core.Tracer))
    if seen and value.ndim > batch + 1 and all(end in sizes for end in ends):
        raise ValueError(
            f"{name} has shape {list(value.shape)}, which can be read both ways; say "
            f"layout.Rows(...) where bodies are rows {shape[Rows]}, or layout.Columns(...) where "
            f"components come first {shape[Columns]}"
        )
    if lies is door:
        return value
    return jnp.moveaxis(value, batch, -1) if door is Rows else jnp.moveaxis(value, -1, batch)
