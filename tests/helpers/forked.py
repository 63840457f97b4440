"""Processes forked from one that has imported everything: their start costs no import."""

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
# none of these starts a backend of JAX, after which no process may be forked
MODULES = ["matplotlib.pyplot", "jaxgpu.cli"]
MODULES += [f"jaxgpu.studies.{module.name}" for module in pkgutil.iter_modules(studies.__path__)]


def forked(cache: Path, function: Callable[..., int], *arguments) -> ForkServerProcess:
    """A process that calls the function and exits with the code that it returns.

    It keeps every program that it compiles in the folder `cache`, for the processes after it.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(MODULES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{ROOT}:{ROOT / 'tests' / 'helpers'}")
        process = context.Process(target=called, args=(cache, function, *arguments))
        process.start()
    return process


def called(cache, function, *arguments):
    jax.config.update("jax_compilation_cache_dir", str(cache))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    # no lock of tqdm's own, which a process that is killed would leave to the system
    tqdm.set_lock(contextlib.nullcontext())
    raise SystemExit(function(*arguments))
