"""Kept states: as requested however a run is split or stopped, and as starts of other runs."""

import hashlib
import time
from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxgpu
from jaxgpu import rl
from jaxgpu.evolution import Real, minimize, single
from jaxgpu.physics import nbody
from jaxgpu.runs import Branch, Logarithmic, WallTime, run
from jaxgpu.runs.checkpoint import CheckpointError
from jaxgpu.runs.loop import _ChunkPace
from jaxgpu.runs.saving import history, kept_steps
from jaxgpu.runs.saving.kept_steps import KeptSteps

KEY = jax.random.key(0)


def drift(by, x, key):
    """Advance a chaotic, noisy map, in which a difference of one bit grows."""
    noise = by * jax.random.uniform(key, x.shape, x.dtype)
    return jnp.clip(3.9 * x * (1 - x) + noise, 0.01, 0.99)


def run_drift(steps, by=1e-3, **given):
    start = np.linspace(0.1, 0.9, 5, dtype=np.float32)
    return run(partial(drift, np.float32(by)), start, steps, key=KEY, measure=jnp.sum, **given)


def same_bits(one, other):
    equal_bits = lambda a, b: np.asarray(a).tobytes() == np.asarray(b).tobytes()
    return equal_bits(one.state, other.state) and equal_bits(one.history, other.history)


def digests(folder):
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def steps_kept(folder):
    return [int(path.name[5:17]) for path in sorted(folder.glob("step-*-kept.npz"))]


@pytest.mark.parametrize("chunk", [1, 7, 64, None])
@pytest.mark.parametrize(
    ("keep", "steps"), [(10, [10, 20, 30, 40, 50]), (Logarithmic(3, 2.5), [3, 8, 20, 50])]
)
def test_steps_are_kept_as_asked_however_a_run_is_split(tmp_path, chunk, keep, steps):
    got = run_drift(57, chunk=chunk, keep=keep, out=tmp_path)
    assert same_bits(got, run_drift(57)) and steps_kept(tmp_path) == steps
    for step in steps:
        saved = jaxgpu.load(tmp_path, step=step)
        assert saved.step == step and same_bits(saved, run_drift(step))


def test_what_is_kept_stays_through_stops_with_other_rules(tmp_path):
    class Stopped(Exception):
        pass

    def stop(at, state, history):
        if len(history) > at:
            raise Stopped

    for at, keep in ((23, 10), (44, WallTime(3600.0)), (70, 25), (90, None)):
        with pytest.raises(Stopped):
            run_drift(
                100, chunk=3, check=partial(stop, at), keep=keep, out=tmp_path, resume=at > 23
            )
    assert steps_kept(tmp_path) == [10, 20, 50]
    assert len(jaxgpu.load(tmp_path).steps) == 5  # and the newest two
    end = run_drift(100, chunk=8, keep=100, out=tmp_path, resume=True)
    assert same_bits(end, run_drift(100)) and steps_kept(tmp_path) == [10, 20, 50, 100]
    assert same_bits(jaxgpu.load(tmp_path, step=20), run_drift(20))


def test_a_kept_state_is_gone_back_to_and_kept_again(tmp_path):
    run_drift(40, chunk=10, keep=20, out=tmp_path)
    for name in ("step-000000000040-kept.npz", "step-000000000030.npz"):
        (tmp_path / name).write_bytes(b"torn")
    with pytest.warns(UserWarning, match="damaged.*loading step-000000000020-kept.npz"):
        end = run_drift(60, chunk=10, out=tmp_path, resume=True)
    assert same_bits(end, run_drift(60)) and steps_kept(tmp_path) == [20, 40]
    assert same_bits(jaxgpu.load(tmp_path, step=40), run_drift(40))
    assert jaxgpu.load(tmp_path).steps == (20, 40, 50, 60)


def test_the_clock_keeps_the_first_checkpoint_after_each_interval(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(kept_steps, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def pass_20_seconds(state, history):
        now[0] += 20.0

    given = {"chunk": 1, "check": pass_20_seconds, "keep": WallTime(50.0)}
    run_drift(7, out=tmp_path / "whole", **given)
    assert steps_kept(tmp_path / "whole") == [3, 6]
    for steps in range(1, 8):  # stopped before an interval ends, each time
        run_drift(steps, out=tmp_path / "parts", resume=steps > 1, **given)
        now[0] += 1000.0
    assert steps_kept(tmp_path / "parts") == [3, 6]


def test_a_step_that_is_not_there_is_refused_with_those_that_are(tmp_path):
    run_drift(57, chunk=64, keep=10, out=tmp_path)
    with pytest.raises(CheckpointError, match="no checkpoint of step 25; those there are 10, 20"):
        jaxgpu.load(tmp_path, step=25)
    with pytest.raises(CheckpointError, match="no checkpoint of step 25"):
        run_drift(90, resume=Branch(tmp_path, 25))
    (tmp_path / "step-000000000020-kept.npz").rename(tmp_path / "step-000000000025-kept.npz")
    with pytest.raises(CheckpointError, match="step-000000000025-kept.npz: holds step 20"):
        jaxgpu.load(tmp_path, step=25)
    with pytest.raises(TypeError, match="^load: step=True of type bool; it must be a whole number"):
        jaxgpu.load(tmp_path, step=True)


def test_room_is_asked_for_what_will_be_kept(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr("jaxgpu.runs.files.check_space", lambda folder, size: asked.append(size))
    run_drift(100, out=tmp_path / "a")
    run_drift(100, out=tmp_path / "b", keep=10)
    assert asked[1] - asked[0] == 10 * 5 * 4


def test_a_branch_has_a_folder_of_its_own_and_leaves_the_old_one_as_it_was(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    run_drift(60, chunk=64, keep=20, out=old)
    before = digests(old)
    branch = Branch(old, 20, ("by",))
    got = run_drift(50, 1e-2, out=new, resume=branch, keep=25)
    alone = run_drift(50, 1e-2, resume=branch)
    assert same_bits(got, alone) and got.timing.steps == 30
    assert same_bits(jaxgpu.load(new, step=25), run_drift(25, 1e-2, resume=branch))
    np.testing.assert_array_equal(got.history[:21], run_drift(20).history)
    assert jaxgpu.load(new).changes == [
        "at step 20: branched from old",
        "at step 20: by was 0.001 (float32), is 0.01 (float32)",
    ]
    assert jaxgpu.load(new).steps == (25, 50) and digests(old) == before
    longer = run_drift(70, 1e-2, out=new, resume=True)
    assert same_bits(longer, run_drift(70, 1e-2, resume=branch))
    assert same_bits(run_drift(60, resume=Branch(old, 20)), run_drift(60))  # without a change


def test_a_branch_is_a_run_that_begins_at_that_state(tmp_path):
    logistic = lambda rate, x: rate * x * (1 - x)
    start = np.linspace(0.1, 0.9, 5, dtype=np.float32)
    run(partial(logistic, 3.9), start, 40, out=tmp_path, keep=20)
    by_hand = run(partial(logistic, 3.8), jaxgpu.load(tmp_path, step=20).state, 30)
    branch = Branch(tmp_path, 20, ("rate",))
    got = run(partial(logistic, 3.8), start, 50, resume=branch, chunk=7)
    assert np.asarray(got.state).tobytes() == np.asarray(by_hand.state).tobytes()


def test_a_branch_is_refused_where_it_is_not_what_was_said(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    run_drift(40, chunk=64, keep=20, out=old)
    with pytest.raises(CheckpointError, match=r"old: .*by was 0.001.*or changed=\('by',\)$"):
        run_drift(50, 1e-2, out=new, resume=Branch(old, 20))
    with pytest.raises(ValueError, match="changed='buy'; no value has this name"):
        run_drift(50, 1e-2, out=new, resume=Branch(old, 20, ("buy",)))
    with pytest.raises(ValueError, match="old is already at step 20"):
        run_drift(10, out=new, resume=Branch(old, 20))
    assert not list(new.glob("step-*"))
    with pytest.raises(ValueError, match="must differ from the folder of the branch"):
        run_drift(50, out=new / "../old", resume=Branch(old, 20))
    run_drift(5, out=new)
    with pytest.raises(CheckpointError, match="new: holds a run already"):
        run_drift(50, out=new, resume=Branch(old, 20))


def test_a_branch_that_is_killed_goes_on_or_begins_again(tmp_path, monkeypatch):
    class Killed(BaseException):
        pass

    def kill(*arguments):
        raise Killed

    old, new = tmp_path / "old", tmp_path / "new"
    run_drift(40, chunk=64, keep=20, out=old)
    branch = Branch(old, 20, ("by",))
    whole = run_drift(50, 1e-2, resume=branch)
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(history, "copy", kill)
        run_drift(50, 1e-2, out=new, resume=branch)
    with pytest.raises(CheckpointError, match="journal.jsonl: No such file"):
        run_drift(50, 1e-2, out=new, resume=True)  # and does not begin at step 0
    with pytest.raises(Killed):
        run_drift(50, 1e-2, out=new, resume=branch, chunk=3, check=kill)
    assert jaxgpu.load(new).steps == (20,)
    with pytest.raises(CheckpointError, match="holds a run already; give resume=True"):
        run_drift(50, 1e-2, out=new, resume=branch)
    assert same_bits(run_drift(50, 1e-2, out=new, resume=True), whole)


@pytest.mark.parametrize(
    ("given", "kind", "said"),
    [
        ({"keep": 0}, ValueError, r"keep=0; it must be a whole number of at least 1 \(every n-th"),
        ({"keep": True}, TypeError, "keep=True of type bool; it must be"),
        ({"keep": "log"}, TypeError, "keep='log'; it must be"),
        ({"keep": 5, "out": None}, ValueError, "keep without a folder"),
        ({"resume": 1}, TypeError, r"resume=1; it must be .* or jaxgpu.runs.Branch\(folder, step"),
    ],
)
def test_what_is_no_rule_is_refused(tmp_path, given, kind, said):
    with pytest.raises(kind, match=said):
        run_drift(3, **{"out": tmp_path} | given)


def test_a_branch_and_its_rules_are_checked_when_they_are_made():
    with pytest.raises(TypeError, match="Branch: changed='eta'; it must be names in a tuple"):
        Branch("a", 5, "eta")
    with pytest.raises(ValueError, match="Branch: step=-1; it must be a whole number"):
        Branch("a", -1)
    with pytest.raises(
        ValueError, match="Logarithmic: factor=1; it must be a finite number of at least 1.01"
    ):
        Logarithmic(factor=1.0)


def test_steps_of_a_small_factor_rise_by_one_at_least():
    rule = KeptSteps(Logarithmic(1, 1.3))
    kept = [step for step in range(30) if rule.is_due(step)]
    assert kept == [1, 2, 3, 4, 5, 6, 8, 10, 13, 17, 22, 29] and rule.count(0, 29) == len(kept)


def test_short_chunks_leave_the_pace_as_it_was(monkeypatch):
    seconds = iter([0.0, 0.1, 0.5, 0.51, 1.51])
    monkeypatch.setattr(time, "perf_counter", lambda: next(seconds))
    pace = _ChunkPace(1000, fixed=False)
    # The chunks take 0.1 s for 1 step, 0.4 s for 8, 0.01 s for 2 of 20, and 1 s for 20.
    assert [pace.next(most) for most in (9, 9, 2, 99, 99)] == [1, 8, 2, 20, 20]


@pytest.mark.slow
def test_a_training_keeps_and_branches(tmp_path):
    ppo = rl.PPO(num_envs=2, num_steps=4, num_minibatches=1)
    train = partial(rl.train, rl.make("cartpole"), key=KEY, schedule=32)
    whole = train(ppo, steps=32, out=tmp_path / "rl", keep=2)
    assert jaxgpu.load(tmp_path / "rl").steps == (2, 4)
    branch = Branch(tmp_path / "rl", 2)
    again = train(ppo, steps=32, resume=branch)
    assert jax.tree.all(jax.tree.map(np.array_equal, again.history, whole.history))
    with pytest.raises(ValueError, match="was started with schedule=32, now it is 64"):
        train(ppo, steps=32, schedule=64, resume=branch)


def test_a_search_keeps_and_branches(tmp_path):
    bowl = lambda x: jnp.sum((x - 0.3) ** 2)
    search = partial(minimize, bowl, Real(jnp.full(2, -1.0), 1.0), 200, algorithm=single.PSO(10))
    found = search(out=tmp_path / "run", keep=Logarithmic(2, 3))
    assert jaxgpu.load(tmp_path / "run").steps[:3] == (2, 6, 18)
    assert search(resume=Branch(tmp_path / "run", 6)).f == found.f


@pytest.mark.slow
def test_planets_clusters_and_sweeps_keep_states(tmp_path):
    x, v = np.array([[-0.5, 0, 0], [0.5, 0, 0]]), np.array([[0, -0.5, 0], [0, 0.5, 0]])
    planets = nbody.Leapfrog(lambda t, x: -x, 0.125)
    nbody.integrate(planets, jnp.asarray(x), jnp.asarray(v), 1.0, out=tmp_path / "p", keep=3)
    soft = nbody.Hermite(softening=0.1)
    nbody.evolve(x, v, np.full(2, 0.5), 0.5, spec=soft, out=tmp_path / "c", keep=Logarithmic())
    ppo = rl.PPO(num_envs=2, num_steps=4, num_minibatches=1)
    keys = jax.random.split(KEY, 2)
    rl.sweep(rl.make("cartpole"), ppo, keys, 4, 1, out=tmp_path / "s", keep=3)
    assert {at: jaxgpu.load(tmp_path / at).steps for at in "pcs"} == {
        "p": (3, 6, 8),
        "c": (1, 2, 4),
        "s": (3, 4),
    }
