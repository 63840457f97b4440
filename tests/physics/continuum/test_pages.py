"""Every material has a page whose code runs and whose table has all its parameters."""

import dataclasses
import re
from pathlib import Path

import pytest

from jaxgpu.physics import continuum

PAGES = Path(__file__).parents[3] / "docs" / "continuum"
LAWS = [
    continuum.Corotated, continuum.DruckerPrager, continuum.HerschelBulkley, continuum.Liquid,
    continuum.NeoHookean, continuum.Snow, continuum.VonMises,
]  # fmt: skip


def page_name(law):
    return re.sub(r"(?<!^)(?=[A-Z])", "_", law.__name__).lower()


def test_every_material_has_its_page_and_no_page_is_left_over():
    assert sorted(map(page_name, LAWS)) == sorted(page.stem for page in PAGES.glob("*.md"))
    offered = [getattr(continuum, name) for name in continuum.__all__]
    laws = [a for a in offered if isinstance(a, type) and hasattr(a, "kinematic_viscosity")]
    assert set(laws) - {continuum.Material} == set(LAWS)


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS, ids=page_name)
def test_a_page_runs_and_names_every_parameter_with_its_default(law, capsys):
    text = (PAGES / f"{page_name(law)}.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert blocks and "\n| parameter of `" + law.__name__ in text and "doi.org" in text
    exec(compile("\n".join(blocks), f"{page_name(law)}.md", "exec"), {})
    assert capsys.readouterr().out  # it shows something
    table = text.split("| parameter of")[1].split("\n\n")[0]
    for field in dataclasses.fields(law):
        row = next(r for r in table.splitlines() if f"`{field.name}`" in r)
        defaults = [a.strip() for a in row.split("|")[-2].split(" (")[0].split(",")]
        place = re.findall(r"`(\w+)`", row.split("|")[1]).index(field.name)
        if field.type is not bool:
            default = None if defaults[place] == "none" else float(defaults[place])
            assert default == field.default, field.name
