"""Latte art: draw a stirrer through stripes of milk to reproduce a demonstrated image.

After FluidLab's LatteArtStir (Xian et al. 2023, arXiv:2303.02346): the stirrer moves in the surface
at a fixed height and all particles of both liquids count, l = mean |x - x*(t)|^2. There milk covers
the coffee; here milk is in stripes, which transverse strokes comb into feathers.
"""

from typing import Any

import numpy as np

from ...environment import register
from . import cup
from .matching import MatchGoal
from .task import MatterTask

STRIPE = 0.01  # m
START = (-0.028, 0.014)  # m from the axis
# A stroke forward and a stroke back, with a step down between.
DEMO = cup.stroke_actions((0.9, 0, 10), (0, -0.7, 5), (-0.9, 0, 10))


@register("matter/latte-art-stir")
def make_latte_art_stir(size: str = "small", **parameters: Any) -> MatterTask:
    """Make the task of combing stripes of milk in 1 s; `size` is "small" (2-D) or "full"."""
    milk = lambda x, y: np.floor((x + cup.RADIUS) / STRIPE) % 2 == 1
    scene, shared = cup.make_scene(size, START, milk)
    every = 8 if size == "full" else 1
    goal = MatchGoal(DEMO, cup.FRAME, bodies=(0, 1), every=every)
    return MatterTask(scene, goal, max_steps=len(DEMO), **shared, **parameters)
