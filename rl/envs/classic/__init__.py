"""Classic control: gymnasium's tasks, step for step.

Each file is one task, to be read on its own; `pendulum` is the shortest. By name they are
`rl.make("cartpole")`, `"cartpole-masked"`, `"mountain-car"`, `"mountain-car-continuous"`,
`"acrobot"` and `"pendulum"`. `drawing` has what their pictures share.
"""

from .acrobot import Acrobot
from .cartpole import CartPole
from .mountain_car import MountainCar, MountainCarContinuous
from .pendulum import Pendulum

__all__ = ["Acrobot", "CartPole", "MountainCar", "MountainCarContinuous", "Pendulum"]
