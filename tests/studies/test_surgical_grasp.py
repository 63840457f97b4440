"""The study `surgical-grasp`: its options, and a little of it in full."""

import pytest

from jaxgpu.studies import surgical_grasp


@pytest.mark.slow
def test_a_little_of_it_ends_in_a_report(tmp_path):
    options = surgical_grasp.Options(steps=20_000, seeds=3, episodes=4)
    found = surgical_grasp.study(options, tmp_path, False)
    contact, rule = found.tables[0].rows
    assert contact[:3] == ["by contact, DAgger", 3, 20_480] and rule[1:3] == [3, 204_800]
    assert "DAgger succeeds" in found.lead
    assert [figure.mime for figure in found.figures] == ["video/mp4", "image/svg+xml"]


def test_options_that_cannot_be_met_are_refused():
    with pytest.raises(ValueError, match="task='suture'; it must be one of"):
        surgical_grasp.Options(task="suture")
    with pytest.raises(ValueError, match="seeds"):
        surgical_grasp.Options(seeds=2)
