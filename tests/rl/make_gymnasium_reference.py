"""Script for gymnasium_reference.npz: 1000 random float64 steps of each classic task.

pip install gymnasium && python tests/rl/make_gymnasium_reference.py
"""

from pathlib import Path

import gymnasium
import numpy as np

NAMES = {
    "cartpole": "CartPole-v1",
    "pendulum": "Pendulum-v1",
    "acrobot": "Acrobot-v1",
    "mountain-car": "MountainCar-v0",
    "mountain-car-continuous": "MountainCarContinuous-v0",
}


def steps(name, count=1000):
    env = gymnasium.make(NAMES[name])
    env.action_space.seed(1)
    env.reset(seed=1)
    rows = []
    for _ in range(count):
        before = np.array(env.unwrapped.state, float)
        action = env.action_space.sample()
        observation, reward, terminated, truncated, _ = env.step(action)
        after = np.array(env.unwrapped.state, float)
        rows.append((before, action, after, observation, reward, terminated))
        if terminated or truncated:
            env.reset()
    kinds = ("before", "action", "after", "observation", "reward", "terminated")
    return {f"{name}/{kind}": np.array(column) for kind, column in zip(kinds, zip(*rows))}


if __name__ == "__main__":
    out = {key: value for name in NAMES for key, value in steps(name).items()}
    np.savez_compressed(Path(__file__).with_name("gymnasium_reference.npz"), **out)
