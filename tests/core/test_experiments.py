"""Resuming of every function that writes a folder: its own experiment and no other.

All forms and changes, and a hundred resumes: `python -m tests.trust identity`.
"""

import pytest

from jaxgpu.runs.checkpoint import CheckpointError
from jaxgpu.runs.program import Call
from jaxgpu.runs.saving import structure
from jaxgpu.runs.saving.experiment import describe_run, differences
from tests.helpers.experiments import make_script, run_form, same_value
from tests.helpers.run_changes import CHANGES
from tests.trust import identity, load_checks

DRAWN, SEED = 3, 7  # changes of a form
FORMS = ["minimize", "plan"]


@pytest.mark.slow
def test_each_of_thirty_changes_is_refused_by_its_name(tmp_path):
    run_form("run", 2, out=tmp_path)
    assert [said for said in identity.refusals("run", tmp_path) if said] == []
    assert min(map(len, CHANGES.values())) >= 30


def test_what_only_one_of_two_specs_has_is_not_named():
    calls = [Call(make_script(same_value, power=power)) for power in (2, 3)]
    other = differences(*(describe_run(call, Call(same_value), {}, None) for call in calls))
    assert other == {"power": "was 2, is 3"}


def test_a_function_has_one_digest_wherever_it_is_written():
    one, other = (
        structure.describe_value(make_script(same_value, lines=lines), []) for lines in (0, 50)
    )
    assert one == other


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMS)
def test_a_folder_goes_on_with_its_own_experiment_alone(tmp_path, name):
    """A spec read from the folder resumes too, with the same bits as an unbroken run."""
    identity.run_half(name, tmp_path)
    said = identity.refusals(name, tmp_path / name, DRAWN, SEED)
    assert [text for text in said if text] == []
    assert load_checks.fault(name, tmp_path) == ""
    assert identity.resume_fault(name, tmp_path) == ""


def test_what_is_not_of_this_folder_is_refused_whatever_its_shape(tmp_path):
    """The message names the changed value once, not the arrays that follow from it."""
    run_form("run", 2, out=tmp_path)
    with pytest.raises(CheckpointError) as refused:
        run_form("run", 4, {"x": (0.1, 0.2)}, out=tmp_path, resume=True)
    assert str(refused.value).count("written by a run with") == 1
