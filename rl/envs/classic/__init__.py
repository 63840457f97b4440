"""Classic control: Gymnasium's tasks, step for step.

Each file is one task and can be read on its own; `pendulum` is the shortest. By name they are
`rl.make("cartpole")`, `"cartpole-masked"`, `"mountain-car"`, `"mountain-car-continuous"`,
`"acrobot"` and `"pendulum"`. `drawing` has their common rendering.
"""

from .acrobot import Acrobot
from .cartpole import CartPole
from .mountain_car import MountainCar, MountainCarContinuous
from .pendulum import Pendulum

__all__ = ["Acrobot", "CartPole", "MountainCar", "MountainCarContinuous", "Pendulum"]
