"""Networks of the learners: actor and critic, and distributions over actions.

`encoders` has the networks that turn images into features. Every matrix product requests full
precision, so that scores do not depend on the device's default.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from .. import collectives
from ..spaces import Box, Space


class MLP(nn.Module):
    """Multilayer perceptron with orthogonal initialization and optional LayerNorm.

    The gain of the last layer is `scale`. A tree of vectors is concatenated. As the `network` of a
    learner it has no `outputs`, and its last hidden layer gives the features.

    >>> from jaxgpu import rl
    >>> wide = rl.PPO(network=rl.MLP(hidden_sizes=(256, 256), activation=nn.relu), hidden_sizes=())
    >>> x = {"joints": jnp.ones((5, 7)), "goal": jnp.ones((5, 3))}
    >>> net = rl.MLP(hidden_sizes=(8,))
    >>> jax.eval_shape(net.init_with_output, jax.random.key(0), x)[0].shape
    (5, 8)
    """

    outputs: int | None = None  # units of the output layer; None omits that layer
    hidden_sizes: Sequence[int] = (64, 64)  # units of each hidden layer
    scale: float = 1.0  # gain of the last layer's orthogonal initialization
    activation: Callable[[Array], Array] = nn.tanh  # after each hidden layer
    layer_norm: bool = False  # LayerNorm before each activation
    encoder: nn.Module | None = None  # maps the input to features first

    @nn.compact
    def __call__(self, x: Any) -> Array:
        """Map [..., inputs], or a tree of such vectors, to [..., outputs]."""
        x = concat_vectors(x) if self.encoder is None else self.encoder(x)
        for width in self.hidden_sizes:
            x = self._dense(width, 2**0.5)(x)
            x = self.activation(nn.LayerNorm()(x) if self.layer_norm else x)
        return x if self.outputs is None else self._dense(self.outputs, self.scale)(x)

    def _dense(self, width: int, scale: float) -> nn.Dense:
        start = nn.initializers.orthogonal(scale)
        return nn.Dense(width, kernel_init=start, dot_general=_matmul)


def _matmul(x: Array, kernel: Array, *_: Any, **__: Any) -> Array:
    """Multiply [..., K] by [K, N] for flax, column by column if N is small.

    On a CPU, the derivative of a tall and narrow kernel is a product that takes five times as long
    as those of its columns (jax 0.12, 64 times 2).
    """
    multiply = lambda kernel: jnp.matmul(x, kernel, precision="highest")
    if kernel.shape[1] > 4:
        return multiply(kernel)
    return jnp.stack([multiply(kernel[:, i]) for i in range(kernel.shape[1])], -1)


def as_float(x: Any) -> Array:
    """Convert `x` to floating point; uint8 is divided by 255, other integers are cast.

    >>> as_float(jnp.uint8(255)), as_float(jnp.int32(3))
    (Array(1., dtype=float32), Array(3., dtype=float32))
    """
    x = jnp.asarray(x)
    if jnp.issubdtype(x.dtype, jnp.inexact):
        return x
    return x.astype(jnp.float32) / (255 if x.dtype == jnp.uint8 else 1)


def concat_vectors(x: Any) -> Array:
    """Concatenate all vectors [..., N] of a tree; a single array is returned unchanged."""
    leaves = [as_float(leaf) for leaf in jax.tree.leaves(x)]
    if len(leaves) == 1:
        return leaves[0]
    dtype = functools.reduce(jnp.promote_types, (leaf.dtype for leaf in leaves))
    return jnp.concatenate([leaf.astype(dtype) for leaf in leaves], -1)


class Normal(NamedTuple):
    """Independent normal distributions (diagonal covariance)."""

    mean: Array  # [..., A]
    log_std: Array  # [..., A]

    def sample(self, key: Array) -> Array:
        """Sample actions; they are clipped to the bounds before they reach an environment."""
        return self.from_noise(jax.random.normal(key, self.mean.shape))

    def from_noise(self, noise: Array) -> Array:
        """Return actions from standard normal `noise` [..., A]."""
        return self.mean + jnp.exp(self.log_std) * noise.astype(self.mean.dtype)

    def mode(self) -> Array:
        """Return the most likely actions."""
        return self.mean

    def log_prob(self, action: Array) -> Array:
        """Return the log density, [...]."""
        z = (action - self.mean) * jnp.exp(-self.log_std)
        return jnp.sum(-0.5 * z * z - self.log_std - 0.5 * jnp.log(2 * jnp.pi), -1)

    def entropy(self) -> Array:
        """Return the entropy in nats, [...]."""
        return jnp.sum(self.log_std + 0.5 * jnp.log(2 * jnp.pi * jnp.e), -1)


class TanhNormal(NamedTuple):
    """Tanh of independent normal distributions: actions in -1 ... 1."""

    mean: Array  # [..., A] before the tanh
    log_std: Array  # [..., A]

    def from_noise(self, noise: Array) -> tuple[Array, Array]:
        """Return actions and their log densities [...] from standard normal `noise` [..., A].

        Both are differentiable.
        """
        u = Normal(self.mean, self.log_std).from_noise(noise)
        return jnp.tanh(u), self.log_prob(u)

    def mode(self) -> Array:
        """Return the tanh of the means."""
        return jnp.tanh(self.mean)

    def log_prob(self, u: Array) -> Array:
        """Return the log density of the actions tanh(u), [...]."""
        # this is log(1 - tanh(u)^2), which directly gives -inf where tanh rounds to one
        shrink = 2 * (jnp.log(2.0) - u - jax.nn.softplus(-2 * u))
        return Normal(self.mean, self.log_std).log_prob(u) - jnp.sum(shrink, -1)


class Categorical(NamedTuple):
    """Categorical distribution over A actions."""

    logits: Array  # [..., A]

    def sample(self, key: Array) -> Array:
        """Sample actions."""
        return self.from_noise(jax.random.gumbel(key, self.logits.shape, self.logits.dtype))

    def from_noise(self, noise: Array) -> Array:
        """Return actions from Gumbel `noise` [..., A]."""
        return jnp.argmax(self.logits + noise.astype(self.logits.dtype), -1)

    def mode(self) -> Array:
        """Return the most likely actions."""
        return jnp.argmax(self.logits, -1)

    def log_prob(self, action: Array) -> Array:
        """Return the log probability, [...]."""
        total: Any = sum(jnp.where(action == i, x, 0.0) for i, x in enumerate(self._log_probs()))
        return total

    def entropy(self) -> Array:
        """Return the entropy in nats, [...]."""
        total: Any = sum(jnp.exp(x) * x for x in self._log_probs())
        return -total

    def _log_probs(self) -> list[Array]:
        """Return the log probabilities as A arrays [...]: wide arrays instead of short rows."""
        each = jnp.unstack(self.logits, axis=-1)
        whole = functools.reduce(jnp.logaddexp, each)
        return [x - whole for x in each]


class ActorCritic(nn.Module):
    """Separate actor and critic networks; the log standard deviation is a parameter."""

    space: Space  # action space
    hidden_sizes: Sequence[int] = (64, 64)  # units of each hidden layer, in both networks
    log_std: float = -0.5  # initial log standard deviation of continuous actions
    actor_encoder: nn.Module | None = None  # maps observations to features first
    critic_encoder: nn.Module | None = None  # the same for the critic, with separate weights

    def setup(self) -> None:
        """Create both networks."""
        self.count = self.space.shape[0] if isinstance(self.space, Box) else self.space.size
        self.actor = MLP(self.count, self.hidden_sizes, 0.01, encoder=self.actor_encoder)
        self.critic = MLP(1, self.hidden_sizes, 1.0, encoder=self.critic_encoder)
        if isinstance(self.space, Box):
            start = nn.initializers.constant(self.log_std)
            self.spread = self.param("spread", start, (self.count,), jnp.float32)

    def __call__(self, x: Any) -> tuple[Normal | Categorical, Array]:
        """Return the action distribution and the values [...] for observations [..., O]."""
        return self.act(x), self.value(x)

    def act(self, x: Any) -> Normal | Categorical:
        """Return the action distribution."""
        out = self.actor(x)
        if isinstance(self.space, Box):
            lead = (1,) * (out.ndim - 1)
            return Normal(out, jnp.broadcast_to(self.spread.reshape(*lead, -1), out.shape))
        return Categorical(out)

    def value(self, x: Any) -> Array:
        """Return the values."""
        return self.critic(x)[..., 0]


def with_log_std(params: Any, log_std: Array | float) -> Any:
    """Set the log standard deviation of continuous actions in the parameters of an `ActorCritic`.

    Its parameters may be nested in those of another network.

    >>> with_log_std({"heads": {"spread": jnp.zeros(2), "bias": jnp.zeros(1)}}, -2.0)["heads"]
    {'bias': Array([0.], dtype=float32), 'spread': Array([-2., -2.], dtype=float32)}
    """

    def set_log_std(at: Any, x: Array) -> Array:
        return jnp.full_like(x, log_std) if at[-1].key == "spread" else x

    return jax.tree.map_with_path(set_log_std, params)


def sample_noise(space: Space, key: Array, size: int, axis: str | None = None) -> Array:
    """Sample the noise [size, A] from which `from_noise` makes `size` actions of an `ActorCritic`.

    With the `axis` of a mesh, return this device's rows.
    """
    if isinstance(space, Box):
        return collectives.local_rows(jax.random.normal(key, (size, *space.shape)), axis)
    return collectives.local_rows(jax.random.gumbel(key, (size, space.size)), axis)


def clip_action(space: Space, action: Array) -> Any:
    """Clip continuous actions to the bounds of `space`; discrete actions are unchanged."""
    return jnp.clip(action, space.low, space.high) if isinstance(space, Box) else action


def rescale_action(space: Space, action: Array) -> Any:
    """Rescale actions from -1 ... 1 to the bounds of a continuous `space`."""
    bounds: Any = space
    return bounds.low + (bounds.high - bounds.low) * (action + 1) / 2
