"""Sequences of actions, found by gradients or by sampling.

loss = lambda actions, frames=None: cost(env, state, actions, frames)
done = plan(loss, env.guess(), Descent(optax.adam(0.05)), 30, key=key)     # CEM(), MPPI(), ...
done.state.best.actions
"""

from .best import Best
from .contest import begun, planners, race, returns
from .descent import Descent
from .expansion import Expansion
from .fading import faded
from .loop import plan
from .objective import cost, play
from .sampling import CEM, MPPI
from .sharing import shared

__all__ = [
    "Best",
    "CEM",
    "Descent",
    "Expansion",
    "MPPI",
    "begun",
    "cost",
    "faded",
    "plan",
    "planners",
    "play",
    "race",
    "returns",
    "shared",
]
