"""What turns observations into features: the first part of a learner's networks, its `network`.

Any flax module may stand there that takes observations [N, ...] to features [N, W]. Those of this
file take pictures [N, H, W, C], one or several, and join what vectors [N, O] there are to the
features of the pictures. Whole numbers of 8 bits are divided by 255.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import flax.linen as nn
import jax
from jax import Array

from .networks import as_real, joined


class CNN(nn.Module):
    """Convolutions of pictures: of `features` channels, each after one by `activation`.

    Those of Mnih et al. (2015), doi:10.1038/nature14236, unless said. Departure: a picture is
    padded, so that small ones are taken too.

    >>> import jax.numpy as jnp
    >>> from jaxgpu import rl
    >>> small = rl.CNN(features=(8, 16), kernel_sizes=(3, 3), strides=(2, 2))
    >>> x = {"eye": jnp.zeros((5, 16, 16, 3), jnp.uint8), "joints": jnp.ones((5, 7))}
    >>> jax.eval_shape(small.init_with_output, jax.random.key(0), x)[0].shape  # 4 4 16 + 7
    (5, 263)
    """

    features: Sequence[int] = (32, 64, 64)  # channels of each convolution
    kernel_sizes: Sequence[int] = (8, 4, 3)  # pixels of a side of its kernel
    strides: Sequence[int] = (4, 2, 1)  # pixels from one place of it to the next
    activation: Callable[[Array], Array] = nn.relu  # after each

    @nn.compact
    def __call__(self, x: Any) -> Array:
        """Observations [N, ...] to features [N, W]."""
        pictures, vectors = parted(x)
        return joined([self._seen(picture) for picture in pictures] + vectors)

    def _seen(self, x: Array) -> Array:
        layers = zip(self.features, self.kernel_sizes, self.strides, strict=True)
        for width, side, stride in layers:
            x = nn.Conv(width, (side, side), stride, precision="highest")(x)
            x = self.activation(x)
        return x.reshape(len(x), -1)


class ResNet(nn.Module):
    """Residual blocks on pictures: for each of `features` a convolution, a pool, and `blocks`.

    Those of Espeholt et al. (2018), arXiv:1802.01561, figure 3, unless said. Departure: each
    convolution of a block follows a normalisation of its channels in `groups` (Wu & He 2018,
    arXiv:1803.08494), which knows nothing of the other observations of a batch.

    >>> import jax.numpy as jnp
    >>> from jaxgpu import rl
    >>> shallow = rl.ResNet(features=(8,), blocks=1)
    >>> x = jnp.zeros((5, 16, 16, 1))
    >>> jax.eval_shape(shallow.init_with_output, jax.random.key(0), x)[0].shape  # 8 8 8
    (5, 512)
    """

    features: Sequence[int] = (16, 32, 32)  # channels of each part, half as large as the last
    blocks: int = 2  # of each part
    groups: int = 8  # of channels, at most; as many as divide them

    @nn.compact
    def __call__(self, x: Any) -> Array:
        """Observations [N, ...] to features [N, W]."""
        pictures, vectors = parted(x)
        return joined([self._seen(picture) for picture in pictures] + vectors)

    def _seen(self, x: Array) -> Array:
        for width in self.features:
            x = self._convolved(width, x)
            x = nn.max_pool(x, (3, 3), (2, 2), "SAME")
            for _ in range(self.blocks):
                inner = self._convolved(width, nn.relu(self._normalised(width, x)))
                x = x + self._convolved(width, nn.relu(self._normalised(width, inner)))
        return nn.relu(x).reshape(len(x), -1)

    def _convolved(self, width: int, x: Array) -> Array:
        return nn.Conv(width, (3, 3), precision="highest")(x)

    def _normalised(self, width: int, x: Array) -> Array:
        return nn.GroupNorm(math.gcd(width, self.groups))(x)


class Encoder(nn.Module):
    """A `network` over what a part of a learner sees: the `keys` of observations [..., O]."""

    network: nn.Module | None  # observations [N, ...] to features [N, W]; None joins vectors
    keys: tuple[str, ...] | None  # of dictionaries, what is seen; None sees all
    ndim: int  # axes of the first array of one observation

    def __call__(self, x: Any) -> Array:
        """Features [..., W], of every row by itself."""
        x = chosen(x, self.keys)
        if self.network is None:
            return joined(x)
        first = jax.tree.leaves(x)[0]
        lead = first.shape[: first.ndim - self.ndim]
        rows = jax.tree.map(lambda a: a.reshape(-1, *a.shape[len(lead) :]), x)
        with jax.default_matmul_precision("highest"):
            features = self.network(rows)
        return features.reshape(*lead, -1)


def over(network: nn.Module | None, space: Any, keys: tuple[str, ...] | None) -> Encoder | None:
    """A `network` with weights of its own over the `keys` of observations of a space, or of spaces.

    None where there is neither, and a vector is taken as it is.
    """
    return None if network is None and keys is None else sight(network, space, keys)


def sight(network: nn.Module | None, space: Any, keys: tuple[str, ...] | None) -> Encoder:
    """The same, also where there is neither."""
    first = jax.tree.leaves(chosen(space, keys), is_leaf=lambda x: hasattr(x, "shape"))[0]
    return Encoder(None if network is None else network.clone(), keys, len(first.shape))


def chosen(x: Any, keys: tuple[str, ...] | None) -> Any:
    """Of a dictionary what stands under `keys`; all of it where there are none."""
    return x if keys is None else {key: x[key] for key in keys}


def parted(x: Any) -> tuple[list[Array], list[Array]]:
    """Pictures [N, H, W, C] and vectors [N, O] of a tree, as real numbers."""
    leaves = [as_real(leaf) for leaf in jax.tree.leaves(x)]
    return [a for a in leaves if a.ndim == 4], [a for a in leaves if a.ndim != 4]
