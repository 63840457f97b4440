"""`python -m tests.trust [part ...]`: run the named parts, or all, and store their results.

A part is a module of this folder with a function `measure()`, which returns `counts` (for the
page), `failed` (the number of violations) and `seconds`. Each part runs in a separate process, the
fast ones first. The exit code is 1 if any failed.
"""

import pkgutil
import subprocess
import sys
from pathlib import Path

from tests.trust import pages, record

HERE = Path(__file__).parent


def parts() -> list[str]:
    """Return the parts of this folder, in the order in which they run."""
    names = [module.name for module in pkgutil.iter_modules([str(HERE)])]
    found = [name for name in names if "\ndef measure(" in (HERE / f"{name}.py").read_text()]
    return sorted(found, key=record.place)


def main() -> int:
    """Run the parts that the command line names, or all."""
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
