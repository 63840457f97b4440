"""Expected running times on COCO's bbob in its box, [-5, 5]^D, compared with pycma in the same box.

    python -m benchmarks.coco --boxed                       5 and 10 variables, seeds 1 to 5
    python -m benchmarks.coco --boxed --dimensions 5 --seeds 1

24 functions, instances 1 to 5, 2000 D evaluations per run. jaxgpu runs the default of `minimize`,
BIPOP; pycma runs `fmin2(..., bipop=True)` with `bounds=[-5, 5]`. Both start uniformly in [-4, 4]
with step 2 and population 4 + 3 ln D, in float64. The expected running time of a function and a
target is the number of evaluations of all runs, each until it reaches the target or ends, divided
by the number of runs that reach it. Targets are the best value + 10^2, 10^1.8, ... 10^-8. The
reported ratio is the geometric mean over all functions and targets that both reach at least once.
Targets that only one of them reaches are counted. The error is that of the mean over 24 functions.

Needs `pip install coco-experiment cma`. The result is appended to results.jsonl.
"""

import time
import warnings
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import harness
from jaxgpu.evolution import single
from jaxgpu.evolution.problem import Problem, box
from jaxgpu.evolution.problems import bbob_data

BUDGET, INSTANCES = 2000, 5
TARGETS = 10.0 ** np.linspace(2, -8, 51)


@dataclass(frozen=True)
class Runs:
    """Evaluations and time that one program needed: one run per problem and seed."""

    function: np.ndarray  # [R] 1 to 24
    hit: np.ndarray  # [R, T] evaluations to each target, inf if it was not reached
    spent: np.ndarray  # [R] evaluations of the complete run
    wall: float  # seconds
    cpu: float  # seconds of this process


def clocks() -> np.ndarray:
    """Return wall and CPU seconds."""
    return np.array([time.perf_counter(), time.process_time()])


def problems(dimension: int) -> list[tuple[Any, float]]:
    """Return COCO's problems, each with its best value."""
    suite = import_module("cocoex").Suite(
        "bbob", f"instances:1-{INSTANCES}", f"dimensions:{dimension}"
    )
    made = [suite.get_problem(i) for i in range(len(suite))]
    return [(p, bbob_data.optimal_value(p.id_function, p.id_instance)) for p in made]


def run_jaxgpu(dimension: int, seeds: tuple[int, ...]) -> Runs:
    """Run jaxgpu's BIPOP on all problems and seeds in one batch."""
    made, since = problems(dimension), clocks()
    spec = single.Restarts(single.default_pop_size(dimension), doublings=5)
    here = Problem(box(-5.0, 5.0, dimension, jnp.float64), lambda x: x[:1])
    keys = [jax.random.split(jax.random.key(seed), len(made)) for seed in seeds]
    keys = jnp.concatenate(keys)

    @jax.jit
    def ask(state: Any, count: Any) -> Any:
        ask_one = lambda state, key: spec.ask(state, jax.random.fold_in(key, count))
        return jax.vmap(ask_one)(state, keys)

    @jax.jit
    def tell(state: Any, x: Any, f: Any) -> Any:
        none = jnp.zeros(f.shape[1], f.dtype)
        return jax.vmap(lambda state, x, f: spec.tell(state, x, f, none))(state, x, f)

    state = jax.jit(jax.vmap(lambda key: spec.init(key, here)))(keys)
    all_of_them, used = made * len(seeds), 0
    hit = np.full((len(all_of_them), len(TARGETS)), np.inf)
    while used < BUDGET * dimension:
        x = ask(state, jnp.int32(used))
        rows = np.asarray(x)
        f = np.array([[p(one) - low for one in xs] for (p, low), xs in zip(all_of_them, rows)])
        state = tell(state, x, jnp.asarray(f[..., None]))
        under = f[:, :, None] <= TARGETS
        first = np.where(under.any(1), used + 1 + under.argmax(1), np.inf)
        hit, used = np.minimum(hit, first), used + rows.shape[1]
    function = np.array([p.id_function for p, _ in all_of_them])
    return Runs(function, hit, np.full(len(hit), used), *(clocks() - since))


def run_pycma(dimension: int, seeds: tuple[int, ...]) -> Runs:
    """Run pycma's BIPOP, one problem after the other."""
    cma, since = import_module("cma"), clocks()
    function, hits, spent = [], [], []
    for seed in seeds:
        for i, (problem, low) in enumerate(problems(dimension)):
            seen: list[float] = []
            rng = np.random.default_rng([seed, i])

            def record_value(
                x: np.ndarray, problem: Any = problem, seen: list[float] = seen
            ) -> float:
                seen.append(problem(x))
                return seen[-1]

            options = {"verbose": -9, "maxfevals": BUDGET * dimension, "bounds": [-5, 5]}
            options |= {"seed": 1000 * seed + i + 1, "ftarget": low + TARGETS[-1]}
            start = lambda rng=rng: rng.uniform(-4, 4, dimension)
            cma.fmin2(record_value, start, 2, options, bipop=True, restarts=9)
            under = np.array(seen)[:, None] - low <= TARGETS
            hits.append(np.where(under.any(0), 1 + under.argmax(0), np.inf))
            function.append(problem.id_function)
            spent.append(len(seen))
    return Runs(np.array(function), np.array(hits), np.array(spent), *(clocks() - since))


def running_times(runs: Runs) -> np.ndarray:
    """Return expected evaluations [24, T] per function and target, inf if no run reaches it."""
    paid = np.minimum(runs.hit, runs.spent[:, None])
    found = []
    for one in range(1, 25):
        mine = runs.function == one
        with np.errstate(divide="ignore"):
            found.append(paid[mine].sum(0) / np.isfinite(runs.hit[mine]).sum(0))
    return np.array(found)


def compare_times(a: np.ndarray, b: np.ndarray) -> dict[str, Any]:
    """Return the ratio of running times a over b, its error, and targets only one reached."""
    either = np.isfinite(a) & np.isfinite(b)
    log = np.log(np.where(either, a, 1) / np.where(either, b, 1))
    each = [np.mean(row[ok]) for row, ok in zip(log, either) if ok.any()]
    ratio = np.exp(np.sum(log) / either.sum())
    return {
        "running time over pycma's": ratio,
        "its relative error": np.std(each, ddof=1) / len(each) ** 0.5,
        "targets": np.isfinite(a).sum(),
        "targets not reached by pycma": (np.isfinite(a) & ~either).sum(),
        "targets only pycma reached": (np.isfinite(b) & ~either).sum(),
    }


def main(dimensions: tuple[int, ...], seeds: tuple[int, ...]) -> None:
    """Measure, print the running times per function, and append the result to results.jsonl."""
    warnings.simplefilter("ignore")  # pycma warns on flat functions
    for dimension in dimensions:
        with jax.enable_x64(True):
            runs = {"jaxgpu": run_jaxgpu(dimension, seeds)}
        version = import_module("cma").__version__.split()[0]
        runs[f"pycma {version}"] = run_pycma(dimension, seeds)
        times = {name: running_times(one) for name, one in runs.items()}
        a, b = times.values()
        answer = compare_times(a, b)
        print(
            f"{dimension} variables, {seeds=}:", {k: round(float(v), 4) for k, v in answer.items()}
        )
        for function, (x, y) in enumerate(zip(a, b), 1):
            ok = np.isfinite(x) & np.isfinite(y)
            part = np.exp(np.mean(np.log(x[ok] / y[ok]))) if ok.any() else np.nan
            reached = f"{np.isfinite(x).sum()} : {np.isfinite(y).sum()} of {len(TARGETS)} targets"
            print(f"  f{function:<2d} {part:6.2f}, {reached}", flush=True)
        work = f"24 functions, {INSTANCES} instances, {len(seeds)} seeds, {BUDGET * dimension} "
        entry = harness.Entry(
            f"bbob in its box, {dimension} variables",
            work + "evaluations; expected running times to 51 targets, 10^2 to 10^-8",
            [],
            float(len(next(iter(runs.values())).function)),
        )
        measured = []
        for name, one in runs.items():
            wall = (one.wall, one.wall, one.wall)  # there is one round: all quartiles are equal
            reached = float(np.isfinite(times[name]).sum())
            said = answer if name == "jaxgpu" else {"targets": reached}
            plain = {key: float(value) for key, value in said.items()}
            measured.append(harness.Measurement(name, 0.0, wall, one.cpu, plain))
        harness.record(entry, measured)
