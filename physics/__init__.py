"""Simulators: continuum mechanics (`continuum`), articulated bodies (`rigid`), stars and planets
(`nbody`), tactile sensors (`touch`).

Each package is imported at its first use.
"""

import importlib
from typing import Any

__all__ = ["continuum", "nbody", "rigid", "touch"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
