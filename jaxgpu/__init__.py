"""Simulation, optimisation, learning and special functions as XLA programs: one `jit`, any two."""

from pathlib import Path as _Path

__version__ = "0.1.0"

# physics/, numerics/ and rl/ lie beside this folder and are linked into it. A checkout
# without symbolic links (Windows, some archives) finds them one level up instead.
_here = _Path(__file__).parent
if not (_here / "physics").is_dir():
    __path__.append(str(_here.parent))
