"""Draw the house: its pillars and their rooms, and who imports whom, from the import statements.

    python docs/make/architecture.py

writes docs/pictures/architecture.svg. A pillar stands above all that it imports; an
arrow that follows from others is left out, and so is the command line, which only calls studies.
"""

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "pictures" / "architecture.svg"
SPLIT = ("physics",)  # whose folders are pillars of their own
COLOURS = ["#e8eef7", "#e6f4ea", "#fef3e0", "#fbe9e7", "#f1e8f7"]
WIDTH, GAP, LINE, CHAR = 1000, 22, 22, 6.3
HEAD, FLOOR = 30, 64  # height of a title, room for arrows between floors


def modules() -> dict[tuple[str, ...], Path]:
    """Every module of the package by its address, links followed once."""
    found = {}
    for top in ("jaxgpu", "physics", "numerics", "rl"):
        for file in sorted((ROOT / top).rglob("*.py")):
            if not any(part.is_symlink() for part in file.parents):
                parts = file.relative_to(ROOT).with_suffix("").parts
                parts = parts if top == "jaxgpu" else ("jaxgpu", *parts)
                found[parts[:-1] if parts[-1] == "__init__" else parts] = file
    return found


def pillar(module: tuple[str, ...], files: dict) -> str:
    """The box that a module stands in; modules right in `jaxgpu` are the core."""
    if len(module) < 2 or files.get(module, Path("x.py")).parent == ROOT / "jaxgpu":
        return "core"
    if module[1] in SPLIT:
        return module[2] if len(module) > 2 else "core"
    return module[1]


def imported(module: tuple[str, ...], file: Path) -> set[tuple[str, ...]]:
    """Addresses that a file imports from the package, relative ones resolved."""
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


def house() -> tuple[dict[str, dict[str, int]], dict[str, set[str]]]:
    """The rooms of each pillar with their numbers of modules, and what each pillar imports."""
    files = {module: file for module, file in modules().items() if module != ("jaxgpu", "cli")}
    rooms: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    below: dict[str, set[str]] = defaultdict(set)
    for module, file in files.items():
        here = pillar(module, files)
        depth = 3 if len(module) > 1 and module[1] in SPLIT else 2
        folder = module if file.stem == "__init__" else module[:-1]
        room = folder[depth] if len(folder) > depth else ""
        rooms[here][room] += file.stem != "__init__"
        for address in imported(module, file):
            while address not in files and len(address) > 1:
                address = address[:-1]
            below[here].add(pillar(address, files))
        below[here] -= {here, "core"}
    return rooms, below


def reduced(below: dict[str, set[str]]) -> dict[str, set[str]]:
    """The arrows that no longer way says as well."""

    def reached(name: str) -> set[str]:
        return below[name] | {far for near in below[name] for far in reached(near)}

    return {
        name: {one for one in lower if not any(one in reached(near) for near in lower)}
        for name, lower in below.items()
    }


def floors(below: dict[str, set[str]]) -> list[list[str]]:
    """Pillars by how many others lie between them and the ground."""
    height: dict[str, int] = {}

    def high(name: str) -> int:
        if name not in height:
            height[name] = 1 + max((high(other) for other in below[name]), default=-1)
        return height[name]

    for name in list(below):
        high(name)
    rows: list[list[str]] = [[] for _ in range(max(height.values()) + 1)]
    for name in sorted(height):
        if name != "core":
            rows[height[name]].append(name)
    return rows


def wrapped(rooms: dict[str, int], width: float) -> list[str]:
    """The rooms of a pillar as lines of text that fit into its box."""
    words = [f"{room} {count}" for room, count in sorted(rooms.items()) if room]
    if rooms.get(""):
        words.append(f"{'and ' if words else ''}{rooms['']} modules")
    lines, line = [], ""
    for word in words:
        longer = f"{line} · {word}" if line else word
        if len(longer) * CHAR > width - 20 and line:
            lines.append(line)
            longer = word
        line = longer
    return [*lines, line]


def main() -> None:
    """Write the picture."""
    rooms, below = house()
    rows = floors(below)
    boxes: dict[str, tuple[float, float, float, float]] = {}
    shapes, y = [], 16.0
    for level, row in reversed(list(enumerate([["core"], *rows]))):
        weights = [3 + len(rooms[name]) ** 0.8 for name in row]
        free = WIDTH - GAP * (len(row) + 1)
        x, tallest = float(GAP), 0.0
        for name, weight in zip(row, weights):
            width = free * weight / sum(weights)
            lines = wrapped(rooms[name], width)
            height = HEAD + LINE * len(lines) + 6
            boxes[name] = (x, y, width, height)
            shapes.append(box(name, lines, boxes[name], COLOURS[level % len(COLOURS)]))
            x, tallest = x + width + GAP, max(tallest, height)
        y += tallest + FLOOR
    arrows = [
        arrow(boxes[name], boxes[other], place, len(lower))
        for name, lower in reduced(below).items()
        if name in boxes
        for place, other in enumerate(sorted(lower, key=lambda other: boxes[other][0]))
    ]
    height = y - FLOOR + 16
    PICTURE.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="12">\n'
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#667"/></marker></defs>\n'
        f'<rect width="{WIDTH}" height="{height:.0f}" fill="white"/>\n'
        + "\n".join([*arrows, *shapes])
        + "\n</svg>\n"
    )


def box(name: str, lines: list[str], at: tuple[float, ...], colour: str) -> str:
    """A pillar: its name and its rooms."""
    x, y, width, height = at
    text = "".join(
        f'<text x="{x + 10:.0f}" y="{y + HEAD + LINE * (i + 0.6):.0f}" fill="#333">{line}</text>'
        for i, line in enumerate(lines)
    )
    return (
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{height:.0f}" rx="6" '
        f'fill="{colour}" stroke="#99a"/><text x="{x + 10:.0f}" y="{y + 21:.0f}" '
        f'font-size="15" font-weight="bold">{name}</text>{text}'
    )


def arrow(start: tuple[float, ...], end: tuple[float, ...], place: int, count: int) -> str:
    """From the lower side of a pillar to the upper side of one that it imports."""
    x0 = start[0] + start[2] * (place + 1) / (count + 1)
    y0 = start[1] + start[3]
    x1 = end[0] + end[2] * (0.25 + 0.5 * (x0 / WIDTH))
    y1 = end[1]
    bend = (y1 - y0) / 2
    return (
        f'<path d="M{x0:.0f} {y0:.0f}C{x0:.0f} {y0 + bend:.0f} {x1:.0f} {y1 - bend:.0f} '
        f'{x1:.0f} {y1 - 2:.0f}" fill="none" stroke="#667" stroke-opacity="0.75" '
        'marker-end="url(#head)"/>'
    )


if __name__ == "__main__":
    main()
