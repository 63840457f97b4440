"""Processes forked from a server that has imported everything, to start without imports."""

import contextlib
import multiprocessing
import pkgutil
from collections.abc import Callable
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import jax
import pytest
from tqdm import tqdm

from jaxgpu import studies

ROOT = Path(__file__).parents[2]
# none of these modules starts a backend of JAX, after which forking is unsafe
MODULES = ["matplotlib.pyplot", "jaxgpu.cli"]
MODULES += [f"jaxgpu.studies.{module.name}" for module in pkgutil.iter_modules(studies.__path__)]


def fork_process(cache: Path, function: Callable[..., int], *arguments) -> ForkServerProcess:
    """Start a process that calls the function and exits with its return code.

    It stores every program that it compiles in the folder `cache`, for later processes.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(MODULES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{ROOT}:{ROOT / 'tests' / 'helpers'}")
        process = context.Process(target=run_and_exit, args=(cache, function, *arguments))
        process.start()
    return process


def run_and_exit(cache, function, *arguments):
    jax.config.update("jax_compilation_cache_dir", str(cache))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    # tqdm's own lock would stay in the system if this process is killed
    tqdm.set_lock(contextlib.nullcontext())
    raise SystemExit(function(*arguments))
