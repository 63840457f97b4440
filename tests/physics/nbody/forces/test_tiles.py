"""The kernels of GPUs and TPUs: interpreted, against the sums of a CPU; and lowered for both."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.devices import kernels
from jaxgpu.physics.nbody.forces import hilo, pair_kernels, pair_sums, pairs, powers, snaps

# The terms of each sum: rows of targets and of sources, outputs.
SUMS = {
    "pull": (pairs._pull_terms, [6], [6, 1], 6),
    "change": (pairs._change_terms, [6, 6], [6, 1, 6, 1], 6),
    "gradient of points": (pairs._points_terms, [6, 6], [6, 1], 6),
    "gradient of sources": (pairs._sources_terms, [6, 1], [6, 6], 7),
    "snap": (snaps._pull_terms, [9], [9, 1], 9),
}


def bodies(rows, count, seed, near):
    """Make rows of `count` bodies, the last massless, the first two at positions of two targets."""
    random = np.random.default_rng(seed)
    groups = [random.normal(size=(n, count)) for n in rows]
    groups[0][:, :2] = near
    for group in groups[1:]:
        group[0, -1] = 0
    return groups


def case(name, counts, dtype, softening=0.0):
    """Return the arguments of a sum of [K, N] pairs, and its value on a CPU in float64."""
    terms, to, by, outputs = SUMS[name]
    k, n = counts
    near = np.random.default_rng(9).normal(size=(to[0], 2))  # two bodies are at two targets
    targets, sources = bodies(to, k, 0, near), bodies(by, n, 1, near)
    numbers = np.array([softening])
    cast = lambda group: [a.astype(dtype) for a in group]
    given = terms, outputs, cast(targets), cast(sources), numbers.astype(dtype)
    wide = [[np.asarray(a, np.float64) for a in group] for group in given[2:4]]
    want = jax.jit(partial(sum_terms, terms, outputs))(*wide, numbers)
    return given, np.asarray(want)


def sum_terms(terms, outputs, targets, sources, numbers):
    bind_terms = lambda t, s: terms(t, s, list(numbers), powers.inverse_powers)
    return pair_sums.sum_sources(bind_terms, targets, sources, outputs)


def run(kernel, given):
    return jax.jit(partial(kernel, *given[:2], interpret=True))(*given[2:])


def assert_close(got, want, eps):
    """Compare to some hundred roundings of a row's maximum: terms of close pairs cancel."""
    scale = np.abs(want).max(-1, keepdims=True)
    assert (np.abs(np.asarray(got, float) - want) < 300 * eps * scale).all()


# Cases that take an interpreter seconds.
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in SUMS if name != "pull"]
GPU = [
    ("pull", 0.0, "float32"),
    pytest.param("pull", 0.3, "float64", marks=pytest.mark.slow),
    pytest.param("snap", 0.0, "float64", marks=pytest.mark.slow),
    pytest.param("change", 0.0, "float64", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("name, softening, dtype", GPU)
def test_a_gpu_adds_what_a_cpu_adds(x64, name, softening, dtype):
    """Use two parts of the sources, neither a multiple of any block size."""
    given, want = case(name, (3, 66), dtype, softening)
    assert_close(run(pair_kernels.on_gpu, given), want, jnp.finfo(dtype).eps)


@pytest.mark.parametrize("name", ["pull", *SLOW])
@pytest.mark.parametrize("softening", [0.3])
def test_a_tpu_adds_what_a_cpu_adds(x64, name, softening):
    """Use more than one block of targets and of sources."""
    given, want = case(name, (300, 1100), jnp.float32, softening)
    assert_close(run(pair_kernels.on_tpu, given), want, 2.0**-23)


@pytest.mark.slow
@pytest.mark.parametrize("name", SUMS)
def test_pairs_of_float32_stand_for_float64(x64, name):
    """Test far from the origin, where plain float32 has lost every digit of a close pair."""
    given, _ = case(name, (130, 9), jnp.float64)
    terms, outputs, targets, sources, numbers = given
    for group in (targets, sources):
        group[0][:3] += 100
    sources[0][:, 2:5] = targets[0][:, 2:5] + 1e-4 * sources[0][:, 5:8]
    want = np.asarray(jax.jit(partial(sum_terms, terms, outputs))(targets, sources, numbers))
    apart = 9 if name == "snap" else 6
    got = run(partial(pair_kernels.sum_float64, pair_kernels.on_tpu, apart=apart), given)
    assert got.dtype == jnp.float64
    assert_close(got, want, 2.0**-23)


def test_a_pair_of_numbers_keeps_what_rounding_drops():
    """Add parts of a sum in pairs, 1 and 2^-30 alternately, exactly to the last bit."""
    parts = jnp.tile(jnp.array([1.0, 2.0**-30], jnp.float32), 4)[:, None, None]
    total = jax.jit(partial(pair_kernels._sum_parts, exact=True))(
        jnp.concatenate([parts, 0 * parts], 1)
    )
    assert float(total[0, 0, 0]) == 4 and float(total[1, 0, 0]) == 2.0**-28


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_program_holds_one_kernel_a_platform(x64, dtype):
    """Lower without any plugin, inside a program and differentiated, too."""
    shapes = [jax.ShapeDtypeStruct(shape, dtype) for shape in ((6, 62), (6, 1024), (1024,))]
    program = lambda *given: jnp.sin(jax.jvp(pairs.pull, given, given)[1])
    for f in (pairs.pull, program):
        traced = jax.jit(f).trace(*shapes)
        for platform, call in kernels.CALL_TARGETS.items():
            text = traced.lower(lowering_platforms=(platform,)).as_text()
            assert text.count(f"@{call}") == 1
    # With few targets, 32 programs have a share of the sources each.
    text = jax.jit(pairs.pull).trace(*shapes).lower(lowering_platforms=("cuda",)).as_text()
    assert f"tensor<32x6x128x{dtype.replace('loat', '')}>" in text


def test_an_older_gpu_keeps_the_form_without_kernels(monkeypatch):
    monkeypatch.setattr(kernels, "gpu_takes_kernels", lambda: False)
    shapes = [jax.ShapeDtypeStruct(shape, "float32") for shape in ((6, 5), (6, 7), (7,))]
    traced = jax.jit(lambda *given: pairs.pull(*given)).trace(*shapes)
    assert "custom_call" not in traced.lower(lowering_platforms=("cuda",)).as_text()


def test_one_exported_program_runs_here_and_is_batched():
    draw = lambda *shape: jnp.asarray(np.random.default_rng(0).normal(size=shape), jnp.float32)
    x, sources, m = draw(2, 3, 6, 4), draw(3, 6, 5), draw(5)
    f = jax.vmap(jax.vmap(pairs.pull, (0, 0, None)), (0, None, None))  # copies of some, not of all
    export = jax.export.export(
        jax.jit(f), platforms=("cpu", "cuda", "tpu"), disabled_checks=kernels.export_checks()
    )
    got, pull = export(x, sources, m).call(x, sources, m), jax.jit(pairs.pull)
    assert got.shape == (2, 3, 6, 4)
    for i, j in np.ndindex(2, 3):
        want = pull(x[i, j], sources[j], m)
        np.testing.assert_allclose(got[i, j], want, rtol=1e-5, atol=1e-5 * np.abs(want).max())


def test_hilo_has_a_kernel_too():
    shapes = [jax.ShapeDtypeStruct(shape, "float32") for shape in ((2, 6, 9), (2, 6, 70), (70,))]
    traced = jax.jit(hilo.pull).trace(*shapes)
    for platform, call in kernels.CALL_TARGETS.items():
        assert f"@{call}" in traced.lower(lowering_platforms=(platform,)).as_text()
