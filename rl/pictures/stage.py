"""What stands where at a state of the classic tasks, for pictures: x to the right, z upwards.

Drawn are the lengths of the tasks, in m; the hill of the cars is that of gymnasium's pictures.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from ..envs.classic.acrobot import Acrobot
from ..envs.classic.cartpole import CartPole
from ..envs.classic.mountain_car import MountainCar, MountainCarContinuous
from ..envs.classic.pendulum import Pendulum
from .render import BLUE, GREEN, ORANGE, STEEL, Scene

# its ends (x, z), radius, and colour
type Rod = tuple[tuple[Any, Any], tuple[Any, Any], float, Any]


def scene(env: Any, state: Any) -> Scene | None:
    """The scene of a classic task at one state, or None for other tasks.

    What should get somewhere is orange, and green once it is there.

    >>> import jax
    >>> from jaxgpu import rl
    >>> env = rl.make("pendulum")
    >>> scene(env, env.reset(jax.random.key(0))[0]).start.shape
    (3, 3)
    """
    match env:
        case CartPole():
            return _scene(_cartpole(env, state), -0.14, 0.5)
        case Pendulum():
            return _scene(_pendulum(env, state), -1.3, 0.5)
        case Acrobot():
            return _scene(_acrobot(env, state), -2.3, 0.5)
        case MountainCar() | MountainCarContinuous():
            return _scene(_car(env, state), -0.05, 0.2)
    return None


def _cartpole(env: CartPole, state: Any) -> list[Rod]:
    x, _, angle, _ = state.x
    far = 2 * env.half_length
    tip = x + far * jnp.sin(angle), 0.1 + far * jnp.cos(angle)
    track = ((-2.4, -0.1), (2.4, -0.1), 0.02, STEEL)
    return [track, ((x - 0.15, 0.0), (x + 0.15, 0.0), 0.1, BLUE), ((x, 0.1), tip, 0.045, ORANGE)]


def _pendulum(env: Pendulum, state: Any) -> list[Rod]:
    top = env.length * jnp.sin(state.angle), env.length * jnp.cos(state.angle)
    ink = _ink(jnp.cos(state.angle) > 0.95)
    hub = ((0.0, 0.0), (0.0, 0.0), 0.09, BLUE)
    return [((0.0, 0.0), top, 0.06, STEEL), hub, (top, top, 0.13, ink)]


def _acrobot(env: Acrobot, state: Any) -> list[Rod]:
    a, both = state.x[0], state.x[0] + state.x[1]
    elbow = env.length * jnp.sin(a), -env.length * jnp.cos(a)
    tip = elbow[0] + env.length * jnp.sin(both), elbow[1] - env.length * jnp.cos(both)
    bar = ((-1.2, env.length), (1.2, env.length), 0.045, _ink(tip[1] > env.length))
    links = [((0.0, 0.0), elbow, 0.08, STEEL), (elbow, tip, 0.06, BLUE)]
    return [bar, *links]


def _car(env: MountainCar | MountainCarContinuous, state: Any) -> list[Rod]:
    height = lambda x: 0.45 * jnp.sin(3 * x) + 0.55
    ways = [float(x) for x in np.linspace(-1.2, 0.6, 25)]
    hill = [((a, height(a)), (b, height(b)), 0.015, STEEL) for a, b in zip(ways, ways[1:])]
    x, flag = state.x[0], env.goal
    there = x >= flag
    pole = ((flag, height(flag)), (flag, height(flag) + 0.2), 0.016, _ink(there))
    car = (x, height(x) + 0.06)
    return [*hill, pole, (car, car, 0.05, BLUE)]


def _ink(there: Array) -> Array:
    return jnp.where(there, jnp.array(GREEN), jnp.array(ORANGE))


def _scene(rods: list[Rod], floor: float, tile: float) -> Scene:
    place = lambda x, z: jnp.stack([jnp.asarray(q, jnp.float32) for q in (x, 0.0, z)])
    start, end = (jnp.stack([place(*rod[k]) for rod in rods]) for k in (0, 1))
    radius = jnp.array([rod[2] for rod in rods], jnp.float32)
    colour = jnp.stack([jnp.asarray(rod[3], jnp.float32) for rod in rods])
    return Scene(start, end, radius, colour, jnp.float32(floor), jnp.float32(tile))
