"""Reinforcement learning whose whole loop stays on the device."""

from .environment import Checked, Environment, Step, checked, make, names, register
from .envs.classic import Acrobot, CartPole, MountainCar, MountainCarContinuous, Pendulum
from .envs.matter import Matter
from .envs.surgical import (
    Centre,
    DynamicReach,
    NeedlePick,
    PegTransfer,
    Reach,
    SurgicalGymReach,
    Track,
)
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
    "SurgicalGymReach",
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
    "DynamicReach",
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
