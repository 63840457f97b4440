"""Every learner at minimal size, and a task for it."""

import jax

from jaxgpu import rl

TINY = {"num_steps": 4, "update_epochs": 1, "num_minibatches": 1}
LEARNERS = {
    "PPO": ("pendulum", rl.PPO(num_envs=2, hidden_sizes=(4,), **TINY)),
    "PPO, scaled": (
        "pendulum",
        rl.PPO(num_envs=2, normalize_reward=True, adaptive_lr=True, **TINY),
    ),
    "RecurrentPPO": ("cartpole-masked", rl.RecurrentPPO(rl.PPO(num_envs=2, **TINY), hidden_size=4)),
    "SAC": (
        "pendulum",
        rl.SAC(num_envs=2, gradient_steps=1, batch_size=2, buffer_size=5, hidden_sizes=(4,)),
    ),
    "PQN": ("acrobot", rl.PQN(num_envs=2, hidden_sizes=(4,), **TINY)),
    "SHAC": ("pendulum", rl.SHAC(num_envs=2, num_steps=3, critic_iterations=1, hidden_sizes=(4,))),
    "DAgger": (
        "pendulum",
        rl.DAgger(
            jax.tree_util.Partial(lambda x: -0.2 * x[2:]),
            num_envs=2,
            num_steps=2,
            gradient_steps=1,
            batch_size=2,
            buffer_size=5,
            hidden_sizes=(4,),
        ),
    ),
    "KickstartedPPO": (
        "pendulum",
        rl.KickstartedPPO(
            teacher=jax.tree_util.Partial(lambda x: -0.2 * x[2:]),
            num_envs=2,
            hidden_sizes=(4,),
            **TINY,
        ),
    ),
    "ES": ("cartpole", rl.ES(max_steps=8)),
}
