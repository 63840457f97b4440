"""Forged files under an audit hook, which name callables of `sys.modules`.

A policy, a checkpoint with its experiment, and a journal are forged: a name, a type, a method or a
whole part of their description is replaced, and their checksums are renewed. Reading them, and
using the result, must not execute, compile, import, write, start or connect anything. Then bytes
and names of valid files are changed at random, with renewed checksums. Each must be read or raise a
CheckpointError, with at most twice its size in memory; the previous checkpoint must be used.
"""

import contextlib
import copy
import dataclasses
import importlib
import json
import os
import random
import re
import shutil
import sys
import tempfile
import time
import tracemalloc
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

import jaxgpu
from jaxgpu import rl
from jaxgpu.devices.processes import ALONE
from jaxgpu.evolution.single import CMAES
from jaxgpu.runs import checkpoint
from jaxgpu.runs.checkpoint import CheckpointError, parts, sealed_files
from jaxgpu.runs.checkpoint.folder import MANIFEST
from jaxgpu.runs.loop import run
from jaxgpu.runs.saving import catalog, experiment, history, watch
from tests.helpers import forgery
from tests.trust.flips import spoilt

FORGED, MUTATED, SEED = 100_000, 100_000, 11
ALLOWANCE = 1 << 20  # bytes that reading takes for the smallest file
_ACTS = re.compile(
    r"exec|compile|ctypes\.|socket\.|subprocess\.|os\.(exec|fork|posix_spawn|spawn|startfile|system)"
    r"|os\.(chmod|chown|link|mkdir|putenv|remove|rename|rmdir|symlink|truncate|unsetenv|utime)"
    r"|shutil\.|pty\.|marshal\.|pickle\.|code\.__new__|urllib\.|webbrowser\.|ftplib\.|smtplib\."
)
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_LISTED = ("jaxgpu.", "optax", "flax.linen", "flax.training")
_OF_CALLS = ("jax", "jaxlib", "numpy", "ml_dtypes", "opt_einsum", "scipy")  # in calls


class Watch:
    """Counter of this process's audit events with side effects."""

    def __init__(self) -> None:
        self.events: Counter[str] = Counter()
        self.on, self.calls = False, False
        sys.addaudithook(self._note)

    @contextlib.contextmanager
    def looking(self, calls: bool = False) -> Iterator[None]:
        """Count events; modules of JAX may be imported if functions are called."""
        self.on, self.calls = True, calls
        try:
            yield
        finally:
            self.on = False

    def _note(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.on:
            return
        if event == "open":
            mode, flags = str(args[1] or ""), int(args[2] or 0)
            acts = bool(set(mode) & set("wax+")) or bool(flags & _WRITES)
            kept = jax.config.jax_compilation_cache_dir  # the tests' own cache
            acts = acts and not (kept and str(args[0]).startswith(str(kept)))
        elif event == "import":
            listed = _LISTED + (_OF_CALLS if self.calls else ())
            acts = not str(args[0]).startswith(listed)
        else:
            acts = _ACTS.match(event) is not None
        if acts:
            self.events[f"{event} {args[0] if args else ''}"[:120]] += 1


def callables() -> list[str]:
    """Return all callables of `sys.modules`, by their names in modules and qualified names."""
    names: set[str] = set()
    for module in list(sys.modules.values()):
        for word, thing in list(getattr(module, "__dict__", {}).items()):
            if callable(thing):
                names.add(f"{module.__name__}:{word}")
                with contextlib.suppress(Exception):
                    names.add(catalog.name_of(thing))
            if isinstance(thing, type):
                names |= {f"{catalog.name_of(thing)}.{inner}" for inner in vars(thing)}
    return sorted(names)


def step(spec: Any, activation: Any, method: Any, kind: Any, x: Any) -> Any:
    """Advance a state by one step; the preceding arguments exist to be named in a file."""
    return {**x, "x": activation(x["x"]) * 0.5}


def write_honest(at: Path) -> None:
    """Write a valid policy, and the folder of a run with a checkpoint of each kind of part."""
    env = rl.make("cartpole")
    ppo = rl.PPO(network=rl.MLP(hidden_sizes=(64,), activation=nn.relu), hidden_sizes=())
    ppo.policy(env, ppo.init(env, jax.random.key(0))).save(at / "policy.npz")
    spec = CMAES(8)
    state = {"x": jnp.ones((40, 40)), "key": jax.random.key(0)}
    state |= {"optimizer": optax.adam(0.1).init(jnp.ones(4)), "spec": spec}
    checkpoint.save_parts(at / "parts", 8, parts.pieces(state, ALONE), {}, ALONE)
    given = partial(step, spec, nn.relu, spec.ask, np.dtype("float32"))
    measure = lambda x: (x["x"][0], {"y": x["x"][1, 0]})
    run(given, state, 8, measure=measure, chunk=4, out=at / "run")


class Files:
    """Valid files, and methods to replace them by forged ones."""

    def __init__(self, at: Path) -> None:
        write_honest(at)
        self.policy, self.run = at / "policy.npz", at / "run"
        self.old, self.new = sorted(self.run.glob("step-*"))
        self.journal = self.run / "history" / history.JOURNAL
        self.rows = self.run / "history" / "00000.rows"
        (self.experiment,) = self.run.glob("experiment-*")
        folder = at / "parts" / "step-000000000008"
        self.part, self.manifest = folder / "part-00000.npz", folder / MANIFEST
        sealed_ = self.policy, self.new, self.experiment, self.part
        files = *sealed_, self.old, self.journal, self.rows, self.manifest
        self.bytes = {file: file.read_bytes() for file in files}
        self.sealed = {file: forgery.take_apart(file) for file in sealed_}
        self.head, self.lines = self.bytes[self.journal].decode().split("\n", 1)
        header, _ = self.sealed[self.new]
        self.was = experiment.read(self.run, header["meta"]["experiment"])

    def restore(self) -> None:
        """Restore the valid files."""
        for file, data in self.bytes.items():
            file.write_bytes(data)
        for file in self.run.glob("experiment-*"):
            if file != self.experiment:
                file.unlink()

    def forge_policy(self, change: Callable[[Any], Any]) -> None:
        header, members = copy.deepcopy(self.sealed[self.policy])
        header["meta"]["tree"] = change(header["meta"]["tree"])
        forgery.seal(self.policy, header, members)

    def forge_checkpoint(self, change: Callable[[Any], Any]) -> None:
        """Change the trees of the state and of the experiment, with the digest that names it."""
        header, members = copy.deepcopy(self.sealed[self.new])
        told = copy.deepcopy(self.was.header)
        header["meta"]["tree"] = change(header["meta"]["tree"])
        told["step"]["carried"] = [[name, change(x)] for name, x in told["step"]["carried"]]
        forged = experiment.Experiment(told, self.was.arrays)
        forged.write(self.run)
        header["meta"]["experiment"] = forged.digest
        forgery.seal(self.new, header, members)

    def forge_journal(self, change: Callable[[Any], Any]) -> None:
        head = json.loads(self.head)
        head["tree"] = change(head["tree"])
        self.journal.write_text(json.dumps(head) + "\n" + self.lines)


def use_policy(files: Files, look: Watch) -> None:
    with look.looking():
        policy = rl.load_policy(files.policy)
    with look.looking(calls=True), contextlib.suppress(Exception):
        policy(np.ones(4, np.float32))


def use_folder(files: Files, look: Watch) -> None:
    with look.looking():
        saved = jaxgpu.load(files.run)
    _call_parts((saved.state, saved.spec), look)


def use_journal(files: Files, look: Watch) -> None:
    with look.looking():
        watch.plot_runs(files.run)
        found = history.read(files.run)
    _call_parts(found, look)


def _call_parts(found: Any, look: Watch) -> None:
    """Call every function, class and callable object in a value that was read."""
    for part in filter(callable, _parts(found)):
        with look.looking(calls=True), contextlib.suppress(Exception):
            part(np.ones(2, np.float32))


USES = {
    "policies": (Files.forge_policy, use_policy),
    "checkpoints": (Files.forge_checkpoint, use_folder),
    "journals": (Files.forge_journal, use_journal),
}


def _parts(found: Any) -> Iterator[Any]:
    """Yield a value and its parts; dictionaries may have keys that JAX cannot sort."""
    yield found
    inside: Any = found if isinstance(found, tuple | list | set) else ()
    if isinstance(found, dict):
        inside = found.values()
    elif isinstance(found, SimpleNamespace) or dataclasses.is_dataclass(type(found)):
        inside = vars(found).values()
    for part in inside:
        yield from _parts(part)


def change_words(pick: random.Random, names: list[str], tree: Any) -> Any:
    """Return a tree of names, one part of which names another object."""
    name = pick.choice(names)
    nodes = list(_nodes(tree, ()))
    named = [at for at, x in nodes if set(x) & {"named", "type", "method"}]
    if named and pick.random() < 0.5:
        at = pick.choice(named)
        node = dict(nodes)[at]
        kind = next(word for word in ("method", "type", "named") if word in node)
        new = {k: v for k, v in node.items() if k not in ("closed", "code")}
        return _replace_at(
            tree, at, new | {kind: name.rpartition(":")[2] if kind == "method" else name}
        )
    at, node = pick.choice(nodes)
    call = {"partial": {"named": name}, "args": ["touch PWNED", node], "named": []}
    method = {"method": name.rpartition(":")[2].rpartition(".")[2], "of": node}
    built = {"type": name, "fields": [["a", call]]}
    return _replace_at(
        tree, at, pick.choice([{"named": name}, call, method, built, {"dtype": name}])
    )


def _nodes(tree: Any, at: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if isinstance(tree, dict):
        yield at, tree
    inside = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, part in inside:
        if isinstance(part, dict | list):
            yield from _nodes(part, (*at, key))


def _replace_at(tree: Any, at: tuple[Any, ...], new: Any) -> Any:
    if not at:
        return new
    inner = copy.copy(tree)
    inner[at[0]] = _replace_at(tree[at[0]], at[1:], new)
    return inner


def read_forged_files(files: Files, look: Watch, count: int, seed: int) -> Counter[str]:
    """Return the outcomes of forged files by kind; the watch counts the events."""
    pick, names = random.Random(seed), callables()
    found: Counter[str] = Counter(callables=len(names))
    for kind, (forge, use) in USES.items():
        for _ in range(count):
            forge(files, partial(change_words, pick, names))
            found[f"{kind} {_outcome(partial(use, files, look))}"] += 1
            files.restore() if kind == "checkpoints" else None
        files.restore()
    return found


def _outcome(use: Callable[[], None]) -> str:
    try:
        use()
    except CheckpointError:
        return "refused"
    except Exception as error:  # no user should see these
        return f"! {error!r:.100}"
    return "read"


# unexpected values, put where jaxgpu writes others
_ODD = [
    None,
    True,
    -1,
    2**70,
    1e400,
    0.5,
    "",
    "\x1b[2J",
    "object",
    [],
    {},
    [[]],
    [-1],
    {"array": 7},
]


def _corrupt_json(header: Any, pick: random.Random, whole: bool = False) -> bytes:
    """Return a header with an unexpected value, or with corrupt bytes unless it must stay JSON."""
    if pick.random() < 0.3 and not whole:
        return spoilt(json.dumps(header).encode(), pick)[1]
    places = [*_paths(header, ())]
    return json.dumps(_replace_at(header, pick.choice(places), pick.choice(_ODD))).encode()


def _paths(tree: Any, at: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    yield at
    inside = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, part in inside if isinstance(tree, dict | list) else ():
        yield from _paths(part, (*at, key)) if isinstance(part, dict | list) else [(*at, key)]


def _mutate(file: Path, files: Files, pick: random.Random) -> None:
    """Change a checksummed file: its header, a member, its compression, or any of its bytes."""
    header, members = files.sealed[file]
    how = pick.choices(["header", "member", "packed", "bytes"], [5, 2, 1, 4])[0]
    if how == "header" or (how == "member" and not members):
        forgery.seal(file, _corrupt_json(header, pick), members)
    elif how == "member":
        name = pick.choice(list(members))
        forgery.seal(file, header, members | {name: spoilt(members[name], pick)[1]})
    elif how == "packed":
        odd = {name: data for name, data in members.items() if pick.random() < 0.7}
        forgery.seal(file, header, odd, pick.choice([0, 8, 12, 14]))
    else:
        body = spoilt(files.bytes[file][:-64], pick)[1]
        forgery.seal_bytes(file, body + bytes(64))


def _mutate_parts(files: Files, pick: random.Random) -> None:
    """Change a part, with its new checksum in the manifest, or the manifest with a new digest."""
    manifest = json.loads(files.bytes[files.manifest])
    del manifest["digest"]
    if pick.random() < 0.5:
        _mutate(files.part, files, pick)
        with contextlib.suppress(CheckpointError):
            manifest["parts"] = [sealed_files.seal_of(files.part)]
    else:
        manifest = json.loads(_corrupt_json(manifest, pick, whole=True))
    digest = parts._manifest_digest(manifest)
    told = manifest | {"digest": digest} if isinstance(manifest, dict) else manifest
    files.manifest.write_text(json.dumps(told))


def _mutate_journal(files: Files, pick: random.Random) -> None:
    if pick.random() < 0.2:
        files.rows.write_bytes(spoilt(files.bytes[files.rows], pick)[1])
    head = (
        _corrupt_json(json.loads(files.head), pick) if pick.random() < 0.6 else files.head.encode()
    )
    lines = files.lines.encode()
    if pick.random() < 0.4:
        row = json.loads(pick.choice(files.lines.splitlines()))
        lines += _corrupt_json(row, pick) + b"\n"
    files.journal.write_bytes(head + b"\n" + lines)


def read_changed_files(files: Files, count: int, seed: int) -> Counter[str]:
    """Return the outcomes of changed files, and how many took too much memory."""
    pick, found = random.Random(seed), Counter[str]()
    like = jaxgpu.load(files.run).state
    shape = lambda meta: like
    tracemalloc.start()
    for _ in range(count):
        which = pick.choice(["policy", "checkpoint", "experiment", "journal", "parts"])
        if which == "journal":
            _mutate_journal(files, pick)
            use = partial(_read_journal, files)
        elif which == "parts":
            _mutate_parts(files, pick)
            use = partial(checkpoint.read, files.manifest.parent)
        else:
            file = {"policy": files.policy, "checkpoint": files.new}.get(which, files.experiment)
            _mutate(file, files, pick)
            use = {
                "policy": partial(rl.load_policy, files.policy),
                "checkpoint": partial(_fall_back, files, shape),
            }.get(which, partial(_load_folder, files))
        place = {"policy": files.policy, "parts": files.manifest.parent}.get(which, files.run)
        size = sum(file.stat().st_size for file in [place, *place.rglob("*")] if file.is_file())
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        found[f"{which} {_outcome(use)}"] += 1
        peak = tracemalloc.get_traced_memory()[1] - before
        found["! too much memory"] += peak > 2 * size + ALLOWANCE
        files.restore()
    tracemalloc.stop()
    return +found


def _read_journal(files: Files) -> None:
    watch.plot_runs(files.run)
    history.read(files.run)
    for *_, rows in history.stored_arrays(files.run):
        rows.tobytes()


def _load_folder(files: Files) -> None:
    saved = jaxgpu.load(files.run)
    str((saved.state, saved.spec, saved.history))


def _fall_back(files: Files, shape: Callable[[Any], Any]) -> None:
    """Read the folder and resume from it: the previous checkpoint must be found."""
    try:
        _load_folder(files)
        found = checkpoint.load_last(files.run, shape)
    except CheckpointError as error:
        raise RuntimeError("the checkpoint before was not used") from error
    assert found is not None


def prove(count_forged: int, count_mutated: int, seed: int) -> dict[str, Any]:
    """Return the outcomes of forged and of changed files, in a temporary folder."""
    began = time.perf_counter()
    memory = Path("/dev/shm")  # if present: no waiting for a disk
    at = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
    look = Watch()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # each warning names a skipped checkpoint
        try:
            files = Files(at)
            catalog.find_function("flax.linen:none"), catalog.find_class("flax.linen:None")
            # JAX imports it when it puts some arrays onto devices
            importlib.import_module("jax.experimental.multihost_utils")
            for _, use in USES.values():  # valid files do their imports and compilations here
                use(files, look)
            look.events.clear()
            found = read_forged_files(files, look, count_forged, seed)
            found += read_changed_files(files, count_mutated, seed)
        finally:
            shutil.rmtree(at)
    events = look.events.total()
    failed = events + sum(n for how, n in found.items() if how.startswith("!") or " ! " in how)
    counts = {"forged": 3 * count_forged, "events": events, "mutated": count_mutated, **found}
    shown = {"what": dict(look.events.most_common(20))} if events else {}
    seconds = round(time.perf_counter() - began)
    return {"counts": counts, "failed": failed, "seconds": seconds} | shown


def measure() -> dict[str, Any]:
    """Run the test at full size."""
    return prove(FORGED, MUTATED, SEED)
