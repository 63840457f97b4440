"""Conformance of the whole registry, and errors that the conformance rules must detect."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import registry
import steppers
from api_cases import check_attacks
from conformance import assert_compiles_once, check, check_state, no_compile


def walk():
    """Yield every entry of the registry with every rule that applies to it."""
    programs = [door for door in registry.CASES if door.is_program]
    hosts = [door for door in registry.CASES if door.host]
    # A call of an entry with `refusals` takes seconds.
    others = [d for d in registry.CASES if not (d.is_program or d.refusals)]
    others = [d for d in others if d.name not in registry.ONCE]
    leaders = lambda entries: [entry for entry in entries if not entry.alike]
    slow = registry.SLOW
    walks = [
        ("hostile input", check_attacks, registry.CASES),
        ("of the host", registry.assert_needs_host, hosts),
        ("run again", registry.check_rerun, others),
        ("traced", registry.check_trace, programs),
        ("run", registry.check_run, leaders(programs)),
        (
            "Python numbers",
            registry.check_dtypes,
            filter(registry.has_numbers_and_arrays, programs),
        ),
        ("traced", steppers.check_trace, steppers.STEPPERS),
        ("run", steppers.check_run, leaders(steppers.STEPPERS)),
    ]
    for name, rule, entries in walks:
        for entry in entries:
            machine = isinstance(entry, steppers.Stepper)
            long = (
                steppers.is_slow(entry.name, name) if machine else entry.name in slow.get(name, [])
            )
            marks = [pytest.mark.slow] if long else []
            yield pytest.param(rule, entry, id=f"{entry.name}: {name}", marks=marks)


@pytest.mark.parametrize("rule, entry", list(walk()))
def test_every_public_name_keeps_the_rules(rule, entry):
    rule(entry)


def well_made(w, x):
    return jnp.tanh(jnp.dot(w, x, precision="highest"))


W = jnp.linspace(-1, 1, 12, dtype=jnp.float32).reshape(3, 4)
X = jnp.linspace(0, 1, 4, dtype=jnp.float32)


def test_passes_a_well_made_function():
    check(well_made, W, X, differentiable=(0, 1), batched=(1,))


@pytest.mark.parametrize("path", ["plain", "in a scan", "in a branch"])
def test_catches_a_product_without_precision(path):
    def f(w, x):
        if path == "in a scan":
            return jax.lax.scan(lambda c, _: (w.T @ (w @ c), None), x, length=2)[0]
        if path == "in a branch":
            return jax.lax.cond(x[0] > 0, lambda: w @ x, lambda: 2 * w[:, 0])
        return w @ x

    with pytest.raises(AssertionError, match="no precision"):
        check(f, W, X)


def test_catches_a_callback():
    def f(x):
        jax.debug.callback(lambda: None)
        return x

    with pytest.raises(AssertionError, match="call back"):
        check(f, X)


def test_catches_a_float64_leak(x64):
    with pytest.raises(AssertionError, match="float64"):
        check(lambda x: (x.astype(jnp.float64) * 2).astype(jnp.float32), X)


def test_catches_a_gradient_that_is_not_finite():
    with pytest.raises(AssertionError, match="not finite"):
        check(lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0), X, differentiable=(0,))


def test_catches_what_does_not_lower_everywhere():
    with pytest.raises(NotImplementedError):
        check(jax.scipy.linalg.schur, jnp.eye(3, dtype=jnp.float32))


def test_catches_a_state_that_changes_its_type():
    weak = {"x": X, "best": jnp.asarray(np.inf)}
    with pytest.raises(AssertionError, match="changes the type"):
        check_state(lambda s: s | {"best": jnp.minimum(s["best"], jnp.min(s["x"]))}, weak)


def test_catches_a_batch_that_leaks_between_lanes():
    def normalised_by_position(x):
        return x / jnp.max(jax.lax.stop_gradient(x))

    wrong = jax.custom_batching.custom_vmap(normalised_by_position)
    wrong.def_vmap(lambda size, batched, x: (x / jnp.max(x), True))
    with pytest.raises(AssertionError):
        check(wrong, X, batched=(0,))


def test_no_compile_sees_a_compilation():
    assert_compiles_once(lambda x: x + 1, X)
    with pytest.raises(AssertionError, match="compiled"), no_compile():
        jax.jit(lambda x: x + 2)(X)
