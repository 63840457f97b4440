"""Many small systems in parallel, each with individual adaptive Gauss-Radau steps (order 15).

Systems fill the vector registers as `lanes`. A lane whose system has reached its end time stores it
and loads the next one from the queue, so that no lane waits for the slowest system.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.sharding import PartitionSpec

from jaxgpu.inputs import ranges
from jaxgpu.inputs.calls import defer_check
from jaxgpu.inputs.fields import number, pytree, size

from .. import validation
from .lanes import Lanes, expand_mask, init_lanes, is_finished, step

_TURNS = 8  # steps between two checks of the queue


@pytree
class Systems:
    """State of M systems of N bodies, with their step counts; G = 1."""

    x: Array  # [M, N, 3] position
    v: Array  # [M, N, 3] velocity
    m: Array  # [M, N] mass; 0 for a tracer
    steps: Array  # [M] int32: integration steps accepted so far
    unfinished: Array  # [M] bool: out of steps, nan, or negative dt; x and v are then invalid


@pytree
class Ensemble:
    """Settings of the integration, and the time that a step of all systems covers.

    >>> x = jnp.zeros((10, 2, 3)).at[:, 1, 0].set(1.0)  # ten pairs, on circles
    >>> v = jnp.zeros((10, 2, 3)).at[:, :, 1].set(jnp.array([[-0.5, 0.5]]) * 2**0.5)
    >>> spec = Ensemble(dt=2 * jnp.pi / 2**0.5)
    >>> end = jax.jit(spec.step)(spec.init(x, v, jnp.ones((10, 2))))
    >>> end.x.shape, bool(jnp.abs(end.x - x).max() < 1e-4)
    ((10, 2, 3), True)
    """

    dt: Array | float = number(least=0)  # [] or [M] time that a step covers
    tolerance: Array | float = number(default=1e-4, above=0)  # [] highest-order term / pull
    convergence: Array | float = number(default=1e-8, above=0)  # [] last change / acceleration
    most: Array | int = number(default=100_000, least=1, unit="steps")  # [] maximum tries
    sweeps: int = size(default=4, least=1)  # sweeps over the nodes per integration step
    lanes: int = size(default=32, least=1)  # systems advanced together; they should fit the cache

    def init(self, x: Array, v: Array, m: Array) -> Systems:
        """Return the state for positions and velocities [M, N, 3] and masses [M, N].

        Raises:
            ValueError: inconsistent shapes, values not finite or out of range, two bodies of a
                system at one position, a negative dt or mass, two floating types.
        """
        name = "Ensemble.init"
        ranges.check(name, self)
        x, v = validation.check_vectors(f"{name}: x", x), validation.check_vectors(f"{name}: v", v)
        m = validation.check_numbers(f"{name}: m", m, least=0)
        if x.ndim != 3 or x.shape[1] == 0 or v.shape != x.shape or m.shape != x.shape[:2]:
            shapes = f"x {list(x.shape)}, v {list(v.shape)}, m {list(m.shape)}"
            raise ValueError(
                f"{name}: {shapes}; must be twice [M, N, 3] and [M, N], at least one body"
            )
        count = x.shape[0]
        if jnp.shape(self.dt) not in ((), (1,), (count,)):
            raise ValueError(
                f"{name}: dt has shape {list(jnp.shape(self.dt))}; it must be [] or [{count}]"
            )
        x, v, m = validation.one_precision(name, x=x, v=v, m=m)
        defer_check(lambda x, m: _refuse_meetings(name, np.asarray(x), np.asarray(m)), x, m)
        none = jnp.zeros(count, jnp.int32)
        return Systems(x=x, v=v, m=m, steps=none, unfinished=none.astype(bool))

    def step(self, state: Systems) -> Systems:
        """Advance all systems by `dt`, each with its individual steps.

        An integration step of a system costs 1 + 7 sweeps evaluations of N (N - 1) / 2 pairs. Each
        pair is compiled separately: 3 s for three bodies, 10 s for eight. Memory O(M). Supports
        forward-mode differentiation. Under `jax.vmap` the lanes of all batches wait for each other:
        use one larger ensemble instead.
        """
        return _advance(self, state) if state.x.shape[0] else state

    def partition(self, state: Systems, axis: str) -> Systems:
        """Return the placement of `state` on a mesh: systems over `axis`, with a queue per device.

        Raises:
            ValueError: one `dt` per system, since the values of a spec are replicated on all
                devices.
        """
        if jnp.ndim(self.dt):
            raise ValueError(
                f"Ensemble.partition: dt has shape {list(jnp.shape(self.dt))}; over several "
                "devices it must be one number for all systems"
            )
        return jax.tree.map(lambda _: PartitionSpec(axis), state)


def energy(systems: Systems) -> Array:
    """Return the total energy [M] of each system."""
    x, v, m = jnp.moveaxis(systems.x, 0, -1), jnp.moveaxis(systems.v, 0, -1), systems.m.T
    total = jnp.sum(m * jnp.sum(v * v, 1), 0) / 2
    for i in range(m.shape[0]):
        for j in range(i):
            d = x[i] - x[j]
            total = total - m[i] * m[j] / jnp.sqrt(jnp.sum(d * d, 0))
    return total


@pytree
class _SystemColumns:
    """Systems with components first and systems along the vector registers."""

    x: Array  # [N, 3, M]
    v: Array  # [N, 3, M]
    m: Array  # [N, M]
    dt: Array  # [M]


@pytree
class _FinishedSystems:
    """Final states of the systems that have left the lanes."""

    x: Array  # [N, 3, M]
    v: Array  # [N, 3, M]
    steps: Array  # [M] int32
    unfinished: Array  # [M] bool


def _refuse_meetings(name: str, x: np.ndarray, m: np.ndarray) -> None:
    for i in range(x.shape[1]):
        for j in range(i):
            met = (x[:, i] == x[:, j]).all(1) & (m[:, i] + m[:, j] > 0)
            if met.any():
                raise ValueError(
                    f"{name}: bodies {j} and {i} of system {int(np.argmax(met))} are at the same "
                    "position; move one, or merge them"
                )


@jax.jit
def _advance(spec: Ensemble, state: Systems) -> Systems:
    count = state.x.shape[0]
    systems = _SystemColumns(
        x=jnp.moveaxis(state.x, 0, -1),
        v=jnp.moveaxis(state.v, 0, -1),
        m=state.m.T,
        dt=jnp.broadcast_to(jnp.asarray(spec.dt, state.x.dtype), (count,)),
    )
    width = min(spec.lanes, count)
    none = jnp.zeros(count, jnp.int32)
    out = _FinishedSystems(x=systems.x, v=systems.v, steps=none, unfinished=none.astype(bool))
    lanes = _load_systems(systems, jnp.arange(width, dtype=jnp.int32))

    def is_running(carry: tuple[Lanes, _FinishedSystems, Array]) -> Array:
        return jnp.any(carry[0].owner < count)

    def advance_lanes(
        carry: tuple[Lanes, _FinishedSystems, Array],
    ) -> tuple[Lanes, _FinishedSystems, Array]:
        lanes, out, queued = carry
        lanes = lax.fori_loop(0, _TURNS, lambda _, lanes: step(spec, lanes), lanes)
        return lax.cond(
            jnp.any(is_finished(spec, lanes) & (lanes.owner < count)),
            lambda: _swap_finished(spec, systems, lanes, out, queued),
            lambda: (lanes, out, queued),
        )

    out = lax.while_loop(is_running, advance_lanes, (lanes, out, jnp.int32(width)))[1]
    return replace(
        state,
        x=jnp.moveaxis(out.x, -1, 0),
        v=jnp.moveaxis(out.v, -1, 0),
        steps=state.steps + out.steps,
        unfinished=state.unfinished | out.unfinished,
    )


def _swap_finished(
    spec: Ensemble, systems: _SystemColumns, lanes: Lanes, out: _FinishedSystems, queued: Array
) -> tuple[Lanes, _FinishedSystems, Array]:
    """Store the systems that have finished and load the waiting ones."""
    count = systems.dt.shape[0]
    free = is_finished(spec, lanes)
    # the owner of an idle lane is `count`, an index that is dropped, so nothing is stored twice
    place = jnp.where(free, lanes.owner, count)
    put = lambda column, new: column.at[..., place].set(new, mode="drop")
    late = ~(lanes.t == lanes.span)  # a negative or nan span is never reached
    out = _FinishedSystems(
        x=put(out.x, lanes.x),
        v=put(out.v, lanes.v),
        steps=put(out.steps, lanes.steps),
        unfinished=put(out.unfinished, late),
    )
    following = queued + jnp.cumsum(free, dtype=jnp.int32) - 1
    fresh = _load_systems(systems, jnp.where(free, jnp.minimum(following, count), count))
    lanes = jax.tree.map(lambda new, old: jnp.where(expand_mask(free, new), new, old), fresh, lanes)
    return lanes, out, jnp.minimum(queued + jnp.sum(free, dtype=jnp.int32), count)


def _load_systems(systems: _SystemColumns, owner: Array) -> Lanes:
    """Return lanes with the systems `owner` [W] at their start; idle lanes repeat the last one."""
    taken = jax.tree.map(lambda q: jnp.take(q, owner, axis=-1, mode="clip"), systems)
    return init_lanes(taken.x, taken.v, taken.m, taken.dt, owner)
