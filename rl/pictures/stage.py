"""What stands where at a state of the classic tasks, for pictures: x to the right, z upwards.

What should get somewhere is orange, and green once it is there. Drawn are the lengths of the tasks,
in m; the hill of the cars is that of gymnasium's pictures.
"""

from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.render import Capsules
from jaxgpu.render.capsules import BLUE, GREEN, ORANGE, STEEL

if TYPE_CHECKING:
    from ..envs.classic.acrobot import Acrobot
    from ..envs.classic.cartpole import CartPole
    from ..envs.classic.mountain_car import MountainCar, MountainCarContinuous
    from ..envs.classic.pendulum import Pendulum

# its ends (x, z), radius, and colour
type Rod = tuple[tuple[Any, Any], tuple[Any, Any], float, Any]


def cartpole(env: "CartPole", state: Any) -> Capsules:
    """The cart on its track, and the pole, orange."""
    x, _, angle, _ = state.x
    far = 2 * env.half_length
    tip = x + far * jnp.sin(angle), 0.1 + far * jnp.cos(angle)
    track = ((-2.4, -0.1), (2.4, -0.1), 0.02, STEEL)
    return _scene(
        [track, ((x - 0.15, 0.0), (x + 0.15, 0.0), 0.1, BLUE), ((x, 0.1), tip, 0.045, ORANGE)],
        -0.14,
        0.5,
    )


def pendulum(env: "Pendulum", state: Any) -> Capsules:
    """The pendulum; its bob is green when it is up."""
    top = env.length * jnp.sin(state.angle), env.length * jnp.cos(state.angle)
    ink = _ink(jnp.cos(state.angle) > 0.95)
    hub = ((0.0, 0.0), (0.0, 0.0), 0.09, BLUE)
    return _scene([((0.0, 0.0), top, 0.06, STEEL), hub, (top, top, 0.13, ink)], -1.3, 0.5)


def acrobot(env: "Acrobot", state: Any) -> Capsules:
    """The two links, and the bar that the tip should pass, green once it has."""
    a, total = state.x[0], state.x[0] + state.x[1]
    elbow = env.length * jnp.sin(a), -env.length * jnp.cos(a)
    tip = elbow[0] + env.length * jnp.sin(total), elbow[1] - env.length * jnp.cos(total)
    bar = ((-1.2, env.length), (1.2, env.length), 0.045, _ink(tip[1] > env.length))
    links = [((0.0, 0.0), elbow, 0.08, STEEL), (elbow, tip, 0.06, BLUE)]
    return _scene([bar, *links], -2.3, 0.5)


def mountain_car(env: "MountainCar | MountainCarContinuous", state: Any) -> Capsules:
    """The hill, the car, and the flag, green once it is reached."""
    height = lambda x: 0.45 * jnp.sin(3 * x) + 0.55
    ways = [float(x) for x in np.linspace(-1.2, 0.6, 25)]
    hill = [((a, height(a)), (b, height(b)), 0.015, STEEL) for a, b in zip(ways, ways[1:])]
    x, flag = state.x[0], env.goal
    there = x >= flag
    pole = ((flag, height(flag)), (flag, height(flag) + 0.2), 0.016, _ink(there))
    car = (x, height(x) + 0.06)
    return _scene([*hill, pole, (car, car, 0.05, BLUE)], -0.05, 0.2)


def _ink(there: Array) -> Array:
    return jnp.where(there, jnp.array(GREEN), jnp.array(ORANGE))


def _scene(rods: list[Rod], floor: float, tile: float) -> Capsules:
    place = lambda x, z: jnp.stack([jnp.asarray(q, jnp.float32) for q in (x, 0.0, z)])
    start = jnp.stack([place(*rod[0]) for rod in rods])
    end = jnp.stack([place(*rod[1]) for rod in rods])
    radius = jnp.array([rod[2] for rod in rods], jnp.float32)
    colour = jnp.stack([jnp.asarray(rod[3], jnp.float32) for rod in rods])
    return Capsules(
        start=start,
        end=end,
        radius=radius,
        colour=colour,
        floor=jnp.float32(floor),
        tile=jnp.float32(tile),
    )
