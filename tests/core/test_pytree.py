"""States and specs: frozen, registered, with numbers as leaves."""

import dataclasses

import jax
import jax.numpy as jnp
import pytest

from jaxgpu.inputs.fields import pytree, static


@pytree
class Spring:
    stiffness: object
    rest: object = 1.0
    count: int = static(default=3)


def test_numbers_are_leaves_and_sizes_are_not():
    assert jax.tree.leaves(Spring(2.0)) == [2.0, 1.0]
    assert jax.tree.structure(Spring(2.0)) != jax.tree.structure(Spring(2.0, count=4))


def test_vmap_runs_over_a_hyper_parameter():
    springs = Spring(jnp.arange(4.0), jnp.ones(4))
    force = jax.vmap(lambda s: s.stiffness * (s.count - s.rest))(springs)
    assert force.tolist() == [0, 2, 4, 6]


def test_is_frozen_and_replaced_by_a_copy():
    spring = Spring(2.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        spring.stiffness = 3.0
    assert dataclasses.replace(spring, stiffness=3.0).rest == 1.0


def test_methods_of_our_classes_name_the_argument_that_is_wrong():
    class Walk:
        def distance(self, steps: int) -> int:
            """Return the distance."""
            return 2**steps

    Walk.__module__ = "jaxgpu.walks"
    walk = pytree(Walk)()
    assert walk.distance(3) == 8
    with pytest.raises(TypeError, match="Walk.distance: steps='far'; it must be a whole number"):
        walk.distance("far")
