"""Requests for more memory than available, each of which must end with a proper error message.

    python tests/helpers/large_requests.py 200 [--seed 0]

runs this number of random requests in processes limited to 1 GB: in a control group if this user
can make one, else under `ulimit -d`. It prints other outcomes, and exits with their number.
"""

import argparse
import contextlib
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

LIMIT = 10**9  # memory limit of a process, bytes
EACH = 10  # requests per process, as long as they are rejected
SECONDS = 120  # CPU time limit of a request: some compile before they can tell

# for each study, an option and the minimum value that certainly exceeds the limit
STUDIES = {
    "solar-system": {"tracers": 10_000_000},
    "cluster-tracers": {"stars": 40_000_000, "tracers": 20_000_000, "seeds": 1000},
    "escapers": {"tracers": 20_000_000, "seeds": 4000},
    "double-pendulum": {"pendulums": 1_000_000},
    "pareto-fronts": {"seeds": 9000},
    "classic-control": {"seeds": 9000},
    "surgical-reach": {"seeds": 8000},
    "latte-art": {"seeds": 1000},
    "galaxy-from-stream": {"mocks": 30_000, "model": 500_000, "stars": 50_000, "steps": 50_000},
    "nozzle-shapes": {"pop_size": 9000},
    "five-ways": {"seeds": 9000},
    "locomotion": {"seeds": 9000},
    "robot-front": {"members": 1_000_000},
}
# for each call, as Python text with the size {n}, the minimum size that is too large
CALLS = {
    "nbody.plummer(key, {n})": 3e7,
    "nbody.king(key, {n}, 5.0)": 3e7,
    "nbody.models.masses.sample_masses(key, nbody.kroupa(), {n})": 1e8,
    "nbody.binary_orbits(key, {n}, (1e-4, 1e-3))": 3e7,
    "fill_box((0.0, 0.0, 0.0), (1.0, 1.0, 1.0), 1 / {n})": 1000,
    "fill_box((0.0, 0.0), (1.0, 1.0), 1 / {n})": 10_000,
    "rl.train(rl.make('cartpole'), rl.PPO(num_envs={n}), key, 10**18)": 1e8,
    "rl.train(rl.make('pendulum'), rl.SAC(buffer_size={n}), key, 10**6)": 1e8,
    "rl.vectorize(rl.make('cartpole'), {n}).reset(key)": 2e7,
    "rl.evaluate(rl.make('cartpole'), lambda o: 0, key, {n}, 10)": 2e7,
    "rl.evaluate(rl.make('cartpole'), lambda o: 0, key, 10, {n})": 2e8,
    "run(lambda x: x + 1, jnp.zeros(()), {n}, measure=lambda x: x)": 2e8,
    "run(lambda x: x + 1, jnp.zeros(4000), {n}, measure=lambda x: x)": 1e5,
    "minimize(lambda x: x * x, Real(-1.0, 1.0), 10**18, algorithm=single.SNES({n}))": 2e8,
    "minimize(lambda x: x * x, Real(-1.0, 1.0), {n})": 10**13,
    "minimize(pair, Real(-1.0, 1.0), 10**18, algorithm=multi.NSGA2({n}))": 1e8,
    "multi.das_dennis(6, {n})": 300,
    "multi.das_dennis(3, {n})": 100_000,
    "VonMisesFisher(jnp.eye(3)[0], 2.0).sample(key, {n})": 1e8,
    "VonMisesFisher(jnp.eye(3000)[0], 2.0).sample(key, {n})": 1e5,
    "render.Balls(jnp.zeros((1, 3)), jnp.ones((1, 3)), look).picture(camera({n}))": 30_000,
}
HEAD = """
import jax, jax.numpy as jnp
from jaxgpu import render, rl
from jaxgpu.evolution import Real, minimize, multi, single
from jaxgpu.geometry import fill_box
from jaxgpu.numerics import VonMisesFisher
from jaxgpu.physics import nbody
from jaxgpu.runs.loop import run
key = jax.random.key(0)
pair = lambda x: jnp.stack([x * x, (x - 1) ** 2])
look = render.particles.ParticleStyle(0.1)
camera = lambda n: render.Camera((0.0, -5, 0), (0.0, 0, 0), (0.0, 0, 1), width=n, height=n)
"""


def requests(count: int, seed: int) -> Iterator[list[str]]:
    """Yield `count` random requests: a command line, or Python text."""
    chance = random.Random(seed)
    options = [(name, *option) for name, most in STUDIES.items() for option in most.items()]
    for _ in range(count):
        if chance.random() < 0.5:
            study, option, least = chance.choice(options)
            most = option_max(study, option)
            value = min(most, int(least * 10 ** chance.uniform(0, 4)))
            value -= value % 2
            yield ["run", study, f"--{option.replace('_', '-')}", str(value)]
        else:
            text, least = chance.choice(list(CALLS.items()))
            yield [text.replace("{n}", str(int(least * 10 ** chance.uniform(0, 4))))]


def option_max(study: str, option: str) -> int:
    """Return the maximum of a study's option."""
    from jaxgpu.inputs.ranges import RANGE_KEY
    from jaxgpu.studies import studies

    kind = next(one.options for one in studies() if one.name == study)
    return int(next(f.metadata[RANGE_KEY].most for f in fields(kind) if f.name == option))


def run_request(request: list[str]) -> str:
    """Return the outcome of a request in this process: "sentence: ..." or another one."""
    from jaxgpu import cli

    if len(request) == 1:
        names: dict[str, object] = {}
        exec(HEAD, names)
        try:
            exec(request[0], names)
        except Exception as error:
            ours = isinstance(error, MemoryError | ValueError | TypeError) and "; " in str(error)
            kind = "sentence" if ours else type(error).__name__
            return f"{kind}: {error}"
        return "it ran"
    with tempfile.TemporaryDirectory() as out:
        with contextlib.redirect_stderr(sys.stdout):
            code = cli.main([*request, "--out", f"{out}/run"])
    return "sentence: by the command line" if code == 2 else f"code {code}"


def child(batch: list[list[str]], group: str) -> None:
    """Limit this process, which has not imported JAX, and answer requests, one per line."""
    if group:
        Path(group, "cgroup.procs").write_text(str(os.getpid()))
    else:
        resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT))
    for request in batch:
        spent = resource.getrusage(resource.RUSAGE_SELF)
        most = int(spent.ru_utime + spent.ru_stime) + SECONDS
        resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))
        signal.alarm(10 * SECONDS)  # a request that waits forever uses no CPU time
        print("ANSWER", json.dumps(run_request(request)), flush=True)


@contextlib.contextmanager
def memory_limit() -> Iterator[str]:
    """Yield the folder of a control group with the limit, or "" if none can be made."""
    group = Path("/sys/fs/cgroup/memory") / f"oversize-{os.getpid()}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(LIMIT))
    except OSError:  # no control groups of version 1, or no permission
        yield ""
        return
    try:
        yield str(group)
    finally:
        group.rmdir()


def run_requests(asked: list[list[str]]) -> Iterator[tuple[list[str], str]]:
    """Yield every request and its outcome."""
    left = list(asked)
    with memory_limit() as group:
        while left:
            batch = left[:EACH]
            # the child limits itself: a `preexec_fn` would fork this process with JAX's threads
            command = [sys.executable, __file__, "--child", json.dumps(batch), "--group", group]
            done = subprocess.run(command, capture_output=True, text=True)
            late = -done.returncode in (signal.SIGXCPU, signal.SIGALRM)
            end = "it was still running" if late else f"killed, or aborted: code {done.returncode}"
            lines = [x[7:] for x in done.stdout.splitlines() if x.startswith("ANSWER ")]
            found = [json.loads(line) for line in lines]
            found += [end] * (len(found) < len(batch))
            for request, what in zip(batch, found):
                if not what.startswith("sentence"):
                    print(" ".join(request), "->", what[:300], flush=True)
                yield request, what
            left = left[len(found) :]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int, nargs="?", default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child")
    parser.add_argument("--group", default="")
    args = parser.parse_args()
    if args.child:
        child(json.loads(args.child), args.group)
        return 0
    answers = list(run_requests(list(requests(args.count, args.seed))))
    bad = [what for _, what in answers if not what.startswith("sentence")]
    print(f"{len(answers) - len(bad)} of {len(answers)} requests ended in a sentence")
    return min(len(bad), 100)


if __name__ == "__main__":
    sys.exit(main())
