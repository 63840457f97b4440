"""The command `jaxgpu`: list and run studies, assemble reports, describe the machine.

Options are the fields of the studies' dataclasses, turned into a command line by tyro. Bad input is
one sentence and exit code 2.
"""

import dataclasses
import functools
import json
import operator
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import jax
import tyro

from jaxgpu import memory, report
from jaxgpu.checkpoint import CheckpointError
from jaxgpu.studies import Study, studies


def main(args: list[str] | None = None) -> int:
    """Run the command line `args` (default: those of the process); the exit code."""
    commands = {"list": list_studies, "run": _run_command(), "report": write_report, "info": info}
    try:
        tyro.extras.subcommand_cli_from_dict(
            commands,
            args=args,
            prog="jaxgpu",
            description="Simulation, optimisation, learning and special functions in JAX.",
            config=(tyro.conf.FlagCreatePairsOff,),
        )
    except (BadInput, CheckpointError, FileNotFoundError, MemoryError) as error:
        print(f"jaxgpu: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stop:
        print(f"jaxgpu: {stop or 'stopped'}", file=sys.stderr)
        return 130
    return 0


class BadInput(ValueError):
    """What the user asked for cannot be done; the message says what to change."""


def list_studies() -> None:
    """List the studies."""
    found = studies()
    width = max(len(study.name) for study in found)
    for study in found:
        print(f"{study.name:{width}}  {study.description}")


def write_report(folder: tyro.conf.Positional[Path]) -> None:
    """Draw all results in a folder into one page, report.html."""
    print(report.write(folder).resolve())


def info() -> None:
    """Show devices, precision, memory and versions."""
    rows = report.environment() | {
        "free memory": f"{memory.available() / 1e9:.1f} GB",
        "matrix products": str(
            jax.config.read("jax_default_matmul_precision") or "backend default"
        ),
        "compilation cache": str(_cache_folder()),
    }
    for name, value in rows.items():
        print(f"{name:20s}{value}")


def run_study(study: Study, options: Any, out: Path, resume: bool) -> Path:
    """Run `study` in the folder `out`, then draw its report; returns the path of the page."""
    _claim(out, study, options, resume)
    _enable_cache()
    report.save(out, study.name, options, study.run(options, out, resume))
    return report.write(out)


def _run_command() -> Any:
    """`run`, with one subcommand a study."""
    by_type = {_launch(study): study for study in studies()}
    kinds = tuple(
        Annotated[
            kind,
            tyro.conf.subcommand(study.name, description=study.description, prefix_name=False),
        ]
        for kind, study in by_type.items()
    )

    def run(launch: Any) -> None:
        """Run a study."""
        print(run_study(by_type[type(launch)], launch.options, launch.out, launch.resume).resolve())

    run.__annotations__["launch"] = Annotated[
        functools.reduce(operator.or_, kinds), tyro.conf.arg(name="")
    ]
    return run


def _launch(study: Study) -> type:
    """The options of `study` and where to run it, as one dataclass for the parser."""
    fields = [
        ("options", Annotated[study.options, tyro.conf.arg(name="")], study.options()),
        ("out", Annotated[Path, tyro.conf.arg(help="Folder of results.")], Path("out", study.name)),
        ("resume", Annotated[bool, tyro.conf.arg(help="Go on from what is in the folder.")], False),
    ]
    return dataclasses.make_dataclass(
        study.name, [(n, t, dataclasses.field(default=d)) for n, t, d in fields], frozen=True
    )


def _claim(out: Path, study: Study, options: Any, resume: bool) -> None:
    """Make `out` the folder of this very experiment, or say why it cannot be."""
    asked = {
        "study": study.name,
        **json.loads(json.dumps(dataclasses.asdict(options), default=str)),
    }
    file = out / "options.json"
    if file.exists():
        held = json.loads(file.read_text())
        changed = [name for name in asked.keys() | held.keys() if asked.get(name) != held.get(name)]
        if resume and changed:
            name = min(changed)
            raise BadInput(
                f"{out}: was run with {name}={held.get(name)}, not {asked.get(name)}; "
                "resume with the same options, or give another --out"
            )
        if not resume:
            raise BadInput(f"{out}: holds a run already; add --resume, or give another --out")
    report.replace_text(file, json.dumps(asked))


def _cache_folder() -> Path:
    root = os.environ.get("JAX_COMPILATION_CACHE_DIR")
    return Path(root) if root else Path.home() / ".cache" / "jaxgpu" / "compiled"


def _enable_cache() -> None:
    """Keep compiled programs between runs, in a folder that only its owner can write."""
    folder = _cache_folder()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)


if __name__ == "__main__":
    sys.exit(main())
