"""Members of a sealed archive: raw bytes, stored uncompressed.

NumPy writes them, but its reader accepts more: compressed members, any dtype, headers that are
parsed as Python. Here each member is uncompressed and holds bytes, and all together are at most as
large as the file.
"""

import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from .untrusted_data import open_file

_NPY_HEADER = re.compile(
    rb"\{'descr': '\|u1', 'fortran_order': False, 'shape': \((\d{1,18}),\), \} *\n"
)
_READ_BYTES = 1 << 22  # bytes per read


class Members:
    """Raw bytes by the names of the members, each read on access.

    Raises:
        ValueError, BadZipFile: compressed, encrypted or overlapping members, or not bytes.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "a.npz")
    >>> np.savez(path, a=np.arange(3, dtype=np.uint8))
    >>> with Members(path) as members:
    ...     "a" in members, members["a"]
    (True, array([0, 1, 2], dtype=uint8))
    """

    def __init__(self, path: Path) -> None:
        self._file = open_file(path, "rb")
        try:
            self._archive = zipfile.ZipFile(self._file)
            self.size = path.stat().st_size  # of the file, the bound for all members together
            self._check_sizes()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> "Members":
        return self

    def __exit__(self, *error: Any) -> None:
        self._archive.close()
        self._file.close()

    def __contains__(self, name: str) -> bool:
        return f"{name}.npy" in self._archive.NameToInfo

    def __getitem__(self, name: str) -> np.ndarray:
        info = self._archive.getinfo(f"{name}.npy")
        with self._archive.open(info) as member:
            start = member.read(10)
            length = int.from_bytes(start[8:10], "little")
            found = _NPY_HEADER.fullmatch(member.read(length))
            if start[:8] != b"\x93NUMPY\x01\x00" or found is None:
                raise ValueError(f"member {name!r:.40} holds no bytes")
            raw = np.empty(info.file_size - 10 - length, np.uint8)
            if int(found[1]) != raw.size:
                raise ValueError(f"member {name!r:.40} holds {raw.size} bytes, not {found[1]!r}")
            for at in range(0, raw.size, _READ_BYTES):
                piece = member.read(min(_READ_BYTES, raw.size - at))
                raw[at : at + len(piece)] = np.frombuffer(piece, np.uint8)
            member.read(1)  # reading to the end verifies the CRC of the member
            return raw

    def _check_sizes(self) -> None:
        infos = self._archive.infolist()
        if any(
            info.compress_type != zipfile.ZIP_STORED
            or info.file_size != info.compress_size
            or info.flag_bits & 1
            for info in infos
        ):
            raise ValueError("has members that are compressed; jaxgpu stores them uncompressed")
        if sum(info.file_size for info in infos) > self.size:
            raise ValueError("has members that are larger than the file")
