"""Every learner at its smallest, and a task for it."""

from jaxgpu import rl

TINY = {"horizon": 4, "epochs": 1, "minibatches": 1}
LEARNERS = {
    "PPO": ("pendulum", rl.PPO(copies=2, hidden=(4,), **TINY)),
    "PPO, scaled": ("pendulum", rl.PPO(copies=2, level=True, adaptive=True, **TINY)),
    "RecurrentPPO": ("cartpole-masked", rl.RecurrentPPO(rl.PPO(copies=2, **TINY), width=4)),
    "SAC": ("pendulum", rl.SAC(copies=2, gradients=1, batch=2, capacity=5, hidden=(4,))),
    "PQN": ("acrobot", rl.PQN(copies=2, hidden=(4,), **TINY)),
    "SHAC": ("pendulum", rl.SHAC(copies=2, horizon=3, passes=1, hidden=(4,))),
    "ES": ("cartpole", rl.ES(limit=8)),
}
