"""Spaces of actions and observations."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.inputs.calls import defer_check
from jaxgpu.inputs.fields import number, pytree, size, static


@pytree
class Box:
    """Real arrays between two bounds."""

    low: float = number(baked=True, infinite=True, one=True)  # lower bound of every component
    high: float = number(baked=True, infinite=True, one=True)  # upper bound of every component
    shape: tuple[int, ...] = static()  # shape of an element

    def sample(self, key: Array) -> Array:
        """Sample an element uniformly."""
        return jax.random.uniform(key, self.shape, minval=self.low, maxval=self.high)

    def check(self, name: str, x: Any) -> None:
        """Raise unless `x` has the shape and, where its values are known, is within the bounds.

        Raises:
            ValueError: if the shape differs, a value is NaN or a value is out of bounds.
        """
        if np.shape(x) != self.shape:
            raise ValueError(f"{name} has shape {np.shape(x)}; it must have shape {self.shape}")
        defer_check(partial(self._check_values, name), x)

    def _check_values(self, name: str, x: Any) -> None:
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
    """The integers 0 ... size - 1.

    >>> int(Discrete(3).sample(jax.random.key(0))) in (0, 1, 2)
    True
    """

    size: int = size(least=1)  # number of values, 0 ... size - 1

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of an element, a scalar."""
        return ()

    def sample(self, key: Array) -> Array:
        """Sample an element uniformly."""
        return jax.random.randint(key, (), 0, self.size)

    def check(self, name: str, x: Any) -> None:
        """Raise unless `x` is an integer scalar and, where its value is known, an element.

        Raises:
            ValueError: if the shape differs or the value is not an element.
            TypeError: if the type is not an integer type.
        """
        if np.shape(x) != ():
            raise ValueError(f"{name} has shape {np.shape(x)}; it must be one whole number")
        if not jnp.issubdtype(jnp.result_type(x), jnp.integer):
            raise TypeError(f"{name} is of type {jnp.result_type(x)}; it must be an integer")
        defer_check(partial(self._check_value, name), x)

    def _check_value(self, name: str, x: Any) -> None:
        if not 0 <= int(x) < self.size:
            raise ValueError(f"{name} is {int(x)}; it must be one of 0 ... {self.size - 1}")


type Space = Box | Discrete


def float_dtype() -> jnp.dtype:
    """Return the default float dtype: float64 where it is enabled, else float32."""
    return jnp.zeros(()).dtype
