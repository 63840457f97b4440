"""Reinforcement learning whose whole loop stays on the device."""

from jaxgpu.rl.environment import Environment, Step, make, names, register, reset, step
from jaxgpu.rl.envs.acrobot import Acrobot
from jaxgpu.rl.envs.cartpole import CartPole
from jaxgpu.rl.envs.centre import Centre
from jaxgpu.rl.envs.compat import Compat
from jaxgpu.rl.envs.matter import Matter
from jaxgpu.rl.envs.mountain_car import MountainCar, MountainCarContinuous
from jaxgpu.rl.envs.needle import NeedlePick
from jaxgpu.rl.envs.pegs import PegTransfer
from jaxgpu.rl.envs.pendulum import Pendulum
from jaxgpu.rl.envs.reach import Reach
from jaxgpu.rl.envs.servo import Servo
from jaxgpu.rl.envs.track import Track
from jaxgpu.rl.evolve import ES
from jaxgpu.rl.learn import (
    Learner,
    Remembering,
    Scores,
    evaluate,
    interquartile_mean,
    learn,
    train,
)
from jaxgpu.rl.ppo import PPO
from jaxgpu.rl.pqn import PQN
from jaxgpu.rl.recurrent import RecurrentPPO
from jaxgpu.rl.sac import SAC
from jaxgpu.rl.shac import SHAC
from jaxgpu.rl.spaces import Box, Discrete
from jaxgpu.rl.vectorize import Outcome, Vector, vectorize

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
    "Discrete",
    "Environment",
    "Outcome",
    "Step",
    "Vector",
    "make",
    "names",
    "register",
    "reset",
    "step",
    "vectorize",
]
