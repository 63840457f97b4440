"""Learners: specs with `init`, `update` and `policy`.

Reading order: `ppo`, which is the plainest use of what the learners by gradients share, `training`
(sizes, state), `schedule`, `normaliser`, `networks`, `advantage` and `optimiser`; then `recurrent`
(PPO with a memory), `pqn`, `sac` with its `replay`, `shac`; `es` stands apart, on the
objective of `policies`.
"""

from .es import ES
from .policies import Policies
from .ppo import PPO
from .pqn import PQN
from .recurrent import RecurrentPPO
from .sac import SAC
from .shac import SHAC
from .training import Rollouts, TrainState

__all__ = [
    "ES",
    "PPO",
    "PQN",
    "Policies",
    "RecurrentPPO",
    "Rollouts",
    "SAC",
    "SHAC",
    "TrainState",
]
