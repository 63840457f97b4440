"""Simulation, optimisation, learning and special functions as XLA programs.

All packages can be combined in one `jit`, and are imported on first use: `import jaxgpu;
jaxgpu.rl.make("cartpole")`. A job of many processes calls `jaxgpu.distributed()` first.

To read the core, start with `inputs` (argument checks; states and specs as pytrees), then `devices`
(memory, precision, meshes, processes) and `runs` (the run loop and the folder of a run). `geometry`
and `render` depend on these; `report`, `studies` and `cli` are the user interface.
"""

from importlib import import_module as _import_module
from pathlib import Path as _Path
from typing import Any as _Any

__version__ = "0.1.0"
__all__ = ["distributed", "evolution", "load", "numerics", "physics", "rl", "show"]

# physics/, numerics/ and rl/ are next to this folder and are linked into it. A checkout
# without symbolic links (Windows, some archives) finds them one level up instead.
_here = _Path(__file__).parent
if not (_here / "physics").is_dir():
    __path__.append(str(_here.parent))


def __getattr__(name: str) -> _Any:
    """Import a package when it is first accessed, so that `import jaxgpu` is fast."""
    if name == "distributed":
        return _import_module(f"{__name__}.devices").distributed
    if name == "load":
        return _import_module(f"{__name__}.runs.saving.saved_run").load
    if name == "show":
        return _import_module(f"{__name__}.render").show
    if name in __all__:
        return _import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
