"""Licences of all shipped files, and of all packages that `make demo` installs.

The file `NOTICE` has a row for each shipped data file. For installed packages their metadata are
read: a package whose only licences are of the GPL family is a violation. Wheels may contain
libraries under licences that their metadata do not name; those of encoders that are known to be
under the GPL are listed by file.
"""

import ast
import re
import subprocess
import time
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ("jaxgpu", "physics", "numerics", "rl")
TABLE = 200  # numbers above which a module counts as a table of data
ENCODERS = re.compile(r"lib(x264|x265|xvid)[-.]")
_GPL = re.compile(r"\b[AL]?GPL|General Public License")


def measure() -> dict:
    """Count data with and without a row, packages and violations, as results to record."""
    began = time.perf_counter()
    of = {name: licence(name) for name in pinned_names() if licence(name)}
    counts = {
        "data shipped": len(data()),
        "without a row in NOTICE": len(data() - rows().keys()),
        "packages": len(of),
        "under the GPL": sum(is_gpl(said) for said in of.values()),
        "wheels with GPL encoders": len({name for name in of if encoders(name)}),
    }
    return {
        "counts": counts,
        "licences": of,
        "encoders": {name: encoders(name) for name in of if encoders(name)},
        "failed": counts["without a row in NOTICE"] + counts["under the GPL"],
        "seconds": round(time.perf_counter() - began, 1),
    }


def data() -> set[str]:
    """Return the package's data files, including modules that are tables of numbers."""
    listed = subprocess.run(
        ["git", "ls-files", "--", *PACKAGE], cwd=ROOT, capture_output=True, text=True, check=True
    )
    files = [name for name in listed.stdout.splitlines() if not (ROOT / name).is_symlink()]
    return {name for name in files if name != "jaxgpu/py.typed" and _is_data(ROOT / name)}


def _is_data(file: Path) -> bool:
    if file.suffix != ".py":
        return True
    nodes = ast.walk(ast.parse(file.read_text()))
    return sum(isinstance(n, ast.Constant) and type(n.value) in (int, float) for n in nodes) > TABLE


def rows() -> dict[str, list[str]]:
    """Return for each file that `NOTICE` names its source, its licence, and changes of it."""
    lines = [line.split(" | ") for line in (ROOT / "NOTICE").read_text().splitlines()]
    return {cells[0]: cells[1:] for cells in lines if len(cells) == 4 and cells[0] != "file"}


def pinned_names() -> list[str]:
    """Return the packages that `make demo` installs."""
    lock = (ROOT / "requirements.lock").read_text()
    return sorted(set(re.findall(r"^([A-Za-z0-9][\w.-]*)==", lock, re.MULTILINE)))


def licence(name: str) -> str:
    """Return the licence in an installed package's metadata, or "" on another system."""
    try:
        about = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return ""
    if expression := about.get("License-Expression"):
        return expression
    classes = [c.rpartition(" :: ")[2] for c in about.get_all("Classifier") or [] if "License" in c]
    return " or ".join(classes) or (about.get("License") or "not said").splitlines()[0]


def is_gpl(said: str) -> bool:
    """Return whether every available licence is of the GPL family."""
    return all(_GPL.search(choice) for choice in re.split(r"\s+(?:or|OR)\s+", said))


def encoders(name: str) -> list[str]:
    """Return the files of an installed package that are encoders under the GPL."""
    files = metadata.files(name) or []
    return [file.name for file in files if ENCODERS.match(file.name)]
