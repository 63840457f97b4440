"""Reinforcement learning whose whole loop stays on the device.

Reading order:

    environment   the protocol of an environment, and environments by name; `spaces`
    envs          classic, surgical and fluid tasks
    vector        many copies of an environment, begun anew where episodes end
    learners      PPO, RecurrentPPO, PQN, SAC, SHAC, ES
    loops         `learn`, pure; `train`, with checkpoints; `sweep`, of many seeds
    evaluation    complete episodes of a policy, statistics over runs
    plan          sequences of actions, without a policy
    pictures      films of the tasks;  adapters: other libraries;  logs: TensorBoard
"""

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
from .evaluation import Policy, RecurrentPolicy, Scores, evaluate, interquartile_mean
from .learners import ES, PPO, PQN, SAC, SHAC, RecurrentPPO
from .loops import Learner, Training, learn, sweep, train
from .spaces import Box, Discrete, Space
from .vector import Outcome, Vector, VectorState, vectorize

__all__ = [
    # environments
    "Environment",
    "Step",
    "Checked",
    "checked",
    "make",
    "names",
    "register",
    "Box",
    "Discrete",
    "Space",
    "Acrobot",
    "CartPole",
    "Centre",
    "Compat",
    "Matter",
    "MountainCar",
    "MountainCarContinuous",
    "NeedlePick",
    "PegTransfer",
    "Pendulum",
    "Reach",
    "Servo",
    "Track",
    # many at once
    "Outcome",
    "Vector",
    "VectorState",
    "vectorize",
    # learners
    "Learner",
    "ES",
    "PPO",
    "PQN",
    "RecurrentPPO",
    "SAC",
    "SHAC",
    # loops
    "Training",
    "learn",
    "sweep",
    "train",
    # evaluation
    "Policy",
    "RecurrentPolicy",
    "Scores",
    "evaluate",
    "interquartile_mean",
]
