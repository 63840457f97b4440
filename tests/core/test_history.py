"""The history of a run: appended, sealed, readable while it grows, and at constant memory."""

import json
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxgpu
from jaxgpu import cli
from jaxgpu.inputs.fields import number, pytree
from jaxgpu.runs.checkpoint import CheckpointError
from jaxgpu.runs.loop import rollout, run
from jaxgpu.runs.saving import history, objects, saved_run, structure, watch

ROOT = Path(__file__).parents[2]


@pytree
class Oscillator:
    omega: float = number(default=0.1, above=0)

    def step(self, state):
        x, v = state
        v = v - self.omega**2 * x
        return x + v, v


START = np.float32(1), np.float32(0)
LOOK = lambda state: {"x": state[0], "both": jnp.stack(state)}
GIVEN = {"measure": LOOK, "chunk": 10}


def total_bytes(folder):
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def test_rows_are_those_of_a_run_in_memory_and_readable_without_the_script(tmp_path):
    spec = Oscillator()
    kept = run(spec.step, START, 95, **GIVEN)
    run(spec.step, START, 40, **GIVEN, out=tmp_path)
    on_disk = run(spec.step, START, 95, **GIVEN, out=tmp_path, resume=True)
    found = jaxgpu.load(tmp_path, trusted=(__name__,))
    for rows in (on_disk.history, found.history, history.read(tmp_path)):
        jax.tree.map(np.testing.assert_array_equal, rows, kept.history)
    assert found.step == 95 and found.spec == found.spec and found.spec.omega == 0.1
    assert found.values["omega"] == "0.1" and type(found.spec) is Oscillator
    again = run(found.spec.step, START, 95, **GIVEN)
    np.testing.assert_array_equal(found.state, again.state)
    raw = np.fromfile(tmp_path / "history" / "00000.rows", np.float32).reshape(96, 2)
    np.testing.assert_array_equal(raw, kept.history["both"])


def splitting(impl):
    """Return a step that replaces one single key and an array of three, and its start."""

    def step(s):
        split = lambda key: jax.random.split(key)[0]
        return {"k": split(s["k"]), "many": jax.vmap(split)(s["many"]), "n": s["n"] + 1}

    key = jax.random.key(0, impl=impl)
    return step, {"k": key, "many": jax.random.split(key, 3), "n": jnp.int32(0)}


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg", "unsafe_rbg"])
def test_rows_hold_keys(tmp_path, impl):
    step, start = splitting(impl)
    form = {"measure": lambda s: s, "guard": True}
    _, want = rollout(step, start, 5, measure=lambda s: s)
    found = run(step, start, 5, **form)
    run(step, start, 3, **form, out=tmp_path)
    seen = []
    look = lambda state, rows: seen.append(rows["k"].shape)
    on_disk = run(step, start, 5, **form, out=tmp_path, resume=True, check=look)
    for rows in (found.history, on_disk.history, jaxgpu.load(tmp_path).history):
        for name in ("k", "many"):
            assert str(jax.random.key_impl(rows[name])) == impl
            data, other = map(jax.random.key_data, (rows[name], want[name]))
            np.testing.assert_array_equal(data, other)
        np.testing.assert_array_equal(rows["n"], range(6))
    assert seen[-1] == (6,) and "['k']: key<" in repr(found)
    assert f"['many']: key<{impl}>" in watch.plot_runs(tmp_path)


def test_the_first_draw_after_a_row_is_that_of_the_run(tmp_path):
    step, start = splitting("threefry2x32")
    run(step, start, 5, measure=lambda s: s["k"], out=tmp_path)
    keys = jaxgpu.load(tmp_path).history
    third, _ = rollout(step, start, 3)
    assert jax.random.normal(keys[3]) == jax.random.normal(third["k"])


@pytest.mark.parametrize("kind, shape", [("key<none>", [2]), ("key<rbg>", [2]), ("key<rbg>", [])])
def test_keys_of_another_form_than_their_generator_has_are_refused(tmp_path, kind, shape):
    step, start = splitting("threefry2x32")
    run(step, start, 2, measure=lambda s: s["k"], out=tmp_path)
    journal = tmp_path / "history" / "journal.jsonl"
    head, *rest = journal.read_text().splitlines()
    head = json.loads(head) | {"leaves": [["", kind, shape]]}
    journal.write_text("\n".join([json.dumps(head), *rest]) + "\n")
    with pytest.raises(CheckpointError, match="history"):
        history.read(tmp_path)


class Nothing(NamedTuple):
    """An empty state, as optimizers have them in their states."""


def test_structures_come_back_as_they_were():
    tree = {"a": (Nothing(), [np.zeros(2)], None, ()), "b": Oscillator(np.float32(2)), "c": {}}
    leaves, treedef = jax.tree.flatten(tree)
    again = objects.build(
        json.loads(json.dumps(structure.describe_tree(tree))), leaves, (__name__,)
    )
    assert jax.tree.structure(again) == treedef and again["b"].omega == 2


def test_what_is_written_to_the_rows_of_a_result_stays_in_memory(tmp_path):
    done = run(Oscillator().step, START, 5, **GIVEN, out=tmp_path)
    done.history["x"][:] = 7
    assert not (jaxgpu.load(tmp_path).history["x"] == 7).any()


@pytest.mark.parametrize("file", ["00000.rows", "00001.rows", "journal.jsonl"])
def test_altered_rows_before_a_checkpoint_are_refused(tmp_path, file):
    run(Oscillator().step, START, 40, **GIVEN, out=tmp_path)
    path = tmp_path / "history" / file
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 1
    path.write_bytes(bytes(data))
    for use in (
        jaxgpu.load,
        lambda out: run(Oscillator().step, START, 60, **GIVEN, out=out, resume=True),
    ):
        with pytest.raises(CheckpointError, match="history"):
            use(tmp_path)


def test_an_empty_journal_is_no_history(tmp_path):
    run(Oscillator().step, START, 40, **GIVEN, out=tmp_path)
    (tmp_path / "history" / "journal.jsonl").write_text("")
    with pytest.raises(CheckpointError, match="journal.jsonl: does not describe its rows;"):
        history.read(tmp_path)


def test_a_run_goes_back_to_the_checkpoint_before_the_altered_rows(tmp_path):
    run(Oscillator().step, START, 40, **GIVEN, out=tmp_path)
    path = tmp_path / "history" / "00000.rows"
    path.write_bytes(path.read_bytes()[:-3])  # torn in the last segment
    with pytest.warns(UserWarning, match="history.*loading step-000000000030"):
        done = run(Oscillator().step, START, 60, **GIVEN, out=tmp_path, resume=True)
    whole = run(Oscillator().step, START, 60, **GIVEN)
    assert done.timing.steps == 30
    jax.tree.map(np.testing.assert_array_equal, done.history, whole.history)


def test_a_run_that_goes_on_asks_the_disk_for_its_rest_alone(tmp_path, monkeypatch):
    wide_row = lambda state: jnp.full(1000, state[0])  # 4 kB a step
    run(Oscillator().step, START, 90, measure=wide_row, out=tmp_path / "a")
    left = shutil.disk_usage(tmp_path)._replace(free=100_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: left)
    with pytest.raises(OSError, match="needs 0.00 GB, and 0.00 GB of its disk are free"):
        run(Oscillator().step, START, 100, measure=wide_row, out=tmp_path / "b")
    assert not list((tmp_path / "b").rglob("step-*"))
    done = run(Oscillator().step, START, 100, measure=wide_row, out=tmp_path / "a", resume=True)
    assert done.timing.steps == 10


def test_a_reader_follows_while_the_run_goes_on(tmp_path):
    seen, go = [], threading.Event()

    def look(state, rows):
        if len(rows["x"]) == 31:
            go.set()

    thread = threading.Thread(
        target=run,
        args=(Oscillator().step, START, 50),
        kwargs=GIVEN | {"check": look, "out": tmp_path},
    )
    thread.start()
    assert go.wait(20)
    seen.append(len(history.read(tmp_path)["x"]))
    thread.join()
    assert 1 <= seen[0] <= 31 and len(history.read(tmp_path)["x"]) == 51
    np.testing.assert_array_equal(history.read(tmp_path, 21)["x"], history.read(tmp_path)["x"][:21])
    with pytest.raises(CheckpointError, match="has 51 rows, not 52"):
        history.read(tmp_path, 52)


def test_what_is_written_grows_with_the_payload_alone(tmp_path):
    wide_row = lambda state: jnp.full(1000, state[0])
    sizes = []
    for steps in (1000, 2000):
        run(Oscillator().step, START, steps, measure=wide_row, chunk=50, out=tmp_path, resume=True)
        sizes.append(total_bytes(tmp_path))
    assert sizes[1] - sizes[0] < 1.01 * 1000 * 4000


def test_a_watch_draws_where_each_run_is(tmp_path, capsys):
    run(Oscillator().step, START, 90, **GIVEN, out=tmp_path / "a")
    run(lambda x: x + 1, np.float32(0), 5, out=tmp_path / "b")
    assert cli.main(["watch", str(tmp_path), "--once"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{tmp_path}/a: step 90, saved ") and "b: step 5" in lines[-1]
    x = history.read(tmp_path / "a")["x"]
    (at,) = [i for i, line in enumerate(lines) if line == f"  ['x'] = {x[-1]:.6g}"]
    high, *_, low = [line.split("|")[0].strip() for line in lines[at + 1 : at + 5]]
    assert float(high) == float(f"{x.max():.4g}") and float(low) == float(f"{x.min():.4g}")
    dots = sum((ord(c) & 0xFF).bit_count() for line in lines[at + 1 : at + 5] for c in line[14:])
    assert 80 <= dots <= 91
    assert cli.main(["watch", str(tmp_path / "c"), "--once"]) == 2
    assert "there is no run in it" in capsys.readouterr().err


LONG = """
import sys, numpy as np, jax.numpy as jnp
from pathlib import Path
from jaxgpu.runs.loop import run

# Python 3.12 keeps the names of files in a table, which doubles by a megabyte as it fills
names = [sys.intern(f"name-{i}") for i in range(50_000)]
resident = []
status = lambda: dict(x.split(":") for x in Path("/proc/self/status").read_text().splitlines())
kilobytes = lambda: int(status()["RssAnon"].split()[0])  # not what the system keeps of read files
done = run(
    lambda x: x + 1,
    np.int32(0),
    200_000,
    measure=lambda x: jnp.full(250, x, jnp.float32),
    check=lambda state, rows: resident.append(kilobytes()),
    chunk=250,  # a few that are on their way to the disk are less than a percent
    out=sys.argv[1],
)
assert done.history[-1, -1] == done.state
files = sum(f.stat().st_size for f in Path(sys.argv[1]).rglob("*") if f.is_file())
print(files / 2e8, max(resident[400:]) / max(resident[40:400]))
"""


@pytest.mark.slow
def test_200_000_rows_of_a_kilobyte_take_their_payload_and_no_memory(tmp_path):
    command = [sys.executable, "-c", LONG, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    on_disk, growth = map(float, done.stdout.split())
    assert on_disk < 1.1 and growth < 1.01


def go_on(folder, steps):
    run(jnp.cos, jnp.ones(2), steps, measure=jnp.sum, chunk=1, out=folder, resume=True)


def with_callback(function, act):
    """Wrap `function` so that `act(number)` runs after each call, with the number of the call."""
    calls = iter(range(100))

    def wrapper(*args):
        found = function(*args)
        act(next(calls))
        return found

    return wrapper


def test_a_folder_whose_checkpoints_go_while_they_are_read_is_listed_again(tmp_path, monkeypatch):
    go_on(tmp_path, 3)
    write = lambda number: go_on(tmp_path, 6 + 3 * number) if number < 3 else None
    monkeypatch.setattr(
        saved_run, "list_newest_first", with_callback(saved_run.list_newest_first, write)
    )
    assert jaxgpu.load(tmp_path).step == 12


def test_a_checkpoint_that_is_damaged_is_not_read_for_ever(tmp_path, monkeypatch):
    go_on(tmp_path, 3)
    for path in tmp_path.glob("step-*"):
        path.write_bytes(b"none")
    seen = []
    monkeypatch.setattr(
        saved_run, "list_newest_first", with_callback(saved_run.list_newest_first, seen.append)
    )
    with pytest.raises(CheckpointError, match="damaged or not.*; .*damaged or not"):
        jaxgpu.load(tmp_path)
    assert seen == [0, 1]


def test_a_watch_leaves_out_a_run_that_goes_and_reads_again_one_that_changes(tmp_path, monkeypatch):
    for name in "ab":
        go_on(tmp_path / name, 3)
    state_of = watch._journal_state

    def act(number):
        if number == 0:
            shutil.rmtree(tmp_path / "a")
        if number == 2:
            shutil.move(tmp_path / "b" / "history" / "00000.rows", tmp_path / "rows")
            (tmp_path / "b" / "history" / "journal.jsonl").touch()
        if number == 3:
            shutil.move(tmp_path / "rows", tmp_path / "b" / "history" / "00000.rows")

    monkeypatch.setattr(watch, "_journal_state", with_callback(state_of, act))
    assert watch.plot_runs(tmp_path).startswith(f"{tmp_path / 'b'}: step 3")
    monkeypatch.setattr(watch, "_journal_state", lambda _: shutil.rmtree(tmp_path / "b", True))
    with pytest.raises(CheckpointError, match="its runs were removed"):
        watch.plot_runs(tmp_path)
