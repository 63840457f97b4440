"""Licences of all that the package ships, and of all that `make demo` installs."""

import tomllib

import pytest

from tests.trust import licences


@pytest.mark.slow
def test_every_datum_that_is_shipped_has_its_source_and_licence_in_the_notice():
    rows = licences.rows()
    assert licences.data() <= rows.keys()
    assert all((licences.ROOT / file).exists() for file in rows)
    assert all(all(cell.strip() for cell in cells) for cells in rows.values())


def test_no_package_that_the_demo_installs_is_under_the_gpl_alone():
    said = {name: licences.licence(name) for name in licences.pinned_names()}
    assert sum(map(bool, said.values())) > 100
    assert not {name: text for name, text in said.items() if text and licences.is_gpl(text)}


@pytest.mark.parametrize(
    ("said", "gpl"),
    [
        ("GPL-3.0-only", True),
        ("GNU General Public License v3 (GPLv3)", True),
        ("LGPL-2.1-or-later", True),
        ("BSD License or GNU General Public License (GPL)", False),
        ("MPL-2.0 AND MIT", False),
    ],
)
def test_a_choice_of_licences_is_refused_only_where_all_are_of_the_gpl(said, gpl):
    assert licences.is_gpl(said) == gpl


def test_the_oracle_under_the_gpl_is_for_the_tests_and_the_benchmarks_alone():
    extras = tomllib.loads((licences.ROOT / "pyproject.toml").read_text())["project"]
    asked = extras["optional-dependencies"]
    assert [name for name in asked if any("rebound" in one for one in asked[name])] == ["bench"]
    assert "rebound" not in licences.pinned_names()
    assert "rebound==" in (licences.ROOT / "tests" / "requirements.txt").read_text()
