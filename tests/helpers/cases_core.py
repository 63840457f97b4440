"""API cases of the core: runs, checkpoints, reports, meshes, memory, precision and ranges."""

import contextlib
import dataclasses
import tempfile

import jax
import jax.numpy as jnp
import matplotlib
import numpy as np
from api_cases import ApiCase
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


def data_attacks(name, *less):
    return tuple(f"{name}: {kind}" for kind in DATA if kind not in less)


def edge_attacks(name):
    return (f"{name}: inf", f"{name}: -inf")


def to_numbers(tree):
    """Return the transported data as an array of real numbers if possible."""
    a = np.asarray(tree)
    return a.astype(float) if a.dtype.kind in "if" else a.tolist()


@contextlib.contextmanager
def temp_folder():
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        yield


def saved_and_loaded(path="a.npz", tree=X, meta=None):
    with temp_folder():
        checkpoint.save(path, tree, meta)
        return to_numbers(checkpoint.load(path, tree)[0])


def run_and_loaded(folder="run", step=None):
    with temp_folder():
        run(jnp.sin, X, 2, measure=jnp.sum, out="run", keep=1)
        return to_numbers(load(folder, step=step).history)


def run_branch(step):
    with temp_folder():
        run(jnp.sin, X, 2, out="run", keep=1)
        return to_numbers(run(jnp.sin, X, 2, resume=Branch("run", step)).state)


def load_saved(path="a.npz", like=X):
    with temp_folder():
        checkpoint.save("a.npz", X)
        return checkpoint.load(path, like)[0]


def read(path):
    with temp_folder():
        checkpoint.save("a.npz", X)
        return checkpoint.read(path)


def steps(directory="run", step=7, keep=2, meta=None):
    with temp_folder():
        checkpoint.save_step(directory, 1, X, {})
        checkpoint.save_step(directory, step, X, meta or {}, keep)
        return checkpoint.load_last(directory, lambda meta: X)[1]["step"]


def load_newest(directory, template):
    with temp_folder():
        checkpoint.save_step("run", 1, X, {})
        return checkpoint.load_last(directory, template)


def negate(state, key=None):
    return jax.tree.map(lambda x: -x, state)


def run_negate(state=X, **given):
    with temp_folder():
        if given.get("out") is None:
            given.pop("out", None)
        return to_numbers(run(negate, state, **{"steps": 3} | given).state)


def report_rows(rows=ROWS, table=None, headline=None, **given):
    """Return the rows that a saved report stores, after its page is drawn."""
    table = table or Table("", ["a", "b"], rows)
    parts = {"title": "a", "lead": "b", "timing": {"run": Timing(1.0, 2.0, 3)}}
    arguments = {"out": "a", "study": "coin", "options": Table("", [], [])} | given
    arguments |= {part: arguments[part] for part in parts if part in arguments}
    parts |= {part: arguments.pop(part) for part in parts if part in arguments}
    with temp_folder():
        top = [] if headline is None else [headline]
        report.save(report=Report(**parts, tables=[table], headlines=top), **arguments)
        report.write(arguments["out"])
        held = report.read(f"{arguments['out']}/report.json")["report"]["tables"]
    return to_numbers(held[0]["rows"])


def figure_mime(drawing=None, **given):
    drawing = Drawing() if drawing is None else drawing
    return report.figure(drawing, **{"caption": "a"} | given).mime


def with_report(f, **given):
    """Call a function of a folder or of a file that contains one report."""
    with temp_folder():
        report.save("a", "coin", Table("", [], []), Report("a", "b"))
        return f(**given)


@pytree
class Spring:
    rate: float = number(2.0, above=0, most=10)
    turns: int = size(3, least=1)
    free: float | None = number(None, least=0, none=True)


CASES = [
    ApiCase(
        "mesh.make_mesh",
        mesh.make_mesh,
        {"count": 2, "axis": "a"},
        ("count: None", "axis: unknown"),
    ),
    ApiCase(
        "mesh.shard",
        lambda tree: to_numbers(mesh.shard(tree, mesh.make_mesh(2))),
        {"tree": X},
        right=(*data_attacks("tree", "wrong length"), "tree: None"),
        limits=edge_attacks("tree"),
        nan_passes=("tree",),
    ),
    ApiCase("mesh.shard: mesh", lambda mesh_: mesh.shard(X, mesh_), {"mesh_": mesh.make_mesh(2)}),
    ApiCase(
        "mesh.replicate",
        lambda tree: to_numbers(mesh.replicate(tree, mesh.make_mesh(2))),
        {"tree": X},
        right=(*data_attacks("tree"), "tree: None"),
        limits=edge_attacks("tree"),
        nan_passes=("tree",),
    ),
    ApiCase("mesh.replicate: mesh", lambda mesh_: mesh.replicate(X, mesh_), {"mesh_": None}),
    ApiCase(
        "mesh.check_mesh",
        lambda mesh_: mesh.check_mesh("run: mesh", mesh_),
        {"mesh_": mesh.make_mesh(2)},
    ),
    ApiCase(
        "mesh.map_shards",
        lambda x, axis: mesh.map_shards(jnp.sin, mesh.make_mesh(2), axis)(x),
        {"x": X, "axis": 0},
        right=(*data_attacks("x", "wrong length"), "axis: zero"),
        limits=edge_attacks("x"),
        nan_passes=("x",),
    ),
    ApiCase(
        "mesh.map_shards: f, mesh",
        lambda f, mesh_: mesh.map_shards(f, mesh_),
        {"f": jnp.sin, "mesh_": mesh.make_mesh(2)},
    ),
    ApiCase("memory.estimate_peak", memory.estimate_peak, {"compiled": PROGRAM}),
    ApiCase(
        "memory.free_bytes", memory.free_bytes, {"device": jax.devices()[0]}, ("device: None",)
    ),
    ApiCase("load: folder", run_and_loaded, {"folder": "run"}),
    ApiCase("load: step", run_and_loaded, {"step": 1}, ("step: None",)),
    ApiCase("runs.Branch", run_branch, {"step": 1}),
    ApiCase("runs.WallTime", lambda seconds: WallTime(seconds).seconds, {"seconds": 60.0}),
    ApiCase(
        "runs.Logarithmic",
        lambda first, factor: KeptSteps(Logarithmic(first, factor)).count(0, 100),
        {"first": 1, "factor": 2.0},
    ),
    ApiCase(
        "run.run: keep", lambda keep: run_negate(keep=keep, out="run"), {"keep": 2}, ("keep: None",)
    ),
    ApiCase(
        "memory.check_size",
        lambda size: memory.check_size("sky", size),
        {"size": 1000},
        ("size: zero",),
    ),
    ApiCase(
        "memory.size",
        memory.size,
        {"tree": X},
        right=(*data_attacks("tree"), "tree: wrong length", "tree: None", "tree: nan"),
        limits=edge_attacks("tree"),
    ),
    ApiCase("allocation.limit_memory", allocation.limit_memory, {"f": np.ones}),
    ApiCase("allocation.peak_bytes", lambda f: allocation.peak_bytes(f, 3), {"f": jnp.ones}),
    ApiCase("memory.check", lambda compiled: memory.check(compiled, "sky"), {"compiled": PROGRAM}),
    ApiCase("precision.with_float64", lambda f: precision.with_float64(f)(), {"f": lambda: 1.0}),
    ApiCase(
        "precision.allow_reassociation",
        lambda f: precision.allow_reassociation(f)(),
        {"f": lambda: 1.0},
    ),
    ApiCase("program.mark_slow", lambda step: program.mark_slow(step)(), {"step": lambda: 1.0}),
    ApiCase(
        "checkpoint.save",
        saved_and_loaded,
        {"path": "a.npz", "tree": X},
        right=(*data_attacks("tree"), "tree: None", "path: unknown"),
        limits=edge_attacks("tree"),
        nan_passes=("tree",),
    ),
    ApiCase("checkpoint.save: meta", saved_and_loaded, {"meta": {"a": 1}}, ("meta: None",)),
    ApiCase(
        "checkpoint.load",  # the values of `like` are not used
        load_saved,
        {"path": "a.npz", "like": X},
        right=tuple(f"like: {kind}" for kind in ("zero", "negative", "nan", "inf", "-inf")),
    ),
    ApiCase("checkpoint.read", read, {"path": "a.npz"}),
    ApiCase(
        "checkpoint.save_step",
        steps,
        {"directory": "run", "step": 7, "keep": 2},
        right=("step: zero", "directory: unknown"),
    ),
    ApiCase(
        "checkpoint.load_last",
        load_newest,
        {"directory": "run", "template": lambda meta: X},
        right=("directory: unknown",),
    ),
    ApiCase(
        "checkpoint.holds_any",
        checkpoint.holds_any,
        {"directory": "run"},
        right=("directory: unknown",),
    ),
    ApiCase(
        "run.run",
        run_negate,
        {"state": X, "steps": 3, "chunk": 2, "out": "run"},
        right=(*data_attacks("state"), "state: None", "steps: zero", "chunk: None")
        + ("out: unknown", "out: None"),
        limits=edge_attacks("state"),
        nan_passes=("state",),
    ),
    ApiCase(
        "run.rollout",
        lambda step=negate, **given: rollout(step, X, **given)[0],
        {"steps": 2},
        right=("steps: zero",),
    ),
    ApiCase(
        "run.run: functions and keys",
        lambda step=negate, **given: run(step, X, 2, **given).state,
        {
            "step": negate,
            "key": KEY,
            "measure": jnp.sum,
            "until": lambda state: jnp.max(state) > 1e9,
            "check": lambda state, history: None,
        },
        right=("key: None", "measure: None", "until: None", "check: None"),
    ),
    ApiCase(
        "report.figure",
        figure_mime,
        {"caption": "a", "mime": "image/png"},
        right=("caption: unknown", "caption: empty"),
    ),
    ApiCase("report.figure: drawing", figure_mime, {"drawing": Drawing()}, ("drawing: None",)),
    ApiCase(
        "report.save",
        report_rows,
        {"rows": ROWS, "out": "a", "study": "coin", "title": "A coin", "lead": "Heads."},
        right=("rows: zero", "rows: negative", "rows: empty", "rows: wrong length")
        + ("rows: words", "rows: complex", "out: unknown", "study: unknown")
        + ("title: unknown", "title: empty", "lead: unknown", "lead: empty"),
        limits=edge_attacks("rows"),
        nan_passes=("rows",),
    ),
    ApiCase("report.save, Table", report_rows, {"table": Table("", ["a", "b"], ROWS.tolist())}),
    ApiCase("report.save, Headline", report_rows, {"headline": Headline("height, m", 1.25)}),
    ApiCase("report.save: parts", report_rows, {"options": Spring(), "timing": {}}),
    ApiCase(
        "report.write", lambda folder: with_report(report.write, folder=folder), {"folder": "a"}
    ),
    ApiCase(
        "report.compare",
        lambda one, other: with_report(report.compare, one=one, other=other),
        {"one": "a", "other": "a"},
    ),
    ApiCase(
        "report.read", lambda file: with_report(report.read, file=file), {"file": "a/report.json"}
    ),
    ApiCase(
        "report.replace_text",
        lambda **given: with_report(report.replace_text, **given),
        {"path": "a.json", "text": "{}"},
        right=("path: unknown", "text: unknown", "text: empty"),
    ),
    ApiCase(
        "pytree.number",
        lambda default, least: number(default, least=least, most=2.0).metadata,
        {"default": 1.5, "least": -1.0},
        right=("default: zero", "default: negative", "default: empty")
        + ("least: zero", "least: negative", "least: -inf"),
    ),
    ApiCase(
        "pytree.size",
        lambda default, least: size(default, least=least, most=5).metadata,
        {"default": 4, "least": 2},
        right=("least: zero", "least: negative", "least: -inf"),
    ),
    ApiCase("pytree.pytree", pytree, {"cls": Spring}),
    ApiCase("ranges.check", lambda spec: ranges.check("pull", spec), {"spec": Spring()}),
    ApiCase(
        "ranges.numbers",
        lambda value: to_numbers(ranges.numbers("pull: value", value, ("N", 2))),
        {"value": X},
        right=tuple(f"value: {kind}" for kind in ("zero", "negative", "empty", "wrong length")),
    ),
    ApiCase(
        "ranges.refuse",
        lambda value: ranges.refuse("pull: value", value, ranges.Range(above=0)),
        {"value": 1.5},
        right=("value: empty",),
    ),
    ApiCase("ranges.field_ranges", ranges.field_ranges, {"cls": Spring}),
]

# these arguments must have one type; any other raises an error
OBJECTS = {
    "mesh.shard: mesh": ("mesh_",),
    "mesh.replicate: mesh": ("mesh_",),
    "mesh.check_mesh": ("mesh_",),
    "mesh.map_shards: f, mesh": ("f", "mesh_"),
    "memory.estimate_peak": ("compiled",),
    "memory.free_bytes": ("device",),
    "memory.check": ("compiled",),
    "allocation.limit_memory": ("f",),
    "allocation.peak_bytes": ("f",),
    "precision.with_float64": ("f",),
    "precision.allow_reassociation": ("f",),
    "program.mark_slow": ("step",),
    "checkpoint.save: meta": ("meta",),
    "checkpoint.load_last": ("template",),
    "run.run: functions and keys": ("step", "key", "measure", "until", "check"),
    "report.figure: drawing": ("drawing",),
    "report.save: parts": ("options", "timing"),
    "pytree.pytree": ("cls",),
    "ranges.field_ranges": ("cls",),
}
HOST = {
    "a run, whose loop is on the host": ["run.run", "runs.Logarithmic"],
    "writes or places what it is given": """mesh.shard mesh.replicate checkpoint.save
        checkpoint.load report.save""".split(),
    "checks values, and is nothing else": ["pytree.number", "ranges.numbers"],
}
REASON = {name: reason for reason, names in HOST.items() for name in names}
CASES = [
    dataclasses.replace(d, things=OBJECTS.get(d.name, ()), host=REASON.get(d.name, ""))
    for d in CASES
]
