"""Sources of a mechanism, compiled by MuJoCo."""

import importlib
from pathlib import Path
from typing import Any

import numpy as np

_MAX_DEPTH = 64  # maximum nesting of XML elements


def compile_model(source: Any) -> Any:
    """Return MuJoCo's compiled model of a path, a text, an `MjSpec` or an `MjModel`."""
    mujoco: Any = importlib.import_module("mujoco")  # deferred: it takes 0.1 s

    if isinstance(source, mujoco.MjModel):
        return source
    try:
        if isinstance(source, mujoco.MjSpec):
            return source.compile()
        if isinstance(source, Path) or (isinstance(source, str) and "<" not in source):
            path = Path(source)
            if not path.is_file():
                raise ValueError(f"load: source={str(source)!r} is not a file; give a path or XML")
            check_text(path.read_text())
            return mujoco.MjModel.from_xml_path(str(path))
        if isinstance(source, str):
            check_text(source)
            return mujoco.MjModel.from_xml_string(source)
    except (ValueError, mujoco.FatalError, UnicodeDecodeError) as error:
        said = " ".join(str(error).split())
        if said.startswith("load: "):
            raise
        raise ValueError(f"load: MuJoCo rejects it, {said!r}; fix the file") from error
    raise TypeError(
        f"load: source is {type(source).__name__}; it must be a path, a text, an MjSpec or an "
        "MjModel; give one of them"
    )


def check_text(text: str) -> None:
    """Raise an error if an XML text declares entities or is nested too deeply.

    Included files are read by MuJoCo alone, which has a depth limit itself.
    """
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise ValueError("load: the file declares a document type or entities; remove them")
    steps = np.array([1] + [_depth_change(part) for part in text.split("<")[1:]])
    if np.cumsum(steps).max() > _MAX_DEPTH:
        raise ValueError(f"load: elements are nested deeper than {_MAX_DEPTH}; flatten the file")


def _depth_change(tag: str) -> int:
    """Return 1 if the text after a "<" opens an element, -1 if it closes one, else 0."""
    if tag.startswith("/"):
        return -1
    return int(tag[:1].isalpha() and not tag.split(">")[0].endswith("/"))
