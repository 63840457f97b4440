"""Lengths of shortest paths of the robot over the floor of a house.

A path connects the centers of free cells, each with its eight neighbours; a diagonal step requires
both adjacent cells free, so that the robot cuts no corner. Each round relaxes all cells in parallel
to the minimum over their neighbours' lengths plus the step, until nothing changes (Bellman 1958).
There are as many rounds as the longest path has steps. Many houses and goals are one program.
"""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu.inputs import ranges
from jaxgpu.inputs.explanations import explain_errors

from .house import CELL

ROUNDS = 4  # relaxations between two tests for convergence


@explain_errors
def distances(free: Array, goal: Array) -> Array:
    """Return the shortest path length from the center of each cell to a set of cells, [C, C] m.

    Infinite where no path exists, and everywhere if no cell of the goal is free.

    Args:
        free: [C, C] bool, cells where the robot may stand: `House.nav`.
        goal: [C, C] bool, target cells: `cells_near`.

    >>> free = jnp.ones((4, 4), bool).at[1, :3].set(False)
    >>> goal = jnp.zeros((4, 4), bool).at[0, 0].set(True)
    >>> round(float(distances(free, goal)[3, 0]), 3)
    0.841
    """
    for name, cells in (("free", free), ("goal", goal)):
        if getattr(cells, "dtype", None) != jnp.bool_ or cells.ndim != 2:
            raise TypeError(f"distances: {name} must be an array [C, C] of bool; give House.nav")
    if free.shape != goal.shape:
        raise ValueError(
            f"distances: goal has shape {list(goal.shape)} and free {list(free.shape)}; they must "
            "have the same shape"
        )
    return _distances(free, goal)


@explain_errors
def cells_near(free: Array, place: Array, reach: Array | float) -> Array:
    """Return the free cells [C, C] whose center is within `reach` of a position in the plane.

    Args:
        free: [C, C] bool, cells where the robot may stand: `House.nav`.
        place: [2] or [3] x and y, m, and an ignored z.
        reach: m.

    >>> int(cells_near(jnp.ones((4, 4), bool), jnp.array([0.05, 0.05]), 0.11).sum())
    3
    """
    if getattr(free, "dtype", None) != jnp.bool_ or free.ndim != 2:
        raise TypeError("cells_near: free must be an array [C, C] of bool; give House.nav")
    ranges.numbers("cells_near: reach", reach, (), least=0, unit="m")
    place = jnp.asarray(ranges.numbers("cells_near: place", place, unit="m"))
    if place.shape not in ((2,), (3,)):
        raise ValueError(
            f"cells_near: place has shape {list(place.shape)}; it must be [2] or [3], x and y first"
        )
    place = place if jnp.issubdtype(place.dtype, jnp.floating) else place.astype(float)
    middles = ((jnp.arange(n).astype(place.dtype) + 0.5) * CELL for n in free.shape)
    x, y = (middle - place[i] for i, middle in enumerate(middles))
    return free & (x[:, None] ** 2 + y[None] ** 2 <= reach**2)


@jax.jit
def _distances(free: Array, goal: Array) -> Array:
    return shortest_paths(free, jnp.where(free & goal, 0.0, jnp.inf), CELL)


def shortest_paths(free: Array, start: Array, width: float) -> Array:
    """Return the shortest path length from each cell to the start values, in 2-D or 3-D.

    A step goes to a neighbour across a face, an edge or a corner, if all cells between are free.
    Infinite where no path exists.

    Args:
        free: [...] bool, with two or three axes.
        start: [...] m, initial lengths, infinite where no path starts.
        width: m, of a cell.

    >>> start = jnp.full((3, 3, 3), jnp.inf).at[0, 0, 0].set(0.0)
    >>> lengths = shortest_paths(jnp.ones((3, 3, 3), bool), start, 0.1)
    >>> round(float(lengths[2, 2, 2]), 3)  # across corners
    0.346
    """
    steps = [step for step in itertools.product((-1, 0, 1), repeat=free.ndim) if any(step)]
    # Cost of a step into each cell from its neighbour, infinite where the step is blocked.
    costs = []
    for step in steps:
        between = itertools.product(*({0, i} for i in step))
        clear = functools.reduce(jnp.logical_and, (_shift_cells(free, at) for at in between))
        costs.append(jnp.where(clear, width * np.linalg.norm(step), jnp.inf))

    def relax(field: Array) -> Array:
        for _ in range(ROUNDS):
            ways = [_shift_cells(field, step) + cost for step, cost in zip(steps, costs)]
            for way in ways:
                field = jnp.minimum(field, way)
        return field

    def body(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        field, _ = carry
        new = relax(field)
        return new, jnp.any(new < field)

    return lax.while_loop(lambda carry: carry[1], body, (start, jnp.array(True)))[0]


def _shift_cells(cells: Array, step: tuple[int, ...]) -> Array:
    """Shift cells to the neighbour at a step; outside they are infinite, or not free."""
    padded = jnp.pad(cells, 1, constant_values=False if cells.dtype == jnp.bool_ else jnp.inf)
    return padded[tuple(slice(1 + i, 1 + i + n) for i, n in zip(step, cells.shape))]
