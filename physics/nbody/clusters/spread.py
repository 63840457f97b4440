"""A cluster over several devices: each has all stars, and a share of the tracers.

What happens to stars depends on stars alone, so that every device brings them to the same bits,
whichever blocks its own tracers ask for. What is counted differs: while a run lasts a state holds
the counts of each device, [D, ...], and `summed` makes one of them wherever it is looked at.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.sharding import Mesh, PartitionSpec

from jaxgpu.devices.mesh import flat
from jaxgpu.devices.precision import reassociated

from .. import shares


def begun(spec: Any, state: Any, mesh: Any) -> tuple[Any, Callable[[Any], Any]]:
    """The state of `spec`, a `Cluster`, at the start, spread over a mesh; and a step of it.

    Raises:
        ValueError: no tracers, or a mesh that does not divide them.
        TypeError: no mesh.
    """
    mesh = flat("evolve: mesh", mesh)
    places, count = partition(state, *mesh.axis_names), state.gone.gone.shape[0]
    state = counted_apart(state, mesh)
    return shares.placed("evolve", state, places, mesh, count), partial(step, mesh, spec)


def counted_apart(state: Any, mesh: Mesh) -> Any:
    """The state of one device with the counts of each, [D, ...]; those so far are the first's."""
    later = lambda q: jnp.concatenate([q[None], jnp.zeros((mesh.size - 1, *q.shape), q.dtype)])
    return _with_counts(state, later)


def seen(look: Callable[[Any], Any], state: Any) -> Any:
    """`look` at a spread state, with counts as one device has them."""
    return look(summed(state))


def summed(state: Any) -> Any:
    """The spread state with one count of each kind.

    Of blocks and of floored steps that is the most of any device, since all of them have those of
    the stars; of steps the stars' once, and the tracers' of all devices.
    """
    bodies = state.bodies
    stars, tracers = jnp.max(bodies.steps[:, 0]), jnp.sum(bodies.steps[:, 1])
    steps = jnp.stack([stars, tracers])
    most = {name: jnp.max(getattr(bodies, name)) for name in ("blocks", "floored")}
    return replace(state, bodies=replace(bodies, steps=steps, **most))


@reassociated
def step(mesh: Mesh, spec: Any, state: Any) -> Any:
    """The spread state an interval later: each device steps its own, and nothing crosses."""

    def advance(spec: Any, state: Any) -> Any:
        return _with_counts(spec.step(_with_counts(state, lambda q: q[0])), lambda q: q[None])

    return shares.of_shares(advance, mesh, partition(state, *mesh.axis_names))(spec, state)


def partition(state: Any, axis: str) -> Any:
    """Where each array of a state lies: tracers and counts are spread, the rest is everywhere."""
    everywhere = jax.tree.map(lambda _: PartitionSpec(), state)
    last = lambda q: PartitionSpec(*[None] * (jnp.ndim(q) - 1), axis)  # the tracers' axis
    tracers, gone = jax.tree.map(last, (state.bodies.tracers, state.gone))
    bodies = _with_counts(everywhere, lambda _: PartitionSpec(axis)).bodies
    return replace(everywhere, bodies=replace(bodies, tracers=tracers), gone=gone)


def _with_counts(state: Any, change: Callable[[Array], Any]) -> Any:
    """The state with its counts changed: of blocks, of steps, and of those floored."""
    bodies = state.bodies
    counts = {name: change(getattr(bodies, name)) for name in ("blocks", "steps", "floored")}
    return replace(state, bodies=replace(bodies, **counts))
