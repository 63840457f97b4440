"""Real-world engineering problems: the RE and CRE suites, with their published bounds.

Tanabe & Ishibuchi (2020), doi:10.1016/j.asoc.2020.106078; values are those of the authors' program.
The first digit of a number is the number of objectives, the second a counter: RE37 has three
objectives. If a design has constraints, RE makes their total violation the last objective; CRE
keeps it as the constraint.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.explanations import explain_errors
from jaxgpu.inputs.ranges import numbers

from ..problem import Box, Problem
from . import fitted_models, mechanics

_CAR = (0.5, 0.45, 0.5, 0.5, 0.875, 0.4, 0.4), (1.5, 1.35, 1.5, 1.5, 2.625, 1.2, 1.2)
_BEAM = (0.125, 0.1, 0.1, 0.125), (5.0, 10.0, 10.0, 5.0)
_BAR = 2**0.5

# name: design, lower and upper bounds
DESIGNS: dict[str, tuple[Callable[[Array], fitted_models.Design], tuple, tuple]] = {
    "RE21": (mechanics.four_bar_truss, (1.0, _BAR, _BAR, 1.0), (3.0,) * 4),
    "RE22": (mechanics.reinforced_beam, (0.2, 0.0, 0.0), (15.0, 20.0, 40.0)),
    "RE23": (mechanics.pressure_vessel, (1.0, 1.0, 10.0, 10.0), (100.0, 100.0, 200.0, 240.0)),
    "RE24": (mechanics.hatch_cover, (0.5, 0.5), (4.0, 50.0)),
    "RE25": (mechanics.coil_spring, (1.0, 0.6, 0.09), (70.0, 3.0, 0.5)),
    "RE31": (mechanics.two_bar_truss, (1e-5, 1e-5, 1.0), (100.0, 100.0, 3.0)),
    "RE32": (mechanics.welded_beam, *_BEAM),
    "RE33": (mechanics.disc_brake, (55.0, 75.0, 1000.0, 11.0), (80.0, 110.0, 3000.0, 20.0)),
    "RE34": (fitted_models.car_crash, (1.0,) * 5, (3.0,) * 5),
    "RE35": (
        mechanics.speed_reducer,
        (2.6, 0.7, 17.0, 7.3, 7.3, 2.9, 5.0),
        (3.6, 0.8, 28.0, 8.3, 8.3, 3.9, 5.5),
    ),
    "RE36": (mechanics.gear_train, (12.0,) * 4, (60.0,) * 4),
    "RE37": (fitted_models.rocket_injector, (0.0,) * 4, (1.0,) * 4),
    "RE41": (fitted_models.car_side_impact, *_CAR),
    "RE42": (
        fitted_models.ship,
        (150.0, 20.0, 13.0, 10.0, 14.0, 0.63),
        (274.32, 32.31, 25.0, 11.71, 18.0, 0.75),
    ),
    "RE61": (fitted_models.water, (0.01,) * 3, (0.45, 0.1, 0.1)),
}
CONSTRAINED = {
    "CRE21": "RE31",
    "CRE22": "RE32",
    "CRE23": "RE33",
    "CRE24": "RE35",
    "CRE25": "RE36",
    "CRE31": "RE41",
    "CRE32": "RE42",
    "CRE51": "RE61",
}
NAMES = (*DESIGNS, "RE91", *CONSTRAINED)


@explain_errors
def engineering(name: str) -> Problem:
    """Return a problem: RE21-25, RE31-37, RE41, RE42, RE61, RE91, CRE21-25, CRE31, CRE32, CRE51.

    The suite's program draws new material data at each evaluation of RE91; here they have their
    means. For other values see `car_cab`.

    >>> problem = engineering("RE41")
    >>> print(problem.objectives, problem.function(problem.box.lower).round(2))
    4 [15.58  4.43 13.09  9.49]
    """
    if name not in NAMES:
        raise ValueError(f"engineering: {name!r}; it must be one of {', '.join(NAMES)}")
    if name == "RE91":
        return car_cab((0.0,) * 4)
    if name in CONSTRAINED:
        return _problem(*DESIGNS[CONSTRAINED[name]], constrained=True)
    return _problem(*DESIGNS[name], constrained=False)


@explain_errors
def car_cab(noise: tuple[float, ...]) -> Problem:
    """Return RE91, nine objectives of a car's cab, for four samples of the standard normal.

    >>> problem = car_cab((0.0, 0.0, 0.0, 0.0))
    >>> problem.objectives, problem.evaluate(problem.box.lower[None])[0].shape
    (9, (1, 9))
    """
    draws = jnp.asarray(numbers("car_cab: noise", noise, (4,)), float)
    design = partial(fitted_models.car_cab, noise=draws)
    return _problem(design, *_CAR, constrained=False)


def _problem(
    design: Callable[[Array], fitted_models.Design], lower: tuple, upper: tuple, constrained: bool
) -> Problem:
    bounds = Box(jnp.asarray(lower, float), jnp.asarray(upper, float))
    sample = jax.eval_shape(design, bounds.upper)

    def function(x: Array) -> Array | tuple[Array, Array]:
        objectives, margins = design(x)
        lacking = [jnp.maximum(-margin, 0) for margin in margins]
        if constrained:
            return jnp.stack(objectives), sum(lacking[1:], lacking[0])
        return jnp.stack([*objectives, sum(lacking[1:], lacking[0])] if margins else objectives)

    return Problem(bounds, function, len(sample[0]) + (bool(sample[1]) and not constrained))
