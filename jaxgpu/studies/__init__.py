"""Named end-to-end experiments, each with options and a report.

Each module or package of this folder is a study. Its name with dashes is the study's name, and the
first line of its docstring is the description. It contains

    Options                     a frozen dataclass of options with defaults and an attribute
                                docstring per field; `pytree.number` and `pytree.size` declare
                                valid ranges, which are checked before the study starts;
                                `SeededOptions` adds a seed and this check
    study(options, out, resume) -> Report
                                runs the experiment in the folder `out`, continuing from its
                                checkpoints if `resume` is true

and is found by its name: to add a study, add a file or a folder. A study of your own is a file
anywhere (`jaxgpu run path/to/study.py`), or an entry point of an installed package in the group
`jaxgpu.studies`, whose value is such a module.
"""

import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from jaxgpu.inputs import ranges
from jaxgpu.inputs.explanations import explain_errors, on_host
from jaxgpu.inputs.fields import size
from jaxgpu.report import Report

GROUP = "jaxgpu.studies"  # entry-point group for other packages

# Seeds have 32 bits, because JAX drops the higher ones where 64-bit types are disabled.
SEEDS = {"least": 0, "most": 2**32 - 1}


class BadInput(ValueError):
    """Error about an impossible request; its message is one sentence with the remedy.

    >>> print(BadInput("years must be above 0; give --years 100"))
    years must be above 0; give --years 100
    """


@dataclass(frozen=True)
class CheckedOptions:
    """Base of options that are checked for their ranges, under the name of their study.

    >>> @dataclass(frozen=True)
    ... class Options(CheckedOptions):
    ...     stars: int = size(default=100, least=2)
    >>> Options(stars=64).stars
    64
    """

    def __post_init__(self):
        ranges.check(_study_name(type(self).__module__), self)


@dataclass(frozen=True)
class SeededOptions(CheckedOptions):
    """Base of the options of a study that uses random numbers.

    >>> SeededOptions(seed=7).seed
    7
    """

    seed: int = size(default=0, **SEEDS)  # of the random numbers
    """Seed of the random numbers; with several runs, the seed of the first."""


def seed_count(*, default: int, least: int) -> Any:
    """Declare the option for the number of runs with different seeds.

    >>> @dataclass(frozen=True)
    ... class Options(SeededOptions):
    ...     seeds: int = seed_count(default=5, least=2)
    >>> Options().seeds
    5
    """
    return size(default=default, least=least, most=10_000)


def shared_parts(
    options: SeededOptions, runs: Mapping[str, Any], findings: list[str], citations: list[str]
) -> dict[str, Any]:
    """Return the parts of a report that all studies share: findings, citations, timing and seed.

    Args:
        options: options of the study, for the seed.
        runs: timed runs by name; each has a `timing`.
        findings: one sentence each.
        citations: references for methods and data.

    >>> shared_parts(SeededOptions(seed=7), {}, ["Heavy stars sink."], [])["seed"]
    7
    """
    timing = {name: run.timing for name, run in runs.items()}
    return dict(findings=findings, citations=citations, timing=timing, seed=options.seed)


@dataclass(frozen=True)
class Study:
    """Entry in the list of studies."""

    name: str  # name on the command line
    description: str  # one sentence for the list of studies
    options: type  # dataclass of its options
    run: Callable[[object, Path, bool], Report]


def studies() -> list[Study]:
    """Return all studies: those of this package by name, then those of other packages.

    >>> "solar-system" in [study.name for study in studies()]
    True
    """
    own = sorted(info.name for info in pkgutil.iter_modules(__path__))
    found = [from_module(name, importlib.import_module(f"{__name__}.{name}")) for name in own]
    return found + [from_module(e.name, e.load()) for e in entry_points(group=GROUP)]


def from_file(path: str | Path) -> Study:
    """Load the study in a Python file, which is executed; its name is that of the file.

    Raises:
        BadInput: if there is no such file, or it lacks `Options` or `study`.

    >>> from_file("/nowhere/coin.py")
    Traceback (most recent call last):
    jaxgpu.studies.BadInput: /nowhere/coin.py: no such file; give the path of a study...
    """
    path = Path(path)
    if not path.is_file():
        raise BadInput(
            f"{path}: no such file; give the path of a study, or a name of `jaxgpu list`"
        )
    name = f"{__name__}_of_users.{path.stem}"  # cannot collide with another package
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise BadInput(f"{path}: not a Python file; a study is a file that ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look up their module here
    spec.loader.exec_module(module)
    return from_module(path.stem, module)


@explain_errors
@on_host
def from_module(name: str, module: ModuleType) -> Study:
    """Return the study that a module defines.

    Raises:
        BadInput: if it lacks `Options` or `study`.

    >>> from_module("pour", importlib.import_module("jaxgpu.studies.pour")).name
    'pour'
    """
    for part in ("Options", "study"):
        if not hasattr(module, part):
            raise BadInput(
                f"{name}: has no {part}; a study has a dataclass Options and a function "
                "study(options, out, resume)"
            )
    description = (module.__doc__ or "").strip().partition("\n")[0]
    return Study(_study_name(name), description, module.Options, module.study)


def _study_name(module: str) -> str:
    """Return the command-line name of the study in this module."""
    return module.rpartition(".")[2].replace("_", "-")
