"""Reinforcement learning whose whole loop stays on the device."""

from .environment import Checked, Environment, Step, checked, make, names, register
from .envs.classic.acrobot import Acrobot
from .envs.classic.cartpole import CartPole
from .envs.classic.mountain_car import MountainCar, MountainCarContinuous
from .envs.classic.pendulum import Pendulum
from .envs.matter import Matter
from .envs.surgical.centre import Centre
from .envs.surgical.compat import Compat
from .envs.surgical.needle import NeedlePick
from .envs.surgical.pegs import PegTransfer
from .envs.surgical.reach import Reach
from .envs.surgical.servo import Servo
from .envs.surgical.track import Track
from .learn import Learner, Remembering, Scores, evaluate, interquartile_mean, learn, train
from .learners.evolve import ES
from .learners.ppo import PPO
from .learners.pqn import PQN
from .learners.recurrent import RecurrentPPO
from .learners.sac import SAC
from .learners.shac import SHAC
from .spaces import Box, Discrete
from .vectorize import Outcome, Vector, vectorize

__all__ = [
    "Acrobot",
    "CartPole",
    "Centre",
    "Compat",
    "ES",
    "Matter",
    "MountainCar",
    "MountainCarContinuous",
    "NeedlePick",
    "PegTransfer",
    "Pendulum",
    "PPO",
    "PQN",
    "SAC",
    "SHAC",
    "Reach",
    "Servo",
    "Track",
    "Learner",
    "RecurrentPPO",
    "Remembering",
    "Scores",
    "evaluate",
    "interquartile_mean",
    "learn",
    "train",
    "Box",
    "Checked",
    "Discrete",
    "Environment",
    "Outcome",
    "Step",
    "Vector",
    "checked",
    "make",
    "names",
    "register",
    "vectorize",
]
