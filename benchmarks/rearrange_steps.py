"""Steps per second of Fetch in furnished houses: simulation only, with a camera, and in training.

Actions are random. Each copy restarts from its own start state when its episode ends. No peer is
timed: the published results were measured on eight GPUs.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.harness import Contender, Entry
from jaxgpu import rl
from jaxgpu.devices.precision import platform

CPU = platform() == "cpu"
COPIES, STEPS = 256 if CPU else 4096, 20  # of the simulation without a camera
FEW = 32 if CPU else 1024  # copies with a camera
HEAVY = 64 if CPU else 4096  # copies with masses
UPDATES = 2  # of PPO
NAME, MASSES = "rearrange/mobile-pick", "rearrange/mobile-pick-dynamic"


def _make_rollout(name: str, copies: int, **parameters: Any) -> Callable[[], dict[str, float]]:
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


def _make_training(learner: Any, **parameters: Any) -> Callable[[], dict[str, float]]:
    env = rl.make(NAME, **parameters)
    run = jax.jit(lambda env, key: rl.learn(env, learner, key, UPDATES)[1]["episode_return"][-1])
    return lambda: {"return": run(env, jax.random.key(0))}


def entries() -> list[Entry]:
    """Return mobile pick: alone, with masses, with two cameras, and trained on vector and depth."""
    steps = lambda copies: f"random actions, {copies} copies, {STEPS} steps, four houses"
    found = [
        Entry(
            name,
            steps(copies),
            [Contender("jaxgpu", _make_rollout(name, copies))],
            float(copies * STEPS),
            "steps",
            rounds=3,
        )
        for name, copies in ((NAME, COPIES), (MASSES, HEAVY))
    ]
    for pixels in (64, 128):
        found.append(
            Entry(
                f"{NAME}, depth {pixels}",
                f"{steps(FEW)}, a depth image of {pixels} by {pixels} each",
                [Contender("jaxgpu", _make_rollout(NAME, FEW, pixels=pixels))],
                float(FEW * STEPS),
                "steps",
                rounds=3,
            )
        )
    each, sizes = f"copies of 32 steps, {UPDATES} updates", "networks of 128 by 128"
    blind = rl.PPO(num_envs=COPIES, num_steps=32, hidden_sizes=(128, 128))
    work = f"PPO, {COPIES} {each}, 4 epochs, {sizes}"
    amount = float(UPDATES * COPIES * 32)
    found.append(
        Entry(
            f"ppo {NAME}",
            work,
            [Contender("jaxgpu", _make_training(blind))],
            amount,
            "steps",
            rounds=3,
        )
    )
    ppo = rl.PPO(
        num_envs=FEW, num_steps=32, update_epochs=2, num_minibatches=4, network=rl.ResNet()
    )
    seeing = Contender("jaxgpu", _make_training(rl.RecurrentPPO(ppo, hidden_size=256), pixels=64))
    work = f"PPO, {FEW} {each}, 2 epochs, residual network and 256 gated recurrent units"
    amount = float(UPDATES * FEW * 32)
    return [*found, Entry(f"ppo {NAME}, depth 64", work, [seeing], amount, "steps", rounds=3)]
