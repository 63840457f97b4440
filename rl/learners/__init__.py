"""Learners: specs with `init`, `update`, `policy`, and `act`, which the learned policy calls.

Reading order: `ppo`, the simplest learner by gradients; the modules that these learners share,
`training` (sizes, state), `schedule`, `normalizer`, `networks` with the `encoders` before them,
`advantage` and `optimizer`; then `recurrent` (PPO with a GRU), `pqn`, `sac` with its `replay` and
`shac`; `kickstart` and `dagger`, which imitate a `teacher`. `evolved` is separate: its `es`
optimizes the objective of `neuroevolution` by evolution strategies.
"""

from .dagger import DAgger
from .encoders import CNN, ResNet
from .evolved import ES, PolicyObjective
from .kickstart import KickstartedPPO
from .networks import MLP
from .ppo import PPO
from .pqn import PQN
from .recurrent import RecurrentPPO
from .sac import SAC
from .shac import SHAC
from .training import RolloutLearner, TrainState

__all__ = [
    "CNN",
    "DAgger",
    "ES",
    "KickstartedPPO",
    "MLP",
    "PPO",
    "PQN",
    "PolicyObjective",
    "RecurrentPPO",
    "ResNet",
    "RolloutLearner",
    "SAC",
    "SHAC",
    "TrainState",
]
