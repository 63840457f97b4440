"""Execution of the documents: docstrings, README, pages and notebooks."""

import contextlib
import doctest
import importlib
import pkgutil
import re
import runpy
import subprocess
import sys
from functools import partial
from pathlib import Path

import jax
import matplotlib
import matplotlib.pyplot as plt
import nbformat
import pytest
from api_cases import cheap_programs
from nbclient import NotebookClient

import jaxgpu
from jaxgpu.devices import mesh
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
# Tests run notebooks with smaller numbers: pairs of the code's text and its replacement.
SMALLER = {
    "bessel": [("150)", "20)"), ("n = 120", "n = 40")],
    "cartpole_seeds": [("key, 120)", "key, 3)"), ("key(0), 16)", "key(0), 2)")],
    "clusters": [
        ("start, 2500", "start, 100"),
        ("count, comets = 200, 800", "count, comets = 32, 64"),
    ],
    "crawler": [("100_000", "4_800"), ("key(1), 60)", "key(1), 1)"), ("(2, 31)", "(2, 7)")],
    "evolution": [
        ("10_000", "1_000"),
        ("range(60)", "range(2)"),
        ("key(1), 20)", "key(1), 2)"),
        ("key, 80)", "key, 2)"),
    ],
    "fisher": [("(20, 60, 200, 600, 2000)", "(20, 200)")],
    "four_materials": [("0.35)", "0.02)")],
    "galaxy_orbits": [("8000", "400")],
    "kozai": [("20_000.0", "100.0")],
    "log_bessel": [("150)", "20)")],
    "matern": [("400", "40")],
    "pendulums": [("6000", "100")],
    "rl": [("key, 60)", "key, 2)"), ("key, 24)", "key, 1)"), ("num_envs=128", "num_envs=8")],
    "sand_heap": [("-9.81)), 0.8)", "-9.81)), 0.1)")],
    "seeds": [("state, 150", "state, 5"), ("key(0), 20)", "key(0), 2)")],
    "shapes": [
        ("Pour()", "Pour(spacing=0.02)"),
        ("NSGA2(8)", "NSGA2(4)"),
        ("12, measure", "1, measure"),
    ],
    "splash": [
        ("1.0, 0.95, 0.9, 0.5", "(0.9,)"),
        ("states, 16,", "states, 2,"),
        ("np.arange(1, 17)", "np.arange(1, 3)"),
    ],
    "three_bodies": [("60.0", "6.0")],
}
PAGES = [ROOT / "README.md", *sorted(p for at in WRITTEN for p in (ROOT / "docs").glob(at))]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
# The examples of these modules take more than a second and a half.
SLOW = {
    f"jaxgpu.{name}"
    for name in """evolution.multi.hype evolution.multi.moead evolution.multi.rvea
    evolution.problems.dtlz evolution.protocol evolution.single.gradients evolution.single.lm_ma
    evolution.single.lshade evolution.single.restarts evolution.single.sep_cma
    evolution.single.snes evolution.single.swarm evolution.single.xnes evolution.solve
    evolution.stochastic kernels numerics.sphere.mixture physics.continuum.devices
    physics.continuum.health physics.continuum.scene physics.continuum.simulation
    physics.continuum.tools.sources physics.continuum.trajectory physics.nbody.clusters.cluster
    physics.nbody.measure.diagnostics physics.nbody.measure.segregation
    physics.nbody.models.binaries physics.nbody.planets.ensemble
    physics.nbody.planets.planetary physics.rigid.diagnostics physics.rigid.model
    physics.rigid.sensors.forces physics.touch.grasp rl.devices rl.envs.locomotion.ant
    rl.envs.locomotion.double_pendulum rl.envs.locomotion.humanoid rl.envs.locomotion.pusher
    rl.envs.locomotion.reacher rl.envs.rearrange.robot.reachability rl.envs.rearrange.robot.movement
    rl.envs.rearrange.tasks.dynamic_tasks rl.envs.rearrange.tasks.episodes
    rl.envs.rearrange.tasks.carry_tasks rl.envs.surgical.dynamics rl.learners.dagger
    rl.learners.evolved.neuroevolution rl.learners.kickstart rl.learners.recurrent
    rl.learners.sac rl.loops rl.plan.comparison rl.policies""".split()
}

# The examples of these documents run for longer than they compile.
LONG = {"docs/evolution.md", "docs/examples/sand.md", "notebooks/continuum.ipynb"}

# pages of which every block is a script of its own
STANDALONE = {
    "docs/guides.md",
    "docs/precision.md",
    "docs/your_data.md",
    "docs/your_loop.md",
    "docs/your_robot.md",
}

# A code block matches with two groups: its language and its code.
_BLOCK = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def name(file):
    return str(file.relative_to(ROOT))


def python_blocks(page):
    """Return the Python code of a page, one string per block."""
    return [code for language, code in _BLOCK.findall(page.read_text()) if language == "python"]


# tests/physics/continuum/test_pages.py runs the pages of the materials
RUN = [name(p) for p in PAGES if p.parent.name != "continuum" and python_blocks(p)]
RUN.remove("docs/index.md")


@pytest.fixture
def as_users_run(request, monkeypatch):
    """Run code with the default settings of JAX on two devices, then restore the settings."""
    (document,) = map(str, request.node.callspec.params.values())
    programs = contextlib.nullcontext() if document.endswith(tuple(LONG)) else cheap_programs()
    before = dict(jax.config.values)
    jax.config.update("jax_numpy_rank_promotion", "allow")
    jax.config.update("jax_numpy_dtype_promotion", "standard")
    jax.config.update("jax_legacy_prng_key", "allow")
    monkeypatch.setattr(mesh, "make_mesh", partial(mesh.make_mesh, 2))
    with matplotlib.rc_context({"backend": "Agg"}), programs:
        yield
        plt.close("all")
    for setting, value in before.items():
        if jax.config.values[setting] != value:
            jax.config.update(setting, value)


@pytest.mark.parametrize(
    "module", [pytest.param(m, marks=pytest.mark.slow if m in SLOW else ()) for m in MODULES]
)
def test_examples_in_docstrings(module):
    with cheap_programs():
        result = doctest.testmod(importlib.import_module(module), optionflags=FLAGS)
    assert result.failed == 0


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("page", RUN)
def test_python_blocks_of_a_page_run_in_order(page, tmp_path, monkeypatch, as_users_run):
    blocks = python_blocks(ROOT / page)
    script = tmp_path / "page.py"
    monkeypatch.chdir(tmp_path)
    for code in blocks if page in STANDALONE else ["\n".join(blocks)]:
        script.write_text(code)
        runpy.run_path(str(script), run_name="__main__")


def test_the_first_page_shows_the_example_of_the_readme():
    assert python_blocks(ROOT / "docs" / "index.md") == python_blocks(ROOT / "README.md")[:1]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_inside_the_repository_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", page.read_text()):
        assert (page.parent / target).exists(), f"{name(page)}: {target}"


def code_cells(file, smaller=()):
    """Return the code of a notebook as a script, with some of its numbers made smaller."""
    book = nbformat.read(file, as_version=4)
    code = "\n".join(cell.source for cell in book.cells if cell.cell_type == "code")
    for text, replacement in smaller:
        assert text in code, f"{name(file)}: {text}"
        code = code.replace(text, replacement)
    return code


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("file", NOTEBOOKS, ids=name)
def test_the_code_of_a_notebook_runs_and_draws(file, tmp_path, monkeypatch, as_users_run):
    """Run in this process with smaller numbers, since a kernel takes longer than the code."""
    script = tmp_path / "notebook.py"
    script.write_text(code_cells(file, SMALLER.get(file.stem, ())))
    monkeypatch.chdir(ROOT)
    runpy.run_path(str(script), run_name="__main__")
    assert plt.get_fignums()
    for number in plt.get_fignums():
        plt.figure(number).canvas.draw()


@pytest.mark.slow
@pytest.mark.release
def test_notebooks_run_in_a_kernel_at_full_size():
    for file in NOTEBOOKS:
        book = nbformat.read(file, as_version=4)
        NotebookClient(book, timeout=600, resources={"metadata": {"path": str(ROOT)}}).execute()
        assert pictures(book), name(file)


@pytest.mark.parametrize("file", NOTEBOOKS, ids=name)
def test_a_notebook_is_kept_with_small_pictures_and_is_in_the_gallery(file):
    book = nbformat.read(file, as_version=4)
    kept = pictures(book)
    assert kept and book.metadata["cpu_seconds"], "python docs/make/gallery.py NAME"
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert len(kept) >= len(code) / 3, "a picture on every screen"
    assert max(map(len, kept)) <= 60_000 * 4 / 3, "a picture of more than 60 kB"
    assert f"notebooks/{file.name})" in (ROOT / "docs" / "gallery.md").read_text()


def pictures(book):
    """Return the PNG images of a notebook, in base64."""
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
    assert pages.fill_page(pages.PAGE.read_text(), record.rows()) == pages.PAGE.read_text()


def test_the_readme_names_commands_that_exist():
    readme, makefile = (ROOT / "README.md").read_text(), (ROOT / "Makefile").read_text()
    for target in re.findall(r"`?make (\w+)", readme):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"make {target}"
