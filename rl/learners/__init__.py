"""Learners: specs with `init`, `update`, `policy`, and `act`, which that policy calls.

Reading order: `ppo`, which is the plainest use of what the learners by gradients share, `training`
(sizes, state), `schedule`, `normaliser`, `networks` and the `encoders` before them, `advantage` and
`optimiser`; then `recurrent` (PPO with a memory), `pqn`, `sac` with its `replay`,
`shac`; `kickstart` and `dagger`, which learn from a `teacher`; `evolved` stands apart, whose
`es` searches by the objective of `neuroevolution`.
"""

from .dagger import DAgger
from .encoders import CNN, ResNet
from .evolved import ES, Policies
from .kickstart import KickstartedPPO
from .networks import MLP
from .ppo import PPO
from .pqn import PQN
from .recurrent import RecurrentPPO
from .sac import SAC
from .shac import SHAC
from .training import Rollouts, TrainState

__all__ = [
    "CNN",
    "DAgger",
    "ES",
    "KickstartedPPO",
    "MLP",
    "PPO",
    "PQN",
    "Policies",
    "RecurrentPPO",
    "ResNet",
    "Rollouts",
    "SAC",
    "SHAC",
    "TrainState",
]
