"""A galaxy's potential from two stellar streams, by gradients through every orbit."""

from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp

from jaxgpu.devices import memory
from jaxgpu.devices.precision import with_float64
from jaxgpu.inputs.fields import size
from jaxgpu.report import Report
from jaxgpu.runs.loop import run
from jaxgpu.studies import SeededOptions

from .findings import make_report
from .fit import LevenbergMarquardt
from .inference import Inference
from .likelihood import Pool
from .posterior import Sampler
from .spray import sobol
from .streams import Errors, two_streams

COMPILED = 1_200_000_000  # bytes that XLA needs to compile the study, 1.1e9 measured


@dataclass(frozen=True)
class Options(SeededOptions):
    """Options of the study."""

    mocks: int = size(default=20, least=2, most=100_000)
    """Galaxies sampled from the prior ranges, each with two streams."""
    stars: int = size(default=100, least=50, most=100_000)
    """Observed stars per stream."""
    model: int = size(default=1024, least=256, most=1_000_000)
    """Stars per stream in the model."""
    simulations: int = size(default=48, least=16, most=256)
    """Simulations per posterior and round; there are four rounds."""
    turns: int = size(default=10, least=1, most=1000)
    """Iterations per round of a fit."""
    steps: int = size(default=1000, least=100, most=100_000)
    """Time steps of a star's orbit in the model; the mocks have twice as many."""


@with_float64
def study(options: Options, out: Path, resume: bool) -> Report:
    """Make the mocks, fit all of them, and compare the posteriors with the truth."""
    memory.check_size("galaxy-from-stream: to compile it", COMPILED)
    errors = Errors()
    spec = Inference(
        streams=two_streams(options.steps, errors),
        fine=two_streams(2 * options.steps, errors),
        fits=LevenbergMarquardt(Pool(each=options.stars), turns=options.turns),
        sampler=Sampler(simulations=options.simulations),
        points=jnp.asarray(sobol(options.model)),
        few=min(512, options.model),
    )
    key = jax.random.key(options.seed)
    begun = spec.init(options.mocks)
    done = run(spec.step, begun, options.mocks, key=key, chunk=1, out=out, resume=resume)
    return make_report(options, spec, done)
