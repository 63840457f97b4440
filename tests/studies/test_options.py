"""Options of studies: invalid values raise with one sentence."""

import importlib
from dataclasses import fields

import numpy as np
import pytest

from jaxgpu.studies import studies

WRONG = {
    "classic_control": [
        ({"seeds": 2}, "Options.seeds=2; it must be a whole number of at least 3"),
        ({"share": 0.0}, "Options.share=0; it must be a finite number of at least 0.01"),
        ({"only": "chess"}, "only: no row has 'chess' in its name; the rows are cartpole, PPO"),
    ],
    "cluster_tracers": [
        ({"stars": 5}, "Options.stars=5; it must be a whole number of at least 32"),
        ({"seeds": 0}, "Options.seeds=0; it must be a whole number of at least 1"),
        ({"radii": (1.0, 1.0, 2.0)}, "must be three different ones, positive, in pc"),
        ({"heaviest": 0.5}, "heaviest=0.5; it must be .* of at most 150, in solar masses"),
    ],
    "directions": [
        ({"images": 30}, "images: 30; must be a multiple of 20"),
        ({"images": 40, "components": 41}, "components: 41; must be 1 to 40"),
        ({"steps": 0}, "Options.steps=0; it must be a whole number of at least 1"),
    ],
    "double_pendulum": [
        ({"pendulums": 3}, "pendulums=3; it must be a whole number of at least 50")
    ],
    "escapers": [
        ({"seeds": 0}, "Options.seeds=0; it must be a whole number of at least 1"),
        ({"radii": (1.0, -2.0)}, "Options.radii"),
        ({"eta": np.nan}, "Options.eta=nan"),
        ({"radii": ()}, "radii: .*at least one"),
    ],
    "five_ways": [
        ({"episodes": 40}, "episodes: 40; must be a multiple of 32"),
        ({"size": "huge"}, "size: 'huge'; must be coarse, small or full"),
        ({"seeds": 1}, "Options.seeds=1; it must be a whole number of at least 2"),
    ],
    "galaxy_from_stream": [
        ({"mocks": 1}, "Options.mocks=1; it must be a whole number of at least 2"),
        ({"stars": 10}, "Options.stars=10; it must be a whole number of at least 50"),
        ({"seed": -1}, "Options.seed=-1"),
    ],
    "latte_art": [
        ({"calls": 12}, "calls: 12; must be a multiple of 8"),
        (
            {"planners": 1},
            "Options.planners=1; it must be a whole number of at least 2 and of at most 3",
        ),
        ({"rate": 0.0}, "Options.rate=0; it must be a finite number above 0 and of at most 1"),
        ({"size": "huge"}, "size: 'huge'; must be small or full"),
    ],
    "locomotion": [({"only": "dog"}, "only: no row has 'dog' in its name")],
    "mobile_pick": [({"homes": 0}, "homes"), ({"seeds": 2}, "seeds")],
    "nozzle_shapes": [
        ({"pop_size": 7}, "pop_size: 7; must be an even number"),
        ({"seeds": 1}, "Options.seeds=1; it must be a whole number of at least 2"),
    ],
    "pareto_fronts": [
        ({"generations": 52}, "generations: 52; must be a multiple of 5"),
        ({"generations": 255}, "it must be a whole number of at least 50 and of at most 250"),
        ({"seeds": 2}, "Options.seeds=2; it must be a whole number of at least 3"),
    ],
    "peg_by_touch": [
        ({"augmentation": 1.5}, "augmentation"),
        ({"seeds": 2}, "seeds"),
        ({"copies": 0}, "copies"),
        ({"steps": 0}, "steps"),
    ],
    "peg_insertion": [({"episodes": 0}, "episodes"), ({"seeds": 2}, "seeds")],
    "pour": [
        ({"calls": 12}, "calls: 12; must be a multiple of 8"),
        ({"seeds": 0}, "Options.seeds=0; it must be a whole number of at least 1"),
        ({"size": "huge"}, "size: 'huge'; must be small or full"),
    ],
    "robot_front": [
        ({"members": 8, "generations": 5}, "leave PPO and CMA-ES no step; give 21 or more"),
        ({"members": 10}, "members: 10; must be a multiple of 4"),
    ],
    "solar_system": [
        ({"years": 20}, "years: 20; must be 10, 50 or 100"),
        ({"tracers": 0}, "Options.tracers=0; it must be a whole number of at least 1"),
        ({"eccentricity": 0.5}, "eccentricity=0.5; it must be .* of at least 0 and of at most 0.4"),
        ({"inclination": -1.0}, "inclination=-1; it must be .* of at most 90, in degrees"),
    ],
    "surgical_grasp": [
        ({"task": "suture"}, "task='suture'; it must be one of"),
        ({"seeds": 2}, "seeds"),
    ],
    "surgical_reach": [
        ({"steps": 5}, "Options.steps=5; it must be a whole number of at least 100000"),
        ({"seeds": 2}, "Options.seeds=2; it must be a whole number of at least 3"),
    ],
}


@pytest.mark.parametrize("study", WRONG)
def test_wrong_options_get_a_sentence(study):
    module = importlib.import_module(f"jaxgpu.studies.{study}")
    for option, sentence in WRONG[study]:
        with pytest.raises(ValueError, match=sentence):
            module.Options(**option)


def test_ranges_are_refused_under_the_name_of_the_study():
    for study in studies():
        name = "seed" if "seed" in [field.name for field in fields(study.options)] else "seeds"
        with pytest.raises(ValueError, match=f"^{study.name}: Options.{name}=-1; it must be"):
            study.options(**{name: -1})
