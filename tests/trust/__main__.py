"""`python -m tests.trust [part ...]`: prove parts, or all, and keep what was found.

A part is a module of this folder with a function `measure()`, which gives `counts` (what the page
shows), `failed` (how many of them should not be) and `seconds`. Each runs in a process of its own,
the quick ones first. The exit code says whether any failed.
"""

import importlib
import json
import multiprocessing
import pkgutil
import sys
from pathlib import Path

from tests.trust import pages, record

HERE = Path(__file__).parent
ORDER = ["licences", "wheel", "disk", "flips", "kills", "fuzz", "oversize", "mutants"]


def parts() -> list[str]:
    """The modules of this folder that prove something, in their order."""
    names = [module.name for module in pkgutil.iter_modules([str(HERE)])]
    found = [name for name in names if "\ndef measure(" in (HERE / f"{name}.py").read_text()]
    return sorted(found, key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER)))


def prove(name: str) -> None:
    """Measure a part, in this process, and keep what it found."""
    found = importlib.import_module(f"tests.trust.{name}").measure()
    record.append(name, found)
    print(f"{name}: {json.dumps(found['counts'])}, {found['seconds']} s", flush=True)
    raise SystemExit(bool(found.get("failed", 0)))


def main() -> int:
    """Prove the parts that the command line names, or all."""
    asked = sys.argv[1:] or parts()
    unknown = set(asked) - set(parts())
    if unknown:
        print(f"trust: no {', '.join(sorted(unknown))}; there are {', '.join(parts())}")
        return 2
    failed = []
    for name in asked:
        process = multiprocessing.get_context("spawn").Process(target=prove, args=(name,))
        process.start()
        process.join()
        failed += [name] if process.exitcode else []
    sys.argv.append("--write")
    pages.main()
    print(f"failed: {', '.join(failed)}" if failed else "all parts hold")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
