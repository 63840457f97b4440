"""The recipes of CONTRIBUTING.md, executed in a scratch copy of the repository."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import catalog
import pytest

ROOT = Path(__file__).parents[2]
COPIED = "jaxgpu", "physics", "numerics", "rl", "tests", "docs/*.md"


def _edit(file, *pairs):
    text = file.read_text()
    for old, new in pairs:
        assert old in text, f"{file}: {old}"
        text = text.replace(old, new, 1)
    file.write_text(text)


def _copy(source, target, *pairs):
    """Write a copy of a working module with other names."""
    shutil.copy(source, target)
    _edit(target, *pairs)


def _export(init, module, name):
    _edit(
        init,
        ("\nfrom .", f"\nfrom .{module} import {name}\nfrom ."),
        ("__all__ = [", f'__all__ = ["{name}", '),
        ('.\n"""', f'; `{module}` is new.\n"""'),
    )


@pytest.fixture(scope="module")
def recipes():
    """Return the steps by title: the file, the place in it, and the line to add."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    sections = re.findall(r"^## Add (.*?)\n(.*?)(?=^## )", text, re.M | re.S)
    step = re.compile(r"^\d\. `([^`]+)`(?:, (?:in|after) `([^`]+)`)?: (?:`([^`]+)`)?", re.M)
    return {title: step.findall(body) for title, body in sections}


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    """Make a copy of the files that the recipes use."""
    root = tmp_path_factory.mktemp("scratch")
    skip = shutil.ignore_patterns("__pycache__", "*.gif", "*.png", "studies", "trust", "render")
    for top in ("jaxgpu", "physics", "numerics", "rl", "tests"):
        shutil.copytree(
            ROOT / top,
            root / top,
            symlinks=True,
            ignore=skip if top == "tests" else shutil.ignore_patterns("__pycache__"),
        )
    (root / "docs").mkdir()
    for page in (ROOT / "docs").glob("*.md"):
        shutil.copy(page, root / "docs")
    shutil.copy(ROOT / "pyproject.toml", root)
    return root


def _add_line(root, file, place, line):
    """Insert `line` after the first line that starts with `place`."""
    start = re.compile(rf"^{re.escape(place)}.*\n(\|[-| :]*\n)?", re.M)
    text = (root / file).read_text()
    found = start.search(text)
    assert found, f"{file} has no line that begins with {place}"
    line = re.sub(r"^\| (\w+) \|", r"| `\1` |", line)
    (root / file).write_text(f"{text[: found.end()]}{line}\n{text[found.end() :]}")


def _algorithm(root):
    single = root / "jaxgpu/evolution/single"
    _copy(single / "snes.py", single / "cem.py", ("class SNES", "class CEM"))
    _export(single / "__init__.py", "cem", "CEM")


def _material(root):
    laws = root / "physics/continuum/materials"
    _copy(laws / "elastic.py", laws / "venant.py", ("class NeoHookean", "class StVenant"))
    text = (laws / "venant.py").read_text()
    (laws / "venant.py").write_text(text[: text.index("@pytree\nclass Corotated")])
    _export(laws / "__init__.py", "venant", "StVenant")
    test = root / "tests/physics/continuum/test_materials.py"
    _edit(test, ("Liquid, NeoHookean,", "Liquid, NeoHookean, StVenant,"))


SWAY = """import jax
import jax.numpy as jnp
import numpy as np
from jaxgpu import rl


def test_a_step_is_that_of_the_pendulum():
    key, ends = jax.random.key(0), []
    for name in ("sway", "pendulum"):
        env = rl.make(name)
        state, _ = env.reset(key)
        ends.append(np.asarray(env.step(state, jnp.ones(1), key).observation))
    np.testing.assert_array_equal(*ends)
"""


def _environment(root):
    envs = root / "rl/envs/classic"
    names = ('@register("pendulum")', '@register("sway")'), ("class Pendulum", "class Sway")
    _copy(envs / "pendulum.py", envs / "sway.py", *names)
    _edit(
        envs / "__init__.py",
        ("\nfrom .", "\nfrom .sway import Sway\nfrom ."),
        ("__all__ = [", '__all__ = ["Sway", '),
    )
    (root / "tests/rl/envs/classic/test_sway.py").write_text(SWAY)


KINETIC = """def _kinetic_energy(model, state, d, which):
    momentum = inertia.mul_inert_vec(d.motion.inertia, d.motion.velocity)
    moved = jnp.sum(momentum * d.motion.velocity)
    turned = jnp.sum(model.freedoms.armature * state.qvel**2)
    return jnp.broadcast_to(0.5 * (moved + turned), (1, len(which)))


_PLAIN: dict"""


def _sensor(root):
    _edit(root / "physics/rigid/sensors/readings.py", ("_PLAIN: dict", KINETIC))
    _edit(root / "tests/physics/rigid/test_sensors.py", ("<clock/>", "<clock/><e_kinetic/>"))
    _edit(root / "docs/rigid.md", ("`clock`", "`clock`, `e_kinetic`"))


def _function(root):
    bessel, tests = root / "numerics/bessel", root / "tests/numerics/bessel"
    named = ("log_hyp0f1", "log_halley")
    text = (bessel / "hypergeometric.py").read_text().replace(*named)
    (bessel / "halley.py").write_text(text)
    _export(bessel / "__init__.py", "halley", "log_halley")
    text = (tests / "test_hypergeometric.py").read_text()
    (tests / "test_halley.py").write_text(text.replace(*named).replace("hypergeometric", "halley"))
    _edit(root / "docs/bessel.md", ("`log_ive`", "`log_halley`, `log_ive`"))


WRITTEN = {
    "an evolutionary algorithm": _algorithm,
    "a material": _material,
    "an environment": _environment,
    "a sensor of rigid bodies": _sensor,
    "a special function": _function,
}


def test_each_recipe_has_at_most_five_files(recipes):
    assert recipes.keys() == WRITTEN.keys()
    for title, steps in recipes.items():
        assert 3 < len(steps) <= 5, title
        assert all((ROOT / file).parent.is_dir() for file, _, _ in steps), title


@pytest.mark.slow
def test_the_recipes_work_and_a_forgotten_step_is_named(recipes, scratch):
    assert not list(catalog.missing(scratch))
    for title, write in WRITTEN.items():
        write(scratch)
        for file, place, line in recipes[title]:
            if place and line:
                _add_line(scratch, file, place, line)
    assert not list(catalog.missing(scratch))
    for title, steps in recipes.items():
        for file, _, _ in steps[1:]:
            path = scratch / file
            after = path.read_text()
            if (ROOT / file).exists():
                shutil.copy(ROOT / file, path)
            else:
                path.unlink()
            found = list(catalog.missing(scratch))
            assert any(line.startswith(f"{file}: add") for line in found), (title, file, found)
            path.write_text(after)
    words = "CEM or cem or StVenant or sway or log_halley or sensors_read or steps_of_the_recipes"
    tests = [
        "core/test_catalog.py",
        "core/test_conformance.py",
        "evolution/single/test_single.py",
        "physics/continuum/test_materials.py",
        "physics/rigid/test_sensors.py",
        "rl/envs/classic/test_sway.py",
        "numerics/bessel/test_halley.py",
    ]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "-k", words, *(f"tests/{test}" for test in tests)],
        cwd=scratch,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
