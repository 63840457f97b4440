"""Checker of names, docstrings, comments, pages and commit subjects.

    python tests/helpers/language.py [--list [CODE ...]] [--only TEXT] [--message FILE]

N1 a function is named by a participle        `told`       -> `collect_episodes`
N2 a name is or starts with a preposition     `of_boxes`   -> `box_colors`
N3 a name lacks its noun                      `each`       -> `map_components`
N4 a name is a verb in the third person       `keeps`      -> `keep_best`
N5 a function has one letter                  `C`          -> `elasticity`
D1 a docstring starts as a fragment           `Of ...`     -> `Return ...`
D2 its first sentence leans on a pronoun      `what is on` -> `the active contacts`
D3 its first sentence has more than 20 words and no verb
W  a word or phrase has a plain alternative, see `language_words.tsv`
C1 a commit subject is not of the form `area: imperative`
C2 a commit subject has more than 72 characters

tests/core/test_language.py compares the counts by code with `language_limits.json`.
"""

import argparse
import ast
import functools
import io
import re
import sys
import tokenize
import tomllib
from collections import Counter
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TOPS = ("jaxgpu", "physics", "numerics", "rl", "tests", "benchmarks", "docs/make")
PROSE = ("benchmarks", "docs")  # They follow the stricter list, as documentation pages do.
UNCHECKED = ("CHANGELOG.md", "docs/_build/", "docs/api/", "docs/charts/", "docs/shown/")
PARTS = ("evolution", "geometry", "render", "studies")  # The rest of `jaxgpu` is its core.

SETS = {
    name: set(words.split())
    for name, words in tomllib.loads((HERE / "language_sets.toml").read_text()).items()
}
THIRD_PERSON, VERBS = SETS["third_person"], SETS["verbs"]
FINITE = SETS["auxiliaries"] | THIRD_PERSON | {verb + "s" for verb in VERBS}
NO_NOUN = SETS["prepositions"] | SETS["pronouns"] | SETS["adjectives"]
OPENING_PREPOSITIONS = SETS["prepositions"] - SETS["idioms"] - SETS["with_noun"]
LEANING = re.compile(
    r"\b(what|whatever|those|theirs|ours|that of|that which|the ones?|things?|"
    r"nobody|everybody|so many|is to be|are to be|but for|anew|wherever)\b",
    re.IGNORECASE,
)


class Finding(NamedTuple):
    """Violation of one rule at one line."""

    code: str
    package: str
    where: str
    text: str


class Definition(NamedTuple):
    """Module, class or function of a Python file. An assigned lambda counts as a function."""

    kind: type[ast.AST]
    name: str
    line: int
    doc: str = ""
    doc_line: int = 0
    is_nested: bool = True  # inside a function
    is_property: bool = False
    returns_bool: bool = False


class Source(NamedTuple):
    """Python file and its definitions."""

    name: str
    package: str
    text: str
    definitions: list[Definition]


def package_name(name):
    """Return the package under which a file is counted."""
    top, *inner = name.removesuffix(".py").split("/")
    if top == "jaxgpu":
        return inner[0] if inner[0] in PARTS else "core"
    if top == "physics" and len(inner) > 1:
        return inner[0]
    if top == "rl" and inner[0] in ("envs", "pictures"):
        return "rl/envs"
    if top == "docs" and inner[0] == "make":
        return "docs/make"
    return top


def describe(node, is_nested):
    """Return the definition of a statement, or None for setters and other statements."""
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
        target = node.targets[0]
        is_name = isinstance(target, ast.Name)
        return Definition(ast.FunctionDef, target.id, node.lineno) if is_name else None
    if not isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Module)):
        return None
    decorators = [ast.unparse(decorator) for decorator in getattr(node, "decorator_list", ())]
    if any(text.endswith(".setter") for text in decorators):
        return None
    returns = getattr(node, "returns", None)
    doc = ast.get_docstring(node) or ""
    return Definition(
        kind=type(node),
        name=getattr(node, "name", ""),
        line=getattr(node, "lineno", 1),
        doc=doc,
        doc_line=node.body[0].lineno if doc else 0,
        is_nested=is_nested,
        is_property=any("property" in text for text in decorators),
        returns_bool=bool(returns)
        and ast.unparse(returns) in ("bool", "Array | bool", "bool | Array"),
    )


def find_definitions(tree):
    """Yield the definitions of a module. Only statements are visited, not their expressions."""
    waiting = [(tree, False)]
    while waiting:
        node, is_nested = waiting.pop()
        if definition := describe(node, is_nested):
            yield definition
        is_nested |= isinstance(node, ast.FunctionDef)
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            waiting += [(child, is_nested) for child in getattr(node, field, ())]


@functools.cache
def read_sources():
    """Return all Python files of the repository. Links are not followed."""
    sources = []
    for file in [file for top in TOPS for file in sorted((ROOT / top).rglob("*.py"))]:
        if not file.is_symlink():
            name, text = file.relative_to(ROOT).as_posix(), file.read_text()
            definitions = sorted(find_definitions(ast.parse(text)), key=lambda each: each.line)
            sources.append(Source(name, package_name(name), text, definitions))
    return sources


def is_participle(word):
    """Return whether a word has the form of a past participle."""
    has_form = word in SETS["irregular"] or (word.endswith("ed") and len(word) > 4)
    return has_form and word not in SETS["not_participles"]


def check_name(function):
    """Return the code of the rule that the name of a function breaks, or None."""
    bare = function.name.strip("_").lower()
    words = [word for word in bare.split("_") if word and not word.isdigit()]
    if function.name.startswith("__") or bare in SETS["allowed"] or not words:
        return None
    if len(bare) == 1:
        return None if function.is_property or function.is_nested else "N5"
    first, is_single = words[0], len(words) == 1
    if first in (SETS["prepositions"] if is_single else OPENING_PREPOSITIONS):
        return "N2"
    if is_single and first in THIRD_PERSON:
        is_predicate = function.doc.startswith(("Whether", "True", "Return whether", "Mask"))
        return None if is_predicate or function.returns_bool else "N4"
    if not all(is_participle(word) or word in NO_NOUN for word in words):
        return None
    if is_participle(words[-1]):
        return None if is_single and function.is_property and function.returns_bool else "N1"
    return None if is_single and function.is_property else "N3"


def first_sentence(doc):
    """Return the first sentence of a docstring without code spans."""
    text = re.sub(r"`[^`]*`", "X", " ".join(doc.split("\n\n")[0].split()))
    return re.split(r"(?<=[a-z\])0-9])\.\s|;\s|:\s", text)[0]


def check_docstring(doc):
    """Return the code of the rule that the first sentence of a docstring breaks, or None."""
    sentence = re.sub(r"\[[^\]]*\]", "", first_sentence(doc))
    words = re.findall(r"[A-Za-z][A-Za-z'-]*", sentence)
    if not words:
        return None
    if words[0].lower() in SETS["openers"] and sentence[0].isalpha():
        return "D1"
    if LEANING.search(sentence):
        return "D2"
    has_verb = words[0].lower() in VERBS or any(word.lower() in FINITE for word in words)
    return "D3" if len(words) > 20 and not has_verb else None


@functools.cache
def load_words(is_prose):
    """Return a pattern of all words to avoid, and a list of (pattern, words to write instead)."""
    rows = [row.split("\t") for row in (HERE / "language_words.tsv").read_text().splitlines()[1:]]
    rows = [(rf"\b(?:{row[1]})\b", row[2]) for row in rows if is_prose or row[0] == "check"]
    one_of_all = re.compile("|".join(pattern for pattern, _ in rows), re.I)
    return one_of_all, [(re.compile(pattern, re.I), better) for pattern, better in rows]


def remove_code(text):
    """Return a text without code spans, examples and link targets. Lines keep their numbers."""
    text = re.sub(r"```.*?```", lambda block: "\n" * block[0].count("\n"), text, flags=re.S)
    text = re.sub(r"(?m)^\s*(>>>|\.\.\. ).*$", "", text)
    return re.sub(r"``[^`]*``|`[^`\n]*`|\]\([^)]*\)", " ", text)


def find_words(text, is_prose):
    """Yield (index of the line, description) of every word to avoid in a text."""
    one_of_all, words = load_words(is_prose)
    if not one_of_all.search(text):
        return
    for index, row in enumerate(remove_code(text).splitlines()):
        for pattern, better in words:
            for match in pattern.finditer(row):
                yield index, f"{match[0]} -> {better} | {row.strip()}"


def find_comments(text, is_prose):
    """Yield (line, comment) of a file, or nothing if no comment has a word to avoid."""
    one_of_all, _ = load_words(is_prose)
    if any(one_of_all.search(row) for row in re.findall("#.*", text)):
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string.lstrip("# ")


def check_source(source):
    """Yield the findings of one Python file. Tests may have long names and short helpers."""
    is_test, is_prose = source.package == "tests", source.name.startswith(PROSE)
    report = lambda code, line, text: Finding(code, source.package, f"{source.name}:{line}", text)
    for each in source.definitions:
        if each.kind is ast.FunctionDef and not (is_test and each.name.startswith("test_")):
            if (code := check_name(each)) and not (is_test and code == "N5"):
                yield report(code, each.line, each.name)
        if each.kind is not ast.Module and (code := check_docstring(each.doc)):
            yield report(code, each.doc_line, f"{each.name}: {first_sentence(each.doc)}")
        for index, text in find_words(each.doc, is_prose):
            yield report("W", each.doc_line + index, text)
    for line, comment in find_comments(source.text, is_prose):
        for _, text in find_words(comment, is_prose):
            yield report("W", line, text)


def find_all():
    """Return the findings of all Python files and pages."""
    findings = [finding for source in read_sources() for finding in check_source(source)]
    for page in [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]:
        name = page.relative_to(ROOT).as_posix()
        if not name.startswith(UNCHECKED):
            for index, text in find_words(page.read_text(), is_prose=True):
                findings.append(Finding("W", "docs", f"{name}:{index + 1}", text))
    return findings


def verb_shares():
    """Return {package: fraction of function docstrings that begin with a verb}."""
    counts = {}
    for source in read_sources():
        for each in source.definitions:
            is_counted = each.kind is ast.FunctionDef and each.doc and not each.is_property
            if is_counted and not each.name.startswith("test_"):
                first = re.match(r"[A-Za-z]*", each.doc)[0].lower()
                counts.setdefault(source.package, []).append(first in VERBS or first in FINITE)
    return {package: sum(verbs) / len(verbs) for package, verbs in sorted(counts.items())}


def check_subject(subject):
    """Return the codes of the rules that the subject of a commit breaks."""
    match = re.match(r"[a-z0-9_./,-]+: ([A-Za-z]+)", subject)
    is_imperative = match and match[1].lower() in VERBS | SETS["commit_verbs"]
    return [*([] if is_imperative else ["C1"]), *(["C2"] if len(subject) > 72 else [])]


def check_message(text):
    """Return an error message if the subject of a commit message breaks a rule, or None."""
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    subject = " ".join(lines.strip().split("\n\n")[0].split())
    if not subject.startswith(("Merge ", "fixup! ", "squash! ")) and check_subject(subject):
        return (
            f"commit: subject={subject!r}; it must be `area: imperative`, at most 72 characters; "
            "reword it, or add its verb to `commit_verbs` in tests/helpers/language_sets.toml"
        )
    return None


def format_counts(findings):
    """Return the counts by package and code as a Markdown table."""
    rows = [(package, each.code) for each in findings for package in (each.package, "all")]
    counts, codes = Counter(rows), sorted({code for _, code in rows})
    lines = [f"| package | {' | '.join(codes)} |", "|---|" + "--:|" * len(codes)]
    for package in sorted({package for package, _ in rows}):
        lines.append(f"| {package} | {' | '.join(str(counts[package, each]) for each in codes)} |")
    return "\n".join(lines)


def main():
    """Print the findings, or return an error message for the message of a commit."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--list", nargs="*", metavar="CODE", help="print findings of these codes")
    parser.add_argument("--only", default="", metavar="TEXT", help="only files with this in a name")
    parser.add_argument("--message", type=Path, metavar="FILE", help="check a commit message")
    given = parser.parse_args()
    if given.message:
        return check_message(given.message.read_text())
    findings = [finding for finding in find_all() if given.only in finding.where]
    for finding in findings if given.list is not None else ():
        if not given.list or finding.code in given.list:
            print(f"{finding.where}: {finding.code} {finding.text}")
    print(format_counts(findings))
    shares = ", ".join(f"{package} {share:.0%}" for package, share in verb_shares().items())
    print(f"function docstrings that begin with a verb: {shares}")


if __name__ == "__main__":
    sys.exit(main())
