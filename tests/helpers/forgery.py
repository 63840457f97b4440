"""Checksummed files that no version of jaxgpu writes: opened, changed, and checksummed again."""

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from jaxgpu.runs.checkpoint import sealed_files

type Members = dict[str, bytes]


def take_apart(path: Path) -> tuple[dict[str, Any], Members]:
    """Return the header of a checksummed file, and its other members as npy files."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    header = np.lib.format.read_array(io.BytesIO(members.pop("header.npy")))
    return json.loads(header.tobytes()), members


def to_npy(data: bytes) -> bytes:
    """Return bytes as an npy file."""
    file = io.BytesIO()
    np.lib.format.write_array(file, np.frombuffer(data, np.uint8))
    return file.getvalue()


def seal(path: Path, header: Any, members: Members, compression: int = zipfile.ZIP_STORED) -> None:
    """Write a checksummed file of a header (JSON, or raw bytes) and of npy files."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    with open(path, "wb+") as file:
        with zipfile.ZipFile(file, "w", compression) as archive:
            for name, data in {"header.npy": to_npy(text), **members}.items():
                archive.writestr(name, data)
        sealed_files._append_checksum(file)


def seal_bytes(path: Path, data: bytes) -> None:
    """Write bytes with the last 64 replaced by the digest of the others."""
    body = data[:-64]
    path.write_bytes(body + hashlib.sha256(body).hexdigest().encode())


def _nest_deeply(path: Path) -> None:
    header, members = take_apart(path)
    text = json.dumps(header | {"meta": "DEEP"})
    seal(path, text.replace('"DEEP"', "[" * 5000 + "]" * 5000).encode(), members)


def _leaf_changer(place: int, value: Any) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        header, members = take_apart(path)
        header["leaves"][0][place] = value
        seal(path, header, members)

    return change


def _member_changer(data: bytes) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        header, members = take_apart(path)
        seal(path, header, members | {"0.npy": data})

    return change


def _compress(path: Path) -> None:
    seal(path, *take_apart(path), zipfile.ZIP_DEFLATED)


def _replace_by_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _link_to_device(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def _truncate(path: Path) -> None:
    seal_bytes(path, path.read_bytes()[: path.stat().st_size // 2])


def _make_npy(header: str, data: bytes = b"") -> bytes:
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


# changes of a checksummed file, by name
DAMAGES: dict[str, Callable[[Path], None]] = {
    "a header 5000 deep": _nest_deeply,
    "a header of no JSON": lambda path: seal(path, b"\xff\xfe", take_apart(path)[1]),
    "compressed members": _compress,
    "pointers": _leaf_changer(1, "object"),
    "structures": _leaf_changer(1, "V8"),
    "texts": _leaf_changer(1, "U1"),
    "dates": _leaf_changer(1, "datetime64[s]"),
    "a negative shape": _leaf_changer(2, [-1]),
    "a shape of no numbers": _leaf_changer(2, ["3"]),
    "an immense shape": _leaf_changer(2, [2**40]),
    "a generator that is none": _leaf_changer(1, "key<nothing>"),
    "an npy of pointers": _member_changer(
        _make_npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }")
    ),
    "an npy that is longer": _member_changer(
        _make_npy("{'descr': '|u1', 'fortran_order': False, 'shape': (99,), }", bytes(9))
    ),
    "an npy that is an expression": _member_changer(_make_npy("__import__('os').system('true')")),
    "half of it": _truncate,
    "a pipe": _replace_by_pipe,
    "a link to a device": _link_to_device,
}
