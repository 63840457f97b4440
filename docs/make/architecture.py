"""Draw the domains of the package, their subpackages and their imports, from the import statements.

    python docs/make/architecture.py

writes docs/pictures/architecture.svg. `PLAN` holds the position of each domain, so that every arrow
is a short straight line. A domain missing from it, or an import that points upwards, is an error.
Arrows implied by others are left out, and so is the command line, which only calls studies.
"""

import ast
import textwrap
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "pictures" / "architecture.svg"
SPLIT = ("physics",)  # whose subfolders are separate domains
# for each domain: first and last row from the top, left and right side in 24ths, color
PLAN = {
    "studies": (0, 0, 0, 24, "#e8eef7"),
    "rl": (1, 1, 0, 15, "#f1e8f7"),
    "evolution": (2, 4, 0, 5, "#e6f4ea"),
    "continuum": (2, 2, 5, 10, "#fbe9e7"),
    "render": (3, 3, 5, 10, "#f4f1ea"),
    "touch": (2, 2, 10, 15, "#fbe9e7"),
    "rigid": (3, 3, 10, 15, "#fbe9e7"),
    "nbody": (1, 3, 15, 20, "#fbe9e7"),
    "geometry": (4, 4, 5, 20, "#f4f1ea"),
    "numerics": (1, 4, 20, 24, "#fef3e0"),
    "core": (5, 5, 0, 24, "#e8eef7"),
}
CORE_PARTS = {"inputs", "devices", "runs"}  # subpackages of the core
CORE = "Specs and states, the loop, checkpoints, ranges, devices: the base of all others"
PART, GAP, EDGE = 42, 20, 16  # a 24th of the width, gap between two domains, margin
LINE, CHAR, HEAD, FLOOR = 18, 6.1, 30, 38  # text line, character, title, space between rows


def modules() -> dict[tuple[str, ...], Path]:
    """Return every module of the package by its dotted name, without the linked copies."""
    found = {}
    for top in ("jaxgpu", "physics", "numerics", "rl"):
        for file in sorted((ROOT / top).rglob("*.py")):
            if not any(part.is_symlink() for part in file.parents):
                parts = file.relative_to(ROOT).with_suffix("").parts
                parts = parts if top == "jaxgpu" else ("jaxgpu", *parts)
                found[parts[:-1] if parts[-1] == "__init__" else parts] = file
    return found


def pillar(module: tuple[str, ...], files: dict) -> str:
    """Return the box that a module is drawn in; modules directly in `jaxgpu` are the core."""
    at_top = files.get(module, Path("x.py")).parent == ROOT / "jaxgpu"
    if len(module) < 2 or module[1] in CORE_PARTS or at_top:
        return "core"
    if module[1] in SPLIT:
        return module[2] if len(module) > 2 else "core"
    return "studies" if module[1] == "report" else module[1]  # reports belong to studies


def find_imports(module: tuple[str, ...], file: Path) -> set[tuple[str, ...]]:
    """Return the names that a file imports from the package, with relative imports resolved."""
    package = module if file.stem == "__init__" else module[:-1]
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {tuple(alias.name.split(".")) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            base += tuple((node.module or "").split(".")) if node.module else ()
            found |= {(*base, alias.name) for alias in node.names}
    return {address for address in found if address[0] == "jaxgpu"}


def find_domains() -> tuple[dict[str, list[str]], dict[str, set[str]]]:
    """Return the contents of each domain (subpackages with module counts) and its imports."""
    files = {module: file for module, file in modules().items() if module != ("jaxgpu", "cli")}
    rooms: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    below: dict[str, set[str]] = defaultdict(set)
    for module, file in files.items():
        here = pillar(module, files)
        depth = 3 if len(module) > 1 and module[1] in SPLIT else 2
        folder = module if file.stem == "__init__" else module[:-1]
        room = folder[depth] if len(folder) > depth else ""
        rooms[here][room] += [file.stem] if file.stem != "__init__" else []
        for address in find_imports(module, file):
            while address not in files and len(address) > 1:
                address = address[:-1]
            below[here].add(pillar(address, files))
        below[here] -= {here, "core"}
    return {name: list_contents(holds) for name, holds in rooms.items()}, below


def list_contents(rooms: dict[str, list[str]]) -> list[str]:
    """Return subpackages with module counts, then the count of other modules or all names."""
    found = [f"{room} {len(names)}" for room, names in sorted(rooms.items()) if room]
    alone = sorted(name for name in rooms[""] if not name.startswith("_"))
    return [*found, f"and {len(alone)} modules"] if found else alone


def subject(name: str, files: dict) -> str:
    """Return the first sentence of a domain's docstring."""
    if name == "core":
        return CORE
    (file,) = (
        file
        for module, file in files.items()
        if module[-1] == name and file.stem == "__init__" and pillar(module, files) == name
    )
    text = ast.get_docstring(ast.parse(file.read_text())) or ""
    return text.split("\n")[0].split(";")[0].rstrip(".")


def reduce_imports(below: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return the imports that no longer path implies (the transitive reduction)."""

    def find_reachable(name: str) -> set[str]:
        return below[name] | {far for near in below[name] for far in find_reachable(near)}

    return {
        name: {one for one in lower if not any(one in find_reachable(near) for near in lower)}
        for name, lower in below.items()
    }


def wrap_words(words: list[str], width: float) -> list[str]:
    """Wrap words into lines of text that fit into a box of this width."""
    joined = " · ".join(word.replace(" ", "\u00a0") for word in words)
    return textwrap.wrap(joined, int((width - LINE) / CHAR), break_long_words=False)


def main() -> None:
    """Write the picture."""
    files, (rooms, below) = modules(), find_domains()
    if strange := set(rooms) ^ set(PLAN):
        raise SystemExit(f"PLAN does not match the packages: {strange}")
    texts: dict[str, tuple[list[str], list[str]]] = {}
    for name, (first, last, left, right, _) in PLAN.items():
        width = (right - left) * PART - GAP
        about = textwrap.wrap(subject(name, files), int((width - LINE) / CHAR))
        holds = rooms[name]
        texts[name] = about, holds if last > first else wrap_words(holds, width)
    tops = row_tops(texts)
    boxes = {
        name: (
            EDGE + left * PART + GAP / 2,
            tops[first],
            (right - left) * PART - GAP,
            tops[last + 1] - FLOOR - tops[first],
        )
        for name, (first, last, left, right, _) in PLAN.items()
    }
    shapes = [box(name, *texts[name], boxes[name], PLAN[name][4]) for name in PLAN]
    arrows = [
        arrow(boxes[name], boxes[other])
        for name, lower in reduce_imports(below).items()
        for other in sorted(lower)
    ]
    width, height = 24 * PART + 2 * EDGE, tops[-1] - FLOOR + EDGE
    PICTURE.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="12">\n'
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" '
        'markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z" fill="#556"/></marker></defs>\n'
        f'<rect width="{width}" height="{height}" fill="white"/>\n'
        + "\n".join([*arrows, *shapes])
        + "\n</svg>\n"
    )


def row_tops(texts: dict[str, tuple[list[str], list[str]]]) -> list[int]:
    """Return the top of each row, so that every domain has space for its text, then the bottom."""
    tops = [EDGE]
    for floor in range(1 + max(last for _, last, *_ in PLAN.values())):
        ends = [
            tops[first] + HEAD + LINE * sum(len(lines) for lines in texts[name]) + LINE
            for name, (first, last, *_) in PLAN.items()
            if last == floor
        ]
        tops.append(max(ends, default=tops[-1]) + FLOOR)
    return tops


def box(name: str, about: list[str], holds: list[str], at: tuple[float, ...], colour: str) -> str:
    """Return the SVG of a domain: its name, its subject and its subpackages."""
    x, y, width, height = at
    draw_line = lambda i, text, style: (
        f'<text x="{x + 10:.0f}" y="{y + HEAD + LINE * (i + 0.6):.0f}" {style}>{text}</text>'
    )
    text = [draw_line(i, one, 'fill="#333"') for i, one in enumerate(about)]
    rooms = [draw_line(i + 0.3, one, 'fill="#669"') for i, one in enumerate(holds, len(about))]
    return (
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{height:.0f}" rx="6" '
        f'fill="{colour}" stroke="#99a"/><text x="{x + 10:.0f}" y="{y + 21:.0f}" '
        f'font-size="15" font-weight="bold">{name}</text>{"".join(text + rooms)}'
    )


def arrow(start: tuple[float, ...], end: tuple[float, ...]) -> str:
    """Return the SVG of an arrow from a domain straight down to one that it imports."""
    x = (max(start[0], end[0]) + min(start[0] + start[2], end[0] + end[2])) / 2
    top, bottom = start[1] + start[3], end[1]
    if top >= bottom:
        raise SystemExit(f"PLAN: a package at {start} imports one at {end}, which is not below it")
    return (
        f'<path d="M{x:.0f} {top:.0f}V{bottom - 1:.0f}" stroke="#556" stroke-width="1.5" '
        'marker-end="url(#head)"/>'
    )


if __name__ == "__main__":
    main()
