"""Write the tables of `docs/scaling.md`: `python docs/make/scaling.py [--check]`.

The measured table is taken from `benchmarks/results.jsonl`, the last row of each name. The table
computed for clusters of GPUs starts from the bytes in those rows. With --check nothing is written:
the exit code is 1 if the page is out of date.
"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "scaling.md"
PROGRAMS = "rows", "bodies", "network"
BODIES = 2048  # bodies of the benchmark, whose bytes are scaled to other numbers

# assumptions about a cluster of H100, eight in a machine
PAIRS = 6e11  # per second, float32: half of the limit by operation count
LAUNCHES, LAUNCH = 55, 2.5e-6  # launches per minibatch, and s per launch
IN, BETWEEN = (15e-6, 450e9), (40e-6, 50e9)  # latency, s, and bytes per second of each GPU
GPUS = 1, 8, 16, 64


def rows() -> dict[str, dict]:
    """Return the last row of each scaling benchmark, by name."""
    lines = (ROOT / "benchmarks" / "results.jsonl").read_text().splitlines()
    found = {row["name"]: row for row in map(json.loads, lines)}
    return {name: row for name, row in found.items() if name.startswith("scaling, ")}


def measured_table(found: dict[str, dict]) -> str:
    """Return the table of milliseconds per step on each team, wall and CPU, and of bytes sent."""
    names = [contender["name"] for contender in found["scaling, rows, strong"]["results"]]
    lines = ["| program | " + " | ".join(names) + " | bytes a step |"]
    lines += ["|---" * (len(names) + 2) + "|"]
    for program in PROGRAMS:
        for kind in ("strong", "weak"):
            row = found[f"scaling, {program}, {kind}"]
            spent = [(one["wall"][1], one["answer"]["cpu"]) for one in row["results"]]
            cells = [
                " / ".join(format_number(1e3 * s / row["amount"]) for s in pair) for pair in spent
            ]
            sent = f"{row['results'][3]['answer']['bytes a step']:,.0f}"
            lines.append(f"| {program}, {kind} | " + " | ".join([*cells, sent]) + " |")
    row = found["scaling, rows, strong"]
    about = row["environment"]
    lines += [
        "",
        "Milliseconds a step: wall clock, median of three rounds in turn, and CPU time of all ",
    ]
    lines[-1] += f"processes, last round; {row['date'][:10]}, "
    lines[-1] += f"{row['work'].rpartition('; ')[2]}, {about['machine']}, jax {about['jax']}. "
    lines[-1] += "The bytes are those of 8 devices. Work:"
    works = [found[f"scaling, {program}, strong"]["work"] for program in PROGRAMS]
    lines += [
        "",
        *(f"* {program}: {work.split(', in all')[0]}" for program, work in zip(PROGRAMS, works)),
    ]
    return "\n".join(lines)


def modeled_table(found: dict[str, dict]) -> str:
    """Return the table of milliseconds per step on GPUs, and of the fraction spent on work."""
    sent = {
        p: found[f"scaling, {p}, strong"]["results"][3]["answer"]["bytes a step"] for p in PROGRAMS
    }
    lines = ["| program | " + " | ".join(f"{n} GPU{'s' if n > 1 else ''}" for n in GPUS) + " |"]
    lines += ["|---" * (len(GPUS) + 1) + "|"]
    for count in (1 << 16, 1 << 18, 1 << 20):
        alone, load = count**2 / PAIRS, sent["bodies"] * count / BODIES
        times = [(alone / n, gather_seconds(load, n)) for n in GPUS]
        lines.append(line(f"bodies, {count:,} in all, {load / 1e6:.2g} MB a step", times))
    load = sent["network"]
    times = [(LAUNCHES * LAUNCH, 2 * gather_seconds(load, n)) for n in GPUS]
    lines.append(line(f"network, a minibatch on each, {load / 1e3:.3g} kB a step", times))
    times = [(10e-3, gather_seconds(sent["rows"], n)) for n in GPUS]
    lines.append(line(f"rows, 10 ms of them on each, {sent['rows']:.0f} B of a measure", times))
    return "\n".join(lines)


def gather_seconds(load: float, gpus: int) -> float:
    """Return the seconds until each GPU has gathered all bytes, starting with its own part."""
    begin, rate = IN if gpus <= 8 else BETWEEN
    return 0.0 if gpus == 1 else begin + load * (gpus - 1) / gpus / rate


def line(name: str, times: list[tuple[float, float]]) -> str:
    """Return a table row: milliseconds, and the fraction spent on work."""
    cells = [
        f"{format_number(1e3 * (work + talk))} ms, {100 * work / (work + talk):.0f} %"
        for work, talk in times
    ]
    return f"| {name} | " + " | ".join(cells) + " |"


def format_number(number: float) -> str:
    """Format a number to three digits, without an exponent."""
    return f"{number:.3g}" if number < 1000 else f"{number:.0f}"


def fill_page(page: str, name: str, text: str) -> str:
    """Return the page with a text between the marks of a name."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    before, _, rest = page.partition(begin)
    return before + begin + text + "\n" + end + rest.partition(end)[2]


def main() -> int:
    """Write or check the page and return the exit code."""
    found, page = rows(), PAGE.read_text()
    new = fill_page(
        fill_page(page, "measured", measured_table(found)), "computed", modeled_table(found)
    )
    if "--check" in sys.argv:
        return int(new != page)
    PAGE.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
