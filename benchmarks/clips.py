"""Draw the clips of docs/pictures: every surgical task, done by a controller or a plan by hand.

`python -m benchmarks.clips [name ...]`
"""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgpu import rl
from jaxgpu.physics.continuum.render import Camera
from jaxgpu.rl.arms import STAR, place, working
from jaxgpu.rl.envs import pegs
from jaxgpu.rl.envs.centre import AHEAD, Centre
from jaxgpu.rl.envs.compat import Compat
from jaxgpu.rl.envs.handling import Handling
from jaxgpu.rl.film import film, gif

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
FRAMES, SIZE, SEED = 32, 176, 3
ARM = Camera((0.27, -0.33, 0.03), (0.0, 0.0, -0.11), (0.0, 0.0, 1.0), 0.58, SIZE, SIZE)
TALL = Camera((1.9, -1.9, 1.1), (0.35, 0.0, 0.55), (0.0, 0.0, 1.0), 0.5, SIZE, SIZE)
STAND = Camera((-1.3, 1.1, 0.75), (0.0, 0.28, 0.28), (0.0, 0.0, 1.0), 0.4, SIZE, SIZE)
# up is x in the frame of the ECM
LYING = Camera((0.7, -2.9, -1.2), (0.75, 0.0, 0.45), (1.0, 0.0, 0.0), 0.5, SIZE, SIZE)
SCENES = {"psm-reach-compat": (STAND, 0.012), "ecm-reach-compat": (LYING, 0.025)}
TRAY = Camera((0.18, -0.27, -0.04), (-0.01, 0.0, -0.16), (0.0, 0.0, 1.0), 0.52, SIZE, SIZE)


def led(env: Any) -> Any:
    """States [steps] of an episode under damped least squares on the joints that actions move."""
    if isinstance(env, Compat):
        return sent(env)
    at = "target" if hasattr(env.start(jax.random.key(0))[0], "v") else "q"
    low, high = working(env.arm, jnp.float32)

    def miss(state: Any, q: Any) -> Any:
        if isinstance(env, Centre):
            off = env._seen(replace(state, q=q)) - jnp.array([0.0, 0.0, AHEAD])
            return jnp.append(off, 0.1 * (q[3] - state.roll))
        tip, _ = place(env.arm, q)
        return tip - (env.goal(state) if callable(getattr(env, "goal", None)) else state.goal)

    def move(state: Any, _: None) -> tuple[Any, Any]:
        now = getattr(state, at)
        J = jax.jacfwd(lambda q: miss(state, q))(now) * (high - low)[None]
        gram = jnp.einsum("ik,jk->ij", J, J, precision="highest") + 1e-6 * jnp.eye(J.shape[0])
        way = jnp.einsum("ik,i->k", J, jnp.linalg.solve(gram, -miss(state, now)))
        way = way / env.speed
        action = jnp.clip(way / jnp.maximum(1.0, jnp.abs(way).max()), -1, 1)
        after = env.advance(state, action, jax.random.key(0)).state
        return after, after

    start = env.start(jax.random.key(SEED))[0]
    return jax.jit(lambda s: jax.lax.scan(move, s, length=min(int(env.horizon), 96))[1])(start)


def sent(env: Compat) -> Any:
    """States of an episode with the targets sent to where damped least squares has the tip."""
    goal = env.start(jax.random.key(SEED))[0].goal
    count, scale, offset = env.arm.joints, np.array(env.rig.scale), np.array(env.rig.offset)
    asked = jnp.asarray(np.stack([offset - scale, offset + scale])[:, :count], jnp.float32)
    low, high = working(env.arm, jnp.float32)
    low, high = jnp.maximum(low, asked[0]), jnp.minimum(high, asked[1])

    def nearer(_: int, q: Any) -> Any:
        J = jax.jacfwd(lambda q: place(env.arm, q)[0])(q)
        gram = jnp.einsum("ik,jk->ij", J, J, precision="highest") + 1e-3 * jnp.eye(3)
        left = jnp.linalg.solve(gram, goal - place(env.arm, q)[0])
        return jnp.clip(q + jnp.einsum("ik,i->k", J, left), low, high)

    def move(state: Any, _: None) -> tuple[Any, Any]:
        action = jnp.clip((there - state.target) / env.speed, -1, 1)
        after = env.advance(state, action, jax.random.key(0)).state
        return after, after

    start = env.start(jax.random.key(SEED))[0]
    q = jax.jit(lambda q: jax.lax.fori_loop(0, 500, nearer, q))(start.q)
    joints = jnp.concatenate([q, start.rest])
    there = (joints - jnp.array(offset)) / jnp.array(scale)
    return jax.jit(lambda s: jax.lax.scan(move, s, length=384)[1])(start)


def planned(env: Any) -> Any:
    """States [steps] of an episode through waypoints: over it, at it, take, away, there."""
    state, _ = jax.jit(env.start)(jax.random.key(SEED))
    where, across = (np.asarray(x) for x in env.handle(state.place, state.turn))
    yaw = (across + np.pi / 2) % np.pi - np.pi / 2
    grip, goal, up = where - np.asarray(state.place), np.asarray(state.goal), np.zeros(3)
    up[2] = 0.045 if isinstance(env, pegs.PegTransfer) else 0.015
    end = goal + grip + (up if isinstance(env, pegs.PegTransfer) else 0)
    let = 1.0 if isinstance(env, pegs.PegTransfer) else -1.0
    plan = [(where + up, 1.0), (where, 1.0), (where, -1.0), (where + up, -1.0)]
    plan += [(end, -1.0), (end, let)]
    states, advance = [state], jax.jit(env.advance)
    scale = np.array([env.reach] * 3 + [env.twist])
    for _ in range(int(env.horizon)):
        left = np.append(plan[0][0] - np.asarray(state.tip), yaw - np.asarray(state.yaw))
        action = np.append(np.clip(left / scale, -0.8, 0.8), plan[0][1])
        if len(plan) > 1 and np.all(np.abs(left) < 0.8 * scale):
            plan.pop(0)
        state = advance(state, jnp.asarray(action, jnp.float32), jax.random.key(0)).state
        states.append(state)
    return jax.tree.map(lambda *x: jnp.stack(x), *states)


def main(names: list[str]) -> None:
    """Draw the named clips, or all."""
    for name in names or [name for name in rl.names() if name.startswith("surgical/")]:
        env: Any = rl.make(name)
        states = planned(env) if isinstance(env, Handling) else led(env)
        every = max(1, states.t.shape[0] // FRAMES)
        states = jax.tree.map(lambda x, every=every: x[::every], states)
        title = name.partition("/")[2]
        usual = (TALL, 0.03) if getattr(env, "arm", None) is STAR else (ARM, 0.006)
        camera, radius = SCENES.get(title, usual)
        camera = TRAY if isinstance(env, Handling) else camera
        file, images = PICTURES / f"{title}.gif", film(env, states, camera, radius)
        file.write_bytes(gif(images))
        print(f"{file.name}: {len(images)} frames, {file.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
