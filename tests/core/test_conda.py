"""The conda recipe: its requirements are those of the package."""

import tomllib
from pathlib import Path

import jinja2
import yaml

import jaxgpu

ROOT = Path(__file__).parents[2]


def test_the_recipe_has_the_version_and_the_dependencies_of_the_package():
    text = jinja2.Template((ROOT / "conda/meta.yaml").read_text()).render(PYTHON="python")
    recipe = yaml.safe_load(text)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    # conda-forge publishes the bindings of MuJoCo under another name.
    conda_name = lambda name: name.replace(" ", "").replace("mujoco-python", "mujoco-core")
    sort_names = lambda names: sorted(map(conda_name, names))
    python = f"python{project['requires-python']}"
    assert recipe["package"] == {"name": project["name"], "version": jaxgpu.__version__}
    assert sort_names(recipe["requirements"]["run"]) == sort_names(
        [python, *project["dependencies"]]
    )
    assert recipe["about"]["summary"] == project["description"]
    (entry,) = recipe["build"]["entry_points"]
    name, _, where = entry.partition(" = ")
    assert project["scripts"] == {name: where}
