"""The protocol of every algorithm, `init`, `ask`, `tell`, and the loops over generations.

A spec holds the settings of an algorithm, a state the progress of a run. An algorithm is a class of
specs: a subclass of `Algorithm`, made by `@pytree`, with three methods. Users can add their own, as
this random walk, which accepts a step if it is better:

>>> import jax.numpy as jnp
>>> from jaxgpu.evolution.problem import box
>>> from jaxgpu.inputs.fields import pytree
>>> @pytree
... class Walk(Algorithm[tuple[Array, Array]]):
...     step: float = 0.1
...     batch_size = 1
...     def init(self, key, problem):
...         return jnp.full((1, 2), 0.9), jnp.full((1, 1), jnp.inf)
...     def ask(self, state, key):
...         return state[0] + self.step * jax.random.normal(key, state[0].shape)
...     def tell(self, state, x, f, violation=None):
...         return jnp.where(f < state[1], x, state[0]), jnp.minimum(f, state[1])
>>> sphere = Problem(box(-1.0, 1.0, 2), lambda x: jnp.sum(x * x, keepdims=True))
>>> bool(evolve(Walk(), sphere, jax.random.key(0), 300)[1] < 0.02)
True
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.sharding import Mesh, PartitionSpec

from jaxgpu.devices import allocation
from jaxgpu.devices.mesh import check_mesh, replicate
from jaxgpu.inputs import arguments, ranges
from jaxgpu.inputs.explanations import explain_errors, on_host
from jaxgpu.inputs.fields import pytree
from jaxgpu.runs import Keep, Resume, Run
from jaxgpu.runs.equal_functions import find_equal
from jaxgpu.runs.fresh_calls import call_fresh
from jaxgpu.runs.loop import run as run_steps

from .population import Population
from .problem import Problem, as_floats, check_problem, replace_nan
from .stochastic import AnyProblem, NoisyProblem, check_stochastic

_GENERATIONS = ranges.Range(least=0, whole=True, one=True)


class Algorithm[S](ABC):
    """Base class of algorithms. Subclasses are made by `@pytree`; S is the type of their states."""

    # number of candidates per `ask`, an int; a field or a property of the subclass
    batch_size: Any

    @abstractmethod
    def init(self, key: Array, problem: Problem) -> S:
        """Return the state before the first generation, when no candidate has been evaluated.

        Raises:
            TypeError: the key is not a key, or the problem is not a problem.
            ValueError: a value of the spec or a bound is out of range.
        """

    @abstractmethod
    def ask(self, state: S, key: Array) -> Array:
        """Return the next candidates, [N, D]."""

    @abstractmethod
    def tell(self, state: S, x: Array, f: Array, violation: Array | None = None) -> S:
        """Return the state updated with the values of the candidates x [N, D] of the last `ask`.

        Args:
            f: objectives [N, m], or [N] of one objective; NaN where an evaluation failed.
            violation: [N] total constraint violations; None without constraints.
        """


class PopulationAlgorithm[S](Algorithm[S]):
    """Base class of algorithms whose `ask` returns one candidate per member of the population."""

    pop_size: Any  # a field of the subclass
    even = False  # whether the population size must be even

    def __post_init__(self) -> None:
        check_pop_size(type(self).__name__, self.pop_size, self.even)

    @property
    def batch_size(self) -> int:
        return self.pop_size


def check_inputs[P: Problem | NoisyProblem](name: str, spec: Any, key: Any, problem: P) -> P:
    """Return the problem as arrays, after checking the spec, the key and it; skip traced values.

    Args:
        name: name of the called function, with which error messages begin.
    """
    _check_algorithm(name, spec)
    ranges.check(type(spec).__name__, spec)
    arguments.key(f"{name}: key", key)
    if isinstance(problem, NoisyProblem):
        return check_stochastic(name, problem)
    return check_problem(name, problem)


def _check_algorithm(name: str, spec: Any) -> None:
    if not isinstance(spec, Algorithm):
        kind = type(spec).__name__
        raise TypeError(f"{name}: {kind} is not an algorithm; pass an instance of Algorithm")


def check_mesh_size(name: str, spec: Algorithm, mesh: Any) -> Mesh | None:
    """Return the mesh, whose size must divide the candidates of a generation; None for one device.

    Raises:
        ValueError: the size does not divide their number, or the mesh has several axes.
        TypeError: the argument is not a mesh.
    """
    if mesh is None:
        return None
    mesh, count = check_mesh(f"{name}: mesh", mesh), int(spec.batch_size)
    if count % mesh.size:
        raise ValueError(
            f"{name}: mesh of {mesh.size} devices for {type(spec).__name__}, which evaluates "
            f"{count} candidates per generation; that must be a multiple of the devices; change "
            "the population size, or use fewer devices"
        )
    return mesh


def check_tell(spec: Algorithm, state: Any, x: Any, f: Any, violation: Any) -> tuple[Array, ...]:
    """Return the arguments of `tell` as arrays x [N, D], f [N, m], violation [N], without NaN.

    Raises:
        ValueError: a shape differs from that of the output of `ask`.
        TypeError: the values are not real numbers.
    """
    x, f = as_floats("tell: x", x), as_floats("tell: f", f)
    shape = spec.batch_size, state.box.lower.shape[0]
    if x.shape != shape:
        raise ValueError(f"tell: x has shape {list(x.shape)}; ask returned {list(shape)}")
    f = f[:, None] if f.ndim == 1 else f
    m = state.population.f.shape[1] if hasattr(state, "population") else 1
    if f.shape != (shape[0], m):
        raise ValueError(f"tell: f has shape {list(f.shape)}; it must be {[shape[0], m]}")
    violation = jnp.zeros(shape[0], x.dtype) if violation is None else violation
    violation = as_floats("tell: violation", violation)
    if violation.shape != shape[:1]:
        raise ValueError(
            f"tell: violation has shape {list(violation.shape)}; it must be {[shape[0]]}, the "
            "total per candidate"
        )
    return x, *replace_nan(f.astype(x.dtype), violation.astype(x.dtype))


def check_pop_size(name: str, pop_size: Any, even: bool = False) -> None:
    """Raise if an integer is not a valid population size: at least 4, and even if `even`.

    Values that are not integers are left to the range check of the field in `init`.
    """
    if isinstance(pop_size, int) and (pop_size < 4 or (even and pop_size % 2)):
        want = "even, at least 4" if even else "at least 4"
        raise ValueError(f"{name}: pop_size={pop_size}; it must be {want}")


@pytree
class SearchState[S]:
    """State of a search: that of the algorithm and that of the problem."""

    state: S  # state of the algorithm
    failed: Array  # [] number of evaluations so far that gave nan
    objective: Any = ()  # state of a `NoisyProblem` problem's objective; () for a `Problem`


@explain_errors
def init_search[S](spec: Algorithm[S], problem: AnyProblem, key: Array) -> SearchState[S]:
    """Return the search before its first generation.

    >>> import jax
    >>> from jaxgpu.evolution import multi, problems
    >>> search = jax.jit(init_search)(multi.NSGA2(pop_size=20), problems.zdt1(5), jax.random.key(0))
    >>> search.state.population.x.shape
    (20, 5)
    """
    if isinstance(problem, NoisyProblem):
        return SearchState(spec.init(key, problem.to_problem()), jnp.int32(0), problem.init())
    return SearchState(spec.init(key, problem), jnp.int32(0))


@explain_errors
def advance_search[S](
    spec: Algorithm[S],
    problem: AnyProblem,
    search: SearchState[S],
    key: Array,
    mesh: Mesh | None = None,
) -> SearchState[S]:
    """Advance the search by one generation: ask, evaluate, tell.

    mesh: devices that evaluate a share of the candidates each.

    >>> import jax
    >>> from jaxgpu.evolution import NoisyFunction, NoisyProblem, box, multi
    >>> spec, key = multi.NSGA2(pop_size=20), jax.random.key(0)
    >>> shaken = NoisyFunction(lambda x, key: jnp.stack([x[0], x[1]]) + jax.random.normal(key))
    >>> problem = NoisyProblem(box(0.0, 1.0, 2), shaken, 2)
    >>> start = jax.jit(lambda key: init_search(spec, problem, key))
    >>> both = jax.jit(lambda key: advance_search(spec, problem, start(key), key))
    >>> both(key).state.population.f.shape
    (20, 2)
    """
    x, f, violation, objective = _evaluate(spec, problem, search, key, mesh)
    failed = search.failed + jnp.sum(violation == jnp.inf, dtype=jnp.int32)
    return SearchState(spec.tell(search.state, x, f, violation), failed, objective)


@explain_errors
def step[S](
    spec: Algorithm[S], problem: Problem, state: S, key: Array, mesh: Mesh | None = None
) -> S:
    """Return the state of the algorithm after one generation: ask, evaluate, tell.

    mesh: devices that evaluate a share of the candidates each.

    >>> import jax
    >>> from jaxgpu.evolution import multi, problems
    >>> spec, problem, key = multi.NSGA2(pop_size=20), problems.zdt1(variables=5), jax.random.key(0)
    >>> state = jax.jit(step)(spec, problem, jax.jit(spec.init)(key, problem), key)
    >>> state.population.f.shape
    (20, 2)
    """
    if isinstance(problem, NoisyProblem):
        raise TypeError(
            "step: problem is a Stochastic, whose objective has a state too; call begin and "
            "generation, which carry both"
        )
    _check_algorithm("step", spec)
    try:
        x, f, violation, _ = _evaluate(spec, problem, SearchState(state, jnp.int32(0)), key, mesh)
        return spec.tell(state, x, f, violation)
    except (AttributeError, IndexError) as error:
        shapes = lambda tree: jax.tree.map(jnp.shape, tree)
        wanted = jax.eval_shape(spec.init, key, problem)
        if shapes(state) == shapes(wanted):
            raise
        kind = type(spec).__name__
        raise TypeError(
            f"step: state is not of {kind}; it must come from {kind}.init for this problem"
        ) from error


def _evaluate(
    spec: Algorithm,
    problem: AnyProblem,
    search: SearchState,
    key: Array,
    mesh: Mesh | None,
) -> tuple[Array, Array, Array, Any]:
    """Return the candidates of a generation, their values, and the next objective state.

    The barriers keep the compiler from computing a value a second time, within `tell`, with
    different rounding: the ranked values are those evaluated, on one device and on many.
    """
    if isinstance(problem, NoisyProblem):
        ask_key, draw_key = jax.random.split(key)
        x = lax.optimization_barrier(spec.ask(search.state, ask_key))
        given = problem, x, draw_key, search.objective
        values = problem.evaluate(*given[1:]) if mesh is None else _evaluate_draws(mesh, *given)
        return x, *lax.optimization_barrier(values)
    x = lax.optimization_barrier(spec.ask(search.state, key))
    values = problem.evaluate(x) if mesh is None else _evaluate_shards(problem, x, mesh)
    return x, *lax.optimization_barrier(values), search.objective


def _evaluate_draws(
    mesh: Mesh, problem: NoisyProblem, x: Array, key: Array, state: Any
) -> tuple[Array, Array, Any]:
    """Evaluate a share on each device; return values, violations and next state on all of them."""
    (axis,) = mesh.axis_names

    def share(problem: NoisyProblem, x: Array, key: Array, state: Any) -> tuple[Array, Array, Any]:
        return problem.evaluate(lax.optimization_barrier(x), key, state, axis)

    everywhere = PartitionSpec()
    return jax.shard_map(
        share, mesh=mesh, in_specs=everywhere, out_specs=everywhere, check_vma=False
    )(problem, x, key, state)


def _evaluate_shards(problem: Problem, x: Array, mesh: Mesh) -> tuple[Array, Array]:
    """Evaluate a share on each device; return values and violations of all candidates on each."""
    (axis,) = mesh.axis_names
    count = x.shape[0] // mesh.size

    def evaluate_shard(problem: Problem, x: Array) -> Array:
        # the barriers make the rounding the same as on one device
        x = lax.optimization_barrier(
            lax.dynamic_slice_in_dim(x, count * lax.axis_index(axis), count)
        )
        f, violation = lax.optimization_barrier(problem.evaluate(x))
        values = jnp.concatenate([f, violation[:, None]], 1)
        return lax.all_gather(values, axis, tiled=True)  # the only communication of a generation

    # candidates are replicated: if sharded, XLA would shard their computation and gather it
    everywhere = PartitionSpec()
    values = jax.shard_map(
        evaluate_shard, mesh=mesh, in_specs=everywhere, out_specs=everywhere, check_vma=False
    )(problem, x)
    return values[:, :-1], values[:, -1]


@explain_errors
def search[S](
    spec: Algorithm[S],
    problem: AnyProblem,
    key: Array,
    generations: int | Array,
    *,
    mesh: Mesh | None = None,
) -> SearchState[S]:
    """Run some generations and return the search: a pure function to `jit`, `vmap` and shard.

    Args:
        spec: the algorithm.
        problem: the problem to minimise.
        key: random key of the whole run.
        generations: number of generations.
        mesh: devices that evaluate a share of each generation; see `run`.

    >>> import jax
    >>> from jaxgpu.evolution import NoisyFunction, NoisyProblem, box, single
    >>> noisy = NoisyFunction(lambda x, key: jnp.sum(x * x) + jax.random.normal(key))
    >>> problem, spec = NoisyProblem(box(-5.0, 5.0, 4), noisy), single.SNES(8)
    >>> found = jax.jit(search)(spec, problem, jax.random.key(0), 200)
    >>> bool(jnp.max(jnp.abs(found.state.mean)) < 0.1)
    True
    """
    problem = check_inputs("search", spec, key, problem)
    mesh = check_mesh_size("search", spec, mesh)
    ranges.refuse("search: generations", generations, _GENERATIONS)
    return _run_search(spec, problem, key, generations, mesh)


def _run_search[S](
    spec: Algorithm[S],
    problem: AnyProblem,
    key: Array,
    generations: int | Array,
    mesh: Mesh | None,
) -> SearchState[S]:
    first, rest = jax.random.split(key)

    def advance(i: Array, search: SearchState[S]) -> SearchState[S]:
        return advance_search(spec, problem, search, jax.random.fold_in(rest, i), mesh)

    return lax.fori_loop(0, generations, advance, init_search(spec, problem, first))


@explain_errors
def evolve[S](
    spec: Algorithm[S],
    problem: AnyProblem,
    key: Array,
    generations: int | Array,
    *,
    mesh: Mesh | None = None,
) -> S:
    """Run some generations and return the state: a pure function to `jit`, `vmap` and shard.

    Seeds, hyper-parameters and bounds can all be batch axes:
    `jax.vmap(lambda key: evolve(spec, problem, key, 250))(jax.random.split(key, 100))`. With
    `jaxgpu.devices.mesh.map_shards` the batch is distributed over several devices.

    Args:
        spec: the algorithm.
        problem: the problem to minimise; for a `NoisyProblem` one, `search` also returns the
            state of the objective.
        key: random key of the whole run.
        generations: number of generations.
        mesh: devices that evaluate a share of each generation; see `run`.
    """
    problem = check_inputs("evolve", spec, key, problem)
    mesh = check_mesh_size("evolve", spec, mesh)
    ranges.refuse("evolve: generations", generations, _GENERATIONS)
    return _run_search(spec, problem, key, generations, mesh).state


@dataclass(frozen=True, repr=False)
class Evolution[S](Run[S]):
    """The state of an algorithm after a run, with its history and timing."""

    failed: int  # number of evaluations that gave nan, or an infinite violation
    objective: Any  # state of a `NoisyProblem` problem's objective; () for a `Problem`


@explain_errors
@on_host
def run[S](
    spec: Algorithm[S],
    problem: AnyProblem,
    key: Array,
    generations: int,
    *,
    measure: Callable[[S], Any] | None = None,
    until: Callable[[S], Any] | None = None,
    mesh: Mesh | None = None,
    out: str | Path | None = None,
    resume: Resume = False,
    keep: Keep = None,
) -> Evolution[S]:
    """Run `evolve` from the host, with progress, history, checkpoints and exact resumption.

    A second run with the same algorithm, function and shapes reuses the compiled program: the
    values of the spec and the bounds are operands of it.

    Args:
        measure: maps the state to the value recorded at the start and after each generation,
            stacked into the history [1 + generations, ...]; computed on the device. By default
            `progress`.
        until: maps the state to a bool; the run ends when it is true.
        mesh: devices that evaluate a share of each generation; their number must divide
            `spec.batch_size`. All else is replicated; only the values of a generation are sent.
            Results equal those of one device to rounding; as many devices resume bitwise
            identically.
        out: folder of checkpoints; for `resume` and `keep` see `jaxgpu.runs.run`.
    Returns: the last state (that of `evolve`), the history and the timing.

    >>> import jax
    >>> from jaxgpu.evolution import multi, problems
    >>> search = run(multi.NSGA2(pop_size=20), problems.zdt1(variables=5), jax.random.key(0), 10)
    >>> search.failed, search.history["f"].shape  # minimum of either objective, from the start on
    (0, (11, 2))
    """
    problem, mesh = check_inputs("run", spec, key, problem), check_mesh_size("run", spec, mesh)
    ranges.refuse("run: generations", generations, _GENERATIONS)
    if isinstance(problem, Problem):
        problem = replace(problem, function=find_equal(problem.function))
    first, rest = jax.random.split(key)
    start = call_fresh(_start_search, spec, first, problem)
    done = run_steps(
        partial(_step_search, spec, problem, mesh),
        start if mesh is None else replicate(start, mesh),
        int(generations),
        key=rest,
        measure=partial(_apply_to_algorithm, progress if measure is None else measure),
        until=None if until is None else partial(_apply_to_algorithm, until),
        out=out,
        resume=resume,
        keep=keep,
    )
    ended = done.state
    return Evolution(
        state=ended.state,
        history=done.history,
        timing=done.timing,
        failed=int(ended.failed),
        objective=ended.objective,
    )


# jitted for its cache; the compiled function has the names that are stored in run folders
@allocation.limit_memory
@jax.jit
def _start_search(spec: Algorithm, key: Array, problem: AnyProblem) -> SearchState:
    return init_search(spec, problem, key)


def _step_search(
    spec: Algorithm, problem: AnyProblem, mesh: Mesh | None, search: SearchState, key: Array
) -> SearchState:
    return advance_search(spec, problem, search, key, mesh)


def _apply_to_algorithm(f: Callable[[Any], Any], search: SearchState) -> Any:
    return f(search.state)


def progress(state: Any) -> dict[str, Array]:
    """Return the best objective and its violation so far; for a population, the minima.

    Returns:
        "f": [] the best objective, or [m] the minimum of each among the feasible members, or among
        the least violating ones if none is feasible; "violation": [] the minimum. Infinite before
        the first generation. Empty for a state with neither `best` nor `population`.
    """
    if hasattr(state, "best"):
        return {"f": state.best.f, "violation": state.best.violation}
    members = getattr(state, "population", None)
    if not isinstance(members, Population):
        return {}
    least = jnp.min(members.violation)
    counted = members.violation <= jnp.maximum(least, 0)
    f = jnp.min(jnp.where(counted[:, None], members.f, jnp.inf), axis=0)
    return {"f": f, "violation": least}
