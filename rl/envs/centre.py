"""Keep a target in the centre of the endoscope's picture, upright: ecm-centre, kinematic.

The camera looks along the shaft, from its tip. The target is what another, random position of the
arm would see in the centre 50 mm ahead, with that position's roll: it can always be centred.
SurRoL's task of the kind compares the misorientation with itself (always 0); here it is the
angle about the optical axis between the picture and that of the other position.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.pytree import pytree
from jaxgpu.rl.arms import ECM, moved, place, scaled, working
from jaxgpu.rl.environment import Step, register
from jaxgpu.rl.spaces import Box

AHEAD = 0.05  # m from the lens to the target, in the other position


@pytree
class State:
    """Endoscope and target."""

    q: Array  # [4] joints, rad or m
    target: Array  # [3] m
    roll: Array  # [] of the picture that is asked for, rad
    t: Array  # [] steps since the start


@register("surgical/ecm-centre")
@pytree
class Centre:
    """-20 times the distance to where the target should be, in m, and -0.2 |roll error| a step.

    Success: less than `tolerance` off in the picture's plane and in depth, and upright within
    `upright`.
    """

    speed: Array | float = 0.05  # [] greatest step of a joint, of the range it works in
    tolerance: Array | float = 0.005  # [] of success, m
    upright: Array | float = 0.05  # [] of success, rad
    horizon: Array | int = 100  # [] steps

    @property
    def observation_space(self) -> Box:
        """Joints in their range, target in the camera's frame in 5 cm, roll error in rad."""
        return Box(-np.inf, np.inf, (8,))

    @property
    def action_space(self) -> Box:
        """Steps of the joints, as fractions of the greatest."""
        return Box(-1.0, 1.0, (4,))

    @property
    def differentiable(self) -> bool:
        """Everywhere but at the limits and at the goal itself."""
        return True

    def start(self, key: Array) -> tuple[State, Array]:
        """A random position, and what another sees."""
        low, high = working(ECM, jnp.float32)
        part, other = low[None] + (high - low)[None] * jax.random.uniform(key, (2, 4))
        lens, R = place(ECM, other)
        state = State(part, lens + AHEAD * R[:, 2], other[3], jnp.int32(0))
        return state, self._observe(state, self._seen(state))

    def advance(self, state: State, action: Array, key: Array) -> Step:
        """Move the joints by `action`, within their range."""
        q = moved(ECM, state.q, action, self.speed)
        new = State(q, state.target, state.roll, state.t + 1)
        seen = self._seen(new)
        off = jnp.sqrt(seen[0] ** 2 + seen[1] ** 2 + (seen[2] - AHEAD) ** 2 + 1e-12)
        tilt = jnp.abs(q[3] - state.roll)
        over = new.t >= self.horizon
        success = (off < self.tolerance) & (tilt < self.upright)
        reward = -20 * off - 0.2 * tilt + success.astype(q.dtype)
        info = {"success": success, "distance": off, "tilt": tilt}
        return Step(new, self._observe(new, seen), reward, jnp.zeros_like(over), over, info)

    def _seen(self, state: State) -> Array:
        """The target in the camera's frame, [3] m: right, down, ahead."""
        lens, R = place(ECM, state.q)
        return jnp.sum(R * (state.target - lens)[:, None], 0)

    def _observe(self, state: State, seen: Array) -> Array:
        tilt = (state.roll - state.q[3])[None]
        return jnp.concatenate([scaled(ECM, state.q), 20 * seen, tilt])
