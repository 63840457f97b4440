"""Every public name with hostile values in every position: `python -m tests.trust.fuzz`.

The calls of a work unit run in a separate process, so that a call that ends its process is
detected, and the next process continues after it. One line of JSON summarises all outcomes.
"""

import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "out" / "trust" / "fuzz.jsonl"  # all outcomes, until everything is tried
HELPERS = ROOT / "tests" / "helpers"
TOGETHER = 12  # work units per process
SILENCE = 150  # seconds without a line after which a process counts as hung
FAULTS = ("silent nan", "silent inf", "foreign exception", "abort", "hang")
LIST = """
import json, jax
jax.config.update("jax_num_cpu_devices", 8)
from fuzz_calls import chunks, public_methods, public_names
print(json.dumps({"chunks": chunks(), "names": [*public_names()], "methods": [*public_methods()]}))
"""


def main() -> None:
    """Run the fuzzer as the command line says and print one line of JSON."""
    options = _options(None)
    print(json.dumps(run_fuzzer(options)))


def measure() -> dict[str, Any]:
    """Try twenty random values for every call, and return the results to record.

    Work units in which an earlier, interrupted call found no violation are not repeated.
    """
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    found = run_fuzzer(_options(["--tries", "20", "--seconds", "4", "--log", str(KEPT)]))
    faults, seconds = found.pop("faults"), found.pop("seconds")
    if not faults:
        KEPT.unlink()  # the next call starts from scratch
    counts = found | {kind: faults.get(kind, 0) for kind in FAULTS}
    return {"counts": counts, "failed": sum(faults.values()), "seconds": seconds}


def run_fuzzer(options: argparse.Namespace) -> dict[str, Any]:
    """Run the fuzzer and return the counts of all outcomes, and the seconds."""
    begin = time.time()
    done = subprocess.run([sys.executable, "-c", LIST], env=_environment(), capture_output=True)
    work = json.loads(done.stdout)
    log = Path(options.log or tempfile.mkstemp()[1])
    lines = _finished_lines(log)
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    ended = {line["end"] for line in lines if "end" in line}
    chunks = [chunk for chunk in work["chunks"] if options.only in chunk and chunk not in ended]
    for i in range(0, len(chunks), TOGETHER):
        group = chunks[i : i + TOGETHER]
        _run_group({chunk: work["chunks"][chunk] for chunk in group}, options, log)
    with log.open("a") as file:
        file.write(json.dumps({"spent": round(time.time() - begin)}) + "\n")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    return summary(lines, work) | {"seconds": sum(line.get("spent", 0) for line in lines)}


def _finished_lines(log: Path) -> list[dict[str, Any]]:
    """Return the lines of the work units that ended without a violation, from an earlier log."""
    kept: list[dict[str, Any]] = []
    piece: list[dict[str, Any]] = []
    for line in log.read_text().splitlines() if log.exists() else ():
        if not line.endswith("}"):  # interrupted in this line
            break
        piece.append(json.loads(line))
        if "spent" in piece[-1]:  # by an earlier complete call
            kept.append(piece.pop())
        elif "end" in piece[-1]:
            kept += [] if any(one.get("outcome") in FAULTS for one in piece) else piece
            piece = []
    return kept


def _options(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="pieces of work whose name has this in it")
    parser.add_argument("--seconds", type=float, default=8.0, help="of a processor, for each call")
    parser.add_argument("--tries", type=int, default=10**6, help="hostile values for each call")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--log", default="", help="a file for all outcomes; what is there goes on")
    return parser.parse_args(words)


def summary(lines: list[dict[str, Any]], work: dict[str, Any]) -> dict[str, Any]:
    """Return the counts of all outcomes."""
    outcomes = collections.Counter(line["outcome"] for line in lines if "outcome" in line)
    tried = {line["name"] for line in lines if "outcome" in line}
    return {
        "public names": len(work["names"]),
        "public methods": len(work["methods"]),
        "calls": len(tried),
        "tried": outcomes.total(),
        **{kind: n for kind, n in sorted(outcomes.items()) if kind not in FAULTS},
        "faults": {kind: outcomes[kind] for kind in FAULTS if outcomes[kind]},
        "untried": sum(line.get("untried", 0) for line in lines),
        "bad calls": sum("bad call" in line for line in lines),
    }


def _run_group(group: dict[str, list[str]], options: argparse.Namespace, log: Path) -> None:
    """Run work units, in a new process after each call that ends one."""
    skip = 0
    while group:
        size = log.stat().st_size
        words = [sys.executable, str(HELPERS / "fuzz_child.py"), json.dumps(group), str(log)]
        words += ["--skip", str(skip), "--seconds", str(options.seconds)]
        words += ["--seed", str(options.seed), "--tries", str(options.tries)]
        with open(f"{log}.err", "a") as errors:
            child = subprocess.Popen(
                words, env=_environment(), stdout=subprocess.DEVNULL, stderr=errors
            )
            outcome = _wait(child, log)
        lines = [json.loads(line) for line in log.read_bytes()[size:].decode().splitlines()]
        ended = {line["end"] for line in lines if "end" in line}
        skip = 0 if ended else skip
        group = {chunk: names for chunk, names in group.items() if chunk not in ended}
        last = lines[-1] if lines else {}
        if "begin" in last:
            skip = last.pop("begin") + 1
            last |= {"outcome": outcome, "text": str(child.returncode)}
        elif group:
            chunk = next(iter(group))
            last = {"name": chunk, "bad call": f"{outcome} {child.returncode}"}
            del group[chunk]
            skip = 0
        else:
            return
        with log.open("a") as file:
            file.write(json.dumps(last) + "\n")


def _wait(child: subprocess.Popen, log: Path) -> str:
    """Wait for a process, and kill it if it stops writing."""
    size, since = -1, time.time()
    while child.poll() is None:
        time.sleep(0.2)
        now = log.stat().st_size
        if now != size:
            size, since = now, time.time()
        if time.time() - since > SILENCE:
            child.kill()
            child.wait()
            return "hang"
    return "abort"


def _environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": f"{ROOT}:{HELPERS}"}


if __name__ == "__main__":
    main()
