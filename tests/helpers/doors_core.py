"""API cases of the core: runs, checkpoints, reports, meshes, memory, precision and ranges."""

import contextlib
import dataclasses
import tempfile

import jax
import jax.numpy as jnp
import matplotlib
import numpy as np
from doors import Door
from matplotlib.figure import Figure as Drawing

from jaxgpu import load, report
from jaxgpu.devices import allocation, memory, mesh, precision
from jaxgpu.inputs import ranges
from jaxgpu.inputs.fields import number, pytree, size
from jaxgpu.report import Headline, Report, Table
from jaxgpu.runs import Branch, Logarithmic, WallTime, checkpoint, program
from jaxgpu.runs.loop import Timing, rollout, run
from jaxgpu.runs.saving.kept_steps import KeptSteps

matplotlib.use("Agg")

X = np.array([[0.5, -1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.5]], np.float32)
KEY = jax.random.key(0)
PROGRAM = jax.jit(jnp.sin).lower(jnp.zeros(3)).compile()
ROWS = np.array([[1.0, 2.5], [3.0, -4.0], [5.0, 6.0]])

# data that are only transported may have any value
DATA = ("zero", "negative", "empty", "wrong length", "narrow", "flat", "transposed", "complex")


def data(name, *less):
    return tuple(f"{name}: {kind}" for kind in DATA if kind not in less)


def ends(name):
    return (f"{name}: inf", f"{name}: -inf")


def plain(tree):
    """Return the transported data as an array of real numbers if possible."""
    a = np.asarray(tree)
    return a.astype(float) if a.dtype.kind in "if" else a.tolist()


@contextlib.contextmanager
def elsewhere():
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        yield


def saved_and_loaded(path="a.npz", tree=X, meta=None):
    with elsewhere():
        checkpoint.save(path, tree, meta)
        return plain(checkpoint.load(path, tree)[0])


def run_and_loaded(folder="run", step=None):
    with elsewhere():
        run(jnp.sin, X, 2, measure=jnp.sum, out="run", keep=1)
        return plain(load(folder, step=step).history)


def branched(step):
    with elsewhere():
        run(jnp.sin, X, 2, out="run", keep=1)
        return plain(run(jnp.sin, X, 2, resume=Branch("run", step)).state)


def loaded(path="a.npz", like=X):
    with elsewhere():
        checkpoint.save("a.npz", X)
        return checkpoint.load(path, like)[0]


def read(path):
    with elsewhere():
        checkpoint.save("a.npz", X)
        return checkpoint.read(path)


def steps(directory="run", step=7, keep=2, meta=None):
    with elsewhere():
        checkpoint.save_step(directory, 1, X, {})
        checkpoint.save_step(directory, step, X, meta or {}, keep)
        return checkpoint.load_last(directory, lambda meta: X)[1]["step"]


def last(directory, template):
    with elsewhere():
        checkpoint.save_step("run", 1, X, {})
        return checkpoint.load_last(directory, template)


def turned(state, key=None):
    return jax.tree.map(lambda x: -x, state)


def went(state=X, **given):
    with elsewhere():
        if given.get("out") is None:
            given.pop("out", None)
        return plain(run(turned, state, **{"steps": 3} | given).state)


def kept(rows=ROWS, table=None, headline=None, **given):
    """Return the rows that a saved report stores, after its page is drawn."""
    table = table or Table("", ["a", "b"], rows)
    parts = {"title": "a", "lead": "b", "timing": {"run": Timing(1.0, 2.0, 3)}}
    arguments = {"out": "a", "study": "coin", "options": Table("", [], [])} | given
    arguments |= {part: arguments[part] for part in parts if part in arguments}
    parts |= {part: arguments.pop(part) for part in parts if part in arguments}
    with elsewhere():
        top = [] if headline is None else [headline]
        report.save(report=Report(**parts, tables=[table], headlines=top), **arguments)
        report.write(arguments["out"])
        held = report.read(f"{arguments['out']}/report.json")["report"]["tables"]
    return plain(held[0]["rows"])


def drawn(drawing=None, **given):
    drawing = Drawing() if drawing is None else drawing
    return report.figure(drawing, **{"caption": "a"} | given).mime


def written(f, **given):
    """Call a function of a folder or of a file that contains one report."""
    with elsewhere():
        report.save("a", "coin", Table("", [], []), Report("a", "b"))
        return f(**given)


@pytree
class Spring:
    rate: float = number(2.0, above=0, most=10)
    turns: int = size(3, least=1)
    free: float | None = number(None, least=0, none=True)


DOORS = [
    Door("mesh.devices", mesh.devices, {"count": 2, "axis": "a"}, ("count: None", "axis: unknown")),
    Door(
        "mesh.split",
        lambda tree: plain(mesh.split(tree, mesh.devices(2))),
        {"tree": X},
        right=(*data("tree", "wrong length"), "tree: None"),
        limits=ends("tree"),
        nan_passes=("tree",),
    ),
    Door("mesh.split: mesh", lambda mesh_: mesh.split(X, mesh_), {"mesh_": mesh.devices(2)}),
    Door(
        "mesh.replicate",
        lambda tree: plain(mesh.replicate(tree, mesh.devices(2))),
        {"tree": X},
        right=(*data("tree"), "tree: None"),
        limits=ends("tree"),
        nan_passes=("tree",),
    ),
    Door("mesh.replicate: mesh", lambda mesh_: mesh.replicate(X, mesh_), {"mesh_": None}),
    Door("mesh.flat", lambda mesh_: mesh.flat("run: mesh", mesh_), {"mesh_": mesh.devices(2)}),
    Door(
        "mesh.over",
        lambda x, axis: mesh.over(jnp.sin, mesh.devices(2), axis)(x),
        {"x": X, "axis": 0},
        right=(*data("x", "wrong length"), "axis: zero"),
        limits=ends("x"),
        nan_passes=("x",),
    ),
    Door(
        "mesh.over: f, mesh",
        lambda f, mesh_: mesh.over(f, mesh_),
        {"f": jnp.sin, "mesh_": mesh.devices(2)},
    ),
    Door("memory.forecast", memory.forecast, {"compiled": PROGRAM}),
    Door("memory.available", memory.available, {"device": jax.devices()[0]}, ("device: None",)),
    Door("load: folder", run_and_loaded, {"folder": "run"}),
    Door("load: step", run_and_loaded, {"step": 1}, ("step: None",)),
    Door("runs.Branch", branched, {"step": 1}),
    Door("runs.WallTime", lambda seconds: WallTime(seconds).seconds, {"seconds": 60.0}),
    Door(
        "runs.Logarithmic",
        lambda first, factor: KeptSteps(Logarithmic(first, factor)).count(0, 100),
        {"first": 1, "factor": 2.0},
    ),
    Door("run.run: keep", lambda keep: went(keep=keep, out="run"), {"keep": 2}, ("keep: None",)),
    Door("memory.room", lambda size: memory.room("sky", size), {"size": 1000}, ("size: zero",)),
    Door(
        "memory.size",
        memory.size,
        {"tree": X},
        right=(*data("tree"), "tree: wrong length", "tree: None", "tree: nan"),
        limits=ends("tree"),
    ),
    Door("allocation.bounded", allocation.bounded, {"f": np.ones}),
    Door("allocation.needed", lambda f: allocation.needed(f, 3), {"f": jnp.ones}),
    Door("memory.check", lambda compiled: memory.check(compiled, "sky"), {"compiled": PROGRAM}),
    Door("precision.in_float64", lambda f: precision.in_float64(f)(), {"f": lambda: 1.0}),
    Door("precision.reassociated", lambda f: precision.reassociated(f)(), {"f": lambda: 1.0}),
    Door("program.long", lambda step: program.long(step)(), {"step": lambda: 1.0}),
    Door(
        "checkpoint.save",
        saved_and_loaded,
        {"path": "a.npz", "tree": X},
        right=(*data("tree"), "tree: None", "path: unknown"),
        limits=ends("tree"),
        nan_passes=("tree",),
    ),
    Door("checkpoint.save: meta", saved_and_loaded, {"meta": {"a": 1}}, ("meta: None",)),
    Door(
        "checkpoint.load",  # the values of `like` are not used
        loaded,
        {"path": "a.npz", "like": X},
        right=tuple(f"like: {kind}" for kind in ("zero", "negative", "nan", "inf", "-inf")),
    ),
    Door("checkpoint.read", read, {"path": "a.npz"}),
    Door(
        "checkpoint.save_step",
        steps,
        {"directory": "run", "step": 7, "keep": 2},
        right=("step: zero", "directory: unknown"),
    ),
    Door(
        "checkpoint.load_last",
        last,
        {"directory": "run", "template": lambda meta: X},
        right=("directory: unknown",),
    ),
    Door(
        "checkpoint.holds_any",
        checkpoint.holds_any,
        {"directory": "run"},
        right=("directory: unknown",),
    ),
    Door(
        "run.run",
        went,
        {"state": X, "steps": 3, "chunk": 2, "out": "run"},
        right=(*data("state"), "state: None", "steps: zero", "chunk: None")
        + ("out: unknown", "out: None"),
        limits=ends("state"),
        nan_passes=("state",),
    ),
    Door(
        "run.rollout",
        lambda step=turned, **given: rollout(step, X, **given)[0],
        {"steps": 2},
        right=("steps: zero",),
    ),
    Door(
        "run.run: functions and keys",
        lambda step=turned, **given: run(step, X, 2, **given).state,
        {
            "step": turned,
            "key": KEY,
            "measure": jnp.sum,
            "until": lambda state: jnp.max(state) > 1e9,
            "check": lambda state, history: None,
        },
        right=("key: None", "measure: None", "until: None", "check: None"),
    ),
    Door(
        "report.figure",
        drawn,
        {"caption": "a", "mime": "image/png"},
        right=("caption: unknown", "caption: empty"),
    ),
    Door("report.figure: drawing", drawn, {"drawing": Drawing()}, ("drawing: None",)),
    Door(
        "report.save",
        kept,
        {"rows": ROWS, "out": "a", "study": "coin", "title": "A coin", "lead": "Heads."},
        right=("rows: zero", "rows: negative", "rows: empty", "rows: wrong length")
        + ("rows: words", "rows: complex", "out: unknown", "study: unknown")
        + ("title: unknown", "title: empty", "lead: unknown", "lead: empty"),
        limits=ends("rows"),
        nan_passes=("rows",),
    ),
    Door("report.save, Table", kept, {"table": Table("", ["a", "b"], ROWS.tolist())}),
    Door("report.save, Headline", kept, {"headline": Headline("height, m", 1.25)}),
    Door("report.save: parts", kept, {"options": Spring(), "timing": {}}),
    Door("report.write", lambda folder: written(report.write, folder=folder), {"folder": "a"}),
    Door(
        "report.compare",
        lambda one, other: written(report.compare, one=one, other=other),
        {"one": "a", "other": "a"},
    ),
    Door("report.read", lambda file: written(report.read, file=file), {"file": "a/report.json"}),
    Door(
        "report.replace_text",
        lambda **given: written(report.replace_text, **given),
        {"path": "a.json", "text": "{}"},
        right=("path: unknown", "text: unknown", "text: empty"),
    ),
    Door(
        "pytree.number",
        lambda default, least: number(default, least=least, most=2.0).metadata,
        {"default": 1.5, "least": -1.0},
        right=("default: zero", "default: negative", "default: empty")
        + ("least: zero", "least: negative", "least: -inf"),
    ),
    Door(
        "pytree.size",
        lambda default, least: size(default, least=least, most=5).metadata,
        {"default": 4, "least": 2},
        right=("least: zero", "least: negative", "least: -inf"),
    ),
    Door("pytree.pytree", pytree, {"cls": Spring}),
    Door("ranges.check", lambda spec: ranges.check("pull", spec), {"spec": Spring()}),
    Door(
        "ranges.numbers",
        lambda value: plain(ranges.numbers("pull: value", value, ("N", 2))),
        {"value": X},
        right=tuple(f"value: {kind}" for kind in ("zero", "negative", "empty", "wrong length")),
    ),
    Door(
        "ranges.refuse",
        lambda value: ranges.refuse("pull: value", value, ranges.Range(above=0)),
        {"value": 1.5},
        right=("value: empty",),
    ),
    Door("ranges.table", ranges.table, {"cls": Spring}),
]

# these arguments must have one type; any other raises an error
THINGS = {
    "mesh.split: mesh": ("mesh_",),
    "mesh.replicate: mesh": ("mesh_",),
    "mesh.flat": ("mesh_",),
    "mesh.over: f, mesh": ("f", "mesh_"),
    "memory.forecast": ("compiled",),
    "memory.available": ("device",),
    "memory.check": ("compiled",),
    "allocation.bounded": ("f",),
    "allocation.needed": ("f",),
    "precision.in_float64": ("f",),
    "precision.reassociated": ("f",),
    "program.long": ("step",),
    "checkpoint.save: meta": ("meta",),
    "checkpoint.load_last": ("template",),
    "run.run: functions and keys": ("step", "key", "measure", "until", "check"),
    "report.figure: drawing": ("drawing",),
    "report.save: parts": ("options", "timing"),
    "pytree.pytree": ("cls",),
    "ranges.table": ("cls",),
}
HOST = {
    "a run, whose loop is on the host": ["run.run", "runs.Logarithmic"],
    "writes or places what it is given": """mesh.split mesh.replicate checkpoint.save
        checkpoint.load report.save""".split(),
    "checks values, and is nothing else": ["pytree.number", "ranges.numbers"],
}
REASON = {name: reason for reason, names in HOST.items() for name in names}
DOORS = [
    dataclasses.replace(d, things=THINGS.get(d.name, ()), host=REASON.get(d.name, ""))
    for d in DOORS
]
