"""Sequences of actions, found by gradients or by sampling.

loss = lambda actions, frames=None: cost(env, state, actions, frames)
done = plan(loss, env.guess(), Descent(optax.adam(0.05)), 30, key=key)     # CEM(), MPPI(), ...
done.state.best.actions
"""

from jaxgpu.rl.plan.best import Best
from jaxgpu.rl.plan.contest import begun, planners, race, returns
from jaxgpu.rl.plan.descent import Descent
from jaxgpu.rl.plan.expansion import Expansion
from jaxgpu.rl.plan.fading import faded
from jaxgpu.rl.plan.loop import plan
from jaxgpu.rl.plan.objective import cost, play
from jaxgpu.rl.plan.sampling import CEM, MPPI
from jaxgpu.rl.plan.sharing import shared

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
