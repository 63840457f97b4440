"""Description of a run by named values: arguments of its step and measure, start and key.

It is stored next to the checkpoints, in a file named by its own digest. The digests of `identity`
decide whether a run is the same, and miss nothing. The names here describe the difference, let a
caller allow it, and restore the spec without the script that made it.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxgpu.devices.processes import spans

from ..checkpoint import CheckpointError, binary, sealed_files
from ..program import Call
from . import identity, objects, settings, structure
from .catalog import Trusted

FORMAT = "jaxgpu-experiment"
_DIGEST_LENGTH = 16  # characters of the digest in the name of the file


@dataclass(frozen=True)
class Experiment:
    """Description of a run, as its file holds it."""

    # structures of "step" and "measure", values of "start", "key" and "settings"
    header: dict[str, Any]
    arrays: list[Any]  # arrays that the structures refer to

    @property
    def digest(self) -> str:
        text = json.dumps(self.header, sort_keys=True)
        return identity.combine_digests(text, *map(identity.arrays_digest, self.arrays))

    def write(self, out: Path) -> None:
        """Write it into the folder of a run, unless it is there already."""
        path = _experiment_path(out, self.digest)
        if not path.exists():
            arrays = [np.asarray(binary.numbers_of(a)) for a in self.arrays]
            kinds = [[binary.kind_of(a), list(b.shape)] for a, b in zip(self.arrays, arrays)]
            header = sealed_files.stamp(FORMAT) | {"experiment": self.header, "arrays": kinds}
            sealed_files.write(path, header, arrays)

    def names(self) -> dict[str, str]:
        """Return all values, formatted, by their names."""
        found = {"key": self.header["key"]}
        found |= {f"start{name}": value for name, value in self.header["start"].items()}
        found |= {
            f"measure.{name}".removesuffix(".function"): value
            for name, value in self._iterate_values("measure")
        }
        return found | dict(self._iterate_values("step")) | self.header["settings"]

    def spec(self, trusted: Trusted = ()) -> Any:
        """Return the spec whose method the step is, or its bound arguments by name."""
        step = self.header["step"]
        found = {n: objects.build(part, self.arrays, trusted) for n, part in step["carried"]}
        return found["self"] if list(found) == ["self"] else found

    def _iterate_values(self, part: str) -> Iterator[tuple[str, str]]:
        inside = self.header[part]
        for name, value in structure.flat_values(inside["function"], self.arrays).items():
            yield name or "function", value
        for at, carried in inside["carried"]:
            at = "" if at == "self" else at
            for name, value in structure.flat_values(carried, self.arrays, at).items():
                yield name or "spec", value


EMPTY = Experiment({}, [])  # for a run that is not saved


def describe_run(step: Call, measure: Call, state: Any, key: Any) -> Experiment:
    """Return the functions, operands, start and key that identify a run; call it in all processes.

    >>> describe_run(Call(abs), Call(abs), {"x": np.float32(1.0)}, None).names()["start['x']"]
    '1.0 (float32)'
    """
    arrays: list[Any] = []
    parts = {"step": _describe_call(step, arrays), "measure": _describe_call(measure, arrays)}
    start = {
        jax.tree_util.keystr(at): _format_leaf(x) for at, x in jax.tree.leaves_with_path(state)
    }
    shown = "None" if key is None else structure.format_array(key)
    rest = {"start": start, "key": shown, "settings": settings.number_settings()}
    return Experiment(parts | rest, arrays)


def read(out: Path, digest: str) -> Experiment:
    """Read the experiment with this digest from the folder of a run.

    Raises:
        CheckpointError: there is none, or it was altered.
    """
    path = _experiment_path(out, str(digest))
    with sealed_files.convert_errors(path):
        sealed_files.seal_of(path)
        with sealed_files.open_sealed(path, FORMAT) as (header, members):
            arrays = [
                binary.leaf_of(binary.from_bytes(members[str(i)], kind, shape), kind)
                for i, (kind, shape) in enumerate(header["arrays"])
            ]
        found = Experiment(header["experiment"], arrays)
        if found.digest != digest:
            raise CheckpointError(f"{path}: belongs to another experiment; use another folder")
        return found


def differences(was: Experiment, now: Experiment) -> dict[str, str]:
    """Return the differences between two experiments by name, such as "was 0.02, is 0.2".

    Values of only one of them are omitted if the value that contains them differs too.

    >>> from functools import partial
    >>> calls = [Call(partial(lambda rate, x: rate * x, rate)) for rate in (0.1, 0.2)]
    >>> differences(*(describe_run(call, Call(abs), {}, None) for call in calls))
    {'rate': 'was 0.1, is 0.2'}
    """
    old, new = was.names(), now.names()
    names = [*new, *(name for name in old if name not in new)]
    other = [name for name in names if old.get(name) != new.get(name)]
    alone = {name for name in other if name not in old or name not in new}
    method = [at for at, _ in now.header["step"]["carried"]] == ["self"]
    has_changed_parent = lambda name: any(whole in other for whole in _parent_names(name, method))
    return {
        name: f"was {old.get(name, 'missing')}, is {new.get(name, 'missing')}"
        for name in sorted(other, key=_sort_key)
        if name not in alone or not has_changed_parent(name)
    }


def _parent_names(name: str, method: bool) -> list[str]:
    """Return the names of the values that contain a value."""
    ends = [i for i, letter in enumerate(name) if letter in ".[" and i]
    spec = ["spec"] if method and part_of(name) == "step" and name != "function" else []
    return [name[:end] for end in ends] + [x for x in spec if x != name]


def _sort_key(name: str) -> tuple[bool, int]:
    """Return a sort key: x, v and m before other arrays of the start, deeper names last.

    >>> sorted(["start.bodies.stars.a", "start.gone.time", "start.bodies.pairs.m"], key=_sort_key)
    ['start.bodies.pairs.m', 'start.gone.time', 'start.bodies.stars.a']
    """
    if part_of(name) != "start":
        return False, 0
    last = [word for word in re.findall(r"\w+", name) if not word.isdigit()][-1]
    return last not in ("x", "v", "m"), name.count(".") + name.count("[")


def is_allowed(name: str, allow: Iterable[str]) -> bool:
    """Return True if `name` equals one in `allow`, ends with it, or is inside the value it names.

    >>> [is_allowed("steps.eta", (word,)) for word in ("eta", "steps.eta", "steps", "beta")]
    [True, True, True, False]
    """
    plain = name.replace("[", ".[").lstrip(".")
    parts = plain.split(".")
    ends = {".".join(parts[i:j]) for i in range(len(parts)) for j in range(i + 1, len(parts) + 1)}
    return any(word.replace("[", ".[").lstrip(".") in ends for word in allow)


def part_of(name: str) -> str:
    """Return the part of a run that a value belongs to: step, start, measure or key.

    >>> part_of("start['x']"), part_of("steps.eta")
    ('start', 'step')
    """
    first = name.replace("[", ".").partition(".")[0]
    return first if first in ("start", "measure", "key") else "step"


def _describe_call(call: Call, arrays: list[Any]) -> dict[str, Any]:
    inside = [
        [name, structure.describe_value(value, arrays)]
        for name, value in call.named_arguments().items()
    ]
    return {"function": structure.describe_value(call.function, arrays), "carried": inside}


def _format_leaf(leaf: Any) -> str:
    if spans(leaf):
        return f"{leaf.dtype}{list(leaf.shape)} {identity.arrays_digest(leaf)[:_DIGEST_LENGTH]}"
    return structure.format_array(leaf)


def _experiment_path(out: Path, digest: str) -> Path:
    return out / f"experiment-{digest[:_DIGEST_LENGTH]}.npz"
