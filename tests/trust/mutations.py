"""Small faults of a program: single changes of its text that a test should detect.

Changes that no test of behaviour can detect are left out: texts, messages, annotations, `repr`, the
arguments of `number` and `size` (tested by the registry), precision and unrolling, guards against a
division by zero (constants below 1e-6 or above 1e20), and `<` against `<=` if neither side is an
integer.
"""

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

ARITHMETIC = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mod,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
NEGATED = {
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
BOUNDARY = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
CLAMPS = {"maximum", "minimum", "clip", "max", "min"}
# calls and keywords whose arguments change no result, or only texts
SILENT_CALLS = {"number", "size", "static", "extra", "warn", "print", "cast", "named_scope"}
SILENT_KEYWORDS = set(
    """precision preferred_element_type unroll donate_argnums donate_argnames static_argnums
    static_argnames strict stacklevel encoding check_vma check_rep name doc
    help fold_count""".split()
)
SILENT_FUNCTIONS = {"__repr__", "_repr_html_", "__str__"}


@dataclass(frozen=True)
class Mutant:
    """A single change: the text between two offsets of a file is replaced."""

    file: str  # from the root of the repository
    line: int
    kind: str
    start: int  # offsets in the bytes of the file
    end: int
    before: str
    after: str

    def apply_to(self, source: bytes) -> bytes:
        """Return the source with the change in it."""
        return source[: self.start] + self.after.encode() + source[self.end :]


def mutants(file: str, source: bytes) -> list[Mutant]:
    """Return all mutants of a file, in source order; each is valid Python."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for node, kind, after in _changes(ast.parse(source)):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        before = source[start:end].decode()
        found.append(Mutant(file, node.lineno, kind, start, end, before, after))
    return found


def _changes(node: ast.AST) -> Iterator[tuple[ast.AST, str, str]]:
    """Yield for all nodes below a node: the replaced node, the kind of change, the new text."""
    yield from _statement_changes(node)
    if isinstance(node, ast.expr):
        for kind, new in _expression_changes(node):
            yield node, kind, f"({ast.unparse(new)})"
    for child in _children(node):
        yield from _changes(child)


def _children(node: ast.AST) -> list[ast.AST]:
    """Return the parts of a node in which a fault is detectable."""
    if isinstance(node, (ast.JoinedStr, ast.Raise, ast.Import, ast.ImportFrom)):
        return []
    if isinstance(node, ast.FunctionDef):
        defaults = [d for d in [*node.args.defaults, *node.args.kw_defaults] if d]
        return [] if node.name in SILENT_FUNCTIONS else [*defaults, *node.body]
    if isinstance(node, ast.ClassDef):
        return node.body
    if isinstance(node, ast.AnnAssign):
        return [node.value] if node.value else []
    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
        return []
    if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
        return node.orelse
    if isinstance(node, ast.Call):
        if _called_name(node) in SILENT_CALLS:
            return []
        loud = [k.value for k in node.keywords if k.arg not in SILENT_KEYWORDS]
        return [node.func, *node.args, *loud]
    return list(ast.iter_child_nodes(node))


def _statement_changes(node: ast.AST) -> Iterator[tuple[ast.AST, str, str]]:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        if _called_name(node.value) not in SILENT_CALLS:
            yield node, "statement dropped", "pass"
    if isinstance(node, ast.AugAssign):
        yield node, "statement dropped", "pass"
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        read = {n.id for n in ast.walk(node.value) if isinstance(n, ast.Name)}
        if node.targets[0].id in read:  # it is rebound, so it was bound before
            yield node, "statement dropped", "pass"
    if isinstance(node, (ast.If, ast.While)) and isinstance(node.test, (ast.Name, ast.Call)):
        yield node.test, "condition negated", f"(not {ast.unparse(node.test)})"


def _expression_changes(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.BinOp) and not _is_text(node.left) and not _is_text(node.right):
        if swap := ARITHMETIC.get(type(node.op)):
            yield "operator", ast.BinOp(node.left, swap(), node.right)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield from _comparison_changes(node)
    if isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield "and/or", ast.BoolOp(other, node.values)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.Invert, ast.USub)):
        yield "sign or not dropped", node.operand
    if isinstance(node, ast.IfExp):
        yield "branches swapped", ast.IfExp(node.test, node.orelse, node.body)
    if isinstance(node, ast.Constant):
        yield from _constant_changes(node)
    if isinstance(node, ast.Call) and not node.keywords:
        yield from _call_changes(node)


def _comparison_changes(node: ast.Compare) -> Iterator[tuple[str, ast.expr]]:
    kind = type(node.ops[0])
    if kind in NEGATED:
        yield "comparison", ast.Compare(node.left, [NEGATED[kind]()], node.comparators)
    if kind in BOUNDARY and (_is_integer(node.left) or _is_integer(node.comparators[0])):
        yield "boundary", ast.Compare(node.left, [BOUNDARY[kind]()], node.comparators)


def _constant_changes(node: ast.Constant) -> Iterator[tuple[str, ast.expr]]:
    value = node.value
    if isinstance(value, bool):
        yield "constant", ast.Constant(not value)
    elif isinstance(value, int):
        yield "constant", ast.Constant(value + 1)
    elif isinstance(value, float) and (value == 0 or 1e-6 < value < 1e20):
        yield "constant", ast.Constant(10 * value or 1.0)


def _call_changes(node: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    name, given = _called_name(node), node.args
    if name == "where" and len(given) == 3:
        yield "branches swapped", ast.Call(node.func, [given[0], given[2], given[1]], [])
    if name in CLAMPS and len(given) >= 2:
        kept = copy.copy(given)
        kept.sort(key=lambda arg: isinstance(arg, (ast.Constant, ast.UnaryOp)))
        yield "clamp dropped", given[0] if name == "clip" else kept[0]


def _called_name(call: ast.Call) -> str:
    """Return the last component of the called name."""
    return ast.unparse(call.func).rpartition(".")[2]


def _is_text(node: ast.expr) -> bool:
    """Return whether an operand is a text, a list or a tuple, for which arithmetic differs."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (str, bytes))
    return isinstance(node, (ast.JoinedStr, ast.List, ast.Tuple, ast.ListComp))


def _is_integer(node: ast.expr) -> bool:
    """Return whether a side of a comparison is known to be an integer."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int)
    if isinstance(node, ast.Subscript):
        return _is_integer(node.value)
    if isinstance(node, ast.Attribute):
        return node.attr in ("shape", "size", "ndim", "itemsize")
    return isinstance(node, ast.Call) and _called_name(node) == "len"
