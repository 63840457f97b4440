"""Methods to find a front with equal numbers of simulated steps, with all seeds in one program."""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu import rl
from jaxgpu.devices import allocation
from jaxgpu.evolution import Algorithm, NoisyProblem, SearchState, multi, protocol
from jaxgpu.evolution.population import sample
from jaxgpu.evolution.single import CMAES
from jaxgpu.inputs.fields import pytree
from jaxgpu.rl import sweep
from jaxgpu.rl.learners.evolved.neuroevolution import ObjectiveState
from jaxgpu.runs.loop import Run, run

from .task import (
    HIDDEN,
    Actor,
    WeightedObjective,
    WeightedReward,
    convert_weights,
    swimmer_policies,
    volume,
    warm_statistics,
)

SHARES = (0.3, 0.45, 0.6, 0.75, 0.9)  # weights of speed in the weighted sums
CHUNK = 4  # generations per checkpoint
CANDIDATES = 16  # per generation of CMA-ES
ENVS, SPREAD = 4, 0.03  # of PPO; noise of copies of its policies, as a fraction of the bounds


@pytree
class RandomSearch(multi.NSGA2):
    """Uniformly sampled policies, with the survival selection of NSGA-II."""

    def ask(self, state: Any, key: Array) -> Array:
        """Sample candidates uniformly in the box."""
        lower, upper = state.box.lower[None], state.box.upper[None]
        drawn = jax.random.uniform(key, (self.batch_size, lower.shape[1]), lower.dtype)
        return lower + drawn * (upper - lower)


@dataclass(frozen=True)
class Budget:
    """Budget of every method: `members * generations * max_steps` steps per seed."""

    members: int  # population size
    generations: int  # including the first of random policies, which initializes the statistics
    max_steps: int  # of an episode

    @property
    def steps(self) -> int:
        """Environment steps per seed."""
        return self.members * self.generations * self.max_steps

    @property
    def ppo(self) -> rl.PPO:
        """PPO for each weight."""
        return rl.PPO(
            num_envs=ENVS,
            num_steps=self.max_steps,
            hidden_sizes=HIDDEN,
            learning_rate=3e-3,
            gamma=0.97,
            update_epochs=8,
            num_minibatches=4,
            normalize_reward=True,
        )

    @property
    def updates(self) -> int:
        """PPO updates for each weight."""
        return self.steps // (len(SHARES) * self.ppo.steps_per_update)

    @property
    def searches(self) -> int:
        """Generations of CMA-ES for each weight."""
        whole = self.steps - self.members * self.max_steps
        return whole // (len(SHARES) * CANDIDATES * self.max_steps)


@dataclass(frozen=True)
class MethodResult:
    """Result of a method: policies [S, K, D] of all seeds, and the course of the search."""

    x: np.ndarray
    steps: int  # per seed
    volumes: np.ndarray | None  # [M, S] of the populations, by their noisy values
    timing: Any
    halfway: np.ndarray | None = None  # PPO's policies after half of the steps


def make_algorithms(budget: Budget) -> dict[str, Algorithm]:
    """Return the population-based algorithms, by name."""
    lines, n = multi.das_dennis(2, budget.members - 1), budget.members
    return {
        "NSGA-III": multi.NSGA3(lines, n),
        "RVEA": multi.RVEA(lines, generations=budget.generations - 1),
        "HypE": multi.HypE(n, rays=512, rounds=8),
        "MOEA/D": multi.MOEAD(lines, min(8, n), "tchebycheff"),
        "random search": RandomSearch(n),
    }


class Setup:
    """Task, budget, and initial observation statistics of each seed."""

    def __init__(self, budget: Budget, seeds: int, seed: int):
        self.budget, self.policies = budget, swimmer_policies(budget.max_steps)
        self.problem = self.policies.problem()
        self.keys = jax.random.split(jax.random.key(seed), seeds)
        known = [self._initial_statistics(key) for key in self.keys]
        self.known = jax.tree.map(lambda *rows: jnp.stack(rows), *known)  # leaves [S, ...]

    def _initial_statistics(self, key: Array) -> ObjectiveState:
        draw, play = jax.random.split(jax.random.fold_in(key, 1))
        first = sample(draw, self.problem.to_problem(), self.budget.members)
        return warm_statistics(self.problem, first.x, play)


def population(field: Setup, name: str, out: Path, resume: bool) -> MethodResult:
    """Run one of the population-based algorithms from random policies."""
    spec = make_algorithms(field.budget)[name]
    start = _start(spec, field.problem, field.keys, field.known)
    spent = field.budget.steps
    return _run_search(field, spec, start, field.budget.generations - 1, spent, out, resume)


def hybrid(field: Setup, learnt: "MethodResult", out: Path, resume: bool) -> MethodResult:
    """Run NSGA-III from PPO's policies after half of its steps, and noisy copies of them."""
    budget, policies = field.budget, field.policies
    spec = make_algorithms(budget)["NSGA-III"]
    start = _start(spec, field.problem, field.keys, field.known)
    noise = jax.random.normal(
        jax.random.key(0), (len(field.keys), budget.members, policies.weights)
    )
    each = jnp.asarray(learnt.halfway)[:, jnp.arange(budget.members) % len(SHARES)]
    copies = jnp.arange(budget.members) >= len(SHARES)  # the first ones have no noise
    x = jnp.clip(each + SPREAD * noise * copies[None, :, None].astype(noise.dtype), -1, 1)
    members = replace(start.state.population, x=x.astype(start.state.population.x.dtype))
    start = replace(start, state=replace(start.state, population=members))
    per = budget.members * budget.max_steps
    count = (budget.steps - learnt.steps // 2) // per - 1
    spent = learnt.steps // 2 + per * (count + 1)
    return _run_search(field, spec, start, count, spent, out, resume)


def _run_search(
    field: Setup,
    spec: Algorithm,
    start: SearchState,
    count: int,
    spent: int,
    out: Path,
    resume: bool,
) -> MethodResult:
    done = run(
        partial(_generation, spec, field.problem),
        start,
        count,
        key=jax.random.fold_in(field.keys[0], 2),
        measure=_volumes,
        chunk=CHUNK,  # one program for any number of generations
        out=out,
        resume=resume,
    )
    x = np.asarray(done.state.state.population.x)
    return MethodResult(x, spent, done.history, done.timing)


@allocation.limit_memory
@jax.jit
def _start(
    spec: Algorithm, problem: NoisyProblem, keys: Array, known: ObjectiveState
) -> SearchState:
    begun = jax.vmap(lambda key: protocol.init_search(spec, problem, key))(keys)
    return replace(begun, objective=known)


def _generation(
    spec: Algorithm, problem: NoisyProblem, search: SearchState, key: Array
) -> SearchState:
    keys = jax.random.split(key, search.failed.shape[0])
    return jax.vmap(partial(protocol.advance_search, spec, problem))(search, keys)


def _volumes(search: SearchState) -> Array:
    return jax.vmap(volume)(search.state.population.f)


def weighted_ppo(field: Setup, out: Path, resume: bool) -> MethodResult:
    """Run PPO with each of the weights; return one policy per weight, at the end and halfway."""
    budget, half, x, runs = field.budget, field.budget.updates // 2, [], []
    taken = jax.jit(jax.vmap(partial(convert_weights, field.policies)))
    for i, share in enumerate(SHARES):
        keys = jax.vmap(partial(jax.random.fold_in, data=10 + i))(field.keys)
        task = WeightedReward(field.policies.env, share)
        done = sweep(
            task,
            budget.ppo,
            keys,
            2,
            half,
            measure=Actor.from_state,
            out=out / f"{share}",
            resume=resume,
        )
        moments = [jax.tree.map(lambda a, m=m: a[m], done.history) for m in (1, 2)]
        x.append([np.asarray(taken(actor, field.known)) for actor in moments])
        runs.append(done)
    halfway, last = (np.stack(rows, 1) for rows in zip(*x))
    spent = len(SHARES) * 2 * half * budget.ppo.steps_per_update
    return MethodResult(
        x=last, steps=spent, volumes=None, timing=_sum_timings(runs), halfway=halfway
    )


def strategies(field: Setup, out: Path, resume: bool) -> MethodResult:
    """Run CMA-ES with each of the weights in one program; return the best policy of each."""
    budget, lanes = field.budget, len(field.keys) * len(SHARES)
    spec = CMAES(CANDIDATES)
    shares = jnp.tile(jnp.asarray(SHARES), len(field.keys))
    known = jax.tree.map(lambda a: jnp.repeat(a, len(SHARES), 0), field.known)
    keys = jax.random.split(jax.random.fold_in(field.keys[0], 3), lanes)
    start = jax.jit(partial(_start_strategies, spec, field.problem))(keys, known)
    done = run(
        partial(_advance_strategies, spec, field.policies, shares),
        start,
        budget.searches,
        key=jax.random.fold_in(field.keys[0], 4),
        measure=lambda search: search.state.best.f,
        out=out,
        resume=resume,
    )
    x = np.asarray(done.state.state.best.x).reshape(len(field.keys), len(SHARES), -1)
    spent = budget.max_steps * (budget.members + len(SHARES) * CANDIDATES * budget.searches)
    return MethodResult(x, spent, None, done.timing)


def _start_strategies(
    spec: CMAES, problem: NoisyProblem, keys: Array, known: ObjectiveState
) -> SearchState:
    lone = NoisyProblem(problem.box, WeightedObjective(problem.objective, 0.5))
    return replace(jax.vmap(partial(protocol.init_search, spec, lone))(keys), objective=known)


def _advance_strategies(
    spec: CMAES, policies: rl.PolicyObjective, shares: Array, search: SearchState, key: Array
) -> SearchState:
    box = policies.problem().box

    def advance_one(share: Array, search: SearchState, key: Array) -> SearchState:
        return protocol.advance_search(
            spec, NoisyProblem(box, WeightedObjective(policies, share)), search, key
        )

    return jax.vmap(advance_one)(shares, search, jax.random.split(key, shares.shape[0]))


def _sum_timings(runs: list[Run]) -> Any:
    """Return the sum of the timings of several runs."""
    first = runs[0].timing
    return replace(
        first,
        compile=sum(one.timing.compile for one in runs),
        run=sum(one.timing.run for one in runs),
        steps=sum(one.timing.steps for one in runs),
    )
