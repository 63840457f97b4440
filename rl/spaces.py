"""What actions and observations may be."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.inputs.calls import when_known
from jaxgpu.inputs.fields import number, pytree, size, static


@pytree
class Box:
    """Real vectors between two bounds."""

    low: float = number(baked=True, infinite=True, one=True)  # least value of every component
    high: float = number(baked=True, infinite=True, one=True)  # largest value of every component
    shape: tuple[int, ...] = static()  # of a value

    def sample(self, key: Array) -> Array:
        """A uniformly random element."""
        return jax.random.uniform(key, self.shape, minval=self.low, maxval=self.high)

    def check(self, name: str, x: Any) -> None:
        """Raise unless `x` has the shape and, where its values are known, lies within the bounds.

        Raises:
            ValueError: another shape, a nan, or a value out of bounds.
        """
        if np.shape(x) != self.shape:
            raise ValueError(f"{name} has shape {np.shape(x)}; it must have shape {self.shape}")
        when_known(partial(self._refuse, name), x)

    def _refuse(self, name: str, x: Any) -> None:
        values = np.asarray(x)
        if np.any(np.isnan(values)):
            raise ValueError(f"{name} holds nan; give numbers within {self.low}, {self.high}")
        worst = values.flat[np.argmax(np.abs(values))] if values.size else 0.0
        if np.any((values < self.low) | (values > self.high)):
            raise ValueError(
                f"{name} holds {worst}; it must lie within {self.low}, {self.high}; clip it"
            )


@pytree
class Discrete:
    """The whole numbers 0 ... size - 1.

    >>> int(Discrete(3).sample(jax.random.key(0))) in (0, 1, 2)
    True
    """

    size: int = size(least=1)  # number of values, 0 ... size - 1

    @property
    def shape(self) -> tuple[int, ...]:
        """That of a number."""
        return ()

    def sample(self, key: Array) -> Array:
        """A uniformly random element."""
        return jax.random.randint(key, (), 0, self.size)

    def check(self, name: str, x: Any) -> None:
        """Raise unless `x` is one whole number and, where its value is known, one of them.

        Raises:
            ValueError: another shape, or not one of the numbers.
            TypeError: not of an integer type.
        """
        if np.shape(x) != ():
            raise ValueError(f"{name} has shape {np.shape(x)}; it must be one whole number")
        if not jnp.issubdtype(jnp.result_type(x), jnp.integer):
            raise TypeError(f"{name} is of type {jnp.result_type(x)}; it must be an integer")
        when_known(partial(self._refuse, name), x)

    def _refuse(self, name: str, x: Any) -> None:
        if not 0 <= int(x) < self.size:
            raise ValueError(f"{name} is {int(x)}; it must be one of 0 ... {self.size - 1}")


type Space = Box | Discrete


def real() -> jnp.dtype:
    """The type of real numbers: 64-bit ones where they are enabled, else 32-bit ones."""
    return jnp.zeros(()).dtype
