"""Named end-to-end experiments, each with options and a report.

A module or a package of this folder is a study: its name with dashes is that of the study, the
first line of its docstring the description. It holds

    Options                     a frozen dataclass: what can be set, with defaults, a docstring
                                under each field; numbers say their range by `pytree.number` and
                                `pytree.size`, which is held before anything is done
    study(options, out, resume) -> Report
                                runs the experiment in the folder `out`, going on from what is
                                there when `resume` is true

and is found by its name alone: to add a study is to add a file or a folder.
"""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from jaxgpu.report import Report

# of the seeds of studies: JAX drops what is above 32 bits where 64-bit types are switched off
SEEDS = {"least": 0, "most": 2**32 - 1}


class BadInput(ValueError):
    """What was asked for cannot be done; the message is one sentence that says what to change.

    >>> print(BadInput("years must be above 0; give --years 100"))
    years must be above 0; give --years 100
    """


@dataclass(frozen=True)
class Study:
    """What a module of this folder provides."""

    name: str  # on the command line
    description: str  # a sentence for the list of studies
    options: type  # dataclass of what can be chosen
    run: Callable[[object, Path, bool], Report]


def studies() -> list[Study]:
    """All studies, by name.

    >>> "solar-system" in [study.name for study in studies()]
    True
    """
    found = []
    for module in sorted(info.name for info in pkgutil.iter_modules(__path__)):
        it = importlib.import_module(f"{__name__}.{module}")
        description = (it.__doc__ or "").strip().partition("\n")[0]
        found.append(Study(module.replace("_", "-"), description, it.Options, it.study))
    return found
