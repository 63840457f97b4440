"""The command line: one sentence and exit code 2 for requests that it cannot fulfil."""

import dataclasses
import errno
import json
import os
import sys
import types
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from folder_lock import lock_folder

from jaxgpu import cli
from jaxgpu.inputs.fields import number, size
from jaxgpu.report import Report
from jaxgpu.runs import checkpoint
from jaxgpu.studies import GROUP, BadInput, Study, studies


@dataclass(frozen=True)
class Options:
    """Parameters of a fall of stones."""

    height: float = 10.0
    """Metres above the ground."""

    def __post_init__(self):
        if self.height <= 0:
            raise ValueError(f"height: {self.height} m; must be positive")


@dataclass(frozen=True)
class Still:
    """Options of a study that does nothing."""


@dataclass(frozen=True)
class Ranged:
    """Parameters of a throw of stones."""

    stones: int = size(3, least=1, most=100)
    """How many."""
    speed: float = number(1.0, above=0, unit="m/s")
    """Of each."""
    seed: int = size(0, least=0, most=2**32 - 1)
    """Of the throws."""


def hurl(options, out, resume):
    if options.stones == 7:
        raise BadInput("hurl: seven stones are unlucky; throw another number")
    if options.stones == 13:
        checkpoint.save_step(out / "part", 1, np.zeros(3), {})
        raise OSError(errno.ENOSPC, "No space left on device")
    return Report("Throw", f"{options.stones} stones, resumed {resume}")


def fall(options, out, resume):
    if options.height == 13:
        raise KeyboardInterrupt("run: stopped at step 3 of 9")
    return Report("Fall", f"from {options.height} m, resumed {resume}")


@pytest.fixture
def command(monkeypatch, tmp_path):
    two = [Study("fall", "Let it fall.", Options, fall), Study("rest", "Let it be.", Still, fall)]
    two.append(Study("hurl", "Let it fly.", Ranged, hurl))
    monkeypatch.setattr(cli, "studies", lambda: two)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))

    def call(*args):
        try:
            return cli.main(list(args))
        except SystemExit as stop:
            return stop.code

    names = "jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs"
    held = [(name, getattr(jax.config, name)) for name in names]
    yield call
    for name, value in held:
        jax.config.update(name, value)


def test_runs_a_study_and_prints_the_path_of_its_report(command, tmp_path, capsys):
    assert command("run", "fall", "--height", "2.5") == 0
    page = tmp_path / "out" / "fall" / "report.html"
    assert capsys.readouterr().out.strip() == str(page)
    assert "from 2.5 m" in page.read_text()


def test_a_folder_is_never_overwritten(command, capsys):
    assert command("run", "fall", "--out", "a") == 0
    assert command("run", "fall", "--out", "a") == 2
    assert "a: holds a run already; add --resume" in capsys.readouterr().err
    assert command("run", "fall", "--out", "a", "--resume") == 0


def test_resuming_with_other_options_names_the_option(command, capsys):
    assert command("run", "fall", "--out", "a", "--height", "3") == 0
    assert command("run", "fall", "--out", "a", "--height", "4", "--resume") == 2
    assert "height=3.0, not 4.0" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("run", "fall", "--height", "tall"), "could not convert string to float: 'tall'"),
        (("run", "fall", "--height", "-1"), "height: -1.0 m; must be positive"),
        (("run", "fall", "--hight", "1"), "--height"),
        (("run", "rise"), "rise"),
        (("report", "nowhere"), "no results in nowhere"),
        (("run",), "fall"),
    ],
)
def test_bad_input_is_said_and_exits_with_2(command, capsys, args, said):
    assert command(*args) == 2
    out = capsys.readouterr()
    assert said in out.err + out.out and "Traceback" not in out.err


def test_ctrl_c_exits_as_shells_expect(command, capsys):
    assert command("run", "fall", "--height", "13") == 130
    assert "stopped at step 3 of 9" in capsys.readouterr().err


def test_report_gathers_what_was_run(command, tmp_path, capsys):
    command("run", "fall", "--out", "all/one")
    command("run", "fall", "--out", "all/two")
    assert command("report", "all") == 0
    assert (tmp_path / "all" / "report.html").read_text().count("<section") == 2


def test_two_runs_are_compared_on_a_page(command, tmp_path, capsys):
    command("run", "fall", "--out", "one")
    command("run", "fall", "--height", "20", "--out", "two")
    capsys.readouterr()
    assert command("report", "--compare", "one", "two") == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "two" / "comparison.html")
    for wrong in (("report",), ("report", "one", "--compare", "one", "two")):
        assert command(*wrong) == 2
        assert "give a folder, or --compare and two folders" in error_line(capsys)


def test_a_watch_draws_anew_after_so_many_seconds_until_ctrl_c(command, capsys, monkeypatch):
    waits, pictures = [], iter(["first", "second", "third"])

    def sleep(seconds):
        waits.append(seconds)
        if len(waits) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(cli, "time", SimpleNamespace(sleep=sleep))
    monkeypatch.setattr(cli, "watch", SimpleNamespace(plot_runs=lambda folder: next(pictures)))
    assert command("watch", "a", "--seconds", "2.5") == 0 and waits == [2.5, 2.5]
    said = capsys.readouterr().out
    assert said.count("first") == said.count("second") == 1 and "third" not in said
    assert command("watch", "a", "--once") == 0 and len(waits) == 2
    assert capsys.readouterr().out == "third\n"


def test_list_and_info(command, capsys):
    assert command("list") == 0 and "fall  Let it fall." in capsys.readouterr().out
    assert command("info") == 0
    said = capsys.readouterr().out
    assert all(word in said for word in ("jaxlib", "device", "free memory", "python"))


COIN = """'How a coin falls.'
from dataclasses import dataclass
from jaxgpu.report import Report

@dataclass(frozen=True)
class Options:
    tosses: int = 3

def study(options, out, resume):
    return Report("Coin", f"{options.tosses} tosses")
"""


def test_a_study_in_a_file_of_ones_own_runs_and_is_refused_in_a_sentence(command, tmp_path, capsys):
    file = tmp_path / "my_coin.py"
    file.write_text(COIN)
    assert command("run", str(file), "--tosses", "7") == 0
    assert "7 tosses" in (tmp_path / "out" / "my-coin" / "report.html").read_text()
    assert (
        command("run", "nowhere.py") == 2 and "nowhere.py: no such file" in capsys.readouterr().err
    )
    file.write_text("x = 1")
    assert command("run", str(file)) == 2
    assert "my_coin: has no Options" in capsys.readouterr().err


def test_other_packages_name_studies_by_entry_points(monkeypatch, tmp_path):
    (tmp_path / "their_coin.py").write_text(COIN)
    monkeypatch.syspath_prepend(tmp_path)
    theirs = EntryPoint("coin", "their_coin", GROUP)
    monkeypatch.setattr("jaxgpu.studies.entry_points", lambda group: [theirs])
    assert studies()[-1].name == "coin" and studies()[-1].description == "How a coin falls."


def test_says_its_version_and_how_to_cite_it(command, capsys):
    assert command("--version") == 0 and capsys.readouterr().out == "jaxgpu 0.1.0\n"
    assert command("cite") == 0
    said = capsys.readouterr().out
    assert said.startswith("@software{jaxgpu,") and "version = {0.1.0}" in said


def test_every_study_keeps_the_contract():
    for study in studies():
        options = study.options()
        assert study.description.endswith(".") and isinstance(study.run, types.FunctionType)
        assert dataclasses.is_dataclass(options) and json.dumps(dataclasses.asdict(options))


def error_line(capsys):
    """Return the message on stderr, which must be a single line."""
    out = capsys.readouterr()
    lines = out.err.strip().splitlines()
    assert not out.out and len(lines) == 1 and lines[0].startswith("jaxgpu: "), out
    return lines[0]


@pytest.mark.parametrize("package", ["matplotlib", "jinja2", "av"])
def test_what_draws_a_report_is_asked_for_before_any_work(
    command, tmp_path, capsys, monkeypatch, package
):
    """Unless it is checked first, a missing matplotlib fails only after the whole study."""
    monkeypatch.setitem(sys.modules, package, None)
    assert command("run", "hurl", "--out", "a") == 2
    said = error_line(capsys)
    assert f"{package} cannot be imported" in said and 'pip install "jaxgpu[viz]"' in said
    assert not (tmp_path / "a").exists()
    monkeypatch.undo()


def test_an_old_report_is_not_drawn_without_jinja2(command, capsys, monkeypatch):
    assert command("run", "hurl", "--out", "a") == 0
    capsys.readouterr()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert command("report", "a") == 2
    assert "jinja2 cannot be imported" in error_line(capsys)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (("--stones", "0"), "hurl: Ranged.stones=0; it must be a whole number of at least 1"),
        (("--stones", "200000000000"), "and of at most 100"),
        (("--speed", "nan"), "Ranged.speed=nan; it must be a finite number above 0, in m/s"),
        (("--speed", "inf"), "Ranged.speed=inf; "),
        (("--speed", "-1"), "Ranged.speed=-1; "),
        (("--seed", "99999999999999999999"), "Ranged.seed=1e+20, a whole number beyond 64 bits; "),
        (("--seed", "-1"), "Ranged.seed=-1; "),
        (("--stones", "7"), "seven stones are unlucky"),
    ],
)
def test_after_a_refusal_the_folder_is_free(command, tmp_path, capsys, option, said):
    """Otherwise the corrected command fails with "holds a run already"."""
    assert command("run", "hurl", "--out", "a", *option) == 2
    assert said in error_line(capsys)
    assert not list((tmp_path / "a").glob("*.json"))  # nothing says that a study was run there
    assert command("run", "hurl", "--out", "a") == 0


def test_a_folder_that_a_killed_process_claimed_is_free(command, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "options.json").write_text('{"study": "hurl", "stones": 9}')
    assert command("run", "hurl", "--out", "a") == 0


def test_a_full_disk_is_said_and_the_run_stays_where_it_is(command, tmp_path, capsys):
    assert command("run", "hurl", "--out", "a", "--stones", "13") == 2
    assert "No space left on device; free disk space, and resume with --resume" in error_line(
        capsys
    )
    assert command("run", "hurl", "--out", "a", "--stones", "3") == 2
    assert "a: holds a run already" in error_line(capsys)
    assert command("run", "hurl", "--out", "a", "--stones", "3", "--resume") == 2
    assert "was run with stones=13, not 3" in error_line(capsys)


def test_a_file_or_a_disk_that_cannot_be_written_is_said(command, tmp_path, capsys, monkeypatch):
    Path("a").write_text("mine")
    assert command("run", "hurl", "--out", "a") == 2
    assert "a: is a file; give a folder as --out" in error_line(capsys)
    assert command("run", "hurl", "--out", "a/b") == 2
    assert "a/b: Not a directory; give a folder" in error_line(capsys)
    assert Path("a").read_text() == "mine"

    def refuse(self, *_, **__):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(self))

    monkeypatch.setattr(Path, "mkdir", refuse)
    assert command("run", "hurl", "--out", "b") == 2
    assert "b: Read-only file system; give another --out" in error_line(capsys)


@pytest.mark.parametrize("text", ["", "[]", '{"study": "hur', "\0\0", "7"])
def test_torn_options_are_named_and_the_run_goes_on_without_them(command, tmp_path, capsys, text):
    command("run", "hurl", "--out", "a", "--stones", "13")
    capsys.readouterr()
    (tmp_path / "a" / "options.json").write_text(text)
    assert command("run", "hurl", "--out", "a", "--resume") == 2
    assert "a/options.json: empty or damaged; remove it, and resume" in error_line(capsys)
    (tmp_path / "a" / "options.json").unlink()
    assert command("run", "hurl", "--out", "a", "--resume") == 0


@pytest.mark.parametrize("text", ["", "[]", '{"study": "hurl"}', '{"report": {"title": 3}}', "{"])
def test_a_torn_report_is_named(command, tmp_path, capsys, text):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "report.json").write_text(text)
    assert command("report", "a") == 2
    assert "a/report.json: empty, damaged or not a jaxgpu report; " in error_line(capsys)
    assert command("run", "hurl", "--out", "a", "--resume") == 0  # and the study mends it


def test_two_processes_do_not_share_a_folder(command, tmp_path, capsys):
    with lock_folder(tmp_path):
        assert command("run", "hurl", "--out", str(tmp_path)) == 2
    assert "another process uses it" in error_line(capsys)
    assert command("run", "hurl", "--out", str(tmp_path)) == 0


@pytest.mark.parametrize("chosen", [False, True])
def test_a_cache_that_others_can_write_is_not_used(chosen, command, tmp_path, capsys, monkeypatch):
    """JAX runs the programs in the cache, so others must not be able to write there."""
    folder = tmp_path / ".cache" / "jaxgpu" / "compiled"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")
    if chosen:
        monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(folder))
    folder.mkdir(parents=True)
    for mode in (0o777, 0o775, 0o702):
        folder.chmod(mode)
        assert command("run", "hurl", "--out", oct(mode)) == 0
        why = f"{folder}: others can write there; chmod go-w it"
        assert capsys.readouterr().err == f"jaxgpu: compiled programs are not cached ({why})\n"
        assert jax.config.jax_compilation_cache_dir is None
    folder.chmod(0o755)
    assert command("run", "hurl", "--out", "b") == 0
    assert not capsys.readouterr().err
    assert jax.config.jax_compilation_cache_dir == str(folder)
    assert jax.config.jax_persistent_cache_min_compile_time_secs == 0  # programs of any size


def test_a_cache_of_another_user_is_not_used(command, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(cli.os, "geteuid", lambda: os.stat(tmp_path).st_uid + 1)
    assert command("run", "hurl") == 0
    assert "belongs to another user; set JAX_COMPILATION_CACHE_DIR" in capsys.readouterr().err


HOSTILE = [float("nan"), float("inf"), -float("inf"), -1, 10**20, -(10**20), "much", None, 2.5]


@pytest.mark.parametrize("study", studies(), ids=lambda study: study.name)
def test_every_number_of_a_study_has_a_range(study):
    """nan, infinity, negative and absurd numbers raise when the study is opened."""
    for field in dataclasses.fields(study.options):
        if field.type in (int, float) or str(field.type).startswith("tuple"):
            good = getattr(study.options(), field.name)
            for bad in HOSTILE:
                if bad == 2.5 and field.type is not int:
                    continue
                wrong = (*good[:-1], bad) if isinstance(good, tuple) else bad
                with pytest.raises(
                    (ValueError, TypeError), match=f"Options.{field.name}=.*; it must"
                ):
                    study.options(**{field.name: wrong})
