"""What a source of a mechanism is, compiled by MuJoCo."""

import importlib
from pathlib import Path
from typing import Any

import numpy as np

_DEEPEST = 64  # elements within elements


def compiled(source: Any) -> Any:
    """MuJoCo's compiled model of a path, a text, an `MjSpec` or an `MjModel`."""
    mujoco: Any = importlib.import_module("mujoco")  # which takes a tenth of a second

    if isinstance(source, mujoco.MjModel):
        return source
    try:
        if isinstance(source, mujoco.MjSpec):
            return source.compile()
        if isinstance(source, Path) or (isinstance(source, str) and "<" not in source):
            path = Path(source)
            if not path.is_file():
                raise ValueError(f"load: source={str(source)!r} is no file; give its path or text")
            check_text(path.read_text())
            return mujoco.MjModel.from_xml_path(str(path))
        if isinstance(source, str):
            check_text(source)
            return mujoco.MjModel.from_xml_string(source)
    except (ValueError, mujoco.FatalError, UnicodeDecodeError) as error:
        said = " ".join(str(error).split())
        if said.startswith("load: "):
            raise
        raise ValueError(f"load: MuJoCo refuses it, {said!r}; mend the file") from error
    raise TypeError(
        f"load: source is {type(source).__name__}; it must be a path, a text, an MjSpec or an "
        "MjModel; give one of them"
    )


def check_text(text: str) -> None:
    """Raise if a text of XML declares entities or is nested absurdly deep.

    Files that it includes are read by MuJoCo alone, which has a limit of depth of its own.
    """
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise ValueError("load: the file declares a document type or entities; take them out")
    steps = np.array([1] + [_depth_of(part) for part in text.split("<")[1:]])
    if np.cumsum(steps).max() > _DEEPEST:
        raise ValueError(f"load: elements are nested deeper than {_DEEPEST}; flatten the file")


def _depth_of(tag: str) -> int:
    """Of what follows a "<": 1 an element begins, -1 one ends, 0 both or neither."""
    if tag.startswith("/"):
        return -1
    return int(tag[:1].isalpha() and not tag.split(">")[0].endswith("/"))
