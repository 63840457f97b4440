"""Cost of the hot kernels by XLA's own counts, which are the same on every run."""

import json

import jax
import jax.numpy as jnp
import kernel_cost as cost
import pytest


@pytest.mark.parametrize("name", cost.KERNELS)
def test_a_hot_kernel_costs_what_was_recorded(name):
    held = json.loads(cost.FILE.read_text())
    now = cost.cost(cost.KERNELS[name])
    assert now["flops"] > 0 and now["bytes"] > 0
    # The counts depend on the compiler: another version of jax has its own section or is not
    # compared.
    for what, was in held.get(jax.__version__, {}).get(name, now).items():
        assert now[what] <= 1.02 * was + 64, f"{name}: {what} {was:.6g} -> {now[what]:.6g}"


def test_the_record_is_of_these_kernels():
    held = json.loads(cost.FILE.read_text())
    assert all(section.keys() == cost.KERNELS.keys() for section in held.values())


def test_the_counts_follow_the_work():
    small, large = (
        cost.cost(lambda n=n: (lambda x: jnp.sin(x) * x, (jnp.zeros(n),))) for n in (10_000, 40_000)
    )
    assert large["bytes"] == pytest.approx(4 * small["bytes"], rel=0.01)
