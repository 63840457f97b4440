"""The networks of the learners: an actor and a critic, and distributions over actions.

What turns pictures into features stands in `encoders`.

Every product states full precision, so that scores do not change with the device's default.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from .. import shares
from ..spaces import Box, Space


class MLP(nn.Module):
    """Layers of the widths `hidden_sizes`, then one of `outputs` numbers.

    Weights start orthogonal, the last layer's times `scale`. Of several vectors their numbers are
    taken together. As the `network` of a learner it has no `outputs`: its last hidden layer are
    the features that the learner goes on with.

    >>> from jaxgpu import rl
    >>> wide = rl.PPO(network=rl.MLP(hidden_sizes=(256, 256), activation=nn.relu), hidden_sizes=())
    >>> x = {"joints": jnp.ones((5, 7)), "goal": jnp.ones((5, 3))}
    >>> net = rl.MLP(hidden_sizes=(8,))
    >>> jax.eval_shape(net.init_with_output, jax.random.key(0), x)[0].shape
    (5, 8)
    """

    outputs: int | None = None  # numbers that come out; None leaves the last layer out
    hidden_sizes: Sequence[int] = (64, 64)  # units of each hidden layer
    scale: float = 1.0  # gain of the last layer's orthogonal start
    activation: Callable[[Array], Array] = nn.tanh  # after each hidden layer
    layer_norm: bool = False  # LayerNorm before each activation
    encoder: nn.Module | None = None  # what turns the input into features first

    @nn.compact
    def __call__(self, x: Any) -> Array:
        """[..., inputs], or a tree of such vectors, to [..., outputs]."""
        x = joined(x) if self.encoder is None else self.encoder(x)
        for width in self.hidden_sizes:
            x = self._dense(width, 2**0.5)(x)
            x = self.activation(nn.LayerNorm()(x) if self.layer_norm else x)
        return x if self.outputs is None else self._dense(self.outputs, self.scale)(x)

    def _dense(self, width: int, scale: float) -> nn.Dense:
        start = nn.initializers.orthogonal(scale)
        return nn.Dense(width, kernel_init=start, dot_general=_product)


def _product(x: Array, kernel: Array, *_: Any, **__: Any) -> Array:
    """What flax asks for: [..., K] times [K, N], column by column where there are few.

    The slope of a tall and narrow kernel is a product that takes a processor five times as long as
    those of its columns (jax 0.12, 64 times 2).
    """
    multiply = lambda kernel: jnp.matmul(x, kernel, precision="highest")
    if kernel.shape[1] > 4:
        return multiply(kernel)
    return jnp.stack([multiply(kernel[:, i]) for i in range(kernel.shape[1])], -1)


def as_real(x: Any) -> Array:
    """`x` as real numbers: whole ones become them, and 8-bit ones shares of 255.

    >>> as_real(jnp.uint8(255)), as_real(jnp.int32(3))
    (Array(1., dtype=float32), Array(3., dtype=float32))
    """
    x = jnp.asarray(x)
    if jnp.issubdtype(x.dtype, jnp.inexact):
        return x
    return x.astype(jnp.float32) / (255 if x.dtype == jnp.uint8 else 1)


def joined(x: Any) -> Array:
    """The numbers of all vectors [..., N] of a tree, one after the other; an array is itself."""
    leaves = [as_real(leaf) for leaf in jax.tree.leaves(x)]
    if len(leaves) == 1:
        return leaves[0]
    dtype = functools.reduce(jnp.promote_types, (leaf.dtype for leaf in leaves))
    return jnp.concatenate([leaf.astype(dtype) for leaf in leaves], -1)


class Normal(NamedTuple):
    """Independent normal distributions."""

    mean: Array  # [..., A]
    log_std: Array  # [..., A]

    def sample(self, key: Array) -> Array:
        """Random actions; an environment gets them clipped to its bounds."""
        return self.from_noise(jax.random.normal(key, self.mean.shape))

    def from_noise(self, noise: Array) -> Array:
        """Random actions of standard normal `noise` [..., A]."""
        return self.mean + jnp.exp(self.log_std) * noise.astype(self.mean.dtype)

    def mode(self) -> Array:
        """The likeliest actions."""
        return self.mean

    def log_prob(self, action: Array) -> Array:
        """Logarithm of the density, [...]."""
        z = (action - self.mean) * jnp.exp(-self.log_std)
        return jnp.sum(-0.5 * z * z - self.log_std - 0.5 * jnp.log(2 * jnp.pi), -1)

    def entropy(self) -> Array:
        """In nats, [...]."""
        return jnp.sum(self.log_std + 0.5 * jnp.log(2 * jnp.pi * jnp.e), -1)


class Squashed(NamedTuple):
    """Hyperbolic tangents of independent normal distributions: actions in -1 ... 1."""

    mean: Array  # [..., A] before the tangent
    log_std: Array  # [..., A]

    def from_noise(self, noise: Array) -> tuple[Array, Array]:
        """Random actions and the logarithms [...] of their densities; differentiable in both.

        Of standard normal `noise` [..., A].
        """
        u = Normal(self.mean, self.log_std).from_noise(noise)
        return jnp.tanh(u), self.log_prob(u)

    def mode(self) -> Array:
        """The tangents of the means."""
        return jnp.tanh(self.mean)

    def log_prob(self, u: Array) -> Array:
        """Logarithm of the density of the actions tanh(u), [...]."""
        # log(1 - tanh(u)^2), which is 0 - inf where tanh rounds to one
        shrink = 2 * (jnp.log(2.0) - u - jax.nn.softplus(-2 * u))
        return Normal(self.mean, self.log_std).log_prob(u) - jnp.sum(shrink, -1)


class Categorical(NamedTuple):
    """A choice among A."""

    logits: Array  # [..., A]

    def sample(self, key: Array) -> Array:
        """Random actions."""
        return self.from_noise(jax.random.gumbel(key, self.logits.shape, self.logits.dtype))

    def from_noise(self, noise: Array) -> Array:
        """Random actions of Gumbel `noise` [..., A]."""
        return jnp.argmax(self.logits + noise.astype(self.logits.dtype), -1)

    def mode(self) -> Array:
        """The likeliest actions."""
        return jnp.argmax(self.logits, -1)

    def log_prob(self, action: Array) -> Array:
        """Logarithm of the probability, [...]."""
        total: Any = sum(jnp.where(action == i, x, 0.0) for i, x in enumerate(self._logs()))
        return total

    def entropy(self) -> Array:
        """In nats, [...]."""
        total: Any = sum(jnp.exp(x) * x for x in self._logs())
        return -total

    def _logs(self) -> list[Array]:
        """Logarithms of all probabilities, A times [...]: wide arrays, unlike rows of few."""
        each = jnp.unstack(self.logits, axis=-1)
        whole = functools.reduce(jnp.logaddexp, each)
        return [x - whole for x in each]


class ActorCritic(nn.Module):
    """Separate networks for action and value; the spread of real actions is a parameter."""

    space: Space  # of the actions
    hidden_sizes: Sequence[int] = (64, 64)  # units of each hidden layer, of either network
    log_std: float = -0.5  # logarithm of the deviation of real actions at the start
    actor_encoder: nn.Module | None = None  # what turns observations into features first
    critic_encoder: nn.Module | None = None  # the same of the critic, with weights of its own

    def setup(self) -> None:
        """Make both networks."""
        self.count = self.space.shape[0] if isinstance(self.space, Box) else self.space.size
        self.actor = MLP(self.count, self.hidden_sizes, 0.01, encoder=self.actor_encoder)
        self.critic = MLP(1, self.hidden_sizes, 1.0, encoder=self.critic_encoder)
        if isinstance(self.space, Box):
            start = nn.initializers.constant(self.log_std)
            self.spread = self.param("spread", start, (self.count,), jnp.float32)

    def __call__(self, x: Any) -> tuple[Normal | Categorical, Array]:
        """Observations [..., O] to a distribution over actions and values [...]."""
        return self.act(x), self.value(x)

    def act(self, x: Any) -> Normal | Categorical:
        """The distribution over actions."""
        out = self.actor(x)
        if isinstance(self.space, Box):
            lead = (1,) * (out.ndim - 1)
            return Normal(out, jnp.broadcast_to(self.spread.reshape(*lead, -1), out.shape))
        return Categorical(out)

    def value(self, x: Any) -> Array:
        """The values."""
        return self.critic(x)[..., 0]


def spreading(params: Any, log_std: Array | float) -> Any:
    """The weights of an `ActorCritic`, or of what holds one, of another spread of real actions.

    >>> spreading({"heads": {"spread": jnp.zeros(2), "bias": jnp.zeros(1)}}, -2.0)["heads"]
    {'bias': Array([0.], dtype=float32), 'spread': Array([-2., -2.], dtype=float32)}
    """

    def spread(at: Any, x: Array) -> Array:
        return jnp.full_like(x, log_std) if at[-1].key == "spread" else x

    return jax.tree.map_with_path(spread, params)


def noise(space: Space, key: Array, size: int, axis: str | None = None) -> Array:
    """What `from_noise` takes for `size` actions of an `ActorCritic`, [size, A].

    With the `axis` of a mesh, this device's share of them.
    """
    if isinstance(space, Box):
        return shares.own(jax.random.normal(key, (size, *space.shape)), axis)
    return shares.own(jax.random.gumbel(key, (size, space.size)), axis)


def feasible(space: Space, action: Array) -> Any:
    """Real actions clipped to the bounds of `space`; whole numbers as they are."""
    return jnp.clip(action, space.low, space.high) if isinstance(space, Box) else action


def stretched(space: Space, action: Array) -> Any:
    """Actions in -1 ... 1 stretched to the bounds of a real `space`."""
    bounds: Any = space
    return bounds.low + (bounds.high - bounds.low) * (action + 1) / 2
