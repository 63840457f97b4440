"""Stored reports: JSON in a study's folder, with its options, environment and duration."""

import dataclasses
import datetime
import json
import platform
import shlex
from collections.abc import Iterable
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import jax
import numpy as np

import jaxgpu
from jaxgpu.devices import machine
from jaxgpu.devices.processes import is_leader
from jaxgpu.inputs import arguments
from jaxgpu.inputs.explanations import explain_errors
from jaxgpu.inputs.ranges import RANGE_KEY
from jaxgpu.runs.checkpoint.untrusted_data import parse
from jaxgpu.runs.files import replace_file

from .parts import Report, ReportError, check_drawable, check_text, from_record
from .validation import check_record


@explain_errors
def import_extras(*packages: str) -> None:
    """Import the packages that render a report, which a minimal installation lacks.

    Raises:
        ReportError: one of them cannot be imported.

    >>> import_extras("json")
    >>> import_extras("no_such_package")
    Traceback (most recent call last):
    jaxgpu.report.parts.ReportError: report: no_such_package cannot be imported...
    """
    for package in packages or ("jinja2", "matplotlib", "av"):
        try:
            import_module(package)
        except ImportError as missing:
            raise ReportError(
                f"report: {package} cannot be imported ({missing}); reports need it; run `pip "
                'install "jaxgpu[viz]"`'
            ) from None


@explain_errors
def environment() -> dict[str, str]:
    """Return the versions, device and precision that a result depends on.

    >>> environment()["jax"] == jax.__version__
    True
    """
    device = jax.devices()[0]
    return {
        "jaxgpu": jaxgpu.__version__,
        "jax": jax.__version__,
        "jaxlib": metadata.version("jaxlib"),
        "numpy": np.__version__,
        "python": platform.python_version(),
        "device": f"{len(jax.devices())} x {device.device_kind} ({device.platform})",
        "processor": f"{machine.processor()}, {machine.cores()} cores",
        "machine": f"{platform.system()} {platform.machine()}",
        "float64 by default": str(jax.config.read("jax_enable_x64")),
    }


@explain_errors
def save(
    out: Path, study: str, options: Any, report: Report, *, seconds: float | None = None
) -> None:
    """Store `report` in the folder of its study, with its options and environment.

    Args:
        out: the folder.
        study: its name.
        options: a dataclass. Options that differ from their defaults form the command of the page.
        report: the results.
        seconds: wall time of the run, including compilation and figures.
    Raises:
        ValueError, TypeError: `options` or `report` is not a dataclass of its type, or a part of
            the report cannot be rendered: a row of another length than the columns, invalid digits.
    """
    out = arguments.path("report.save: out", out)
    arguments.word("report.save: study", study)
    if not dataclasses.is_dataclass(options) or isinstance(options, type):
        found = arguments.format_value(options)
        raise TypeError(f"report.save: options={found}; it must be a dataclass of options")
    check_drawable("report.save", report)
    record = {
        "study": study,
        "command": command(study, options),
        "reduced": reduced_options(options),
        "options": dataclasses.asdict(options),
        "environment": environment(),
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
        "seconds": seconds,
        "report": dataclasses.asdict(report),
    }
    if is_leader():
        replace_text(out / "report.json", json.dumps(record, default=_to_json_value))


def command(study: str, options: Any) -> str:
    """Return the command that runs a study with these options, without default values.

    >>> command("coin", dataclasses.make_dataclass("Options", [("tosses", int, 9)])(20))
    'jaxgpu run coin --tosses 20'
    """
    words = ["jaxgpu", "run", study]
    for field in dataclasses.fields(options):
        value, name = getattr(options, field.name), field.name.replace("_", "-")
        if value == field.default:
            continue
        if isinstance(value, bool):
            words.append(f"--{name}" if value else f"--no-{name}")
        else:
            parts: Iterable[Any] = value if isinstance(value, tuple | list) else (value,)
            words += [f"--{name}", *(str(part) for part in parts)]
    return shlex.join(words)


def reduced_options(options: Any) -> dict[str, list[int]]:
    """Return the sizes that are below the defaults of a study, with the defaults."""
    smaller = {}
    for field in dataclasses.fields(options):
        value, own = getattr(options, field.name), field.default
        counted = RANGE_KEY in field.metadata and isinstance(own, int) and field.name != "seed"
        if counted and value < own:
            smaller[field.name] = [value, own]
    return smaller


@explain_errors
def read(file: Path) -> dict[str, Any]:
    """Read the complete JSON that `save` wrote.

    Raises:
        ReportError: the file is missing, empty, truncated or not a report, or one of its fields has
            another type.
    """
    file = arguments.path("report.read: file", file, "a file")
    if not file.is_file():
        raise ReportError(f"{file}: no such report; give a report.json that `jaxgpu run` wrote")
    advice = "run its study again with --resume, or remove the file"
    try:
        record = {"command": "", "reduced": {}, "seconds": None, **parse(file.read_text())}
        record["report"] = {"headlines": [], "seed": None, **record["report"]}
        if not {"study", "date", "options", "environment"} <= record.keys():
            raise KeyError("a field that every record has")
    except (ValueError, KeyError, TypeError):
        raise ReportError(f"{file}: empty, damaged or not a jaxgpu report; {advice}") from None
    try:
        check_record(record)
        check_drawable("report", from_record(record["report"]))
    except (ValueError, TypeError) as error:
        raise ReportError(f"{file}: {error}; {advice}") from error
    record["environment"].setdefault("processor", "")
    return record


@explain_errors
def replace_text(path: Path, text: str) -> None:
    """Replace the file `path` by `text` atomically: a reader sees the old text or the new.

    Raises:
        ValueError, TypeError: `path` names no file, or `text` is not a string.

    >>> import tempfile
    >>> page = Path(tempfile.mkdtemp(), "page.html")
    >>> replace_text(page, "new")
    >>> page.read_text()
    'new'
    """
    path = arguments.path("report.replace_text: path", path, "a file")
    check_text("report.replace_text: text", text)
    with replace_file(path) as file:
        file.write(text)


def _to_json_value(value: Any) -> Any:
    """Return an array or a number of NumPy or JAX as JSON holds it, and other values as strings."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic | jax.Array) else str(value)
