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
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import jax
import tyro

from jaxgpu import memory, report
from jaxgpu.checkpoint import CheckpointError
from jaxgpu.studies import BadInput, Study, studies

# a command is parsed whole, options checked, before the call that it returns does anything
type Call = Callable[[], None]


def main(args: list[str] | None = None) -> int:
    """Run the command line `args` (default: those of the process); the exit code."""
    commands = {"list": list_, "run": _run_command(), "report": report_, "info": info}
    try:
        call = tyro.extras.subcommand_cli_from_dict(
            commands,
            args=args,
            prog="jaxgpu",
            description="Simulation, optimisation, learning and special functions in JAX.",
            config=(tyro.conf.FlagCreatePairsOff,),
        )
    except ValueError as error:  # an option that its dataclass refuses
        return _refuse(error)
    try:
        call()
    except (BadInput, CheckpointError, FileNotFoundError, MemoryError) as error:
        return _refuse(error)
    except KeyboardInterrupt as stop:
        print(f"jaxgpu: {stop or 'stopped'}", file=sys.stderr)
        return 130
    return 0


def list_() -> Call:
    """List the studies."""

    def call():
        found = studies()
        width = max(len(study.name) for study in found)
        for study in found:
            print(f"{study.name:{width}}  {study.description}")

    return call


def report_(folder: tyro.conf.Positional[Path]) -> Call:
    """Draw all results in a folder into one page, report.html."""
    return lambda: print(report.write(folder).resolve())


def info() -> Call:
    """Show devices, precision, memory and versions."""

    def call():
        rows = report.environment() | {
            "free memory": f"{memory.available() / 1e9:.1f} GB",
            "compilation cache": str(_cache_folder()),
        }
        for name, value in rows.items():
            print(f"{name:20s}{value}")

    return call


def run_study(study: Study, options: Any, out: Path, resume: bool) -> None:
    """Run `study` in the folder `out`, draw its report, and print the path of the page."""
    _claim(out, study, options, resume)
    _enable_cache()
    report.save(out, study.name, options, study.run(options, out, resume))
    print(report.write(out).resolve())


def _refuse(error: Exception) -> int:
    print(f"jaxgpu: {error}", file=sys.stderr)
    return 2


def _run_command() -> Any:
    """`run`, with one subcommand a study."""
    by_type = {_launch(study): study for study in studies()}
    kinds = [
        Annotated[
            kind,
            tyro.conf.subcommand(study.name, description=study.description, prefix_name=False),
        ]
        for kind, study in by_type.items()
    ]

    def run(launch: Any) -> Call:
        """Run a study."""
        study = by_type[type(launch)]
        return partial(run_study, study, launch.options, launch.out, launch.resume)

    either = functools.reduce(operator.or_, kinds)
    run.__annotations__["launch"] = Annotated[either, tyro.conf.arg(name="")]
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
    asked = {"study": study.name, **dataclasses.asdict(options)}
    asked = json.loads(json.dumps(asked, default=str))
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
