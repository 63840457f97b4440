"""Names, docstrings, comments, pages and commit subjects follow the rules of `language.py`."""

import ast
import json
import subprocess
from collections import Counter

import language
import pytest

LIMITS = language.HERE / "language_limits.json"


def compare_counts(counts, limits):
    """Return a sentence for every code whose count differs from its limit."""
    sentences = []
    for code in sorted(counts.keys() | limits.keys()):
        count, limit = counts.get(code, 0), limits.get(code, 0)
        if count > limit:
            command = f"python tests/helpers/language.py --list {code}"
            sentences.append(f"{count} findings of {code}, limit {limit}; see `{command}`")
        if count < limit:
            sentences.append(f"lower the limit of {code} to {count}")
    return sentences


@pytest.mark.slow
def test_counts_of_findings_equal_their_limits():
    counts = Counter(finding.code for finding in language.find_all())
    sentences = compare_counts(counts, json.loads(LIMITS.read_text()))
    assert not sentences, "\n".join(["", *sentences])


@pytest.mark.slow
def test_most_function_docstrings_of_each_package_begin_with_a_verb():
    shares = language.verb_shares()
    assert shares and not {name: share for name, share in shares.items() if share < 0.6}


def test_subjects_of_the_last_commits_name_an_area_and_an_imperative():
    """A folder without a history, such as a source archive, has no subjects to check."""
    if (language.ROOT / ".git").exists():
        command = ["git", "-C", language.ROOT, "log", "--no-merges", "-20", "--format=%s"]
        log = subprocess.run(command, capture_output=True, text=True, check=True)
        subjects = log.stdout.splitlines()
        assert subjects
        faults = {subject: language.check_subject(subject) for subject in subjects}
        assert not {subject: codes for subject, codes in faults.items() if codes}


def test_limits_only_go_down():
    assert compare_counts({"N1": 12}, {"N1": 12}) == []
    assert compare_counts({"N1": 12}, {"N1": 13}) == ["lower the limit of N1 to 12"]
    assert compare_counts({}, {"N1": 1}) == ["lower the limit of N1 to 0"]
    (sentence,) = compare_counts({"N2": 1}, {})
    assert sentence.startswith("1 findings of N2, limit 0")


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("N1", "def told(): ..."),
        ("N2", "def of_boxes(): ..."),
        ("N3", "def each(): ..."),
        ("N4", "def keeps(): ..."),
        ("N5", "def C(): ..."),
        ("D1", "def box_colors(): '''Of each box.'''"),
        ("D2", "def box_colors(): '''Return what a box has.'''"),
        ("D3", f"def box_colors(): '''The {'very ' * 20} colors.'''"),
        ("W", "def box_colors(): '''Return the colors anew.'''"),
        ("W", "x = 1  # computed anew"),
        (None, "def box_colors(): '''Return the colors of the boxes.'''"),
        (None, "@property\ndef is_reached(self) -> bool: ..."),
        (None, "x = '# computed anew'"),
    ],
)
def test_examples_have_their_codes(code, line):
    definitions = list(language.find_definitions(ast.parse(line)))
    source = language.Source("rl/example.py", "rl", line, definitions)
    codes = {finding.code for finding in language.check_source(source)}
    assert (code in codes) if code else not codes


@pytest.mark.parametrize(
    ("text", "is_valid"),
    [
        ("tests/touch: estimate chance success from 512 episodes\n\nBody.\n", True),
        ("\n# comment of git\ndocs: rewrite a page\n# another\n", True),
        ("Merge branch 'main' into touch\n", True),
        ("Hold idle hands to the bounds they had\n", False),
        ("docs: pages of physics\n", False),
        (f"docs: describe {'x' * 60}\n", False),
    ],
)
def test_a_commit_message_needs_a_valid_subject(text, is_valid):
    assert (language.check_message(text) is None) == is_valid
