"""The programs that are spread over eight devices: what must cross between them, and how often."""

from dataclasses import replace
from typing import Any

import jax
from jax.sharding import Mesh

from benchmarks.reach.program import Program, Spread
from benchmarks.reach.programs import block
from jaxgpu import mesh as meshes
from jaxgpu.physics import continuum
from jaxgpu.physics.continuum import devices, engine
from jaxgpu.physics.continuum.grid.shared import Slab

COUNT = 8


def _slabs(n: int, mesh: Mesh) -> Spread:
    """A step on slabs, without what hands particles on once in some sixteen steps."""
    spec = block(continuum.NeoHookean(2e4), n)
    start = devices.shard_state(spec, meshes.devices(COUNT))
    places = jax.tree.map(lambda leaf: leaf.sharding.spec, start)
    (name,) = mesh.axis_names

    def step(shares: Any) -> Any:
        slab = Slab.of(spec.grid, shares.partition.cut, name, shares.cuts)
        return replace(shares, state=engine.step(spec, shares.state, 0, slab))

    f = jax.shard_map(step, mesh=mesh, in_specs=(places,), out_specs=places, check_vma=False)
    return f, lambda: (start,), (places,)


_EIGHT: dict[str, Any] = {"make": None, "chips": ("h100",), "devices": COUNT}
SPREAD = (Program("matter on slabs, a step", small=1 << 16, full=1 << 20, spread=_slabs, **_EIGHT),)
