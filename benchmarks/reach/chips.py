"""Chips that need not be present: devices to compile for, with their makers' specifications.

The plugin of a target is in a separate folder, which `make reach` puts first on PYTHONPATH: the
CUDA plugin registers itself wherever it can be imported, so the tests must not find it. One process
compiles for one chip.
"""

import os
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Chip:
    """Peak rates of a chip as published by its maker, and the assumed time of a launch."""

    bandwidth: float  # bytes/s of its memory
    single: float  # operations/s in float32, without the matrix units
    double: float  # operations/s in float64
    launch: float = 2.5e-6  # s

    def model(self, launches: float, roofline: float) -> float:
        """Return the modelled seconds of a call: of its launches, or the roofline if longer."""
        return max(self.launch * launches, roofline)

    def roofline(self, moved: float, operations: float, wide: bool) -> float:
        """Return the minimum seconds: the bytes, or the operations if they take longer."""
        return max(moved / self.bandwidth, operations / (self.double if wide else self.single))


# a float64 operation of a TPU takes about twenty operations on pairs of float32
CHIPS = {
    "h100": Chip(bandwidth=3.35e12, single=67e12, double=33.5e12),
    "h200": Chip(bandwidth=4.8e12, single=67e12, double=33.5e12),
    "v5e": Chip(bandwidth=8.2e11, single=6.1e12, double=3e11, launch=1e-6),
}
_KINDS = {"H100": "h100", "H200": "h200", "v5 lite": "v5e"}  # substrings of `device_kind`

PLATFORMS = {"h100": "cuda", "v5e": "tpu"}

# without these the plugins search for their hardware and for each other's locks
_ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",
    "JAX_NUM_CPU_DEVICES": "8",  # the initial states of sharded programs are on these
    "JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_WORKER_ID": "0",
    # no figure depends on instruction selection, which takes a third of the time
    "XLA_FLAGS": "--xla_backend_optimization_level=1 --xla_gpu_autotune_level=0",
}

# An H100 SXM5, as `GpuTargetConfigProto` of XLA. CUB's sorts cannot be built without a card, so no
# version of CUB is given, and a sort counts as several kernels that a card would not launch.
_H100 = """
gpu_device_info {
  name: "NVIDIA H100 80GB HBM3" device_vendor: "NVIDIA Corporation"
  cuda_compute_capability { major: 9 feature_extension: ACCELERATED_FEATURES }
  core_count: 132 fpus_per_core: 128 clock_rate_ghz: 1.98
  threads_per_warp: 32 threads_per_block_limit: 1024 threads_per_core_limit: 2048
  thread_dim_limit_x: 1024 thread_dim_limit_y: 1024 thread_dim_limit_z: 64
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  shared_memory_per_block: 49152 shared_memory_per_block_optin: 232448
  shared_memory_per_core: 233472 registers_per_block_limit: 65536 registers_per_core_limit: 65536
  l2_cache_size: 52428800 device_memory_size: 84942979072 memory_bandwidth: 3352320000000
  device_address_bits: 64
  driver_version: "13.0.0" runtime_version: "13.0.0" compile_time_toolkit_version: "13.0.0"
  dnn_version: "9.10.0"
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 10 patch: 0 }
device_description_str: "NVIDIA H100 80GB HBM3"
"""


def find_chip(kind: str) -> Chip | None:
    """Return the chip of a device of this kind, or None if its specifications are unknown.

    >>> find_chip("NVIDIA H100 80GB HBM3").bandwidth, find_chip("cpu")
    (3350000000000.0, None)
    """
    return next((CHIPS[name] for word, name in _KINDS.items() if word in kind), None)


def prepare() -> None:
    """Set the environment that the plugins read; call it before JAX is imported."""
    os.environ.update(_ENVIRONMENT)


def devices(chip: str, count: int = 1) -> list[Any]:
    """Return devices of this kind that can only be compiled for.

    Raises:
        SystemExit: the plugin of the chip's platform is not installed.
    """
    from jax.experimental import topologies

    shape = f"1x1x{count}"
    try:
        if chip == "h100":
            described = topologies.get_topology_desc(
                shape, platform="cuda", target_config=_H100, topology=shape
            )
        else:
            described = topologies.get_topology_desc("v5e:2x2", platform="tpu")
    except (RuntimeError, ValueError, NotImplementedError) as error:
        raise SystemExit(
            f"reach: the plugin of {PLATFORMS[chip]} is not on PYTHONPATH; run make reach ({error})"
        ) from None
    return described.devices[:count]
