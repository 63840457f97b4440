"""A scripted plan for manipulation tasks: straight from waypoint to waypoint, on the host."""

import jax
import numpy as np

KEY = jax.random.key(0)


def play(env, waypoints, episodes=8):
    """Return final successes [episodes] and states [steps]; `waypoints` gives [tip, yaw, jaw]."""
    few = {"xla_backend_optimization_level": 0}
    reset = jax.jit(jax.vmap(env.reset), compiler_options=few)
    step = jax.jit(jax.vmap(env.step, (0, 0, None)), compiler_options=few)
    state, _ = jax.tree.map(np.asarray, reset(jax.random.split(jax.random.key(0), episodes)))
    plans = [waypoints(jax.tree.map(lambda x, i=i: x[i], state)) for i in range(episodes)]
    states, scale = [state], np.append(np.full(3, env.max_shift), env.max_turn)
    for _ in range(env.max_steps):
        actions = []
        for plan, tip, yaw in zip(plans, np.asarray(state.tip), np.asarray(state.yaw)):
            left = plan[0][:4] - np.append(tip, yaw)
            actions.append(np.append(np.clip(left / scale, -1, 1), plan[0][4]))
            if len(plan) > 1 and np.all(np.abs(left) < scale):
                plan.pop(0)  # it arrives with this step
        out = step(state, np.array(actions, np.float32), KEY)
        state = jax.tree.map(np.asarray, out.state)
        states.append(state)
    return np.asarray(out.info["success"]), states


def wrap_jaw(yaw):
    """Return the equivalent jaw angle of less than 90 degrees."""
    return (yaw + np.pi / 2) % np.pi - np.pi / 2
