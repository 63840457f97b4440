"""All ways to install the package: it is the same, with no bare physics, numerics or rl."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
IMPORT = """
import importlib.util as u, jaxgpu.physics.nbody, jaxgpu.numerics, jaxgpu.rl, jaxgpu.runs.loop, sys
from jaxgpu.studies import studies
studies()
bare = [n for n in ("physics", "numerics", "rl", "tests", "benchmarks") if u.find_spec(n)]
assert not bare, f"installed under bare names: {bare}"
print(jaxgpu.__path__[0])
"""


def call(*command, cwd, **environment):
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | environment
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}"
    return done.stdout.strip()


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """Make a copy of the files that git tracks or would track."""
    copy = tmp_path_factory.mktemp("checkout") / "jaxgpu"
    listed = call("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT)
    for name in listed.splitlines():
        if (source := ROOT / name).exists() or source.is_symlink():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy / name, follow_symlinks=False)
    return copy


@pytest.fixture(scope="module")
def wheel(checkout, tmp_path_factory):
    return build(checkout, "--wheel", tmp_path_factory.mktemp("wheel"))


def build(source, what, out):
    quiet = ("--no-isolation", "--skip-dependency-check", "-o", out)
    out.mkdir(exist_ok=True)
    call(sys.executable, "-m", "build", what, *quiet, source, cwd=out)
    (made,) = Path(out).iterdir()
    return made


def contents(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return {n: archive.read(n) for n in archive.namelist() if not n.endswith("RECORD")}


def test_an_installed_wheel_imports_and_holds_nothing_else(wheel, tmp_path):
    names = contents(wheel)
    assert {name.partition("/")[0] for name in names} == {"jaxgpu", "jaxgpu-0.1.0.dist-info"}
    assert {
        "jaxgpu/py.typed",
        "jaxgpu/report/page.html",
        "jaxgpu/physics/__init__.py",
    } <= names.keys()
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    where = call(sys.executable, "-c", IMPORT, cwd=tmp_path, PYTHONPATH=str(tmp_path / "site"))
    assert where.startswith(str(tmp_path / "site"))


def test_a_wheel_made_from_the_sdist_is_the_same_wheel(checkout, wheel, tmp_path):
    sdist = build(checkout, "--sdist", tmp_path / "sdist")
    shutil.unpack_archive(sdist, tmp_path, filter="data")
    (source,) = tmp_path.glob("jaxgpu-*")
    for name in ("CHANGELOG.md", "CITATION.cff", "tests/core/test_docs.py", "docs/index.md"):
        assert (source / name).exists(), name
    assert contents(build(source, "--wheel", tmp_path / "again")) == contents(wheel)


def test_an_editable_install_imports_the_checkout(checkout, tmp_path):
    venv = tmp_path / "venv"
    call(sys.executable, "-m", "venv", "--without-pip", venv, cwd=tmp_path)
    python = venv / "bin" / "python"
    (site,) = (venv / "lib").glob("python*/site-packages")
    parents = [p for p in sys.path if p.endswith("site-packages")]
    (site / "parents.pth").write_text("\n".join(parents))
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps")
    call(*pip, "--no-build-isolation", "-e", checkout, cwd=tmp_path)
    where = call(python, "-c", IMPORT, cwd=tmp_path)
    assert where == str(checkout / "jaxgpu")


@pytest.mark.slow
@pytest.mark.parametrize("links", [True, False], ids=["with links", "without links"])
def test_an_uninstalled_checkout_imports(checkout, tmp_path, links):
    copy = tmp_path / "copy"
    shutil.copytree(checkout, copy, symlinks=True)
    if not links:  # as Windows and some archives have it
        for name in ("physics", "numerics", "rl"):
            (copy / "jaxgpu" / name).unlink()
    code = IMPORT.replace('"physics", "numerics", "rl", "tests", "benchmarks"', "")
    assert call(sys.executable, "-c", code, cwd=copy).startswith(str(copy))


def test_the_folders_hold_the_code_and_the_links_point_at_them():
    for name in ("physics", "numerics", "rl"):
        assert (ROOT / name).is_dir() and not (ROOT / name).is_symlink()
        link = ROOT / "jaxgpu" / name
        assert not link.is_symlink() or os.readlink(link) == f"../{name}"


@pytest.mark.slow
def test_static_checkers_resolve_and_find_nothing():
    call(sys.executable, "-m", "pyright", "--pythonpath", sys.executable, cwd=ROOT)


def test_the_code_is_formatted_and_linted():
    call(sys.executable, "-m", "ruff", "check", ".", cwd=ROOT)
    call(sys.executable, "-m", "ruff", "format", "--check", ".", cwd=ROOT)


def test_the_lock_has_hashes_and_no_addresses():
    lock = (ROOT / "requirements.lock").read_text()
    assert "://" not in lock and "--index" not in lock
    pins = [line for line in lock.splitlines() if line and line[0] not in " #"]
    assert len(pins) > 40 and all("==" in pin for pin in pins)
    assert lock.count("--hash=sha256:") >= len(pins)
    assert not (ROOT / "uv.lock").exists()
