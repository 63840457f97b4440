"""Untrusted JSON and files, opened so that they can neither exhaust nor block the reader."""

import json
import re
from pathlib import Path
from typing import IO, Any

MAX_DEPTH = 64  # nested lists and dictionaries
_JSON_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)


def parse(text: str) -> Any:
    """Return the value of a JSON text, after checking its nesting depth.

    Raises:
        ValueError: not JSON, or nested more than 64 deep.

    >>> parse('{"x": [1, 2]}')
    {'x': [1, 2]}
    >>> parse("[" * 65 + "]" * 65)
    Traceback (most recent call last):
    ValueError: nested 65 deep; JSON of a file must be nested at most 64 deep
    """
    depth = 0
    for mark in _JSON_TOKEN.finditer(text):
        sign = mark[0]
        depth += (sign in "[{") - (sign in "]}")
        if depth > MAX_DEPTH:
            raise ValueError(f"nested {depth} deep; JSON of a file must be nested at most 64 deep")
    return json.loads(text)


def open_file(path: Path, mode: str = "r") -> IO[Any]:
    """Open a regular file, and nothing else: reading a pipe or a device may never end.

    Raises:
        ValueError: a folder, a pipe, a socket, a device, or a link to one.
        FileNotFoundError: no such file.

    >>> import tempfile
    >>> open_file(Path(tempfile.mkdtemp()))
    Traceback (most recent call last):
    ValueError: ...: not a regular file
    """
    if path.exists() and not path.is_file():
        raise ValueError(f"{path}: not a regular file")
    return open(path, mode)


def printable(text: Any) -> str:
    r"""Return a text for the terminal, with control characters as escape sequences.

    >>> print(printable("speed \x1b[2J in \u00b5m"))
    speed \x1b[2J in µm
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(text))
