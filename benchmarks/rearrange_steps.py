"""Steps a second of Fetch in furnished houses: of the simulation alone, with a camera, and learnt.

Actions are drawn; episodes begin anew where they end, each copy from a start of its own. No peer
runs beside it: what has been published was measured on eight GPUs.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.harness import Contender, Entry
from jaxgpu import rl

COPIES, STEPS = 256, 20  # of the simulation alone
FEW = 32  # copies with a camera
UPDATES = 2  # of PPO, of 256 copies and 32 steps


def _played(name: str, copies: int, **parameters: Any) -> Callable[[], dict[str, float]]:
    env = rl.make(name, **parameters)

    @jax.jit
    def run(env: Any, key: Any) -> Any:
        envs = rl.vectorize(env, copies)

        def move(state: Any, key: Any) -> tuple[Any, Any]:
            act_key, step_key = jax.random.split(key)
            action = jax.vmap(env.action_space.sample)(jax.random.split(act_key, copies))
            state, out = envs.step(state, action, step_key)
            seen = jax.tree.map(lambda x: jnp.mean(jnp.abs(x)), out.final)
            return state, sum(jax.tree.leaves(seen))

        return jnp.mean(jax.lax.scan(move, envs.reset(key), jax.random.split(key, STEPS))[1])

    return lambda: {"mean |observation|": run(env, jax.random.key(0))}


def _learnt(name: str) -> Callable[[], dict[str, float]]:
    env, ppo = rl.make(name), rl.PPO(num_envs=COPIES, num_steps=32, hidden_sizes=(128, 128))
    run = jax.jit(lambda env, key: rl.learn(env, ppo, key, UPDATES)[1]["episode_return"][-1])
    return lambda: {"return": run(env, jax.random.key(0))}


def entries() -> list[Entry]:
    """Mobile pick: alone, with cameras of two sizes, and learning from its vector."""
    name = "rearrange/mobile-pick"
    steps = lambda copies: f"random actions, {copies} copies, {STEPS} steps, four houses"
    found = [
        Entry(
            name,
            steps(COPIES),
            [Contender("jaxgpu", _played(name, COPIES))],
            float(COPIES * STEPS),
            "steps",
            rounds=3,
        )
    ]
    for pixels in (64, 128):
        found.append(
            Entry(
                f"{name}, depth {pixels}",
                f"{steps(FEW)}, a depth image of {pixels} by {pixels} each",
                [Contender("jaxgpu", _played(name, FEW, pixels=pixels))],
                float(FEW * STEPS),
                "steps",
                rounds=3,
            )
        )
    work = f"PPO, {COPIES} copies of 32 steps, 4 epochs, {UPDATES} updates, networks of 128 by 128"
    learnt = Contender("jaxgpu", _learnt(name))
    amount = float(UPDATES * COPIES * 32)
    found.append(Entry(f"ppo {name}", work, [learnt], amount, "steps", rounds=3))
    return found
