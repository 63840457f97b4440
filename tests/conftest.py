"""Strict JAX for every test: shapes never promote in silence, and neither do dtypes."""

import sys

import jax
import pytest

# from the repository root a bare `import physics` would make a second copy of every class
for _name in ("physics", "numerics", "rl"):
    sys.modules[_name] = None

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_legacy_prng_key", "error")
jax.config.update("jax_num_cpu_devices", 8)


@pytest.fixture
def x64():
    """Run a test with float64 as the default dtype."""
    with jax.enable_x64(True):
        yield
