"""What the documents say is run: docstrings, README, pages and notebooks."""

import doctest
import importlib
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

import jaxgpu
from tests.trust import pages, record

ROOT = Path(__file__).parents[2]
MODULES = ["jaxgpu", *(m.name for m in pkgutil.walk_packages(jaxgpu.__path__, "jaxgpu."))]
WRITTEN = (
    "*.md",
    "coming_from/*.md",
    "continuum/*.md",
    "evolution/*.md",
    "examples/*.md",
    "record/*.md",
)
PAGES = [ROOT / "README.md", *sorted(p for at in WRITTEN for p in (ROOT / "docs").glob(at))]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
BRIEF = 15  # CPU seconds: longer notebooks wait for a release
LONG = {"README.md", "jaxgpu.physics.nbody.clusters.cluster", "jaxgpu.render.capsules"}
LONG |= {f"jaxgpu.physics.continuum.{name}" for name in ("health", "trajectory")}
LONG |= {f"jaxgpu.{name}" for name in ("numerics.sphere.mixture", "rl.loops")}
LONG |= {f"jaxgpu.evolution.{name}" for name in ("solve", "protocol", "single.restarts")}
LONG |= {f"jaxgpu.evolution.multi.{name}" for name in ("rvea", "hype")}
LONG |= {"jaxgpu.physics.nbody.measure.diagnostics", "jaxgpu.rl.plan.comparison"}
LONG |= {
    f"docs/{page}.md"
    for page in """bessel concepts continuum directions evolution guides index nbody recipes
    rigid rl studies""".split()
}
LONG |= {
    str(page.relative_to(ROOT))
    for page in PAGES
    if page.parent.name in ("coming_from", "evolution", "examples")
}
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

# of each code block: the fence's words, the code
_BLOCK = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def name(file):
    return str(file.relative_to(ROOT))


def cases(values, name=str):
    """One test a value, the long ones marked."""
    marks = lambda v: pytest.mark.slow if name(v) in LONG else ()
    return [pytest.param(v, id=name(v), marks=marks(v)) for v in values]


@pytest.mark.parametrize("module", cases(MODULES))
def test_examples_in_docstrings(module):
    result = doctest.testmod(importlib.import_module(module), optionflags=FLAGS)
    assert result.failed == 0


# those of the materials are run by tests/physics/continuum/test_pages.py
@pytest.mark.parametrize("page", cases([p for p in PAGES if p.parent.name != "continuum"], name))
def test_python_blocks_of_a_page_run_in_order(page, tmp_path, monkeypatch):
    blocks = [code for language, code in _BLOCK.findall(page.read_text()) if language == "python"]
    if not blocks:
        assert page.read_text().startswith("#")
        return
    script = tmp_path / "page.py"
    script.write_text("\n".join(blocks))
    environment = os.environ | {"PYTHONPATH": str(ROOT), "MPLBACKEND": "Agg"}
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_inside_the_repository_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", page.read_text()):
        assert (page.parent / target).exists(), f"{name(page)}: {target}"


def runs(file):
    """The notebook, and when it is run."""
    brief = nbformat.read(file, as_version=4).metadata["cpu_seconds"] <= BRIEF
    return pytest.param(file, marks=() if brief else pytest.mark.release, id=name(file))


@pytest.mark.slow
@pytest.mark.parametrize("file", [runs(file) for file in NOTEBOOKS])
def test_a_notebook_runs_from_the_root(file):
    book = nbformat.read(file, as_version=4)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    NotebookClient(book, timeout=120, resources={"metadata": {"path": str(ROOT)}}).execute()
    assert len(pictures(book)) >= len(code) / 3, "a picture on every screen"


@pytest.mark.parametrize("file", NOTEBOOKS, ids=name)
def test_a_notebook_is_kept_with_small_pictures_and_is_in_the_gallery(file):
    book = nbformat.read(file, as_version=4)
    kept = pictures(book)
    assert kept and book.metadata["cpu_seconds"], "python docs/make/gallery.py NAME"
    assert max(map(len, kept)) <= 60_000 * 4 / 3, "a picture of more than 60 kB"
    assert f"notebooks/{file.name})" in (ROOT / "docs" / "gallery.md").read_text()


def pictures(book):
    """The pictures of a notebook, in base 64."""
    outputs = [out for cell in book.cells for out in cell.get("outputs", [])]
    found = [out.get("data", {}).get("image/png") for out in outputs]
    return [png for png in found if png]


def test_the_tables_of_scaling_are_those_of_the_results():
    command = [sys.executable, ROOT / "docs" / "make" / "scaling.py", "--check"]
    assert subprocess.run(command).returncode == 0, "run python docs/make/scaling.py"


def test_the_tables_of_measurements_are_those_of_the_record():
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.pages"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_table_of_trust_is_that_of_its_record():
    assert pages.filled(pages.PAGE.read_text(), record.rows()) == pages.PAGE.read_text()


@pytest.mark.slow
def test_the_reference_has_no_gaps():
    command = [sys.executable, ROOT / "docs" / "make" / "coverage.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_readme_names_commands_that_exist():
    readme, makefile = (ROOT / "README.md").read_text(), (ROOT / "Makefile").read_text()
    for target in re.findall(r"`?make (\w+)", readme):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"make {target}"
