"""Feature extractors for observations: the `network` of a learner.

Any flax module that maps observations [N, ...] to features [N, W] can be a `network`. Those of this
file accept one or several images [N, H, W, C] and append vectors [N, O] to the image features.
8-bit integers are divided by 255.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import flax.linen as nn
import jax
from jax import Array

from .networks import as_float, concat_vectors


class CNN(nn.Module):
    """Convolutional network for images: layers with `features` channels, each with an activation.

    By default that of Mnih et al. (2015), doi:10.1038/nature14236. Difference from the paper:
    images are padded, so that small ones are accepted.

    >>> import jax.numpy as jnp
    >>> from jaxgpu import rl
    >>> small = rl.CNN(features=(8, 16), kernel_sizes=(3, 3), strides=(2, 2))
    >>> x = {"eye": jnp.zeros((5, 16, 16, 3), jnp.uint8), "joints": jnp.ones((5, 7))}
    >>> jax.eval_shape(small.init_with_output, jax.random.key(0), x)[0].shape  # 4 4 16 + 7
    (5, 263)
    """

    features: Sequence[int] = (32, 64, 64)  # output channels of each convolution
    kernel_sizes: Sequence[int] = (8, 4, 3)  # side of each kernel, pixels
    strides: Sequence[int] = (4, 2, 1)  # stride of each convolution, pixels
    activation: Callable[[Array], Array] = nn.relu  # after each convolution

    @nn.compact
    def __call__(self, x: Any) -> Array:
        """Map observations [N, ...] to features [N, W]."""
        pictures, vectors = split_images(x)
        return concat_vectors([self._image_features(picture) for picture in pictures] + vectors)

    def _image_features(self, x: Array) -> Array:
        layers = zip(self.features, self.kernel_sizes, self.strides, strict=True)
        for width, side, stride in layers:
            x = nn.Conv(width, (side, side), stride, precision="highest")(x)
            x = self.activation(x)
        return x.reshape(len(x), -1)


class ResNet(nn.Module):
    """Residual network for images: per entry of `features` a convolution, a pooling and `blocks`.

    By default that of Espeholt et al. (2018), arXiv:1802.01561, figure 3. Difference from the
    paper: each convolution of a block follows a group normalization (Wu & He 2018,
    arXiv:1803.08494), which is independent of the other observations of a batch.

    >>> import jax.numpy as jnp
    >>> from jaxgpu import rl
    >>> shallow = rl.ResNet(features=(8,), blocks=1)
    >>> x = jnp.zeros((5, 16, 16, 1))
    >>> jax.eval_shape(shallow.init_with_output, jax.random.key(0), x)[0].shape  # 8 8 8
    (5, 512)
    """

    features: Sequence[int] = (16, 32, 32)  # channels of each section; each halves the image size
    blocks: int = 2  # residual blocks per section
    groups: int = 8  # groups of the group normalization: gcd of this and the channels

    @nn.compact
    def __call__(self, x: Any) -> Array:
        """Map observations [N, ...] to features [N, W]."""
        pictures, vectors = split_images(x)
        return concat_vectors([self._image_features(picture) for picture in pictures] + vectors)

    def _image_features(self, x: Array) -> Array:
        for width in self.features:
            x = self._convolve(width, x)
            x = nn.max_pool(x, (3, 3), (2, 2), "SAME")
            for _ in range(self.blocks):
                inner = self._convolve(width, nn.relu(self._normalize(width, x)))
                x = x + self._convolve(width, nn.relu(self._normalize(width, inner)))
        return nn.relu(x).reshape(len(x), -1)

    def _convolve(self, width: int, x: Array) -> Array:
        return nn.Conv(width, (3, 3), precision="highest")(x)

    def _normalize(self, width: int, x: Array) -> Array:
        return nn.GroupNorm(math.gcd(width, self.groups))(x)


class Encoder(nn.Module):
    """A `network` applied to the entries `keys` of observations [..., O]."""

    network: nn.Module | None  # maps [N, ...] to features [N, W]; None concatenates vectors
    keys: tuple[str, ...] | None  # entries of a dictionary to use; None: all
    ndim: int  # number of axes of the first array of an observation

    def __call__(self, x: Any) -> Array:
        """Return the features [..., W] of each row."""
        x = select_keys(x, self.keys)
        if self.network is None:
            return concat_vectors(x)
        first = jax.tree.leaves(x)[0]
        lead = first.shape[: first.ndim - self.ndim]
        rows = jax.tree.map(lambda a: a.reshape(-1, *a.shape[len(lead) :]), x)
        with jax.default_matmul_precision("highest"):
            features = self.network(rows)
        return features.reshape(*lead, -1)


def make_encoder(
    network: nn.Module | None, space: Any, keys: tuple[str, ...] | None
) -> Encoder | None:
    """Return an encoder with its own copy of `network`, or None if neither is given.

    Without an encoder a vector is used unchanged.
    """
    return None if network is None and keys is None else vision_encoder(network, space, keys)


def vision_encoder(network: nn.Module | None, space: Any, keys: tuple[str, ...] | None) -> Encoder:
    """Return an encoder with its own copy of `network`, or of vectors if it is None."""
    first = jax.tree.leaves(select_keys(space, keys), is_leaf=lambda x: hasattr(x, "shape"))[0]
    return Encoder(None if network is None else network.clone(), keys, len(first.shape))


def select_keys(x: Any, keys: tuple[str, ...] | None) -> Any:
    """Return the entries `keys` of a dictionary, or `x` unchanged if `keys` is None."""
    return x if keys is None else {key: x[key] for key in keys}


def split_images(x: Any) -> tuple[list[Array], list[Array]]:
    """Split a tree into images [N, H, W, C] and vectors [N, O], as floating point."""
    leaves = [as_float(leaf) for leaf in jax.tree.leaves(x)]
    return [a for a in leaves if a.ndim == 4], [a for a in leaves if a.ndim != 4]
