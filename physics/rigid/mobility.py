"""How easily a mechanism moves: whether it moves at all, and what unit forces do to it."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from .dynamics import factored_mass
from .tree import Tree

_SINGULAR = 1e-12  # of a pivot, relative to its diagonal


def mobility(tree: Tree, q: Array, J: Array) -> Array:
    """J M(q)^-1 J^T [C, C, ...] for the rows J [C, N, ...].

    Freedoms without inertia, to rounding, are left out, as if they were held.
    """
    rows, pivots, rounding = factored_mass(tree, q)
    y, total = jnp.swapaxes(J, 0, 1), 0.0
    for row, pivot in list(zip(rows, pivots))[::-1]:  # M = L^T D L: L^-T J^T, from the leaves
        top, y = y[-1], y[:-1]
        y = y - row[:, None] * top[None]
        moves = pivot > 2 * rounding
        ease = jnp.where(moves, 1 / jnp.where(moves, pivot, 1.0), 0.0)
        total = total + ease[None, None] * top[:, None] * top[None]
    return jnp.asarray(total)


def check_inertia(name: str, tree: Tree, added: Any) -> None:
    """Raise if a freedom has no inertia wherever the mechanism is, so that no force moves it.

    Args:
        name: of the function that was called, which begins the sentence.
        tree: the mechanism; nothing is checked while it is traced.
        added: to the diagonal of the mass matrix [N], what a step takes of the forces.
    """
    arrays = (tree.mass, tree.inertia, tree.com, tree.position, tree.rotation, tree.axis)
    if any(isinstance(x, Tracer) for x in (*arrays, tree.armature, added)):
        return
    M, least = _mass_somewhere(tree, *(np.asarray(x, float) for x in arrays))
    M = M + np.diag(np.asarray(tree.armature, float) + np.asarray(added, float))
    whole = np.diag(M).copy()
    for k in range(len(M) - 1, -1, -1):
        if M[k, k] <= max(_SINGULAR * whole[k], least[k]):
            link = tree.link_of[k]
            label = f" {tree.names[link]!r}" if tree.names[link] else ""
            raise ValueError(
                f"{name}: link {link}{label} moves without inertia; its {tree.joint[link]} joint "
                "must move a mass off its axis, an inertia or an armature; give it one"
            )
        M[:k, :k] -= np.outer(M[k, :k], M[k, :k]) / M[k, k]


def _mass_somewhere(
    tree: Tree,
    mass: np.ndarray,
    inertia: np.ndarray,
    com: np.ndarray,
    position: np.ndarray,
    rotation: np.ndarray,
    axis: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """The mass matrix in a position without symmetry, and what in it is rounding."""
    rng, freedoms = np.random.default_rng(0), len(tree.link_of)
    M, chain = np.zeros((freedoms, freedoms)), []  # of each link: R, x, rotations, translations
    start, least, origin = 0, np.zeros(freedoms), np.zeros((3, freedoms))
    rounding = 4 * float(jnp.finfo(tree.mass.dtype).eps)  # of a mass's distance from an axis
    for i, (parent, joint) in enumerate(zip(tree.parent, tree.joint)):
        above = (np.eye(3), np.zeros(3), np.zeros((3, freedoms)), np.zeros((3, freedoms)))
        R, x, turn, slide = chain[parent] if parent >= 0 else above
        x, R = x + R @ position[i], R @ rotation[i]
        # velocity of the point p: slide + turn x p, both [3, N]
        turn, slide = turn.copy(), slide.copy()
        angle = rng.uniform(0.5, 1.0)
        if joint == "free":
            x = np.zeros(3)
            slide[:, start : start + 3], turn[:, start + 3 : start + 6] = np.eye(3), R
            start += 6
        else:
            z, at = R @ axis[i], x
            if joint == "revolute":
                turn[:, start], slide[:, start] = z, np.cross(x, z)
                R = _turned(z, angle) @ R
            else:
                slide[:, start] = z
                x = x + z * angle * (0.1 + np.abs(position).max())
            origin[:, start] = at
            start += 1
        chain.append((R, x, turn, slide))
        c = x + R @ com[i]
        arms = np.abs(turn).max(0) * np.linalg.norm(c[:, None] - origin, axis=0)
        least += mass[i] * ((rounding * arms) ** 2 + 1e-30 * c @ c)
        velocity = slide + np.cross(turn, c, axis=0)
        M += mass[i] * velocity.T @ velocity + turn.T @ (R @ inertia[i] @ R.T) @ turn
    return M, least


def _turned(z: np.ndarray, angle: float) -> np.ndarray:
    K = np.array([[0, -z[2], z[1]], [z[2], 0, -z[0]], [-z[1], z[0], 0]])
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K
