"""One process of the fuzzer: tries the calls of its work units, and logs each outcome.

    python tests/helpers/fuzz_child.py '{CHUNK: [NAMES]}' LOG --seconds 8 --skip 0

A line is written before and after each call, so that the parent knows which call ended the process;
`--skip` continues after it.
"""

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LIMIT = 10  # time limit of one call, s


def main() -> None:
    """Try the calls of all work units."""
    parser = argparse.ArgumentParser()
    parser.add_argument("group")
    parser.add_argument("log")
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--tries", type=int, default=10**6)
    parser.add_argument("--skip", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    os.environ["MPLBACKEND"] = "Agg"
    import jax

    jax.config.update("jax_num_cpu_devices", 8)
    warnings.simplefilter("ignore")
    log = open(options.log, "a", buffering=1)
    os.chdir(tempfile.mkdtemp())
    signal.signal(signal.SIGALRM, interrupt)
    from fuzz_calls import chunk_calls

    for chunk, names in json.loads(options.group).items():
        index = 0
        for call in chunk_calls(chunk, names):
            index = try_call(call, options, index, log)
        options.skip = 0
        log.write(json.dumps({"end": chunk}) + "\n")


def try_call(call: Any, options: argparse.Namespace, index: int, log: Any) -> int:
    """Try a call with all hostile values, until its time is over."""
    from fuzz_outcomes import answer_outcome, error_outcome
    from fuzz_values import attacks

    every = list(attacks(call.arguments))
    whole = [attack for attack in every if attack.at in call.arguments]
    inner = [attack for attack in every if attack.at not in call.arguments]
    for part in (whole, inner):
        random.Random(f"{options.seed} {call.name}").shuffle(part)
    half = max(options.tries - len(inner), options.tries // 2)
    every = [*whole[:half], *inner]
    every, left = every[: options.tries], len(whole) + len(inner) - options.tries
    end = index + len(every) + 1
    if end <= options.skip:
        return end
    try:
        signal.alarm(6 * LIMIT)
        good = None if call.long else call(call.arguments)
        signal.alarm(0)
    except BaseException as error:
        signal.alarm(0)
        text = " ".join(str(error).split())[:100]
        log.write(json.dumps({"name": call.name, "bad call": f"{type(error).__name__}: {text}"}))
        log.write("\n")
        return end
    begin = time.process_time()
    if left > 0:
        log.write(json.dumps({"name": call.name, "untried": left}) + "\n")
    for i, attack in enumerate(every):
        if index + i < options.skip:
            continue
        if time.process_time() - begin > options.seconds:
            log.write(json.dumps({"name": call.name, "untried": len(every) - i}) + "\n")
            break
        head = {"name": call.name, "at": attack.at, "value": attack.value}
        log.write(json.dumps(head | {"begin": index + i}) + "\n")
        start = time.perf_counter()
        try:
            signal.alarm(2 if call.long else LIMIT)
            value = call(attack.arguments)
            signal.alarm(0)
            outcome, text = answer_outcome(call.name, value, good)
            if good is None and outcome.startswith("silent"):  # the valid answer may have as many
                good = call(call.arguments)
                outcome, text = answer_outcome(call.name, value, good)
        except BaseException as error:
            signal.alarm(0)
            outcome, text = error_outcome(call.name, error)
        seconds = round(time.perf_counter() - start, 3)
        log.write(json.dumps(head | {"outcome": outcome, "text": text, "s": seconds}) + "\n")
    return end


def interrupt(*_: Any) -> None:
    """Interrupt a call that takes too long."""
    from fuzz_outcomes import TookLong

    raise TookLong


if __name__ == "__main__":
    main()
