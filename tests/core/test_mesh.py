"""Batches over eight virtual devices: the results are those of one device."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance import no_compile

from jaxgpu.devices import mesh, precision
from jaxgpu.inputs.fields import number, pytree
from jaxgpu.runs.loop import run


def step(x):
    return jnp.sin(x) + 0.5 * x


def test_a_split_batch_gives_the_same_bits_as_one_device():
    x = np.linspace(-3, 3, 64, dtype=np.float32).reshape(16, 4)
    one = run(step, x, 20)
    spread = mesh.shard(x, mesh.make_mesh(8))
    assert len(spread.sharding.device_set) == 8
    eight = run(step, spread, 20)
    assert len(eight.state.sharding.device_set) == 8
    np.testing.assert_array_equal(one.state, eight.state)


def test_a_split_run_resumes_split(tmp_path):
    x = mesh.shard(np.linspace(-3, 3, 16, dtype=np.float32), mesh.make_mesh(8))
    whole = run(step, x, 20)
    run(step, x, 12, out=tmp_path)
    rest = run(step, x, 20, out=tmp_path, resume=True)
    assert len(rest.state.sharding.device_set) == 8
    np.testing.assert_array_equal(whole.state, rest.state)


def test_replicas_are_on_every_device():
    tree = mesh.replicate({"m": jnp.ones(3)}, mesh.make_mesh(8))
    assert len(tree["m"].sharding.device_set) == 8


def test_any_axis_can_be_spread_and_explicit_meshes_work():
    explicit = jax.make_mesh((8,), ("lanes",))
    x = np.linspace(0, 3, 48, dtype=np.float32).reshape(3, 16)
    spread = mesh.shard(x, explicit, axis=-1)
    assert spread.sharding.shard_shape(x.shape) == (3, 2)
    np.testing.assert_array_equal(run(step, spread, 3).state, run(step, x, 3).state)


@pytest.mark.parametrize(
    "tree, axis, said",
    [
        (np.zeros((6, 2)), 0, r"shape \(6, 2\) over 8 devices; the length of axis 0 must be"),
        (np.zeros(()), 0, r"shape \(\) has no axis 0; put it on every device"),
        (np.zeros(8), 1, r"shape \(8,\) has no axis 1"),
        (
            {"x": np.zeros((8, 3)), "m": np.ones(16)},
            0,
            r"shapes \(16,\) and \(8, 3\); the sharded axis 0",
        ),
    ],
)
def test_what_cannot_be_spread_is_named(tree, axis, said):
    with pytest.raises(ValueError, match=said):
        mesh.shard(tree, mesh.make_mesh(8), axis)


def test_vectors_are_not_torn_apart():
    with pytest.raises(ValueError, match=r"first axis of .*\(6, 1000\) looks like vector comp"):
        mesh.shard(np.zeros((6, 1000)), mesh.make_mesh(2))
    seeds = mesh.shard(np.zeros((2, 1000)), mesh.make_mesh(2), axis=0)
    assert seeds.sharding.shard_shape(seeds.shape) == (1, 1000)


def test_meshes_of_the_wrong_kind_are_named():
    with pytest.raises(ValueError, match="there are 8"):
        mesh.make_mesh(9)
    with pytest.raises(ValueError, match="has the axes a, b; it must have one"):
        mesh.replicate(np.ones(3), jax.make_mesh((4, 2), ("a", "b")))
    with pytest.raises(TypeError, match="mesh.map_shards: axis=.*; it must be"):
        mesh.map_shards(lambda x: x, mesh.make_mesh(2), axis=np.array([0, 1]))
    assert mesh.make_mesh().size == len(jax.devices())


def halvings(x):
    """Count how often a number is halved until it is below 1, in a loop of its own length."""
    return jax.lax.while_loop(lambda c: c[0] >= 1, lambda c: (c[0] / 2, c[1] + 1), (x, 0))[1]


@pytest.mark.parametrize("spread, crosses", [(mesh.map_shards, False), (lambda f, mesh: f, True)])
def test_nothing_crosses_in_a_loop_over_shares(spread, crosses):
    """A loop over a batch that is only sharded synchronizes all devices in each iteration."""
    eight = mesh.make_mesh(8)
    x = np.float32(2) ** np.arange(16, dtype=np.float32)
    shares = mesh.shard(x, eight)
    program = jax.jit(spread(jax.vmap(halvings), eight)).lower(shares).compile()
    assert ("all-reduce" in program.as_text()) == crosses
    np.testing.assert_array_equal(program(shares), np.arange(1, 17))


def test_a_function_over_shares_takes_any_axis_pytrees_and_what_it_closes_over():
    eight = jax.make_mesh((8,), ("lanes",))
    x, y = np.arange(48.0, dtype=np.float32).reshape(3, 16), np.ones((2, 16), np.float32)

    def scaled_sums(by):
        f = lambda a, b: {"sum": by * (a.sum(0, keepdims=True) + b), "first": b}
        return mesh.map_shards(f, eight, axis=1)(x, y)

    two = jax.jit(scaled_sums)(2.0)
    np.testing.assert_array_equal(two["sum"], 2 * (x.sum(0, keepdims=True) + y))
    assert two["first"].sharding.shard_shape((2, 16)) == (2, 2)
    assert (
        jax.grad(lambda by: scaled_sums(by)["first"].sum() + scaled_sums(by)["sum"].sum())(1.0)
        == 2288
    )


@pytree
class Decay:
    rate: jax.Array | float = number()

    @precision.allow_reassociation
    def step(self, x):
        return x - self.rate * x


def test_a_step_over_shares_runs_resumes_and_is_compiled_once(tmp_path):
    eight, x = mesh.make_mesh(8), np.linspace(1, 2, 16, dtype=np.float32)
    shares, step = mesh.shard(x, eight), lambda rate: mesh.map_shards(Decay(rate).step, eight)
    whole = run(step(0.25), shares, 20)
    end = run(Decay(0.25).step, x, 19).state  # on one device
    np.testing.assert_array_equal(whole.state, step(0.25)(end))
    np.testing.assert_array_equal(whole.state, run(Decay(0.25).step, x, 20).state)
    with no_compile():
        other = run(step(0.5), shares, 20)
    assert other.state.sharding.shard_shape((16,)) == (2,) and other.state[0] == 0.5**20
    run(step(0.25), shares, 12, out=tmp_path)
    rest = run(step(0.25), shares, 20, out=tmp_path, resume=True)
    np.testing.assert_array_equal(whole.state, rest.state)


def test_what_has_no_shares_is_named():
    f = mesh.map_shards(jax.vmap(jnp.sin), mesh.make_mesh(8))
    with pytest.raises(
        ValueError, match=r"mesh.map_shards: an array of shape \(12,\) over 8 devices; the length"
    ):
        f(np.zeros(12))
    with pytest.raises(ValueError, match=r"shape \(\) has no axis 0; let the function close over"):
        f(np.zeros(()))
    with pytest.raises(TypeError, match="mesh.map_shards: mesh=8; it must be a mesh"):
        mesh.map_shards(jnp.sin, 8)
