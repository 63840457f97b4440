"""Episodes in houses: object, goal and starting poses, sampled once on the host.

Every episode is feasible as far as can be checked in advance. Collision-free arm postures bring the
hand to the object from some free base positions and to the goal from others (`robot.reachability`),
a path leads from every start to these positions, and at every start the robot, its arm folded,
touches nothing. Whether the arm finds its way between boards is left to the policy.
"""

import functools
import importlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.inputs import arguments, ranges
from jaxgpu.inputs.explanations import explain_errors, on_host
from jaxgpu.inputs.fields import number, pytree

from .. import hand_paths
from ..geodesic import cells_near, distances
from ..house import CELL, BoxType, House
from ..robot import fetch, reachability
from ..robot.contact import Boxes, cuboid_depths
from ..robot.fetch import Joints, forward_kinematics
from ..robot.movement import SKIN, Load, max_depth
from ..robot.reachability import GRASP_OFFSET

WIDTH = 2 * CELL  # m, cell width of the distance fields
HEIGHTS = (0.3, 1.4)  # m, allowed heights of the centers of objects and goals
ARM_REACH = 0.9  # m, maximum horizontal distance from which an object is grasped
NUM_STANDS = 48  # free positions within `ARM_REACH` at which arm postures are tested
GRASP_HEIGHT = 0.012  # m, height of the hand above the top of the object that it grasps
MAX_SIZE = 0.35  # m, maximum diagonal of an object to be fetched
MAX_WIDTH, MIN_HEIGHT = 0.084, 0.03  # m, graspable: maximum of the smaller width, minimum height
CLEARANCE = 0.3  # m, minimum free height above a surface
MIN_PATH = 1.0  # m, minimum path length from starts to destination, if the house is large enough
NUM_STARTS = 16  # per episode
FOLDED_POSE = dict(torso=0.386, head=(0.0, fetch.HEAD_DOWN), arm=fetch.REST)


@pytree
class Episodes:
    """E episodes in N houses."""

    houses: House  # leaves [N, ...]
    boxes: Array = number()  # [N, R, 8] rows of `Boxes`: all obstacles of a robot
    things: Array = number()  # [N, M, 8] the same for small objects, at their initial poses
    house: Array = number(whole=True)  # [E] index of the house
    target: Array = number(whole=True)  # [E] index of the object to fetch
    # [E, 3] goal of the object's center; without an object, goal of the robot on the floor
    goal: Array = number(unit="m")
    starts: Array = number()  # [E, S, 3] starting positions and yaws of the base, m and rad
    # Path lengths from the cells to where the object, or the goal, is in reach.
    to_target: Array = number(least=0, infinite=True, unit="m")  # [E, G, G]
    to_goal: Array = number(least=0, infinite=True, unit="m")  # [E, G, G]
    # Path lengths through the surrounding space, by `hand_paths.path_fields`: of the hand to the
    # object and of the carried object to its goal; None without an object.
    near_target: Array | None = number(default=None, none=True, least=0, unit="m")  # [E, C^3]
    near_goal: Array | None = number(default=None, none=True, least=0, unit="m")  # [E, C^3]

    def path_length(self, fields: Array, episode: Array, x: Array) -> Array:
        """Return the path length from a position [2], interpolated in a field [E, G, G], [] m."""
        last = jnp.asarray(fields.shape[1:], x.dtype) - 1.001
        at = jnp.clip(x / WIDTH - 0.5, 0.0, last)
        low = jnp.floor(at).astype(jnp.int32)
        u, v = at - low.astype(at.dtype)
        i, j = low
        near = [fields[episode, i + a, j + b].astype(x.dtype) for a in (0, 1) for b in (0, 1)]
        first = near[0] + v * (near[1] - near[0])
        second = near[2] + v * (near[3] - near[2])
        return first + u * (second - first)


@explain_errors
@on_host
def fetch_episodes(houses: House, count: int = 8, seed: int = 0, skip: bool = False) -> Episodes:
    """Make episodes that move a small object to a free position on another surface.

    Args:
        houses: with a leading axis, from `houses.generate_many`.
        count: episodes per house.
        seed: random seed.
        skip: leave out houses without a feasible episode instead of raising.

    Raises:
        ValueError: a house has no object, goal or start that the robot can reach; with `skip`, if
            no house has.

    >>> from jaxgpu.rl.envs.rearrange import houses
    >>> made = fetch_episodes(houses.generate_many(range(1)), count=2)
    >>> made.goal.shape, made.starts.shape
    ((2, 3), (2, 16, 3))
    """
    return _sample_episodes(
        "episodes.fetch_episodes", houses, count, seed, skip, _EpisodeSampler.carry
    )


@explain_errors
@on_host
def grasp_episodes(houses: House, count: int = 8, seed: int = 0, skip: bool = False) -> Episodes:
    """Make episodes as `fetch_episodes` does, of objects that Fetch's fingers can grasp by contact.

    Their narrower side is at most 84 mm wide and they are at least 30 mm high.

    >>> from jaxgpu.rl.envs.rearrange import houses
    >>> made = grasp_episodes(houses.generate_many(range(1)), count=2)
    >>> bool((made.things[made.house, made.target, 3:5].min(1) < 0.042).all())
    True
    """
    plan = functools.partial(_EpisodeSampler.carry, graspable=True)
    return _sample_episodes("episodes.grasp_episodes", houses, count, seed, skip, plan)


@explain_errors
@on_host
def visit_episodes(houses: House, count: int = 8, seed: int = 0, skip: bool = False) -> Episodes:
    """Make episodes of going between free positions of a house; arguments as in `fetch_episodes`.

    >>> from jaxgpu.rl.envs.rearrange import houses
    >>> visit_episodes(houses.generate_many(range(1)), count=2).goal.shape
    (2, 3)
    """
    return _sample_episodes(
        "episodes.visit_episodes", houses, count, seed, skip, _EpisodeSampler.visit
    )


def _sample_episodes(
    name: str, houses: House, count: int, seed: int, skip: bool, plan: Any
) -> Episodes:
    if not isinstance(houses, House) or np.ndim(houses.centre) != 3:
        raise TypeError(
            f"{name}: houses={arguments.format_value(houses)}; it must be a House with a leading "
            "axis; make it by houses.generate_many(range(8))"
        )
    ranges.check(name, houses)
    for word, value, least in (("count", count, 1), ("seed", seed, 0)):
        ranges.refuse(f"{name}: {word}", value, ranges.Range(least=least, whole=True, one=True))
    host: Any = jax.tree.map(np.asarray, houses)
    boxes, things = _box_rows(host), _object_rows(host.objects)
    size = max(int(np.argwhere(nav).max()) + 6 for nav in host.nav)
    side = min(-(-size // 2), host.nav.shape[1] // 2)
    arguments.flag(f"{name}: skip", skip)
    found: list[dict[str, Any]] = []
    refused: list[_InfeasibleError] = []
    for n in range(len(host.nav)):
        one = jax.tree.map(lambda x, n=n: x[n], host)
        rng = np.random.default_rng([seed, n])
        plans = _EpisodeSampler(f"{name}: house {n}", one, boxes[n], things[n], rng, side)
        try:
            found += [{"house": n, **plan(plans)} for _ in range(count)]
        except _InfeasibleError as nothing:
            refused.append(nothing)
    if refused and not (skip and found):
        raise refused[0]
    columns = {key: jnp.asarray(np.stack([row[key] for row in found])) for key in found[0]}
    return Episodes(houses=houses, boxes=jnp.asarray(boxes), things=jnp.asarray(things), **columns)


def _box_rows(host: Any) -> np.ndarray:
    """Return the rows of all boxes except ceilings, [N, R, 8]; unused rows are far below."""
    keep = (host.kind >= 0) & (host.kind != BoxType.CEILING)
    most = int(keep.sum(1).max())
    rows = np.zeros((len(keep), most, 8), np.float32)
    rows[..., 2], rows[..., 6] = -1e3, 1.0
    for n, kept in enumerate(keep):
        rows[n, : kept.sum()] = _to_rows(host.centre[n], host.half[n], host.yaw[n])[kept]
    return rows


def _to_rows(centre: np.ndarray, half: np.ndarray, yaw: np.ndarray) -> np.ndarray:
    turn = np.stack([np.cos(yaw), np.sin(yaw)], -1)
    return np.concatenate([centre, half, turn], -1).astype(np.float32)


def _object_rows(objects: Any) -> np.ndarray:
    most = max(int(objects.count.max()), 1)
    rows = _to_rows(objects.centre, np.maximum(objects.half, 0), objects.yaw)
    return rows[:, :most]


class _InfeasibleError(ValueError):
    """Error: a house admits no episode of the requested type."""


class _EpisodeSampler:
    """Sampler of the episodes of one house."""

    def __init__(
        self,
        name: str,
        house: Any,
        boxes: np.ndarray,
        things: np.ndarray,
        rng: np.random.Generator,
        side: int,
    ) -> None:
        self.name, self.house, self.rng, self.side = name, house, rng, side
        self.boxes, self.things = Boxes(jnp.asarray(boxes)), things
        self.cells = (np.argwhere(house.nav) + 0.5) * CELL

    def carry(self, graspable: bool = False) -> dict[str, Any]:
        """Sample an object, a goal on another surface, and starting poses."""
        target, stands = self._sample_target(graspable)
        half = self.things[target, 3:6]
        goal, ends = self._sample_goal(target)
        ways = self._distance_field(stands)
        return {
            "target": np.int32(target),
            "goal": goal,
            "starts": self._sample_starts(ways, half),
            "to_target": ways,
            "to_goal": self._distance_field(ends),
            "near_target": hand_paths.path_fields(self.boxes.rows, self.things[target]),
            "near_goal": hand_paths.path_fields(self.boxes.rows, np.array([*goal, 0, 0, 0, 1, 0])),
        }

    def visit(self) -> dict[str, Any]:
        """Sample a free position as goal, and starting poses."""
        place = self.cells[self.rng.integers(len(self.cells))]
        free = jnp.asarray(self.house.nav)
        ways = self._distance_field(cells_near(free, jnp.asarray(place, jnp.float32), CELL / 2))
        return {
            "target": np.int32(0),
            "goal": np.array([*place, 0.0], np.float32),
            "starts": self._sample_starts(ways, np.zeros(3)),
            "to_target": ways,
            "to_goal": ways,
        }

    def _sample_target(self, graspable: bool) -> tuple[int, np.ndarray]:
        """Sample an object, and find the cells [C, C] from which it can be grasped."""
        objects, surfaces = self.house.objects, self.house.surfaces
        middle = self.things[:, :3]
        fits = 2 * np.linalg.norm(self.things[:, 3:6], axis=1) < MAX_SIZE
        fits &= np.arange(len(fits)) < objects.count
        fits &= (middle[:, 2] > HEIGHTS[0]) & (middle[:, 2] < HEIGHTS[1])
        if graspable:
            fits &= self.things[:, 3:5].min(1) < MAX_WIDTH / 2
            fits &= self.things[:, 5] > MIN_HEIGHT / 2
        fits &= surfaces.clear[objects.surface[: len(fits)]] > CLEARANCE
        for i in self.rng.permutation(np.flatnonzero(fits)):
            if self._is_collision_free(middle[i], self.things[i]):
                stands = self._find_stands(self.things[i])
                if stands.any():
                    return int(i), stands
        raise _InfeasibleError(
            f"{self.name}: none of its {objects.count} small objects is within reach of Fetch; "
            "give another house, or larger ones"
        )

    def _sample_goal(self, target: int) -> tuple[np.ndarray, np.ndarray]:
        """Sample the object's goal on another surface, and find cells from which to place it."""
        surfaces, thing = self.house.surfaces, self.things[target]
        own = self.house.objects.surface[target]
        kind = np.arange(len(surfaces.clear))
        good = (kind < surfaces.count) & (kind != own) & (surfaces.clear > CLEARANCE)
        wide = float(np.hypot(*thing[3:5]))
        for i in self.rng.permutation(np.repeat(np.flatnonzero(good), 8)):
            room = surfaces.half[i] - wide
            if np.any(room < 0):
                continue
            local = self.rng.uniform(-room, room)
            c, s = np.cos(surfaces.yaw[i]), np.sin(surfaces.yaw[i])
            flat = surfaces.centre[i, :2] + [
                c * local[0] - s * local[1],
                s * local[0] + c * local[1],
            ]
            goal = np.array([*flat, surfaces.centre[i, 2] + thing[5]], np.float32)
            level = HEIGHTS[0] < goal[2] < HEIGHTS[1]
            if level and self._is_collision_free(goal, thing):
                stands = self._find_stands(np.append(goal, thing[3:]))
                if stands.any():
                    return goal, stands
        raise _InfeasibleError(
            f"{self.name}: none of its {surfaces.count} surfaces has space for the object within "
            "reach of Fetch; give another house, or larger ones"
        )

    def _find_stands(self, thing: np.ndarray) -> np.ndarray:
        """Return a mask [C, C] of random cells from which the arm reaches the top of an object."""
        found = np.zeros(self.house.nav.shape, bool)
        near = self.cells[np.hypot(*(self.cells - thing[:2]).T) < ARM_REACH]
        if len(near):
            tried = np.resize(self.rng.permutation(near), (NUM_STANDS, 2)).astype(np.float32)
            top = (thing[:3] + [0, 0, thing[5] + GRASP_HEIGHT]).astype(np.float32)
            reached = np.asarray(reachability.can_reach(self.boxes.rows, tried, top))
            found[tuple((tried[reached] / CELL).astype(int).T)] = True
        return found

    def _is_collision_free(self, middle: np.ndarray, thing: np.ndarray) -> bool:
        """Return whether an object at this position penetrates no box."""
        c, s = thing[6:]
        axes = np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]], np.float32)
        return bool(_max_box_depth(self.boxes, middle.astype(np.float32), axes, thing[3:6]) < 1e-3)

    def _distance_field(self, goal: np.ndarray | Array) -> np.ndarray:
        """Return path lengths [G, G], m, to the goal cells [C, C].

        A cell without a path uses the nearest cell with one, plus the distance to it.
        """
        ways = np.asarray(distances(jnp.asarray(self.house.nav), jnp.asarray(goal)))
        lost = ~np.isfinite(ways)
        ndimage = importlib.import_module("scipy.ndimage")  # imports in half a second
        found: Any = ndimage.distance_transform_edt(lost, return_indices=True)
        beyond, nearest = found
        ways = (ways[tuple(nearest)] + CELL * beyond)[: 2 * self.side, : 2 * self.side]
        return ways.reshape(self.side, 2, self.side, 2).mean((1, 3)).astype(np.float32)

    def _sample_starts(self, ways: np.ndarray, half: np.ndarray) -> np.ndarray:
        """Sample collision-free starting poses [S, 3], with an object in the hand if `half` > 0."""
        cells = np.minimum(self.cells // WIDTH, self.side - 1).astype(int)
        far = self.cells[ways[tuple(cells.T)] > MIN_PATH]
        far = far if len(far) else self.cells
        flat = far[self.rng.integers(len(far), size=8 * NUM_STARTS)]
        base = np.concatenate([flat, self.rng.uniform(-np.pi, np.pi, (len(flat), 1))], 1)
        base = base.astype(np.float32)
        deep = np.asarray(_max_robot_depth(self.boxes, jnp.asarray(base), hand_load(half)))
        free = base[deep < SKIN]
        if not len(free):
            raise _InfeasibleError(
                f"{self.name}: Fetch has no space for its arm at any of {len(base)} free "
                "positions; give another house, or larger ones"
            )
        return free[np.arange(NUM_STARTS) % len(free)]


def folded_joints(base: Array) -> Joints:
    """Return the robot's joints at `base` [..., 3] with the arm folded."""
    broadcast = lambda x: jnp.broadcast_to(
        jnp.asarray(x, base.dtype), (*base.shape[:-1], *np.shape(x))
    )
    return Joints(base=base, **{name: broadcast(x) for name, x in FOLDED_POSE.items()})


def hand_load(half: Any) -> Load:
    """Return a held object of half sizes [3] m, its center between the fingertips."""
    half = jnp.asarray(half)
    place = jnp.zeros_like(half).at[0].set(GRASP_OFFSET)
    return Load(held=jnp.bool_(True), half=half, place=place, axes=jnp.eye(3, dtype=half.dtype))


@jax.jit
def _max_box_depth(boxes: Boxes, middle: Array, axes: Array, half: Array) -> Array:
    return jnp.max(cuboid_depths(boxes, middle, axes, half))


@jax.jit
def _max_robot_depth(boxes: Boxes, base: Array, load: Load) -> Array:
    frames = forward_kinematics(folded_joints(base))
    return jax.vmap(lambda frames: max_depth(boxes, frames, load))(frames)
