"""Script for locomotion_reference.npz: random steps of gymnasium's tasks on MuJoCo's robots.

    pip install "gymnasium[mujoco]" && python tests/rl/make_locomotion_reference.py

All is in float64. MuJoCo's solver converges, by Newton's method in every task, since two files
allow few iterations of another. "place" is the position from which a robot's velocity is measured,
before the step.
"""

import warnings
from pathlib import Path

import gymnasium
import numpy as np
from gymnasium.envs.mujoco.humanoid_v5 import mass_center

TASKS = {  # of each its steps, and which of them are kept
    "hopper": ("Hopper-v5", 240, 6),
    "half-cheetah": ("HalfCheetah-v5", 240, 6),
    "walker2d": ("Walker2d-v5", 240, 6),
    "swimmer": ("Swimmer-v5", 240, 6),
    "reacher": ("Reacher-v5", 240, 6),
    "pusher": ("Pusher-v5", 240, 6),
    "inverted-double-pendulum": ("InvertedDoublePendulum-v5", 120, 3),
    "ant": ("Ant-v5", 240, 8),
    "humanoid": ("Humanoid-v5", 120, 6),
    "humanoid-standup": ("HumanoidStandup-v5", 120, 6),
}
KINDS = ("qpos", "qvel", "place", "action", "observation", "reward", "terminated", "parts")


def make_env(name):
    env = gymnasium.make(name).unwrapped
    option = env.model.opt
    option.tolerance, option.iterations, option.ls_iterations = 0, 200, 100
    option.jacobian, option.solver = 0, 2  # dense, Newton
    return env


def place(env, name):
    if name.startswith("humanoid"):
        return mass_center(env.model, env.data)
    return env.data.xpos[1, :2].copy()


def steps(name):
    theirs, count, every = TASKS[name]
    env = make_env(theirs)
    env.action_space.seed(3)
    first, _ = env.reset(seed=1)
    start = {"qpos": env.data.qpos.copy(), "qvel": env.data.qvel.copy(), "observation": first}
    rows, ends = [], 0
    for i in range(count):
        before = env.data.qpos.copy(), env.data.qvel.copy(), place(env, name)
        action = env.action_space.sample().astype(float)
        observation, reward, terminated, _, info = env.step(action)
        parts = [info[part] for part in sorted(info) if part.startswith("reward_")]
        ends += terminated
        if i % every == 0 or terminated:
            rows.append((*before, action, observation, reward, terminated, parts))
        if terminated or i % 60 == 59:
            env.reset()
    print(f"{name}: {len(rows)} steps, of which {ends} end")
    out = {f"{name}/{kind}": np.array(column) for kind, column in zip(KINDS, zip(*rows))}
    return out | {f"{name}/start/{kind}": x for kind, x in start.items()}


if __name__ == "__main__":
    with warnings.catch_warnings(action="ignore"):
        out = {key: value for name in TASKS for key, value in steps(name).items()}
    np.savez_compressed(Path(__file__).with_name("locomotion_reference.npz"), **out)
