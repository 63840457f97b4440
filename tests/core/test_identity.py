"""Digests of programs: equal for equal programs in any process, different otherwise."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.runs.saving import identity

ROOT = Path(__file__).parents[2]
PRINT = """
import jax, jax.numpy as jnp, numpy as np
from jaxgpu import rl
from jaxgpu.runs.saving import identity
from jaxgpu.evolution import multi, protocol
from jaxgpu.evolution.problems import dtlz
spec, problem = multi.NSGA2(pop_size=8), dtlz.dtlz2(3, 5)
key = jax.random.key(0)
state = jax.eval_shape(lambda key: spec.init(key, problem), key)
step = lambda state, key: protocol.step(spec, problem, state, key)
print(identity.program_digest(jax.make_jaxpr(step)(state, key)))
env, learner = rl.make("pendulum"), rl.PPO(num_envs=2, num_steps=4, num_minibatches=1)
state = jax.eval_shape(lambda key: learner.init(env, key, 2), key)
print(identity.program_digest(jax.make_jaxpr(lambda s, k: learner.update(env, s, k))(state, key)))
"""


def digest(f, *arguments):
    return identity.program_digest(jax.make_jaxpr(f)(*arguments))


@pytest.mark.slow
def test_processes_agree_whatever_the_order_of_their_sets():
    def print_seeded(seed):
        env = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-c", PRINT]
        return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout

    one = print_seeded("1")
    assert one == print_seeded("2") and len(one) == 2 * 65


def test_names_and_lines_do_not_count_but_every_number_does():
    def original_loop(x):
        return jax.lax.fori_loop(0, 3, lambda i, y: y * 1.5 + jnp.asarray([1.0, 2.0]), x)

    def second(z):
        """Another name, the same operations."""
        return jax.lax.fori_loop(0, 3, lambda i, w: w * 1.5 + jnp.asarray([1.0, 2.0]), z)

    x, seen = jnp.ones(2), {digest(original_loop, jnp.ones(2))}
    assert digest(second, x) in seen
    assert digest(jax.jit(original_loop), x) == digest(jax.jit(second), x)
    others = [
        lambda x: jax.lax.fori_loop(0, 3, lambda i, y: y * 1.5 + jnp.asarray([1.0, 2.5]), x),
        lambda x: jax.lax.fori_loop(0, 3, lambda i, y: y * 1.25 + jnp.asarray([1.0, 2.0]), x),
        lambda x: jax.lax.fori_loop(0, 4, lambda i, y: y * 1.5 + jnp.asarray([1.0, 2.0]), x),
        lambda x: jax.lax.fori_loop(0, 3, lambda i, y: y * 1.5 - jnp.asarray([1.0, 2.0]), x),
        jax.jit(lambda x: x * np.float32(1 + 1e-7)),
        jax.jit(lambda x: x * np.float32(1)),
        lambda x: jax.lax.cond(x[0] > 0, lambda y: y, lambda y: -y, x),
        lambda x: jax.lax.cond(x[0] > 0, lambda y: -y, lambda y: y, x),
    ]
    for f in others:
        seen.add(digest(f, x))
    seen |= {digest(jnp.sin, x), digest(jnp.sin, x.astype(jnp.float16))}
    assert len(seen) == len(others) + 3


def test_arrays_differ_by_name_dtype_shape_and_bits():
    trees = [{"a": 1.0}, {"b": 1.0}, {"a": np.float32(1)}, {"a": np.ones(1)}, {"a": -0.0}]
    trees += [{"a": 0.0}, jax.random.key(0), jax.random.key(0, impl="rbg")]
    assert len({identity.arrays_digest(tree) for tree in trees}) == len(trees)
    assert identity.arrays_digest({"a": np.nan}) == identity.arrays_digest({"a": np.nan})
