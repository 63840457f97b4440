"""Reinforcement learning whose whole loop stays on the device.

Reading order:

    environment   the environment protocol and the registry of environments; `spaces`
    envs          classic, locomotion, surgical, tactile, fluid and rearrangement tasks
    vector        vectorized environments with automatic resets
    learners      PPO, also recurrent or kickstarted, PQN, SAC, SHAC, DAgger, ES; `PolicyObjective`
    loops         `learn`, a pure function; `train`, with checkpoints; `sweep`, over many seeds
    devices       data-parallel training on several devices; `collectives`, its collective
    operations policies      learned policies, saved, loaded and exported
    evaluation    scores of complete episodes, statistics over runs
    plan          trajectory optimization, without a policy
    animation     videos of the tasks;  adapters: other libraries;  logs: TensorBoard
"""

from .environment import CheckedEnv, Environment, Step, add_checks, make, names, register
from .envs import classic
from .envs.classic import *
from .envs.locomotion import (
    Ant,
    HalfCheetah,
    Hopper,
    Humanoid,
    HumanoidStandup,
    InvertedDoublePendulum,
    Pusher,
    Reacher,
    Swimmer,
    Walker2d,
)
from .envs.matter import MatterTask
from .envs.rearrange.tasks import MobilePick, Navigate, Place, Rearrange
from .envs.surgical import (
    Center,
    DynamicReach,
    NeedlePick,
    PegTransfer,
    Reach,
    SurgicalGymReach,
    Track,
)
from .envs.touch import NutOnBolt, PegInsertion, PegPlacement
from .evaluation import Scores, evaluate, interquartile_mean
from .learners import (
    CNN,
    ES,
    MLP,
    PPO,
    PQN,
    SAC,
    SHAC,
    DAgger,
    KickstartedPPO,
    PolicyObjective,
    RecurrentPPO,
    ResNet,
)
from .loops import Learner, Training, learn, sweep, train
from .policies import LearnedPolicy, Policy, RecurrentPolicy, load_policy
from .spaces import Box, Discrete, Space
from .vector import Outcome, Vector, VectorState, vectorize

__all__ = [
    # environments
    "Environment",
    "Step",
    "CheckedEnv",
    "add_checks",
    "make",
    "names",
    "register",
    "Box",
    "Discrete",
    "Space",
    "Ant",
    "Center",
    "DynamicReach",
    "HalfCheetah",
    "Hopper",
    "Humanoid",
    "HumanoidStandup",
    "InvertedDoublePendulum",
    "MatterTask",
    "MobilePick",
    "Navigate",
    "NeedlePick",
    "NutOnBolt",
    "PegInsertion",
    "PegPlacement",
    "PegTransfer",
    "Place",
    "Pusher",
    "Reach",
    "Reacher",
    "Rearrange",
    "SurgicalGymReach",
    "Swimmer",
    "Track",
    "Walker2d",
    # vectorized environments
    "Outcome",
    "Vector",
    "VectorState",
    "vectorize",
    # learners
    "Learner",
    "DAgger",
    "ES",
    "KickstartedPPO",
    "PPO",
    "PQN",
    "PolicyObjective",
    "RecurrentPPO",
    "SAC",
    "SHAC",
    # networks of the learners
    "CNN",
    "MLP",
    "ResNet",
    # loops
    "Training",
    "learn",
    "sweep",
    "train",
    # policies
    "LearnedPolicy",
    "Policy",
    "RecurrentPolicy",
    "load_policy",
    # evaluation
    "Scores",
    "evaluate",
    "interquartile_mean",
]
__all__ += classic.__all__
