"""The command line: one sentence and exit code 2 for what cannot be done."""

import dataclasses
import json
import types
from dataclasses import dataclass

import pytest

from jaxgpu import cli
from jaxgpu.report import Report
from jaxgpu.studies import Study, studies


@dataclass(frozen=True)
class Options:
    """How stones fall."""

    height: float = 10.0
    """Metres above the ground."""

    def __post_init__(self):
        if self.height <= 0:
            raise ValueError(f"height: {self.height} m; must be positive")


@dataclass(frozen=True)
class Still:
    """Nothing happens."""


def fall(options, out, resume):
    if options.height == 13:
        raise KeyboardInterrupt("run: stopped at step 3 of 9")
    return Report("Fall", f"from {options.height} m, resumed {resume}")


@pytest.fixture
def command(monkeypatch, tmp_path):
    two = [Study("fall", "Let it fall.", Options, fall), Study("rest", "Let it be.", Still, fall)]
    monkeypatch.setattr(cli, "studies", lambda: two)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))

    def call(*args):
        try:
            return cli.main(list(args))
        except SystemExit as stop:
            return stop.code

    return call


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


def test_list_and_info(command, capsys):
    assert command("list") == 0 and "fall  Let it fall." in capsys.readouterr().out
    assert command("info") == 0
    said = capsys.readouterr().out
    assert all(word in said for word in ("jaxlib", "device", "free memory", "python"))


def test_every_study_keeps_the_contract():
    for study in studies():
        options = study.options()
        assert study.description.endswith(".") and isinstance(study.run, types.FunctionType)
        assert dataclasses.is_dataclass(options) and json.dumps(dataclasses.asdict(options))
