"""Seconds per generation of NSGA-II, NSGA-III and CMA-ES, and contributions, compared with peers.

`pip install pymoo moocore evosax` installs the peers; missing ones are left out.
"""

from collections.abc import Callable
from functools import partial
from importlib import import_module, metadata, util
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.harness import Contender, Entry
from jaxgpu.evolution import multi, protocol, single
from jaxgpu.evolution.indicators import contributions, hypervolume_by_rays
from jaxgpu.evolution.multi import das_dennis, partitions_for
from jaxgpu.evolution.problem import Problem, box
from jaxgpu.evolution.problems import dtlz

EARLY = 30  # generations before timing starts: the first have unusually many fronts
WORK = f"DTLZ2, m = 3, D = 12, float32, generations after the first {EARLY}"


def entries() -> list[Entry]:
    """Return populations of 1e3 and 1e4 with pymoo, of 1e5 without, then the other entries."""
    found = []
    for name in ("NSGA2", "NSGA3"):
        for count, steps in ((1000, 50), (10_000, 5)):
            contenders = [
                _jaxgpu_contender(name, count, steps),
                *_pymoo_contenders(name, count, steps),
            ]
            label = f"{name}, N = {count}"
            found.append(Entry(label, WORK, contenders, steps, "generations", rounds=3))
        alone = [_jaxgpu_contender(name, 100_000, 2)]
        found.append(Entry(f"{name}, N = 100000", WORK, alone, 2, "generations", rounds=3))
    return [*found, _seeds_entry(), _contributions_entry(), _cma_entry()]


def _is_installed(module: str) -> bool:
    return util.find_spec(module) is not None


def _make_advance(spec: Any, problem: Problem, first: int, steps: int) -> Callable[[], Any]:
    """Return a function that runs `steps` generations after the first ones."""

    @jax.jit
    def advance(state: Any, key: Any, count: Any) -> Any:
        body = lambda i, state: protocol.step(spec, problem, state, jax.random.fold_in(key, i))
        return jax.lax.fori_loop(0, count, body, state)

    key = jax.random.key(0)
    made: list[Any] = []  # the warm-up call makes the start state

    def call() -> Any:
        if not made:
            made.append(advance(jax.jit(spec.init)(key, problem), key, first))
        return jax.block_until_ready(advance(made[0], jax.random.key(1), steps))

    return call


def _jaxgpu_contender(name: str, count: int, steps: int) -> Contender:
    spec: Any = multi.NSGA2(pop_size=count)
    if name == "NSGA3":
        spec = multi.NSGA3(das_dennis(3, partitions_for(3, count)), pop_size=count)
    call = _make_advance(spec, dtlz.dtlz2(3), EARLY, steps)

    def run() -> dict[str, float]:
        return {"|f|": float(np.linalg.norm(call().population.f, axis=1).mean())}

    return Contender("jaxgpu", run)


def _pymoo_contenders(name: str, count: int, steps: int) -> list[Contender]:
    """Return pymoo with its defaults, and with duplicate elimination off."""
    if not _is_installed("pymoo"):
        return []
    return [
        Contender(
            f"pymoo {metadata.version('pymoo')}, {word}",
            _make_pymoo_run(name, count, steps, eliminate),
        )
        for word, eliminate in (("as shipped", True), ("repeats kept", False))
    ]


def _make_pymoo_run(name: str, count: int, steps: int, eliminate: bool) -> Callable[[], dict]:
    module = import_module(f"pymoo.algorithms.moo.{name.lower()}")
    problem = import_module("pymoo.problems").get_problem("dtlz2", n_var=12, n_obj=3)
    first = EARLY if count <= 1000 else 2
    options: dict[str, Any] = {"pop_size": count, "eliminate_duplicates": eliminate}
    if name == "NSGA3":
        options["ref_dirs"] = np.asarray(das_dennis(3, partitions_for(3, count)).w, float)
    made: list[Any] = []

    def run() -> dict[str, float]:
        if not made:
            made.append(getattr(module, name)(**options))
            made[0].setup(problem, termination=("n_gen", 10**6), seed=1, verbose=False)
            for _ in range(first):
                made[0].next()
        for _ in range(steps):
            made[0].next()
        return {"|f|": float(np.linalg.norm(made[0].pop.get("F"), axis=1).mean())}

    return run


def _seeds_entry(seeds: int = 100, count: int = 100, steps: int = 25) -> Entry:
    """Return an entry of many small runs: jaxgpu in one program, pymoo one after the other."""
    problem, spec = dtlz.dtlz2(3), multi.NSGA2(pop_size=count)
    evolve = jax.jit(jax.vmap(lambda key: protocol.evolve(spec, problem, key, steps)))

    def mean_norm(f: np.ndarray) -> dict[str, float]:
        return {"|f|": float(np.linalg.norm(f, axis=-1).mean())}

    def run_jaxgpu() -> dict[str, float]:
        return mean_norm(
            np.asarray(evolve(jax.random.split(jax.random.key(0), seeds)).population.f)
        )

    def run_pymoo(eliminate: bool) -> dict[str, float]:
        peer = import_module("pymoo.algorithms.moo.nsga2").NSGA2
        work = import_module("pymoo.problems").get_problem("dtlz2", n_var=12, n_obj=3)
        solve = import_module("pymoo.optimize").minimize
        run = lambda seed: solve(
            work, peer(pop_size=count, eliminate_duplicates=eliminate), ("n_gen", steps), seed=seed
        )
        return mean_norm(np.stack([run(seed).pop.get("F") for seed in range(seeds)]))

    contenders = [Contender("jaxgpu", run_jaxgpu)]
    if _is_installed("pymoo"):
        version = metadata.version("pymoo")
        for word, eliminate in (("as shipped", True), ("repeats kept", False)):
            contenders.append(Contender(f"pymoo {version}, {word}", partial(run_pymoo, eliminate)))
    work = f"NSGA2, DTLZ2, m = 3, D = 12, {seeds} seeds, N = {count}, first {steps} generations"
    return Entry("seeds", work, contenders, seeds * steps, "generations", rounds=3)


def _contributions_entry() -> Entry:
    """Return an entry of the hypervolume contributions of 1000 points on a sphere, m = 4."""
    f = np.abs(np.random.default_rng(0).normal(size=(1000, 4)))
    f /= np.linalg.norm(f, axis=1, keepdims=True)
    reference = np.full(4, 1.1)
    exact: np.ndarray | None = None
    if _is_installed("moocore"):
        exact = np.asarray(import_module("moocore").hv_contributions(f, ref=reference))

    def summarize(own: np.ndarray) -> dict[str, float]:
        error = np.nan if exact is None else np.abs(own - exact).sum() / exact.sum()
        return {"sum": float(own.sum()), "error": float(error)}

    points = jnp.float32(f), jnp.float32(reference)
    sampled = jax.jit(hypervolume_by_rays, static_argnums=3)
    computed = jax.jit(contributions)

    def sample_contributions(rays: int) -> dict[str, float]:
        found = sampled(*points, jax.random.key(0), rays)
        return summarize(np.asarray(found.contributions, float))

    contenders = [
        Contender("jaxgpu, exact", lambda: summarize(np.asarray(computed(*points), float))),
        *(
            Contender(f"jaxgpu, 2^{bits} rays", partial(sample_contributions, 1 << bits))
            for bits in (16, 19)
        ),
    ]
    if _is_installed("moocore"):
        name = f"moocore {metadata.version('moocore')}, exact"
        call = import_module("moocore").hv_contributions
        contenders.append(Contender(name, lambda: summarize(np.asarray(call(f, ref=reference)))))
    return Entry("contributions", "n = 1000 points of a sphere, m = 4", contenders, rounds=3)


def _cma_entry() -> Entry:
    """Return an entry of CMA-ES on the sphere with 1000 variables and 4096 candidates."""
    problem = Problem(box(-5.0, 5.0, 1000), lambda x: jnp.sum(x * x, keepdims=True))
    contenders = []
    for factor in ("cholesky", "eigenvectors"):
        call = _make_advance(single.CMAES(4096, factor=factor), problem, 2, 1)
        best_value = lambda call=call: {"f": float(call().best.f)}
        contenders.append(Contender(f"jaxgpu, {factor}", best_value))
    if _is_installed("evosax"):
        contenders.append(Contender(f"evosax {metadata.version('evosax')}", _make_evosax_run()))
    work = "sphere, 1000 variables, 4096 candidates, float32, one generation"
    return Entry("CMA-ES", work, contenders, 1, "generations", rounds=7)


def _make_evosax_run() -> Callable[[], dict[str, float]]:
    strategy = import_module("evosax.algorithms").CMA_ES(4096, jnp.zeros(1000))
    params = strategy.default_params

    @jax.jit
    def step(state: Any, key: Any) -> Any:
        x, state = strategy.ask(key, state, params)
        f = jnp.sum(x * x, axis=1)
        return strategy.tell(key, x, f, state, params)[0], jnp.min(f)

    # as for jaxgpu: two generations first, so that the covariance is no longer the identity, whose
    # eigenvectors cost nothing
    state = strategy.init(jax.random.key(0), jnp.ones(1000), params)
    for i in range(2):
        state = step(state, jax.random.key(i))[0]

    def run() -> dict[str, float]:
        return {"f": float(jax.block_until_ready(step(state, jax.random.key(1)))[1])}

    return run
