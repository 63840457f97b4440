"""Brax's PPO on an environment of jaxgpu: its own `train`, timed one stretch at a time."""

import queue
import threading
from importlib import import_module
from typing import Any

import jax
import jax.numpy as jnp

from jaxgpu.rl.environment import Environment


class Race:
    """Brax's `train` in a separate thread that pauses at each report, so that it can be timed.

    Each `stretch` has the same number of steps. It compiles in the first two stretches. Each copy
    restarts every episode from the state of its first one, as Brax's wrapper does.
    """

    def __init__(self, env: Environment, limit: int, steps: int, stretches: int, **sizes: Any):
        # Brax 0.14.2 calls a function that jax 0.12 no longer has
        missing = "device_put_replicated"
        setattr(jax, missing, lambda tree, _: jax.tree.map(_add_device_axis, tree))
        ppo = import_module("brax.training.agents.ppo.train")
        networks = import_module("brax.training.agents.ppo.networks")
        self._go, self._done = queue.SimpleQueue[bool](), queue.SimpleQueue[Any]()
        tanh = {"activation": jax.nn.tanh}
        layers = {f"{net}_hidden_layer_sizes": (64, 64) for net in ("policy", "value")}
        make = lambda *given, **named: networks.make_ppo_networks(*given, **named, **layers, **tanh)

        def train() -> None:
            self._go.get()
            try:
                ppo.train(
                    _to_brax_env(env),
                    stretches * steps,
                    episode_length=limit,
                    num_evals=stretches + 1,
                    num_eval_envs=64,
                    normalize_observations=True,
                    network_factory=make,
                    progress_fn=self._report,
                    **sizes,
                )
            except Exception as error:  # raised again in `stretch`
                self._done.put(error)

        threading.Thread(target=train, daemon=True).start()

    def stretch(self) -> dict[str, float]:
        """Continue the training, and return the mean return of 64 episodes afterwards."""
        self._go.put(True)
        metrics = self._done.get()
        if isinstance(metrics, Exception):
            raise metrics
        return {"return": float(metrics["eval/episode_reward"])}

    def _report(self, steps: int, metrics: Any) -> None:
        if steps > 0:
            self._done.put(metrics)
            self._go.get()


def _to_brax_env(env: Environment) -> Any:
    """Return `env` in Brax's protocol; Brax's wrapper truncates episodes."""
    base = import_module("brax.envs.base")
    key = jax.random.key(0)
    size = jax.eval_shape(env.reset, key)[1].shape[0]

    class Adapted(base.Env):
        def reset(self, rng: Any) -> Any:
            state, observation = env.reset(rng)
            zero = jnp.zeros(())
            return base.State(state, observation, zero, zero)

        def step(self, state: Any, action: Any) -> Any:
            out = env.step(state.pipeline_state, action, key)
            return state.replace(
                pipeline_state=out.state,
                obs=out.observation,
                reward=out.reward,
                done=out.terminated.astype(jnp.float32),
            )

        @property
        def observation_size(self) -> int:
            return size

        @property
        def action_size(self) -> int:
            return env.action_space.shape[0]

        @property
        def backend(self) -> str:
            return "jaxgpu"

    return Adapted()


def _add_device_axis(x: Any) -> Any:
    return jnp.asarray(x)[None]
