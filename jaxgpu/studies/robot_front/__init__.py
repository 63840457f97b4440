"""Pareto fronts of speed against effort for a swimming robot, by evolution, by PPO and by both."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgpu.devices import memory
from jaxgpu.evolution.pareto import is_non_dominated
from jaxgpu.inputs.fields import size
from jaxgpu.report import Headline, Report, Table, figure, video
from jaxgpu.studies import SeededOptions, seed_count, shared_parts
from jaxgpu.studies.five_ways.statistics import mean_interval

from . import pictures, races
from .races import Budget, MethodResult, Setup
from .task import TESTS, score_policies, volume

# Bytes per policy: its weights as parent, as child, in their union, and temporaries of sorting.
POLICY = 6 * 4 * 178


@dataclass(frozen=True)
class Options(SeededOptions):
    """Options of the study."""

    members: int = size(default=48, least=8, most=1_000_000)
    """Population size, a multiple of 4."""
    generations: int = size(default=60, least=4, most=1_000_000)
    """Generations of the populations; all methods have the same number of simulated steps."""
    max_steps: int = size(default=100, least=4, most=1_000_000)
    """Steps per episode, of 0.04 s each."""
    seeds: int = seed_count(default=5, least=2)
    """Seeds per method; at least 2, for intervals."""

    def __post_init__(self):
        super().__post_init__()
        if self.members % 4:
            raise ValueError(f"members: {self.members}; must be a multiple of 4")
        budget = Budget(self.members, self.generations, self.max_steps)
        if budget.updates < 2 or budget.searches < 1:
            need = -(-2 * len(races.SHARES) * races.CANDIDATES // self.members) + 1
            raise ValueError(
                f"generations: {self.generations} of {self.members} members leave PPO and CMA-ES "
                f"no step; give {need} or more"
            )


def study(options: Options, out: Path, resume: bool) -> Report:
    """Run every method, score its results on new episodes, and make a video of a front's ends."""
    memory.check_size("robot-front", POLICY * options.seeds * options.members)
    budget = Budget(options.members, options.generations, options.max_steps)
    field = Setup(budget, options.seeds, options.seed)
    found: dict[str, MethodResult] = {
        name: races.population(field, name, out / name.replace("/", ""), resume)
        for name in races.make_algorithms(budget)
    }
    found["CMA-ES, 5 weights"] = races.strategies(field, out / "CMA-ES", resume)
    learnt = found["PPO, 5 weights"] = races.weighted_ppo(field, out / "PPO", resume)
    found["PPO, then NSGA-III"] = races.hybrid(field, learnt, out / "hybrid", resume)
    values = {name: final_objectives(field, one.x) for name, one in found.items()}  # [S, K, 2]
    volumes = {
        name: np.array([float(volume(jnp.asarray(f))) for f in values[name]]) for name in values
    }
    order = sorted(volumes, key=lambda name: -volumes[name].mean())
    best = order[0]
    which = int(np.argsort(volumes[best])[options.seeds // 2])
    courses = {name: one.volumes[1:] for name, one in found.items() if one.volumes is not None}
    del courses["PPO, then NSGA-III"]  # its curve starts elsewhere
    ends, said = extreme_policies(values[best][which], found[best].x[which])
    known = jax.tree.map(lambda a: a[which], field.known)
    moving = pictures.make_frames(field.policies, ends, known, jax.random.key(options.seed + 1))
    return Report(
        "Speed against effort",
        f"Mean hypervolumes of {options.seeds} seeds after {budget.steps:,} simulated steps per "
        f"seed: {best} {volumes[best].mean():.3f}, {order[1]} {volumes[order[1]].mean():.3f}, "
        f"random search {volumes['random search'].mean():.3f}.",
        figures=[
            figure(
                pictures.fronts(
                    {name: front(values[name][median_seed(volumes[name])]) for name in order}
                ),
                "Non-dominated policies of each method (seed with the median hypervolume): means "
                f"over {TESTS} new episodes.",
            ),
            figure(
                pictures.volumes(courses, budget.members * budget.max_steps),
                "Hypervolume of the populations from noisy evaluations, which are biased upwards: "
                f"means and ranges over {options.seeds} seeds.",
            ),
            video(
                moving, f"Extremes of a front of {best}. Orange: {said[0]}; blue: {said[1]}.", 0.08
            ),
        ],
        tables=[table(order, volumes, found, options.seeds)],
        headlines=[
            Headline(
                f"hypervolume, {name}", float(volumes[name].mean()), format_volume(volumes, name)
            )
            for name in (best, "PPO, 5 weights", "random search")[: 3 if best[:3] != "PPO" else 2]
        ],
        **shared_parts(options, found, FINDINGS, CITATIONS),
    )


def final_objectives(field: Setup, x: np.ndarray) -> np.ndarray:
    """Return objectives [S, K, 2] of policies [S, K, D] on the same new episodes."""
    members, values = max(x.shape[1], field.budget.members), []
    rows = np.resize(np.arange(x.shape[1]), members)  # repeat rows to a common size: one program
    for i, mine in enumerate(x):
        known = jax.tree.map(lambda a, i=i: a[i], field.known)
        key = jax.random.fold_in(field.keys[i], 5)
        f = score_policies(field.policies, mine[rows], known, key, TESTS)
        values.append(np.asarray(f)[: x.shape[1]])
    return np.stack(values)


def front(f: np.ndarray) -> np.ndarray:
    """Return the non-dominated objectives among f [K, 2], of policies that swim forward."""
    return f[np.asarray(is_non_dominated(jnp.asarray(f))) & (f[:, 0] < 0)]


def median_seed(volumes: np.ndarray) -> int:
    """Return the seed with the median volume."""
    return int(np.argsort(volumes)[len(volumes) // 2])


def extreme_policies(f: np.ndarray, x: np.ndarray) -> tuple[Any, list[str]]:
    """Return the fastest and the most economical forward-swimming policies [2, D], with texts."""
    ahead = np.flatnonzero(np.asarray(is_non_dominated(jnp.asarray(f))) & (f[:, 0] < 0))
    ahead = ahead if len(ahead) else np.arange(len(f))
    ends = [ahead[f[ahead, k].argmin()] for k in (0, 1)]
    said = [f"summed speed {-f[i, 0]:.3g} m/s, effort {f[i, 1]:.3g}" for i in ends]
    return x[ends], said


def format_volume(volumes: dict[str, np.ndarray], name: str) -> str:
    """Return the confidence interval of a mean volume, as text."""
    _, low, high = mean_interval(volumes[name])
    return f"95 % from {low:.3f} to {high:.3f}, {len(volumes[name])} seeds"


def table(
    order: list[str], volumes: dict[str, np.ndarray], found: dict[str, MethodResult], seeds: int
) -> Table:
    """Return a table of the hypervolumes of all methods, the best first."""
    rows = [
        [name, *(float(v) for v in mean_interval(volumes[name])), float(volumes[name].min())]
        + [found[name].x.shape[1], found[name].steps]
        for name in order
    ]
    columns = ["method", "mean", "95 % from", "to", "worst", "policies", "steps per seed"]
    return Table(f"Hypervolume on new episodes, {seeds} seeds", columns, rows)


FINDINGS = [
    "A hypervolume of 1 is the box from summed speed 0 and effort 8 to 40 m/s and 0. Policies are "
    "evaluated in new episodes, because values in a search are biased by selection.",
    "All methods except PPO normalise observations by the statistics of a generation of random "
    "policies, included in their steps. These stay fixed: a policy depends only on its weights.",
    "PPO's actor has the same network as the other methods; its critic is separate. The hybrid "
    "starts NSGA-III from PPO's five policies after half of the steps, and noisy copies of them.",
    "Weights of all methods except PPO are within ±1; those of PPO's policies are clipped to it "
    "for the hybrid. Within ±5, random policies saturate their controls, and the fronts of all "
    "populations are far worse.",
    "CMA-ES and PPO divide their steps among five weights of speed, and return five policies.",
]

CITATIONS = [
    "Liang, Li, Yu, Sun & Cheng (2025), arXiv:2503.20286: MoRobtrol",
    "Coulom (2002), PhD thesis, Grenoble: the swimmer",
    "Deb & Jain (2014), doi:10.1109/TEVC.2013.2281535: NSGA-III",
    "Cheng, Jin, Olhofer & Sendhoff (2016), doi:10.1109/TEVC.2016.2519378: RVEA",
    "Bader & Zitzler (2011), doi:10.1162/EVCO_a_00009: HypE",
    "Zhang & Li (2007), doi:10.1109/TEVC.2007.892759: MOEA/D",
    "Hansen (2016), arXiv:1604.00772: CMA-ES",
    "Schulman et al. (2017), arXiv:1707.06347: PPO",
]
