"""Evolution alone against evolution refined by gradients, at equal cost in CPU time."""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu import evolution
from jaxgpu.devices import allocation
from jaxgpu.evolution import multi
from jaxgpu.evolution.indicators import hypervolume
from jaxgpu.report import replace_text
from jaxgpu.runs.loop import Run, run

from .nozzle import IDEAL, Pour
from .polish import Polish, measure, scale

CHECK_STEP = 1e-3  # finite-difference step, m: about a step of a refined member
COUNT_LABELS = (
    "all members so far",
    "the best of them, as many as a population",
    "the last population",
)
TIMING_RUNS = 3  # calls per timing, of which the median counts


@dataclass(frozen=True)
class Race:
    """Results of one seed: the run of evolution, and refinements from some of its generations."""

    evolved: Run
    polished: dict[int, Run]  # by initial generation

    def members(self, start: int | None = None) -> np.ndarray:
        """Return the objectives [T, M, 2] of all members so far, with later ones infinite.

        T counts the generations of evolution alone, or with `start` the states before and after
        each step of the refinement from that generation, which also includes the members of earlier
        generations.
        """
        evolved = np.asarray(self.evolved.history["f"][1:])
        if start is None:
            return accumulate(evolved)
        led = accumulate(np.asarray(self.polished[start].history["f"]))
        earlier = evolved[:start].reshape(-1, 2)
        return np.concatenate([np.broadcast_to(earlier, (len(led), *earlier.shape)), led], 1)

    def volumes(self, start: int | None = None) -> np.ndarray:
        """Return the hypervolume [T] of all members so far, with `start` as in `members`."""
        return volumes(self.members(start))

    def ends(self, start: int | None = None) -> dict[str, float]:
        """Return the final hypervolumes, by which members are counted."""
        known = self.members(start)[-1]
        last = np.asarray((self.polished[start] if start else self.evolved).history["f"][-1])
        counted = known, best_of(known, len(last)), last
        return {name: float(volumes(f[None])[0]) for name, f in zip(COUNT_LABELS, counted)}


def best_of(f: np.ndarray, count: int) -> np.ndarray:
    """Select `count` of the objectives [M, 2] greedily by their gain in hypervolume."""
    chosen = np.full((count, 2), np.inf, f.dtype)
    for i in range(count):
        tried = np.repeat(chosen[None], len(f), 0)
        tried[:, i] = f
        chosen[i] = f[np.argmax(volumes(tried))]
    return chosen


def accumulate(f: np.ndarray) -> np.ndarray:
    """Return objectives [T, T N, 2] of populations [T, N, 2] up to each, later ones infinite."""
    t, n, m = f.shape
    later = np.arange(t)[None, :, None, None] > np.arange(t)[:, None, None, None]
    return np.where(later, np.inf, f[None]).reshape(t, t * n, m)


def volumes(f: np.ndarray) -> np.ndarray:
    """Return the hypervolumes [T] of sets [T, N, 2], as fractions of the objective box.

    >>> round(float(volumes(np.array([[[0.5, 12.0]]]))[0]), 6)
    0.25
    """
    shares = (f - np.array(IDEAL, f.dtype)) / np.asarray(scale(jnp.asarray(f)))
    return np.asarray(jax.vmap(lambda one: hypervolume(one, jnp.ones(2)))(jnp.asarray(shares)))


def members(state: Any) -> dict[str, Array]:
    """Return designs and objectives of a population, recorded after each generation."""
    return {"x": state.population.x, "f": state.population.f}


def run_race(
    pour: Pour,
    pop_size: int,
    generations: int,
    polishes: dict[int, int],
    seed: int,
    out: Path,
    resume: bool,
) -> Race:
    """Run one seed of evolution and the refinements of its populations.

    Args:
        pour: the simulation.
        pop_size: members of a population.
        generations: generations of evolution alone.
        polishes: number of gradient steps, by the generation whose members they start from.
        seed: seed of evolution.
        out: folder for checkpoints.
        resume: continue from its checkpoints.
    """
    problem = pour.problem()
    evolved = evolution.run(
        multi.NSGA2(pop_size),
        problem,
        jax.random.key(seed),
        generations,
        measure=members,
        out=out / "evolution",
        resume=resume,
    )
    spec = Polish(problem.box.lower, problem.box.upper, pour.objectives)
    polished = {}
    for start, steps in polishes.items():
        x, f = (jnp.asarray(evolved.history[name][start]) for name in ("x", "f"))
        polished[start] = run(
            spec.step,
            spec.init(x, f),
            steps,
            measure=measure,
            chunk=1,
            out=out / f"polished-from-{start}",
            resume=resume,
        )
    return Race(evolved, polished)


@dataclass(frozen=True)
class Cost:
    """CPU time of an episode without and with its gradient, all threads counted, s."""

    plain: float
    gradient: float

    @property
    def ratio(self) -> float:
        """Cost of an episode with its gradient, in plain episodes."""
        return self.gradient / self.plain


def cost(pour: Pour, pop_size: int, out: Path, resume: bool) -> Cost:
    """Measure the cost of episodes, from full populations; a resumed run keeps its values."""
    file = out / "cost.json"
    if resume and file.exists():
        return Cost(**json.loads(file.read_text()))
    box = pour.problem().box
    shares = jnp.linspace(0, 1, pop_size)[:, None]
    designs = box.lower[None] + shares * (box.upper - box.lower)[None]
    spec = Polish(box.lower, box.upper, pour.objectives)
    begun = spec.init(designs, values(pour, designs))
    plain = _seconds(lambda: values(pour, designs))
    gradient = _seconds(lambda: run(spec.step, begun, 1, measure=measure, chunk=1).state)
    found = Cost(plain / pop_size, gradient / pop_size)
    out.mkdir(parents=True, exist_ok=True)
    replace_text(file, json.dumps(asdict(found)))
    return found


@allocation.limit_memory
@partial(jax.jit, static_argnums=0)
def values(pour: Pour, designs: Array) -> Array:
    """Return the objectives [N, 2] of designs [N, D]."""
    return jax.vmap(pour.objectives)(designs)


def _seconds(call: Callable[[], Any]) -> float:
    """Return the median CPU time of a precompiled call, s."""
    jax.block_until_ready(call())
    taken = []
    for _ in range(TIMING_RUNS):
        began = time.process_time()
        jax.block_until_ready(call())
        taken.append(time.process_time() - began)
    return float(np.median(taken))


def agreement(pour: Pour, x: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """Return cosines [N, 2] between gradients and central differences with steps of 1 mm.

    Args:
        pour: the simulation.
        x: designs [N, D], m.
        slopes: gradients [N, 2, D] there, in any units per objective.
    """
    shifts = CHECK_STEP * np.eye(x.shape[1], dtype=x.dtype)
    sides = [values(pour, x + shift) - values(pour, x - shift) for shift in shifts]
    measured = np.moveaxis(np.asarray(jnp.stack(sides)), 0, -1)  # [N, 2, D]
    sizes = np.linalg.norm(measured, axis=-1) * np.linalg.norm(slopes, axis=-1)
    return np.sum(measured * slopes, -1) / np.where(sizes > 0, sizes, np.inf)
