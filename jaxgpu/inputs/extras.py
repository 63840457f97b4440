"""Libraries that only some users need: imported where they are used, missed in one sentence."""

from importlib import import_module
from typing import Any


def extra(module: str, name: str, wanted: str) -> Any:
    """A module of one of the package's extras.

    Args:
        module: as it is imported.
        name: of the extra in pyproject.toml.
        wanted: what it is needed for, as the sentence begins.
    Raises:
        ModuleNotFoundError: it is not installed; with the command that installs it.

    >>> extra("no_such_library", "files", "write: drop.vtu")
    Traceback (most recent call last):
    ...
    ModuleNotFoundError: write: drop.vtu needs no_such_library; pip install "jaxgpu[files]"
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        library = module.partition(".")[0]
        if (error.name or "").partition(".")[0] != library:
            raise
        raise ModuleNotFoundError(
            f'{wanted} needs {library}; pip install "jaxgpu[{name}]"', name=library
        ) from None
