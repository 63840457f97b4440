"""Networks for images against convolutions in SciPy, and the inputs of each part of a learner."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.signal
from rl_probe import waves

from jaxgpu import rl
from jaxgpu.rl.learners.encoders import make_encoder
from jaxgpu.rl.learners.networks import ActorCritic


def convolve(x, weights, stride=1):
    """Convolve an image [H, W, C], zero-padded so that H / stride rows remain (rounded up)."""
    kernel, bias = np.asarray(weights["kernel"], float), np.asarray(weights["bias"], float)
    side, rows = kernel.shape[0], -(-x.shape[0] // stride)
    short = max((rows - 1) * stride + side - x.shape[0], 0)
    padded = np.pad(x, [(short // 2, short - short // 2)] * 2 + [(0, 0)])
    out = np.zeros((padded.shape[0] - side + 1,) * 2 + (kernel.shape[3],))
    for i in range(kernel.shape[2]):
        for o in range(kernel.shape[3]):
            out[..., o] += scipy.signal.correlate2d(padded[..., i], kernel[..., i, o], "valid")
    return out[::stride, ::stride] + bias


def test_convolutions_of_pictures_are_those_of_scipy():
    """Two convolutions have an even and an odd kernel; bytes are over 255, a vector follows."""
    cnn = rl.CNN(features=(2, 3), kernel_sizes=(4, 3), strides=(2, 1))
    rng = np.random.default_rng(0)
    x = {
        "eye": rng.integers(0, 256, (2, 7, 7, 2), dtype=np.uint8),
        "joints": rng.normal(size=(2, 3)).astype(np.float32),
    }
    shapes = jax.eval_shape(cnn.init, jax.random.key(0), x)
    params = waves(shapes, 0.3)
    found = jax.jit(cnn.apply)(params, x)
    layers = params["params"]
    for seen, row, joints in zip(x["eye"] / 255, np.asarray(found), x["joints"], strict=True):
        inner = np.maximum(convolve(seen, layers["Conv_0"], 2), 0)
        out = np.maximum(convolve(inner, layers["Conv_1"]), 0)
        np.testing.assert_allclose(row, np.append(out.ravel(), joints), rtol=2e-5, atol=2e-5)


def test_residual_blocks_are_those_of_scipy():
    """One block has 4 channels, normalized in 2 groups, after pooling every second pixel."""
    net, groups = rl.ResNet(features=(4,), blocks=1, groups=2), 2
    x = np.random.default_rng(1).normal(size=(2, 6, 6, 1)).astype(np.float32)
    params = waves(jax.eval_shape(net.init, jax.random.key(0), x), 0.7)
    found, layers = jax.jit(net.apply)(params, x), params["params"]

    def normal(a, weights):
        b = a.reshape(*a.shape[:2], groups, -1)
        b = (b - b.mean((0, 1, 3), keepdims=True)) / np.sqrt(b.var((0, 1, 3), keepdims=True) + 1e-6)
        return np.maximum(b.reshape(a.shape) * weights["scale"] + weights["bias"], 0)

    for seen, row in zip(x.astype(float), np.asarray(found), strict=True):
        a = convolve(seen, layers["Conv_0"])
        a = np.pad(a, [(0, 1), (0, 1), (0, 0)], constant_values=-np.inf)
        a = np.array([[a[i : i + 3, j : j + 3].max((0, 1)) for j in (0, 2, 4)] for i in (0, 2, 4)])
        inner = convolve(normal(a, layers["GroupNorm_0"]), layers["Conv_1"])
        out = a + convolve(normal(inner, layers["GroupNorm_1"]), layers["Conv_2"])
        # The sums have about 40 products of float32, and normalization enlarges their rounding.
        np.testing.assert_allclose(row, np.maximum(out, 0).ravel(), rtol=1e-4, atol=1e-4)


@pytest.fixture(scope="module")
def pair():
    """Return an actor that sees `eye` and `arm` and a critic that sees `arm` and `goal`."""
    space = {
        "arm": rl.Box(-1.0, 1.0, (2,)),
        "eye": rl.Box(0.0, 1.0, (4, 4, 1)),
        "goal": rl.Box(-1.0, 1.0, (3,)),
    }
    cnn = rl.CNN((2,), (3,), (2,))
    network = ActorCritic(
        rl.Box(-1.0, 1.0, (2,)),
        (4,),
        actor_encoder=make_encoder(cnn, space, ("eye", "arm")),
        critic_encoder=make_encoder(cnn, space, ("arm", "goal")),
    )
    x = jax.tree.map(
        lambda box: jnp.ones((3, 2, *box.shape)), space, is_leaf=lambda s: isinstance(s, rl.Box)
    )
    return network, waves(jax.eval_shape(network.init, jax.random.key(0), x), 0.1), x


def test_the_critic_sees_what_the_actor_does_not(pair):
    network, params, x = pair
    value = lambda x: jnp.sum(network.apply(params, x, method=ActorCritic.value))
    mean = lambda x: jnp.sum(network.apply(params, x, method=ActorCritic.act).mean)
    moved = {
        name: {key for key, slope in jax.jit(jax.grad(f))(x).items() if jnp.any(slope != 0)}
        for name, f in (("critic", value), ("actor", mean))
    }
    assert moved == {"critic": {"arm", "goal"}, "actor": {"arm", "eye"}}


def test_leading_axes_are_kept_and_every_row_is_alone(pair):
    network, params, x = pair
    x = jax.tree.map(lambda a: a * jnp.arange(6.0).reshape(3, 2, *(1,) * (a.ndim - 2)) / 6, x)
    rows = jax.tree.map(lambda a: a.reshape(6, *a.shape[2:]), x)
    apply = jax.jit(lambda x: network.apply(params, x))
    choice, value = apply(x)
    assert choice.mean.shape == (3, 2, 2) and value.shape == (3, 2)
    alone = [apply(jax.tree.map(lambda a, i=i: a[i], rows))[1] for i in range(6)]
    np.testing.assert_allclose(value.ravel(), alone, rtol=1e-5, atol=1e-6)
    assert len(set(np.asarray(value).ravel().tolist())) == 6


def test_a_critics_picture_costs_the_actor_nothing(pair):
    """Each has its own encoder, and this critic needs no weights for an image."""
    assert set(pair[1]["params"]) == {"actor", "actor_encoder", "critic", "spread"}
