"""Untrusted folders: to read, draw or resume them runs, imports and writes nothing.

`tests/rl/test_policies.py` covers untrusted policies, `python -m tests.trust forged` all names at
random.
"""

import contextlib
import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax.training.train_state import TrainState
from forgery import seal, take_apart

import jaxgpu
from jaxgpu import cli
from jaxgpu.evolution.single import CMAES
from jaxgpu.inputs.fields import pytree
from jaxgpu.runs.checkpoint import CheckpointError
from jaxgpu.runs.loop import run
from jaxgpu.runs.saving import catalog, history, objects, structure, watch
from tests.trust import forged

ROOT = Path(__file__).parents[2]


@pytree
class Mine:
    rate: float = 1.0

    def step(self, x):
        return x * self.rate

    @property
    def rates(self):
        return [self.rate]


def mine(x):
    return x


def proxy(command):
    """Return a proxy of Flax that calls its field: reading such a file once ran `command`."""
    call = {"partial": {"named": "posix:system"}, "args": [command], "named": []}
    proxy_ = {"type": "flax.linen.transforms:_HashableProxy"}
    return {"method": "module", "of": proxy_ | {"fields": [["module_ref", call], ["hash_key", 0]]}}


def parts(x):
    return {"a": x, "b": x}


@pytest.fixture
def folder(tmp_path):
    run(Mine().step, jnp.ones(2), 8, measure=parts, chunk=4, out=tmp_path / "run")
    return tmp_path / "run"


def rewrite_head(folder, change):
    journal = folder / "history" / "journal.jsonl"
    head, *rows = journal.read_text().splitlines(keepends=True)
    head = json.loads(head)
    change(head)
    journal.write_text(json.dumps(head) + "\n" + "".join(rows))


def rewrite_state(folder, tree):
    for path in folder.glob("step-*"):
        header, members = take_apart(path)
        header["meta"]["tree"] = tree
        seal(path, header, members)


def test_a_command_in_a_journal_is_not_run(folder):
    mark = folder / "PWNED"
    tree = {"tuple": [proxy(f"touch {mark}"), {"array": 0}]}
    rewrite_head(folder, lambda head: head.update(tree=tree))
    assert "step 8" in watch.plot_runs(folder)
    found = history.read(folder)
    assert isinstance(found[0], objects.Missing) and len(found[1]) == 9
    with pytest.raises(CheckpointError, match="history"):
        jaxgpu.load(folder)
    assert not mark.exists()


def test_a_command_in_a_checkpoint_is_not_run(folder):
    mark = folder / "PWNED"
    rewrite_state(folder, {"tuple": [proxy(f"touch {mark}"), {"array": 0}]})
    state = jaxgpu.load(folder).state
    assert state[0] == objects.Missing("module") and not mark.exists()
    with pytest.raises(TypeError, match="module was not loaded; import the module that defines"):
        state[0]()


FOREIGN = [
    "posix:system",
    "subprocess:Popen",
    "builtins:exec",
    "jaxgpu.runs.files:replacing",
    "jaxgpu.rl.policies:LearnedPolicy.save",
    "jaxgpu.cli:main",
    "jaxgpu.numerics.sphere.mixture:jax",
    "jax.numpy:save",
    "flax.linen:jit",
    "optax:adam",
    f"{__name__}:mine",
    f"{__name__}:Mine",
    f"{__name__}:os.system",
    "no words",
    ":",
    "",
]


@pytest.mark.parametrize("name", FOREIGN)
def test_a_name_that_is_not_on_the_list_is_but_a_name(name):
    made = objects.build({"named": name}, [])
    assert made == objects.Missing(name)
    partial = objects.build({"partial": {"named": name}, "args": [1], "named": []}, [])
    assert partial.func == made
    thing = objects.build({"type": name, "fields": [["rate", 2.0]]}, [])
    assert thing == SimpleNamespace(rate=2.0)
    method = objects.build({"method": "__class__", "of": {"named": name}}, [])
    assert method == objects.Missing("__class__")


def test_what_is_on_the_list_comes_back():
    network = nn.Sequential([nn.Dense(3, kernel_init=nn.initializers.zeros), nn.relu])
    weights = network.init(jax.random.key(0), jnp.ones(2))
    training = TrainState.create(apply_fn=network.apply, params=weights, tx=optax.adam(1e-3))
    given = (network, training, CMAES(8), CMAES(8).ask, np.dtype("float32"), jnp.tanh)
    arrays = []
    words = json.loads(json.dumps(structure.describe_value(given, arrays)))
    again = objects.build(words, arrays)
    assert again[0].layers == network.layers and type(again[0]) is nn.Sequential
    assert type(again[1].opt_state[0]) is optax.ScaleByAdamState
    assert type(again[1].tx) is optax.GradientTransformationExtraArgs
    np.testing.assert_array_equal(
        again[1].apply_fn(again[1].params, jnp.ones(2)), network.apply(weights, jnp.ones(2))
    )
    assert type(again[2]) is CMAES and again[3].__func__ is CMAES.ask
    assert again[4:] == (np.dtype("float32"), jnp.tanh)


def test_trusted_modules_give_back_what_they_define(folder):
    spec = jaxgpu.load(folder).spec
    assert spec == SimpleNamespace(rate=1.0)
    for trusted in ((__name__,), (sys.modules[__name__],), [__name__]):
        assert type(jaxgpu.load(folder, trusted=trusted).spec) is Mine
    name = lambda thing: {"named": f"{__name__}:{thing}"}
    build = lambda words: objects.build(words, [], (__name__,))
    assert build(name("mine")) is mine and build(name("os.system")) == objects.Missing(
        f"{__name__}:os.system"
    )
    of = {"type": f"{__name__}:Mine", "fields": [["rate", 2.0]]}
    assert build({"method": "step", "of": of})(3.0) == 6.0
    assert build({"method": "rates", "of": of}) == objects.Missing("rates")


@pytest.mark.parametrize(
    "trusted, said",
    [
        ("module", "trusted='module'; it must be a tuple of modules"),
        ((3,), "trusted=(3,); it must be a tuple of modules"),
        (("no_such",), "trusted='no_such'; it must be an imported module; import it first"),
    ],
)
def test_what_is_no_module_is_not_trusted(folder, trusted, said):
    with pytest.raises((TypeError, ValueError)) as refused:
        jaxgpu.load(folder, trusted=trusted)
    assert str(refused.value).startswith(f"load: {said}")


@pytest.mark.parametrize(
    "leaf",
    [("object", [2]), ("U1", [2]), ("V8", []), *(("float32", n) for n in ([-1], [2**62], "2"))],
)
def test_rows_are_numbers_that_lie_in_the_file(folder, leaf):
    rewrite_head(folder, lambda head: head["leaves"][0].__setitem__(slice(1, 3), leaf))
    for use in (watch.plot_runs, history.read, jaxgpu.load):
        with pytest.raises(CheckpointError, match="history"):
            use(folder)


def test_a_journal_5000_deep_or_without_sense_is_refused(folder):
    journal = folder / "history" / "journal.jsonl"
    good = journal.read_text()
    for text in ("[" * 5000 + "\n", '{"leaves": 3}\n', good + '{"rows": "many", "seal": 1}\n'):
        journal.write_text(text)
        for use in (watch.plot_runs, history.read):
            with pytest.raises(CheckpointError, match="journal.jsonl"):
                use(folder)


@pytest.mark.parametrize("name", ["journal.jsonl", "00000.rows"])
def test_a_pipe_and_a_device_are_not_waited_for(folder, name):
    path = folder / "history" / name
    path.unlink()
    os.mkfifo(path)
    for use in (watch.plot_runs, jaxgpu.load):
        with pytest.raises(CheckpointError, match="not a regular file"):
            use(folder)
    path.unlink()
    path.symlink_to("/dev/zero")
    with pytest.raises(CheckpointError, match="not a regular file"):
        jaxgpu.load(folder)


def test_a_resume_writes_through_no_link(folder, tmp_path):
    mine = tmp_path / "mine"
    rows = folder / "history" / "00000.rows"
    rows.rename(mine)
    rows.symlink_to(mine)
    before = mine.read_bytes()
    with pytest.raises(OSError, match="symbolic link"):
        run(Mine().step, jnp.ones(2), 12, measure=parts, chunk=4, out=folder, resume=True)
    assert mine.read_bytes() == before


def test_names_do_not_act_on_the_terminal(folder, capsys):
    rewrite_head(folder, lambda head: head["leaves"][0].__setitem__(0, "\x1b[2J\ud800µ"))
    assert cli.main(["watch", str(folder), "--once"]) == 0
    assert r"mean of \x1b[2J\ud800µ [2] = 1" in capsys.readouterr().out
    assert cli.main(["watch", str(folder / "\x1b[2J"), "--once"]) == 2
    assert "\x1b" not in capsys.readouterr().err


def test_a_run_that_has_no_rows_yet_is_drawn(folder):
    journal = folder / "history" / "journal.jsonl"
    journal.write_text(journal.read_text().splitlines(keepends=True)[0])
    assert watch.plot_runs(folder) == f"{folder}: no rows yet"


def test_what_is_nested_too_deep_is_but_shown(tmp_path):
    state = jnp.ones(2)
    for _ in range(30):
        state = (state,)
    run(lambda x: x, state, 2, out=tmp_path)
    found = jaxgpu.load(tmp_path).state
    depth = 0
    while isinstance(found, tuple):
        found, depth = found[0], depth + 1
    assert depth == 19 and isinstance(found, objects.Missing)


FRESH = """
import sys, jaxgpu
before = set(sys.modules)
jaxgpu.load(sys.argv[1])
from jaxgpu.runs.saving import catalog
assert catalog.find_class("jaxgpu.rl.learners.ppo:PPO").__name__ == "PPO"
assert catalog.find_class("optax._src.transform:ScaleByAdamState").__name__ == "ScaleByAdamState"
for name in ("antigravity:x", "jaxgpu.cli:main", "jaxgpu.rl.nothing:x", "flax.serialization:x"):
    assert catalog.find_class(name) is catalog.find_function(name) is None, name
assert not {"antigravity", "jaxgpu.cli"} & set(sys.modules)
"""


def test_nothing_is_imported_for_a_name_but_what_is_listed(folder):
    command = [sys.executable, "-c", FRESH, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr


def test_every_dataclass_of_the_domains_is_known_and_none_of_the_core():
    """Stores, journals and groups of processes write or send, and are not on the list."""
    by_name = {
        catalog.name_of(x): x
        for module in list(sys.modules.values())
        if str(getattr(module, "__name__", "")).startswith("jaxgpu.")
        for x in list(vars(module).values())
        if isinstance(x, type) and dataclasses.is_dataclass(x)
    }
    for name, cls in by_name.items():
        part = name.split(".")[1].partition(":")[0]
        own = name.startswith("jaxgpu.") and part not in ("runs", "devices", "inputs", "report")
        assert (catalog.find_class(name) is cls) == (own and "<locals>" not in name), name


def test_the_hook_notices_what_acts(tmp_path):
    look = forged.Watch()
    acts = {
        "os.system": lambda: os.system("true"),
        "exec": lambda: exec("1"),
        "open": lambda: (tmp_path / "a").write_text(""),
        "subprocess.Popen": lambda: subprocess.run(["true"]),
        "import": lambda: __import__("antigravity_that_is_not_there"),
        "os.remove": lambda: (tmp_path / "a").unlink(),
    }
    for event, act in acts.items():
        with look.looking(), contextlib.suppress(ImportError):
            act()
        assert any(noted.startswith(event) for noted in look.events), event
    look.events.clear()
    with look.looking():
        Path(__file__).read_text()
    assert not look.events


def test_a_sample_of_forged_and_changed_files_does_nothing():
    """The full program is `python -m tests.trust forged`."""
    found = forged.prove(20, 30, 5)
    assert found["failed"] == 0, found
    assert found["counts"]["policies read"] and found["counts"]["policy refused"]
