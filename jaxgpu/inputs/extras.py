"""Optional libraries: imported where they are needed, with one error message if missing."""

from importlib import import_module
from typing import Any


def extra(module: str, name: str, wanted: str) -> Any:
    """Import and return a module of one of the package's extras.

    Args:
        module: its import name.
        name: of the extra in pyproject.toml.
        wanted: the operation that needs it; the error message begins with it.
    Raises:
        ModuleNotFoundError: it is not installed; the message gives the command to install it.

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
