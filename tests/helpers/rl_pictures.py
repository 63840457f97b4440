"""A task whose goal is visible in an image, and known to the critic in training; its learners."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgpu import rl
from jaxgpu.inputs.fields import pytree, static
from jaxgpu.rl import Box, Discrete, Step

STEPS, REACH = 8, 0.3


@pytree
class Pointer:
    """Task to move a point on a line to a goal, the bright column of an 8 by 8 image.

    The reward is minus the squared distance after each of 8 steps, of at most 0.3 each.
    Observations are the image `eye`, the position `place`, and the numeric `goal`.
    """

    action_space: Any = static(default=Box(-1.0, 1.0, (1,)))

    differentiable = True
    observation_space = {
        "eye": Box(0.0, 255.0, (8, 8, 1)),
        "goal": Box(-1.0, 1.0, (1,)),
        "place": Box(-9.0, 9.0, (1,)),
    }

    def look(self, place, goal):
        bright = jnp.arange(8.0) == jnp.round(3.5 + 3.5 * goal)
        eye = jnp.where(bright[None, :, None], 255, 0).astype(jnp.uint8)
        return {"eye": jnp.tile(eye, (8, 1, 1)), "place": place[None], "goal": goal[None]}

    def reset(self, key):
        place, goal = jax.random.uniform(key, (2,), minval=-1.0)
        return (place, goal, jnp.int32(0)), self.look(place, goal)

    def step(self, state, action, key):
        place, goal, t = state
        way = (
            2.0 * action.astype(float) - 1 if isinstance(self.action_space, Discrete) else action[0]
        )
        place = place + REACH * way
        over = t + 1 >= STEPS
        seen = self.look(place, goal)
        return Step((place, goal, t + 1), seen, -((place - goal) ** 2), jnp.bool_(False), over, {})


def best_return(place, goal):
    """Return the returns of episodes [E] that move straight to the goal, in NumPy."""
    left, total = np.abs(place - goal), 0.0
    for _ in range(STEPS):
        left = np.maximum(left - REACH, 0)
        total = total - left**2
    return total


CNN = rl.CNN(features=(4,), kernel_sizes=(3,), strides=(2,))
TINY = {"num_envs": 4, "num_steps": 4, "update_epochs": 1, "num_minibatches": 2}
PRIVATE = {"actor_keys": ("eye", "place"), "critic_keys": ("goal", "place")}
LEARNERS = {
    "PPO": rl.PPO(network=CNN, **PRIVATE, **TINY),
    "RecurrentPPO": rl.RecurrentPPO(rl.PPO(network=CNN, **TINY), hidden_size=4),
    "RecurrentPPO, private": rl.RecurrentPPO(rl.PPO(network=CNN, **PRIVATE, **TINY), hidden_size=4),
    "PQN": rl.PQN(network=CNN, **TINY),
    "SAC": rl.SAC(network=rl.ResNet((4,), 1), num_envs=4, batch_size=4, buffer_size=16, **PRIVATE),
    "DAgger": rl.DAgger(
        jax.tree_util.Partial(lambda seen: jnp.clip(seen["goal"] - seen["place"], -1, 1)),
        actor_keys=PRIVATE["actor_keys"],
        network=CNN,
        num_envs=4,
        batch_size=4,
    ),
    "SHAC": rl.SHAC(network=CNN, num_envs=4, num_steps=3, **PRIVATE),
}
