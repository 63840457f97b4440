"""The protocol of every algorithm, `init`, `ask`, `tell`, and the loops above it.

A spec says what to run, a state where the run is. An algorithm is a class of specs: a subclass of
`Algorithm`, made by `@pytree`, with three methods. Anyone can add one, as this random walk that
keeps a step where it is better:

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
from jaxgpu.devices.mesh import flat, replicate
from jaxgpu.inputs import arguments, ranges
from jaxgpu.inputs.doors import explained, on_host
from jaxgpu.inputs.fields import pytree
from jaxgpu.runs import Keep, Resume, Run
from jaxgpu.runs.equal_functions import find_equal
from jaxgpu.runs.fresh_calls import call_fresh
from jaxgpu.runs.loop import run as run_steps

from .population import Population
from .problem import Problem, floats, ready, sound
from .stochastic import Stochastic, stochastic

_GENERATIONS = ranges.Range(least=0, whole=True, one=True)


class Algorithm[S](ABC):
    """What to run; subclasses are made by `@pytree`, and S is the type of their states."""

    # candidates of every `ask`, an int: a field of some algorithms, a property of others
    batch_size: Any

    @abstractmethod
    def init(self, key: Array, problem: Problem) -> S:
        """The state before the first generation, in which no candidate has been evaluated yet.

        Raises:
            TypeError: the key is no key, the problem none.
            ValueError: a number of the spec, or a bound, is outside its range.
        """

    @abstractmethod
    def ask(self, state: S, key: Array) -> Array:
        """The next candidates, [N, D]."""

    @abstractmethod
    def tell(self, state: S, x: Array, f: Array, violation: Array | None = None) -> S:
        """The state after the candidates x [N, D], as asked for, had these values.

        Args:
            f: objectives [N, m], or [N] of one objective; NaN where an evaluation failed.
            violation: [N] total constraint violations; None where there are no constraints.
        """


class PopulationAlgorithm[S](Algorithm[S]):
    """An algorithm whose `ask` gives as many candidates as its population has members."""

    pop_size: Any  # a field
    even = False  # whether the population must be even

    def __post_init__(self) -> None:
        check_pop_size(type(self).__name__, self.pop_size, self.even)

    @property
    def batch_size(self) -> int:
        return self.pop_size


def checked[P: Problem | Stochastic](name: str, spec: Any, key: Any, problem: P) -> P:
    """The problem as arrays, after the spec, the key and it have been held against their ranges.

    Values that are being traced are passed over.

    Args:
        name: of the function that was called, which begins the sentence.
    """
    _refuse_no_algorithm(name, spec)
    ranges.check(type(spec).__name__, spec)
    arguments.key(f"{name}: key", key)
    if isinstance(problem, Stochastic):
        return stochastic(name, problem)
    return ready(name, problem)


def _refuse_no_algorithm(name: str, spec: Any) -> None:
    if not isinstance(spec, Algorithm):
        kind = type(spec).__name__
        raise TypeError(f"{name}: {kind} is no algorithm; pass a spec, a subclass of Algorithm")


def divided(name: str, spec: Algorithm, mesh: Any) -> Mesh | None:
    """The mesh, which must divide the candidates of a generation; None for one device.

    Raises:
        ValueError: a mesh that does not, or of several axes.
        TypeError: no mesh.
    """
    if mesh is None:
        return None
    mesh, count = flat(f"{name}: mesh", mesh), int(spec.batch_size)
    if count % mesh.size:
        raise ValueError(
            f"{name}: mesh of {mesh.size} devices for {type(spec).__name__}, which evaluates "
            f"{count} candidates a generation; their number must be a multiple of the devices; "
            "give an algorithm of such a population, or use fewer devices"
        )
    return mesh


def told(spec: Algorithm, state: Any, x: Any, f: Any, violation: Any) -> tuple[Array, ...]:
    """What `tell` is given, as arrays: x [N, D], f [N, m] and violation [N], without NaN.

    Raises:
        ValueError: another shape than that of what `ask` gave.
        TypeError: no real numbers.
    """
    x, f = floats("tell: x", x), floats("tell: f", f)
    shape = spec.batch_size, state.box.lower.shape[0]
    if x.shape != shape:
        raise ValueError(f"tell: x has shape {list(x.shape)}; ask gave {list(shape)}")
    f = f[:, None] if f.ndim == 1 else f
    m = state.population.f.shape[1] if hasattr(state, "population") else 1
    if f.shape != (shape[0], m):
        raise ValueError(f"tell: f has shape {list(f.shape)}; it must be {[shape[0], m]}")
    violation = jnp.zeros(shape[0], x.dtype) if violation is None else violation
    violation = floats("tell: violation", violation)
    if violation.shape != shape[:1]:
        raise ValueError(
            f"tell: violation has shape {list(violation.shape)}; it must be {[shape[0]]}, of each "
            "candidate the total"
        )
    return x, *sound(f.astype(x.dtype), violation.astype(x.dtype))


def check_pop_size(name: str, pop_size: Any, even: bool = False) -> None:
    """Refuse a whole number that is no size of a population: at least 4, and even if so asked.

    What is no whole number is left to the range of the field, which is looked at in `init`.
    """
    if isinstance(pop_size, int) and (pop_size < 4 or (even and pop_size % 2)):
        want = "even, at least 4" if even else "at least 4"
        raise ValueError(f"{name}: pop_size={pop_size}; it must be {want}")


@pytree
class Search[S]:
    """Where the search of an algorithm is, with what belongs to the problem."""

    state: S  # of the algorithm
    failed: Array  # [] evaluations so far that gave nan
    objective: Any = ()  # state of a `Stochastic` problem's objective; of a `Problem` nothing


@explained
def begin[S](spec: Algorithm[S], problem: Problem | Stochastic, key: Array) -> Search[S]:
    """The search before its first generation.

    >>> import jax
    >>> from jaxgpu.evolution import multi, problems
    >>> search = jax.jit(begin)(multi.NSGA2(pop_size=20), problems.zdt1(5), jax.random.key(0))
    >>> search.state.population.x.shape
    (20, 5)
    """
    if isinstance(problem, Stochastic):
        return Search(spec.init(key, problem.plain()), jnp.int32(0), problem.init())
    return Search(spec.init(key, problem), jnp.int32(0))


@explained
def generation[S](
    spec: Algorithm[S],
    problem: Problem | Stochastic,
    search: Search[S],
    key: Array,
    mesh: Mesh | None = None,
) -> Search[S]:
    """The search after one more generation: ask, evaluate, tell.

    mesh: devices that evaluate a share of the candidates each.

    >>> import jax
    >>> from jaxgpu.evolution import Drawn, Stochastic, box, multi
    >>> spec, key = multi.NSGA2(pop_size=20), jax.random.key(0)
    >>> shaken = Drawn(lambda x, key: jnp.stack([x[0], x[1]]) + jax.random.normal(key))
    >>> problem = Stochastic(box(0.0, 1.0, 2), shaken, 2)
    >>> both = jax.jit(lambda key: generation(spec, problem, begin(spec, problem, key), key))
    >>> both(key).state.population.f.shape
    (20, 2)
    """
    x, f, violation, objective = _evaluated(spec, problem, search, key, mesh)
    failed = search.failed + jnp.sum(violation == jnp.inf, dtype=jnp.int32)
    return Search(spec.tell(search.state, x, f, violation), failed, objective)


@explained
def step[S](
    spec: Algorithm[S], problem: Problem, state: S, key: Array, mesh: Mesh | None = None
) -> S:
    """The state after one generation: ask, evaluate, tell.

    mesh: devices that evaluate a share of the candidates each.

    >>> import jax
    >>> from jaxgpu.evolution import multi, problems
    >>> spec, problem, key = multi.NSGA2(pop_size=20), problems.zdt1(variables=5), jax.random.key(0)
    >>> state = jax.jit(step)(spec, problem, jax.jit(spec.init)(key, problem), key)
    >>> state.population.f.shape
    (20, 2)
    """
    if isinstance(problem, Stochastic):
        raise TypeError(
            "step: problem is a Stochastic, whose objective has a state too; call begin and "
            "generation, which carry both"
        )
    _refuse_no_algorithm("step", spec)
    try:
        x, f, violation, _ = _evaluated(spec, problem, Search(state, jnp.int32(0)), key, mesh)
        return spec.tell(state, x, f, violation)
    except (AttributeError, IndexError) as error:
        shapes = lambda tree: jax.tree.map(jnp.shape, tree)
        wanted = jax.eval_shape(spec.init, key, problem)
        if shapes(state) == shapes(wanted):
            raise
        kind = type(spec).__name__
        raise TypeError(
            f"step: state is none of {kind}; it must be what {kind}.init gives for this problem"
        ) from error


def _evaluated(
    spec: Algorithm,
    problem: Problem | Stochastic,
    search: Search,
    key: Array,
    mesh: Mesh | None,
) -> tuple[Array, Array, Array, Any]:
    """The candidates of a generation, their values, and the next state of the objective.

    The barriers keep the compiler from computing a value twice, within `tell` again with another
    rounding: what is ranked is what was evaluated, on one device and on many.
    """
    if isinstance(problem, Stochastic):
        ask_key, draw_key = jax.random.split(key)
        x = lax.optimization_barrier(spec.ask(search.state, ask_key))
        given = problem, x, draw_key, search.objective
        values = problem.evaluate(*given[1:]) if mesh is None else _drawn_by_shares(mesh, *given)
        return x, *lax.optimization_barrier(values)
    x = lax.optimization_barrier(spec.ask(search.state, key))
    values = problem.evaluate(x) if mesh is None else _evaluated_by_shares(problem, x, mesh)
    return x, *lax.optimization_barrier(values), search.objective


def _drawn_by_shares(
    mesh: Mesh, problem: Stochastic, x: Array, key: Array, state: Any
) -> tuple[Array, Array, Any]:
    """Values, violations and the next state on every device, each of which computed a share."""
    (axis,) = mesh.axis_names

    def share(problem: Stochastic, x: Array, key: Array, state: Any) -> tuple[Array, Array, Any]:
        return problem.evaluate(lax.optimization_barrier(x), key, state, axis)

    everywhere = PartitionSpec()
    return jax.shard_map(
        share, mesh=mesh, in_specs=everywhere, out_specs=everywhere, check_vma=False
    )(problem, x, key, state)


def _evaluated_by_shares(problem: Problem, x: Array, mesh: Mesh) -> tuple[Array, Array]:
    """Values and violations of all candidates on every device, each of which computed a share."""
    (axis,) = mesh.axis_names
    count = x.shape[0] // mesh.size

    def share(problem: Problem, x: Array) -> Array:
        # the barriers: these values are rounded as on one device, whatever is done with them
        x = lax.optimization_barrier(
            lax.dynamic_slice_in_dim(x, count * lax.axis_index(axis), count)
        )
        f, violation = lax.optimization_barrier(problem.evaluate(x))
        values = jnp.concatenate([f, violation[:, None]], 1)
        return lax.all_gather(values, axis, tiled=True)  # all that crosses in a generation

    # the candidates go in whole: were they spread, XLA would spread what made them, and gather it
    everywhere = PartitionSpec()
    values = jax.shard_map(
        share, mesh=mesh, in_specs=everywhere, out_specs=everywhere, check_vma=False
    )(problem, x)
    return values[:, :-1], values[:, -1]


@explained
def search[S](
    spec: Algorithm[S],
    problem: Problem | Stochastic,
    key: Array,
    generations: int | Array,
    *,
    mesh: Mesh | None = None,
) -> Search[S]:
    """The search after some generations, as one pure function: `jit`, `vmap` and shard it.

    Args:
        spec: the algorithm.
        problem: what is minimised.
        key: of all random numbers.
        generations: how many.
        mesh: devices that evaluate a share of each generation; see `run`.

    >>> import jax
    >>> from jaxgpu.evolution import Drawn, Stochastic, box, single
    >>> noisy = Drawn(lambda x, key: jnp.sum(x * x) + jax.random.normal(key))
    >>> problem, spec = Stochastic(box(-5.0, 5.0, 4), noisy), single.SNES(8)
    >>> found = jax.jit(search)(spec, problem, jax.random.key(0), 200)
    >>> bool(jnp.max(jnp.abs(found.state.mean)) < 0.1)
    True
    """
    problem, mesh = checked("search", spec, key, problem), divided("search", spec, mesh)
    ranges.refuse("search: generations", generations, _GENERATIONS)
    return _searched(spec, problem, key, generations, mesh)


def _searched[S](
    spec: Algorithm[S],
    problem: Problem | Stochastic,
    key: Array,
    generations: int | Array,
    mesh: Mesh | None,
) -> Search[S]:
    first, rest = jax.random.split(key)

    def one(i: Array, search: Search[S]) -> Search[S]:
        return generation(spec, problem, search, jax.random.fold_in(rest, i), mesh)

    return lax.fori_loop(0, generations, one, begin(spec, problem, first))


@explained
def evolve[S](
    spec: Algorithm[S],
    problem: Problem | Stochastic,
    key: Array,
    generations: int | Array,
    *,
    mesh: Mesh | None = None,
) -> S:
    """The state after some generations, as one pure function: `jit`, `vmap` and shard it.

    Seeds, hyper-parameters and bounds are all batch axes:
    `jax.vmap(lambda key: evolve(spec, problem, key, 250))(jax.random.split(key, 100))`; and
    `jaxgpu.devices.mesh.over` of that gives each of several devices its share of them.

    Args:
        spec: the algorithm.
        problem: what is minimised; of a `Stochastic` one `search` returns the state of the
            objective too.
        key: of all random numbers.
        generations: how many.
        mesh: devices that evaluate a share of each generation; see `run`.
    """
    problem, mesh = checked("evolve", spec, key, problem), divided("evolve", spec, mesh)
    ranges.refuse("evolve: generations", generations, _GENERATIONS)
    return _searched(spec, problem, key, generations, mesh).state


@dataclass(frozen=True, repr=False)
class Evolution[S](Run[S]):
    """The state of an algorithm after a run, with its history and timing."""

    failed: int  # evaluations that gave nan, or an infinite violation
    objective: Any  # state of a `Stochastic` problem's objective; () of a `Problem`


@explained
@on_host
def run[S](
    spec: Algorithm[S],
    problem: Problem | Stochastic,
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
    """As `evolve`, from the host: with progress, history, checkpoints and exact resumption.

    A second run with the same algorithm, function and shapes compiles nothing: the numbers of the
    spec and the bounds are operands of its program.

    Args:
        measure: of the state at the start and after each generation, stacked into the history
            [1 + generations, ...]; computed on the device. By default `progress`.
        until: of the state, a truth value; the run ends where it holds.
        mesh: devices that evaluate a share of each generation; their number must divide
            `spec.batch_size`. All else is done by each of them, and what crosses is the values of a
            generation. Results are those of one device to rounding; as many resume to the bit.
        out: folder of checkpoints; `resume` and `keep` are as `jaxgpu.runs.run` says.
    Returns: the last state (that of `evolve`), the history and the timing.

    >>> import jax
    >>> from jaxgpu.evolution import multi, problems
    >>> search = run(multi.NSGA2(pop_size=20), problems.zdt1(variables=5), jax.random.key(0), 10)
    >>> search.failed, search.history["f"].shape  # the least of either objective, from the start on
    (0, (11, 2))
    """
    problem, mesh = checked("run", spec, key, problem), divided("run", spec, mesh)
    ranges.refuse("run: generations", generations, _GENERATIONS)
    if isinstance(problem, Problem):
        problem = replace(problem, function=find_equal(problem.function))
    first, rest = jax.random.split(key)
    start = call_fresh(_start, spec, first, problem)
    done = run_steps(
        partial(_generation, spec, problem, mesh),
        start if mesh is None else replicate(start, mesh),
        int(generations),
        key=rest,
        measure=partial(_of_algorithm, progress if measure is None else measure),
        until=None if until is None else partial(_of_algorithm, until),
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


# jitted for its cache; the function that is compiled has the names that a folder tells of
@allocation.bounded
@jax.jit
def _start(spec: Algorithm, key: Array, problem: Problem | Stochastic) -> Search:
    return begin(spec, problem, key)


def _generation(
    spec: Algorithm,
    problem: Problem | Stochastic,
    mesh: Mesh | None,
    search: Search,
    key: Array,
) -> Search:
    return generation(spec, problem, search, key, mesh)


def _of_algorithm(f: Callable[[Any], Any], search: Search) -> Any:
    return f(search.state)


def progress(state: Any) -> dict[str, Array]:
    """The best objective and its violation so far; of a population, the least of its members.

    Returns:
        "f": [] the best objective, or [m] the least value of each among the feasible members, or
        the least violating where none is feasible; "violation": [] the least. Infinite before the
        first generation. Of a state that keeps neither `best` nor `population`, nothing.
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
