"""Under what licence everything is that is shipped, and everything that `make demo` installs.

Of what is shipped the file `NOTICE` has a row each. Of what is installed its own metadata are read:
a package is refused whose only licences are of the GPL family. Wheels may carry libraries under
licences that their metadata do not name; those of encoders that are known to be under the GPL are
listed by file.
"""

import ast
import re
import subprocess
import time
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ("jaxgpu", "physics", "numerics", "rl")
TABLE = 200  # numbers in a module, from which on it is a table of data
ENCODERS = re.compile(r"lib(x264|x265|xvid)[-.]")
_GPL = re.compile(r"\b[AL]?GPL|General Public License")


def measure() -> dict:
    """Data with and without a row, packages and those refused; what the record keeps of them."""
    began = time.perf_counter()
    of = {name: licence(name) for name in pinned() if licence(name)}
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
    """Files of the package that are no program, or a table of numbers in the form of one."""
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
    """Of each file that `NOTICE` names: its source, licence, and what was done to it."""
    lines = [line.split(" | ") for line in (ROOT / "NOTICE").read_text().splitlines()]
    return {cells[0]: cells[1:] for cells in lines if len(cells) == 4 and cells[0] != "file"}


def pinned() -> list[str]:
    """The packages that `make demo` installs."""
    lock = (ROOT / "requirements.lock").read_text()
    return sorted(set(re.findall(r"^([A-Za-z0-9][\w.-]*)==", lock, re.MULTILINE)))


def licence(name: str) -> str:
    """What an installed package says of its licence; nothing where it is of another system."""
    try:
        about = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return ""
    if expression := about.get("License-Expression"):
        return expression
    classes = [c.rpartition(" :: ")[2] for c in about.get_all("Classifier") or [] if "License" in c]
    return " or ".join(classes) or (about.get("License") or "not said").splitlines()[0]


def is_gpl(said: str) -> bool:
    """Whether every licence that may be chosen is of the GPL family."""
    return all(_GPL.search(choice) for choice in re.split(r"\s+(?:or|OR)\s+", said))


def encoders(name: str) -> list[str]:
    """Files of an installed package that are encoders under the GPL."""
    files = metadata.files(name) or []
    return [file.name for file in files if ENCODERS.match(file.name)]
