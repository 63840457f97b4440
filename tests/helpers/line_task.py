"""A task that compiles quickly, with everything that studies of learners require of a task."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxgpu import report, rl
from jaxgpu.inputs.fields import pytree, static
from jaxgpu.runs.loop import Run, Timing


@pytree
class Approach:
    """Scripted policy of `Line`, which moves straight to zero."""

    aside: float = 1.0

    def __call__(self, observation):
        x = observation["hand"] if isinstance(observation, dict) else observation
        return -jnp.clip(10 * x, -1.0, 1.0)


@pytree
class Line:
    """Task to move a point on a line to zero, observed as a vector or like a touch task."""

    observation: str = static(default="vector")
    max_steps: int = static(default=8)

    action_space = property(lambda self: rl.Box(-1.0, 1.0, (1,)))
    differentiable = property(lambda self: True)

    @property
    def observation_space(self):
        real_box = lambda *shape: rl.Box(-jnp.inf, jnp.inf, shape)
        if self.observation == "vector":
            return real_box(1)
        field = {"field": real_box(2, 2, 1)} if self.observation == "force" else {}
        return {"hand": real_box(1), "privileged": real_box(3)} | field

    @property
    def script(self):
        return Approach()

    def observe_x(self, x):
        if self.observation == "vector":
            return x
        field = {"field": jnp.zeros((2, 2, 1)).at[0, 0].set(x)}
        told = {"hand": x, "privileged": jnp.concatenate([x, x, x])}
        return told | (field if self.observation == "force" else {})

    def reset(self, key):
        x = jax.random.uniform(key, (1,), minval=-0.4, maxval=0.4)
        return (x, jnp.int32(0)), self.observe_x(x)

    def step(self, state, action, key):
        x, t = state[0] + 0.1 * action, state[1] + 1
        success = jnp.abs(x[0]) < 0.1
        over = t >= self.max_steps
        return rl.Step(
            (x, t), self.observe_x(x), -(x[0] ** 2), jnp.bool_(False), over, {"success": success}
        )


def sweep_of_zeros(env, learner, keys, parts, every, measure=None, **saved):
    """Replace `rl.sweep`: states of its shapes, and success rates that rise to 1."""

    def blank(x):
        key = jnp.issubdtype(x.dtype, jax.dtypes.prng_key)
        return jax.random.split(keys[0], x.shape) if key else np.zeros(x.shape, x.dtype)

    begin = lambda key: learner.init(env, key, parts * every)
    state = jax.tree.map(blank, jax.eval_shape(jax.vmap(begin), keys))
    shares = np.linspace(0, 1, parts + 1, dtype=np.float32)
    history = np.repeat(shares[:, None], len(keys), 1)
    return Run(state, history, Timing(1.0, 1.0, parts * every))


def film_of_zeros(env, policy, key, *told):
    """Replace the video of a study."""
    return report.video(np.zeros((2, 8, 8, 3), np.uint8), "An episode.", 0.1)
