"""API cases of `jaxgpu.evolution.single`: every numeric field of every spec, at `init`."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from api_cases import ApiCase

from jaxgpu.evolution import single
from jaxgpu.evolution.problem import Problem, box

BOWL = Problem(box(-1.0, 1.0, 3), lambda x: jnp.sum(x * x, keepdims=True))
# values that each spec accepts although they are invalid by default
RIGHT = {
    "CMAES": ("start: zero",),
    "Restarts": ("start: zero", "tolerance: zero", "doublings: zero"),
    "XNES": ("scale: zero",),
    "SNES": ("scale: zero",),
    "OpenES": ("learn_sigma: zero",),
    "LSHADE": ("archive: zero",),
    "PSO": ("inertia: zero", "inertia: negative", "attraction: zero"),
    "CSO": ("social: zero",),
}
GIVEN = {"pop_size": 8, "batch_size": 8, "evaluations": 500}


def spec_case(kind):
    """Return the case of a spec made of plain numbers and its first candidates."""

    def call(**numbers):
        spec = kind(**numbers)
        state = spec.init(jax.random.key(0), BOWL)
        return spec.ask(state, jax.random.key(1))

    fields = dataclasses.fields(kind)
    good = {f.name: GIVEN.get(f.name, f.default) for f in fields}
    words = tuple(f.name for f in fields if isinstance(good[f.name], str | bool))
    name = kind.__name__
    host = "makes a start in NumPy, once" if kind is single.LSHADE else ""
    return ApiCase(
        f"evolution.single.{name}",
        call,
        good,
        RIGHT.get(name, ()),
        free=words,
        host=host,
        alike=f"evolution.{name}",
    )


KINDS = (
    single.CMAES,
    single.CSO,
    single.LMMAES,
    single.LSHADE,
    single.OpenES,
    single.PSO,
    single.Restarts,
    single.SNES,
    single.SepCMAES,
    single.XNES,
)

CASES = [spec_case(kind) for kind in KINDS]
CASES += [
    ApiCase("evolution.single.default_pop_size", single.default_pop_size, {"dimension": 5}),
    ApiCase(
        "evolution.single.pgpe",
        lambda **numbers: single.pgpe(**numbers).init(jax.random.key(0), BOWL).mean,
        {"pop_size": 8, "sigma": np.float32(0.1), "rate": np.float32(0.01)},
    ),
]
