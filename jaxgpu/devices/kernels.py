"""Pallas kernels: the only module that uses Pallas, whose interface is still unstable.

A kernel is attached to a primitive by platform (`jaxgpu.devices.primitive`): Mosaic GPU on NVIDIA
GPUs, Mosaic on TPUs. Both compile on hosts without that chip, and are interpreted on a CPU for
tests. Pallas is imported when the first kernel is built; a program for CPUs never imports it.

A program that contains kernels is exported with `jax.export.export(f, platforms=...,
disabled_checks=export_checks())`. A kernel is serialized in the format of one jaxlib, and the
exported program is valid for that jaxlib only.
"""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs import ranges
from jaxgpu.inputs.explanations import explain_errors

# threads per program on a GPU; arrays in its registers have a multiple of it
WARPGROUP = 128
_HOPPER_CAPABILITY = 9.0  # compute capability
# names of the custom calls of kernels in a compiled program
CALL_TARGETS = {"cuda": "mosaic_gpu_v2", "tpu": "tpu_custom_call"}
# target chip if none is present: its name, its cores, JAX's name of its platform
_TARGET_CHIPS = {"cuda": ("NVIDIA H100", 132, "gpu"), "tpu": ("TPU v5 lite", 1, "tpu")}


def export_checks() -> list[jax.export.DisabledSafetyCheck]:
    """Return the checks of `jax.export.export` that a program with kernels must disable.

    >>> len(export_checks())
    2
    """
    return [jax.export.DisabledSafetyCheck.custom_call(name) for name in CALL_TARGETS.values()]


def gpu_takes_kernels() -> bool:
    """Return True if the GPU is Hopper or newer, as Mosaic GPU requires, or if there is none.

    >>> gpu_takes_kernels()  # where there is no GPU, a program may be lowered for one
    True
    """
    if jax.default_backend() != "gpu":
        return True
    return float(getattr(jax.local_devices()[0], "compute_capability", 0)) >= _HOPPER_CAPABILITY


@explain_errors
def on_gpu(
    body: Callable[..., None],
    out: jax.ShapeDtypeStruct,
    grid: tuple[int, ...],
    names: tuple[str, ...],
    *,
    interpret: bool = False,
) -> Callable[..., Array]:
    """Return a function of arrays that runs `body(*inputs, output)` in each program of a grid.

    Args:
        body: a function of references to arrays in device memory; see `load_row` and
            `broadcast_like`.
        out: shape and dtype of the output array.
        grid: number of programs along each axis, of 128 threads each.
        names: of the axes; `jax.lax.axis_index(name)` is the index of the program.
        interpret: run on the CPU, slowly.

    >>> def add_one(x, out):
    ...     at = (jax.lax.axis_index("tile"),)
    ...     values = load_row(x, at)
    ...     out[at] = values + broadcast_like(jnp.float32(1.0), values)
    >>> kernel = on_gpu(
    ...     add_one, jax.ShapeDtypeStruct((2, 128), jnp.float32), (2,), ("tile",), interpret=True
    ... )
    >>> float(kernel(jnp.zeros((2, 128)))[1, 5])
    1.0
    """
    from jax.experimental.pallas import mosaic_gpu as plgpu

    how = plgpu.InterpretGPUParams() if interpret else None
    call = plgpu.kernel(body, out_type=out, grid=grid, grid_names=names, interpret=how)

    def run(*arrays: Array) -> Array:
        with contextlib.nullcontext() if interpret else _target_chip("cuda"):
            return call(*arrays)

    return run


def load_row(ref: Any, where: tuple[Any, ...]) -> Array:
    """Load a multiple of 128 values of a reference at `where`, distributed over the threads."""
    from jax.experimental.pallas import mosaic_gpu as plgpu

    at = ref.at[where]
    return plgpu.load(at, layout=_strided_layout(at.shape))


def broadcast_like(value: Array, like: Array) -> Array:
    """Broadcast a number to all threads, in the shape and layout of a `load_row`."""
    from jax.experimental.pallas import mosaic_gpu as plgpu

    return plgpu.layout_cast(jnp.broadcast_to(value, like.shape), _strided_layout(like.shape))


def window(start: Any, size: int) -> Any:
    """Return the indices of `size` rows or lanes from `start`, to index a reference.

    Raises:
        ValueError: a start below 0, or a size below 1.
    """
    ranges.numbers("window: start", start, (), whole=True, least=0)
    ranges.numbers("window: size", size, (), whole=True, least=1)
    from jax.experimental import pallas as pl

    return pl.ds(start, size)


def program_id(axis: int) -> Array:
    """Return the index of this program along an axis of the grid, on a TPU."""
    from jax.experimental import pallas as pl

    return pl.program_id(axis)


def run_when(condition: Any) -> Callable[[Callable[[], None]], None]:
    """Decorate a function that a kernel runs only if `condition` holds."""
    from jax.experimental import pallas as pl

    return pl.when(condition)


@explain_errors
def on_tpu(
    body: Callable[..., None],
    out: jax.ShapeDtypeStruct,
    grid: tuple[int, ...],
    blocks: Sequence[tuple[tuple[int, ...], Callable[..., tuple]]],
    scratch: Sequence[tuple[int, ...]] = (),
    *,
    interpret: bool = False,
) -> Callable[..., Array]:
    """Return a function of float32 arrays that runs a kernel for each program of a grid.

    The kernel is `body(*inputs, output, *scratch)`. The last axis of the grid runs in order, and
    `scratch` persists from one program to the next; the other axes run in any order.

    Args:
        body: a function of references to blocks.
        out: shape and dtype of the output array.
        grid: number of programs along each axis.
        blocks: for each input, then the output: the shape of a block, and its index as a function
            of the program's indices. The last two sizes are multiples of 8 and 128, or the array's.
        scratch: shapes of float32 scratch arrays.
        interpret: run on the CPU.

    >>> def sums(x, out, total):
    ...     zeros = jnp.zeros(total.shape, total.dtype)
    ...     run_when(program_id(0) == 0)(lambda: total.__setitem__(..., zeros))
    ...     total[...] += x[window(0, 8), window(0, 128)]
    ...     out[...] = total[...]
    >>> x = jnp.ones((24, 128))
    >>> add = on_tpu(
    ...     sums,
    ...     jax.ShapeDtypeStruct((8, 128), jnp.float32),
    ...     grid=(3,),
    ...     blocks=[((8, 128), lambda i: (i, 0)), ((8, 128), lambda i: (0, 0))],
    ...     scratch=[(8, 128)],
    ...     interpret=True,
    ... )
    >>> float(add(x)[0, 0])  # three blocks are added up
    3.0
    """
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    specs = [pl.BlockSpec(shape, index) for shape, index in blocks]
    order = ("parallel",) * (len(grid) - 1) + ("arbitrary",)
    call = pl.pallas_call(
        body,
        grid=grid,
        in_specs=specs[:-1],
        out_specs=specs[-1],
        out_shape=out,
        scratch_shapes=[pltpu.VMEM(shape, jnp.float32) for shape in scratch],
        compiler_params=pltpu.CompilerParams(dimension_semantics=order),
        interpret=interpret,
    )

    def run(*arrays: Array) -> Array:
        # with 64-bit types enabled, loops count in int64, which this compiler rejects
        with contextlib.nullcontext() if interpret else _target_chip("tpu"), jax.enable_x64(False):
            return call(*arrays)

    return run


def _strided_layout(shape: tuple[int, ...]) -> Any:
    from jax.experimental.pallas import mosaic_gpu as plgpu

    return plgpu.Layout.WG_STRIDED(shape, vec_size=1)


def _target_chip(platform: str) -> contextlib.AbstractContextManager:
    """Return a context that names the target chip of kernels, unless it is present."""
    if jax.default_backend() == {"cuda": "gpu"}.get(platform, platform):
        return contextlib.nullcontext()
    from jax._src.mesh import AbstractDevice

    chip = AbstractDevice(*_TARGET_CHIPS[platform])
    return jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((), (), abstract_device=chip))
