"""`python -m tests.trust [part ...]`: prove parts, or all, and keep what was found.

A part is a module of this folder with a function `measure()`, which gives `counts` (what the page
shows), `failed` (how many of them should not be) and `seconds`. Each runs in a process of its own,
the quick ones first. The exit code says whether any failed.
"""

import pkgutil
import subprocess
import sys
from pathlib import Path

from tests.trust import pages, record

HERE = Path(__file__).parent


def parts() -> list[str]:
    """The modules of this folder that prove something, in their order."""
    names = [module.name for module in pkgutil.iter_modules([str(HERE)])]
    found = [name for name in names if "\ndef measure(" in (HERE / f"{name}.py").read_text()]
    return sorted(found, key=record.place)


def main() -> int:
    """Prove the parts that the command line names, or all."""
    asked = sys.argv[1:] or parts()
    unknown = set(asked) - set(parts())
    if unknown:
        print(f"trust: no {', '.join(sorted(unknown))}; there are {', '.join(parts())}")
        return 2
    failed = []
    for name in asked:
        code = f"from tests.trust.record import prove; prove({name!r})"
        failed += [name] if subprocess.run([sys.executable, "-c", code]).returncode else []
    pages.write()
    print(f"failed: {', '.join(failed)}" if failed else "all parts hold")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
