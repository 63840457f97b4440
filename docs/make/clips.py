"""Draw the clips of docs/pictures: surgical tasks, solved by a controller or by a scripted plan.

Also classic tasks, by policies trained in the script, and `matter/pouring`, planned by Adam.

`python docs/make/clips.py [name ...]`
"""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxgpu import rl
from jaxgpu.render import Camera, gif
from jaxgpu.render.capsules import INKS
from jaxgpu.rl.animation import render_frames
from jaxgpu.rl.envs.surgical.arms import STAR
from jaxgpu.rl.envs.surgical.center import AHEAD, Center
from jaxgpu.rl.envs.surgical.contact import ContactTask
from jaxgpu.rl.envs.surgical.kinematics import forward_kinematics
from jaxgpu.rl.envs.surgical.peg_transfer import PegTransfer
from jaxgpu.rl.envs.surgical.pick_place import PickPlace
from jaxgpu.rl.envs.surgical.surgical_gym import SurgicalGymReach
from jaxgpu.rl.plan import Descent, EpisodeCost, plan, trajectory
from jaxgpu.studies.classic_control import ROWS
from jaxgpu.studies.classic_control.scores import PARTS

PICTURES = Path(__file__).parents[1] / "pictures"
FRAMES, SIZE, SEED = 32, 176, 3
ARM = Camera((0.27, -0.33, 0.03), (0.0, 0.0, -0.11), (0.0, 0.0, 1.0), 0.58, SIZE, SIZE)
TALL = Camera((1.9, -1.9, 1.1), (0.35, 0.0, 0.55), (0.0, 0.0, 1.0), 0.5, SIZE, SIZE)
STAND = Camera((-1.3, 1.1, 0.75), (0.0, 0.28, 0.28), (0.0, 0.0, 1.0), 0.4, SIZE, SIZE)
# in the frame of the ECM x points up
LYING = Camera((0.7, -2.9, -1.2), (0.75, 0.0, 0.45), (1.0, 0.0, 0.0), 0.5, SIZE, SIZE)
SCENES = {"psm-reach-compat": (STAND, 0.012), "ecm-reach-compat": (LYING, 0.025)}
CLASSIC = {  # center of the picture, x and z, and distance of the camera, m
    "cartpole": (0.0, 0.45, 4.6),
    "pendulum": (0.0, -0.1, 5.0),
    "acrobot": (0.0, -0.2, 9.0),
    "mountain-car": (-0.3, 0.6, 3.6),
    "mountain-car-continuous": (-0.3, 0.6, 3.6),
}
TRAY = Camera((0.18, -0.27, -0.04), (-0.01, 0.0, -0.16), (0.0, 0.0, 1.0), 0.52, SIZE, SIZE)


def damped_states(env: Any) -> Any:
    """Return states [steps] of an episode under damped least squares on the actuated joints."""
    if isinstance(env, SurgicalGymReach):
        return target_states(env)
    at = "target" if hasattr(env.reset(jax.random.key(0))[0], "v") else "q"
    low, high = env.arm.working_range(jnp.float32)

    def residual(state: Any, q: Any) -> Any:
        if isinstance(env, Center):
            off = env.goal_in_camera(replace(state, q=q)) - jnp.array([0.0, 0.0, AHEAD])
            return jnp.append(off, 0.1 * (q[3] - state.goal_roll))
        tip, _ = forward_kinematics(env.arm, q)
        return tip - (env.goal(state) if callable(getattr(env, "goal", None)) else state.goal)

    def move(state: Any, _: None) -> tuple[Any, Any]:
        now = getattr(state, at)
        J = jax.jacfwd(lambda q: residual(state, q))(now) * (high - low)[None]
        gram = jnp.einsum("ik,jk->ij", J, J, precision="highest") + 1e-6 * jnp.eye(J.shape[0])
        way = jnp.einsum("ik,i->k", J, jnp.linalg.solve(gram, -residual(state, now)))
        way = way / env.speed
        action = jnp.clip(way / jnp.maximum(1.0, jnp.abs(way).max()), -1, 1)
        after = env.step(state, action, jax.random.key(0)).state
        return after, after

    start = env.reset(jax.random.key(SEED))[0]
    return jax.jit(lambda s: jax.lax.scan(move, s, length=min(int(env.max_steps), 96))[1])(start)


def target_states(env: SurgicalGymReach) -> Any:
    """Return states of an episode with joint targets that place the tip at the goal."""
    goal = env.reset(jax.random.key(SEED))[0].goal
    count, scale, offset = env.arm.joints, np.array(env.model.scale), np.array(env.model.offset)
    asked = jnp.asarray(np.stack([offset - scale, offset + scale])[:, :count], jnp.float32)
    low, high = env.arm.working_range(jnp.float32)
    low, high = jnp.maximum(low, asked[0]), jnp.minimum(high, asked[1])

    def least_squares_step(_: int, q: Any) -> Any:
        J = jax.jacfwd(lambda q: forward_kinematics(env.arm, q)[0])(q)
        gram = jnp.einsum("ik,jk->ij", J, J, precision="highest") + 1e-3 * jnp.eye(3)
        left = jnp.linalg.solve(gram, goal - forward_kinematics(env.arm, q)[0])
        return jnp.clip(q + jnp.einsum("ik,i->k", J, left), low, high)

    def move(state: Any, _: None) -> tuple[Any, Any]:
        action = jnp.clip((wanted - state.target) / env.speed, -1, 1)
        after = env.step(state, action, jax.random.key(0)).state
        return after, after

    start = env.reset(jax.random.key(SEED))[0]
    q = jax.jit(lambda q: jax.lax.fori_loop(0, 500, least_squares_step, q))(start.q)
    joints = jnp.concatenate([q, start.distal])
    wanted = (joints - jnp.array(offset)) / jnp.array(scale)
    return jax.jit(lambda s: jax.lax.scan(move, s, length=384)[1])(start)


def waypoint_states(env: Any) -> Any:
    """Return states [steps] of an episode through waypoints: above, at, grasp, lift, goal."""
    state, _ = jax.jit(env.reset)(jax.random.key(SEED))
    where, across = (np.asarray(x) for x in env.grasp_pose(state.position, state.object_yaw))
    yaw = (across + np.pi / 2) % np.pi - np.pi / 2
    grip, goal, up = where - np.asarray(state.position), np.asarray(state.goal), np.zeros(3)
    up[2] = 0.045 if isinstance(env, PegTransfer) else 0.015
    end = goal + grip + (up if isinstance(env, PegTransfer) else 0)
    let = 1.0 if isinstance(env, PegTransfer) else -1.0
    plan = [(where + up, 1.0), (where, 1.0), (where, -1.0), (where + up, -1.0)]
    plan += [(end, -1.0), (end, let)]
    states, step = [state], jax.jit(env.step)
    scale = np.array([env.max_shift] * 3 + [env.max_turn])
    for _ in range(int(env.max_steps)):
        left = np.append(plan[0][0] - np.asarray(state.tip), yaw - np.asarray(state.yaw))
        action = np.append(np.clip(left / scale, -0.8, 0.8), plan[0][1])
        if len(plan) > 1 and np.all(np.abs(left) < 0.8 * scale):
            plan.pop(0)
        state = step(state, jnp.asarray(action, jnp.float32), jax.random.key(0)).state
        states.append(state)
    return jax.tree.map(lambda *x: jnp.stack(x), *states)


def script_states(env: Any) -> Any:
    """Return states [T] of an episode under the task's own script."""

    def move(state: Any, _: None) -> tuple[Any, Any]:
        later = env.step(state, env.script(env.observe(state)), jax.random.key(0)).state
        return later, later

    state, _ = env.reset(jax.random.key(SEED))
    return jax.jit(lambda state: jax.lax.scan(move, state, length=2 * FRAMES)[1])(state)


def policy_states(name: str) -> Any:
    """Return states [T] of an episode under the first policy of the study `classic-control`."""
    row = next(row for row in ROWS if row.task == name)
    env: Any = rl.make(name)
    learner, updates = row.learner, PARTS * row.interval(1.0)
    state, _ = jax.jit(lambda key: rl.learn(env, learner, key, updates))(jax.random.key(SEED))
    act = learner.policy(env, state)

    def move(carry: Any, _: None) -> tuple[Any, Any]:
        state, seen, over = carry
        step = env.step(state, act(seen), jax.random.key(0))
        keep = lambda old, new: jnp.where(over, old, new)
        later = jax.tree.map(keep, (state, seen), (step.state, step.observation))
        return (*later, over | step.terminated), (later[0], over)

    start = (*env.reset(jax.random.key(SEED)), jnp.bool_(False))
    run = jax.jit(lambda start: jax.lax.scan(move, start, length=min(int(env.max_steps), 200))[1])
    states, over = run(start)
    return jax.tree.map(lambda x: x[: int(np.sum(~np.asarray(over))) + 8], states)


def pouring_clip() -> bytes:
    """Return the animation of a plan after sixteen steps of Adam."""
    env: Any = rl.make("matter/pouring")
    state, _ = jax.jit(env.reset)(jax.random.key(0))
    loss = EpisodeCost(env, state, gradient_discount=0.9)
    adam = Descent(optax.adam(0.05))
    done = plan(loss, env.initial_actions(), adam, 16, key=jax.random.key(1))
    states, _ = jax.jit(trajectory)(env, state, done.actions)
    draw = jax.jit(lambda frames: jax.lax.map(lambda matter: env.render(matter, 240, 180), frames))
    return gif(draw(jax.tree.map(lambda a: a[::2], states.matter)), seconds=0.08)


def make_clip(name: str) -> bytes:
    """Return the clip of an environment."""
    if name == "matter/pouring":
        return pouring_clip()
    env: Any = rl.make(name)
    title = name.partition("/")[2] or name
    if title in CLASSIC:
        states = policy_states(name)
    elif isinstance(env, ContactTask):
        states = script_states(env)
    else:
        states = waypoint_states(env) if isinstance(env, PickPlace) else damped_states(env)
    every = max(1, states.t.shape[0] // FRAMES)
    states = jax.tree.map(lambda x: x[::every], states)
    usual = (TALL, 0.03) if getattr(env, "arm", None) is STAR else (ARM, 0.006)
    camera, radius = SCENES.get(title, usual)
    options = {"radius": radius} if hasattr(env, "arm") else {}
    camera = TRAY if isinstance(env, (PickPlace, ContactTask)) else camera
    if title in CLASSIC:
        x, z, away = CLASSIC[title]
        camera = Camera((x, -away, z + 0.4), (x, 0.0, z), (0.0, 0.0, 1.0), 0.6, SIZE, SIZE)
    return gif(render_frames(env, states, camera, **options), 0.09, INKS)


def main(names: list[str]) -> None:
    """Draw the named clips, or all."""
    surgical = [name for name in rl.names() if name.startswith("surgical/")]
    for name in names or [*CLASSIC, *surgical, "matter/pouring"]:
        file = PICTURES / f"{name.rpartition('/')[2]}.gif"
        file.write_bytes(make_clip(name))
        print(f"{file.name}: {file.stat().st_size / 1e3:.0f} kB", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
