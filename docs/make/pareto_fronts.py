"""Write pymoo's results for the study `pareto-fronts`: `python docs/make/pareto_fronts.py`.

pymoo's NSGA-III with its own defaults solves the functions of the study, with the study's
directions, members and generations. Needs pymoo (`pip install pymoo`). Takes some minutes.
"""

from importlib import import_module
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgpu.evolution.multi import das_dennis
from jaxgpu.evolution.population import Population
from jaxgpu.studies import pareto_fronts
from jaxgpu.studies.pareto_fronts import races

SEEDS, GENERATIONS = 11, 250


def wrap_problem(name: str) -> Any:
    """Return the problem in pymoo's protocol, with all members in one call."""
    base: Any = import_module("pymoo.core.problem").Problem
    ours = races.RACES[name].make_problem()
    values = jax.jit(lambda x: ours.evaluate(x))
    low, high = (np.asarray(b, float) for b in (ours.box.lower, ours.box.upper))

    class Wrapped(base):
        def __init__(self) -> None:
            super().__init__(n_var=len(low), n_obj=3, n_ieq_constr=1, xl=low, xu=high)

        def _evaluate(self, x: np.ndarray, out: dict[str, Any], *_: Any, **__: Any) -> None:
            f, violation = values(jnp.asarray(x, jnp.float32))
            out["F"], out["G"] = np.asarray(f, float), np.asarray(violation, float)[:, None]

    return Wrapped()


def runs(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return objectives [seeds, measurements, N, 3] and violations [seeds, measurements, N]."""
    peer = import_module("pymoo.algorithms.moo.nsga3").NSGA3
    directions = np.asarray(das_dennis(3, races.DIVISIONS).w, float)
    values, violations = [], []
    for seed in range(SEEDS):
        algorithm = peer(ref_dirs=directions, pop_size=races.MEMBERS)
        algorithm.setup(
            wrap_problem(name), termination=("n_gen", GENERATIONS), seed=seed, verbose=False
        )
        for generation in range(1, GENERATIONS + 1):
            algorithm.next()
            if generation % races.EVERY == 0:
                # pymoo's population may have fewer members than its size
                f, v = np.full((races.MEMBERS, 3), np.inf), np.full(races.MEMBERS, np.inf)
                n = len(algorithm.pop)
                f[:n], v[:n] = algorithm.pop.get("F"), algorithm.pop.get("CV")[:, 0]
                values.append(f)
                violations.append(v)
    shape = SEEDS, GENERATIONS // races.EVERY, races.MEMBERS
    return np.reshape(values, (*shape, 3)), np.reshape(violations, shape)


def main() -> None:
    """Run all problems and write the file."""
    found = {}
    for name in races.RACES:
        f, violation = (np.asarray(part, np.float32) for part in runs(name))
        last = Population(jnp.zeros(0), jnp.asarray(f[:, -1]), jnp.asarray(violation[:, -1]))
        fronts = [races.front(last, seed) for seed in range(SEEDS)]
        low, high = np.concatenate(fronts).min(0), np.concatenate(fronts).max(0)
        if name == "DTLZ2":
            low, high = np.zeros(3, np.float32), np.ones(3, np.float32)
        volume = jax.jit(
            lambda f, violation, low, high: races.volume(
                Population(f[:, :0], f, violation), low, high
            )
        )
        steps = range(f.shape[1])
        volumes = np.array(
            [[volume(f[s, i], violation[s, i], low, high) for i in steps] for s in range(SEEDS)]
        )
        middle = fronts[races.median_seed(volumes)]
        for part, value in zip(races.Peer.__dataclass_fields__, (low, high, volumes, middle)):
            found[f"{name} {part}"] = np.asarray(value, np.float32)
        print(name, low, high, np.median(volumes[:, -1]), flush=True)
    assert pareto_fronts.__file__ is not None
    np.savez_compressed(Path(pareto_fronts.__file__).with_name("pymoo.npz"), **found)


if __name__ == "__main__":
    main()
