"""Problems of the study, measurements of its runs, and pymoo's stored runs."""

from dataclasses import dataclass
from functools import partial
from importlib import resources
from io import BytesIO
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.devices import allocation
from jaxgpu.evolution import Problem, multi, step
from jaxgpu.evolution.indicators import hypervolume
from jaxgpu.evolution.multi import das_dennis
from jaxgpu.evolution.multi.nsga3 import State
from jaxgpu.evolution.pareto import is_non_dominated
from jaxgpu.evolution.population import Population
from jaxgpu.evolution.problems import dtlz2, engineering
from jaxgpu.runs.loop import Run, run

DIVISIONS, MEMBERS, EVERY = 12, 92, 5  # 91 directions; generations per measurement


@dataclass(frozen=True)
class Race:
    """A problem with three objectives, and the labels of its axes."""

    title: str
    axes: tuple[str, str, str]
    problem: str

    def make_problem(self) -> Problem:
        """Return the problem."""
        return dtlz2(3) if self.problem == "DTLZ2" else engineering(self.problem)


RACES = {
    "car side impact": Race("Car side impact", ("mass", "pubic force", "velocity"), "CRE31"),
    "rocket injector": Race(
        "Rocket injector",
        ("face temperature", "wall temperature", "tip temperature"),
        "RE37",
    ),
    "DTLZ2": Race("DTLZ2", ("f1", "f2", "f3"), "DTLZ2"),
}


@dataclass(frozen=True)
class Peer:
    """Stored results of pymoo, written by `python docs/make/pareto_fronts.py`."""

    low: np.ndarray  # [3] minimum of each objective on its fronts
    high: np.ndarray  # [3] maximum of each objective on its fronts
    volumes: np.ndarray  # [seeds, measurements] hypervolume below 1.1, in these units
    front: np.ndarray  # [K, 3] front of the seed with the median final volume


def peer(name: str) -> Peer:
    """Return the stored runs of a race."""
    stored = resources.files("jaxgpu.studies.pareto_fronts").joinpath("pymoo.npz").read_bytes()
    with np.load(BytesIO(stored)) as file:
        return Peer(*(file[f"{name} {part}"] for part in Peer.__dataclass_fields__))


def volume(members: Population, low: Array, high: Array) -> Array:
    """Return the hypervolume of feasible members below 1.1, scaled by `low` and `high`."""
    feasible = (members.violation <= 0)[:, None]
    f = jnp.where(feasible, (members.f - low[None]) / (high - low)[None], 2.0)
    return hypervolume(f, jnp.full(3, 1.1, f.dtype))


def race(name: str, seeds: int, generations: int, seed: int, out: Path, resume: bool) -> Run:
    """Run all seeds of NSGA-III in one program; the history has initial and later volumes."""
    problem, against = RACES[name].make_problem(), peer(name)
    spec = multi.NSGA3(das_dennis(3, DIVISIONS), MEMBERS)
    low, high = (jnp.asarray(bound, jnp.float32) for bound in (against.low, against.high))
    first, rest = jax.random.split(jax.random.key(seed))
    return run(
        partial(_generations, spec, problem),
        _start(spec, problem, jax.random.split(first, seeds)),
        generations // EVERY,
        key=rest,
        measure=partial(_volumes, low, high),
        out=out,
        resume=resume,
    )


@allocation.limit_memory
@jax.jit
def _start(spec: multi.NSGA3, problem: Problem, keys: Array) -> State:
    return jax.vmap(lambda key: spec.init(key, problem))(keys)


def _generations(spec: multi.NSGA3, problem: Problem, state: State, key: Array) -> State:
    seeds = state.generation.shape[0]

    def generation(i: Array, state: State) -> State:
        keys = jax.random.split(jax.random.fold_in(key, i), seeds)
        return jax.vmap(partial(step, spec, problem))(state, keys)

    return jax.lax.fori_loop(0, EVERY, generation, state)


def _volumes(low: Array, high: Array, state: State) -> Array:
    return jax.vmap(partial(volume, low=low, high=high))(state.population)


def front(members: Population, which: int) -> np.ndarray:
    """Return the feasible, non-dominated members of one seed, [K, 3]."""
    f, violation = members.f[which], members.violation[which]
    best = np.asarray(is_non_dominated(f, violation)) & (np.asarray(violation) <= 0)
    return np.asarray(f)[best]


def median_seed(volumes: np.ndarray) -> int:
    """Return the seed with the median final volume, from volumes [seeds, measurements]."""
    return int(np.argsort(volumes[:, -1], kind="stable")[len(volumes) // 2])
