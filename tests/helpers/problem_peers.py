"""Reference values of other programs, and the points they belong to; see `make_peers.py`."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

VALUES = dict(np.load(Path(__file__).parents[1] / "evolution/problems/peers.npz"))


def points(problem, count=3):
    lower, upper = np.asarray(problem.box.lower, float), np.asarray(problem.box.upper, float)
    return lower + np.random.default_rng(0).random((count, len(lower))) * (upper - lower)


def assert_like_the_peer(problems, tolerance=1e-12):
    """Compare the values of {name: problem} with the peer's; the points also check the boxes.

    All problems share one program, which compiles in a fraction of the time.
    """
    x = {name: jnp.asarray(points(problem)) for name, problem in problems.items()}
    got = jax.jit(lambda x: {name: problems[name].evaluate(x[name]) for name in x})(x)
    for name, (f, violation) in got.items():
        want = VALUES[name]
        f = np.asarray(f) if want.shape == f.shape else np.column_stack([f, violation])
        np.testing.assert_allclose(f, want, rtol=tolerance, atol=tolerance, err_msg=name)
