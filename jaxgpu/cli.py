"""Command line `jaxgpu`: list, run and watch studies, build reports, show the hardware, cite.

Options are the fields of the studies' dataclasses, which tyro converts to a command line. Invalid
input gives a message of one sentence and exit code 2.
"""

import contextlib
import dataclasses
import errno
import functools
import io
import json
import operator
import os
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import jax
import tyro

from jaxgpu import __version__, report
from jaxgpu.devices import memory
from jaxgpu.inputs import ranges
from jaxgpu.report import ReportError
from jaxgpu.runs import files
from jaxgpu.runs.checkpoint import CheckpointError
from jaxgpu.runs.checkpoint.folder import MANIFEST
from jaxgpu.runs.checkpoint.untrusted_data import open_file, parse, printable
from jaxgpu.runs.saving import watch
from jaxgpu.studies import BadInput, Study, from_file, studies

# remedies for errors of the file system
_REMEDIES = {
    errno.ENOSPC: "free disk space, and resume with --resume",
    errno.EDQUOT: "free disk space, and resume with --resume",
    errno.EROFS: "give another --out",
    errno.EACCES: "give another --out",
    errno.EPERM: "give another --out",
    errno.EAGAIN: "wait, or give another --out",
    errno.EEXIST: "give a folder",
    errno.ENOTDIR: "give a folder",
}

_CLEAR_SCREEN = "\x1b[H\x1b[2J"  # clears the terminal

_OUT_OF_MEMORY = "RESOURCE_EXHAUSTED", "Out of memory"  # in error messages of XLA
_OPTIONS_FILE = "options.json"  # file in the folder of a run

_TITLE = "{jaxgpu}: simulation, optimisation, learning and special functions as XLA programs"
_CITATION = f"""@software{{jaxgpu,
  author  = {{{{The jaxgpu authors}}}},
  title   = {{{_TITLE}}},
  version = {{{__version__}}},
  license = {{Apache-2.0}},
}}"""

# a command is parsed and its options are checked before the call that it returns runs
type Call = Callable[[], None]


def main(args: list[str] | None = None) -> int:
    """Run the command line `args` (default: those of the process); return the exit code."""
    args = sys.argv[1:] if args is None else args
    _open_missing_streams()
    if args == ["--version"]:
        print(f"jaxgpu {__version__}")
        return 0
    said = io.StringIO()  # error output of the parser
    try:
        found, args = _find_studies(args)
        run = _make_run_command(found)
        commands = {"list": list_, "run": run, "watch": watch_, "report": report_}
        commands |= {"info": info, "cite": cite}
        with contextlib.redirect_stderr(said):
            call = tyro.extras.subcommand_cli_from_dict(
                commands,
                args=args,
                prog="jaxgpu",
                description="Simulation, optimisation, learning and special functions in JAX. "
                "A study is a name from `jaxgpu list`, or the path of a Python file; --version "
                "prints the version.",
                config=(tyro.conf.FlagCreatePairsOff,),
            )
    except SystemExit as stop:
        return _print_error(_join_box_lines(said.getvalue())) if stop.code else 0
    except (TypeError, ValueError) as error:  # an option that its dataclass rejects
        return _print_error(error)
    try:
        call()
    except (BadInput, CheckpointError, ReportError, MemoryError) as error:
        return _print_error(error)
    except jax.errors.JaxRuntimeError as error:
        if not any(word in str(error) for word in _OUT_OF_MEMORY):
            raise
        return _print_error("out of memory; make the problem smaller or use a larger device")
    except OSError as error:
        return _print_error(_describe_os_error(error))
    except KeyboardInterrupt as stop:
        print(f"jaxgpu: {stop or 'stopped'}", file=sys.stderr)
        return 130
    return 0


def list_() -> Call:
    """List the studies."""

    def print_studies():
        found = studies()
        width = max(len(study.name) for study in found)
        for study in found:
            print(f"{study.name:{width}}  {study.description}")

    return print_studies


def report_(
    folder: tyro.conf.Positional[Annotated[Path | None, tyro.conf.arg(metavar="[DIR]")]] = None,
    compare: Annotated[tuple[Path, Path] | None, tyro.conf.arg(metavar="DIR DIR")] = None,
) -> Call:
    """Build one page, report.html, from all results in a folder, or compare two runs.

    Args:
        folder: a folder that `jaxgpu run` wrote, or its parent; give it or --compare.
        compare: two such folders; the comparison is comparison.html in the second.
    """
    if folder is not None and compare is None:
        return lambda: print(report.write(folder).resolve())
    if folder is None and compare is not None:
        return lambda: print(report.compare(*compare).resolve())
    raise BadInput("report: give a folder, or --compare and two folders")


def watch_(
    folder: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="DIR")]],
    once: bool = False,
    seconds: float = 1.0,
) -> Call:
    """Plot active runs in the terminal until Ctrl-C.

    Args:
        folder: the folder of a run, or a folder above it.
        once: plot the current state and exit.
        seconds: between two plots.
    """
    ranges.refuse("watch: seconds", seconds, ranges.Range(above=0, most=86_400))

    def plot_repeatedly():
        picture = watch.plot_runs(folder)
        with contextlib.suppress(KeyboardInterrupt):
            while not once:
                print(
                    f"{_CLEAR_SCREEN}{picture}\n(Ctrl-C stops watching; the run continues)",
                    flush=True,
                )
                time.sleep(seconds)
                picture = watch.plot_runs(folder)
        if once:
            print(picture)

    return plot_repeatedly


def info() -> Call:
    """Show devices, precision, memory and versions."""

    def print_info():
        rows = report.environment() | {
            "free memory": f"{memory.free_bytes() / 1e9:.1f} GB",
            "compilation cache": str(_cache_folder()),
        }
        for name, value in rows.items():
            print(f"{name:20s}{value}")

    return print_info


def cite() -> Call:
    """Print how to cite jaxgpu, as BibTeX; reports list the papers of their methods."""
    return lambda: print(_CITATION)


def run_study(study: Study, options: Any, out: Path, resume: bool) -> None:
    """Run `study` in the folder `out`, build its report, and print the path of the page.

    Options are checked against the ranges of their fields, and the packages that render the report
    are imported, before anything runs. A folder in which nothing was saved can be used again.

    Raises:
        BadInput: an option outside its range, or a folder of another experiment.
        ReportError: matplotlib, jinja2 or av is not installed.
    """
    try:
        ranges.check(study.name, options)
    except (TypeError, ValueError) as error:
        raise BadInput(str(error)) from None
    report.import_extras()
    with _lock_output(out, study, options, resume):
        _enable_cache()
        began = time.perf_counter()
        found = study.run(options, out, resume)
        report.save(out, study.name, options, found, seconds=time.perf_counter() - began)
    print(report.write(out).resolve())


def _open_missing_streams() -> None:
    """Open the null device for missing standard streams, as in a service.

    Libraries write to them, and the next opened file would get their file descriptor.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))


def _print_error(error: Exception | str) -> int:
    print(f"jaxgpu: {printable(error)}", file=sys.stderr)
    return 2


def _join_box_lines(box: str) -> str:
    """Convert the parser's message, a box of several lines, to one line."""
    parts = [""]
    for line in box.splitlines():
        inner = line.strip("│| ")
        if line[:1] in "╭╰+":  # edges of the box
            continue
        if inner.strip("─-"):
            parts[-1] = f"{parts[-1]} {inner}".strip()
        else:
            parts.append("")
    return "; ".join(" ".join(part.split()).rstrip(".") for part in parts if part)


def _describe_os_error(error: OSError) -> str:
    """Return the message for a file system error: file, reason and remedy."""
    if error.errno is None:  # raised by jaxgpu
        return str(error)
    where = f"{error.filename}: " if error.filename else ""
    advice = _REMEDIES.get(error.errno, "give another folder")
    return f"{where}{error.strerror}; {advice}"


def _find_studies(args: list[str]) -> tuple[list[Study], list[str]]:
    """Return the available studies, and the arguments with a study file replaced by its name."""
    at = 1 if args[:1] == ["run"] else len(args)
    if not args[at : at + 1] or not args[at].endswith(".py"):
        return studies(), args
    study = from_file(args[at])
    others = [other for other in studies() if other.name != study.name]
    return [*others, study], [args[0], study.name, *args[at + 1 :]]


def _make_run_command(found: list[Study]) -> Any:
    """Make the command `run`, with one subcommand per study."""
    by_type = {_make_launch_class(study): study for study in found}
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


def _make_launch_class(study: Study) -> type:
    """Return a dataclass for the parser: the options of `study`, the folder and `resume`."""
    fields = [
        ("options", Annotated[study.options, tyro.conf.arg(name="")], study.options()),
        ("out", Annotated[Path, tyro.conf.arg(help="Folder of results.")], Path("out", study.name)),
        ("resume", Annotated[bool, tyro.conf.arg(help="Resume the run in the folder.")], False),
    ]
    return dataclasses.make_dataclass(
        study.name, [(n, t, dataclasses.field(default=d)) for n, t, d in fields], frozen=True
    )


@contextlib.contextmanager
def _lock_output(out: Path, study: Study, options: Any, resume: bool) -> Iterator[None]:
    """Lock `out` for this experiment and process.

    It can be used again if the experiment ends before anything is saved in it.
    """
    if out.exists() and not out.is_dir():
        raise BadInput(f"{out}: is a file; give a folder as --out")
    out.mkdir(parents=True, exist_ok=True)
    with files.lock_folder(out):
        _record_experiment(out, study, options, resume)
        try:
            yield
        except BaseException:
            if not _has_results(out):
                (out / _OPTIONS_FILE).unlink(missing_ok=True)
            raise


def _record_experiment(out: Path, study: Study, options: Any, resume: bool) -> None:
    """Record the experiment of `out`; raise if it holds a run that this one cannot resume."""
    asked = {"study": study.name, **dataclasses.asdict(options)}
    asked = json.loads(json.dumps(asked, default=str))
    file = out / _OPTIONS_FILE
    if file.exists() and _has_results(out):
        if not resume:
            raise BadInput(f"{out}: holds a run already; add --resume, or give another --out")
        held = _read_options(file)
        changed = [name for name in asked.keys() | held.keys() if asked.get(name) != held.get(name)]
        if changed:
            name = min(changed)
            raise BadInput(
                f"{out}: was run with {name}={held.get(name)}, not {asked.get(name)}; "
                "resume with the same options, or give another --out"
            )
    report.replace_text(file, json.dumps(asked))


def _read_options(file: Path) -> dict[str, Any]:
    """Return the options that a run was started with."""
    with contextlib.suppress(ValueError), open_file(file) as text:
        held = parse(text.read())
        if isinstance(held, dict):
            return held
    raise BadInput(f"{file}: empty or damaged; remove it, and resume with the original options")


def _has_results(out: Path) -> bool:
    """Return True if there is a report or a checkpoint in `out` or below it."""
    kinds = "step-*.npz", f"step-*/{MANIFEST}"
    return (out / "report.json").exists() or any(any(out.rglob(kind)) for kind in kinds)


def _cache_folder() -> Path:
    root = os.environ.get("JAX_COMPILATION_CACHE_DIR")
    return Path(root) if root else Path.home() / ".cache" / "jaxgpu" / "compiled"


def _enable_cache() -> None:
    """Cache compiled programs between runs, in a folder that only its owner can write.

    JAX executes programs from the cache, so it is not used if others can write to it.
    """
    folder = _cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        fault = _find_permission_problem(folder)
    except OSError as error:
        fault = f"{error.filename}: {error.strerror}"
    if fault:
        print(f"jaxgpu: compiled programs are not cached ({fault})", file=sys.stderr)
        jax.config.update("jax_compilation_cache_dir", None)  # JAX itself reads the variable
        return
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)


def _find_permission_problem(folder: Path) -> str:
    """Return the reason why others can write to a folder, and the remedy; empty if they cannot."""
    if os.name != "posix":
        return ""
    found = folder.stat()
    if found.st_uid != os.geteuid():
        return f"{folder}: belongs to another user; set JAX_COMPILATION_CACHE_DIR to one of yours"
    if found.st_mode & 0o022:
        return f"{folder}: others can write there; chmod go-w it"
    return ""


if __name__ == "__main__":
    sys.exit(main())
