"""Floor of a house as cells of 1 dm: where a round robot can stand and what it can reach.

An obstacle is a rectangle, grown by the robot's radius along its own two axes, slightly more than
the disc needs at its corners. Grown rectangles are wider than a cell, so a step between adjacent
free cells crosses none of them.
"""

import numpy as np

from .floor_plan import Plan
from .house import CELL, CELLS, ROBOT_RADIUS


class Floor:
    """Free cells of a house, and the gates in its doors; modified in place during furnishing."""

    def __init__(self, plan: Plan) -> None:
        width, depth = plan.size
        self.free = np.ones((width, depth), bool)  # one cell per decimetre
        self.x = (np.arange(width) + 0.5)[:, None] * CELL
        self.y = (np.arange(depth) + 0.5)[None] * CELL
        self.gates: list[list[tuple[int, int]]] = [[] for _ in plan.rooms]

    def add_gate(self, rooms: tuple[int, int], x: float, y: float) -> None:
        """Add the center of a door between two rooms."""
        cell = (int(x / CELL), int(y / CELL))
        for room in rooms:
            self.gates[room].append(cell)

    def block(self, free: np.ndarray, rectangle: np.ndarray) -> np.ndarray:
        """Return `free` without the cells where the robot would touch a rectangle.

        Args:
                free: [C, C] cells.
            rectangle: [5] middle x and y, half width and half depth, m, and yaw, rad.
        """
        x, y, width, depth, yaw = rectangle
        reach = np.hypot(width + ROBOT_RADIUS, depth + ROBOT_RADIUS)
        part = self._cells_in_rectangle(x - reach, y - reach, x + reach, y + reach)
        c, s = np.cos(yaw), np.sin(yaw)
        dx, dy = self.x[part[0]] - x, self.y[:, part[1]] - y
        hit = (np.abs(c * dx + s * dy) < width + ROBOT_RADIUS) & (
            np.abs(c * dy - s * dx) < depth + ROBOT_RADIUS
        )
        free = free.copy()
        free[part] &= ~hit
        return free

    def _cells_in_rectangle(
        self, x0: float, y0: float, x1: float, y1: float
    ) -> tuple[slice, slice]:
        """Return the cells that intersect a rectangle."""
        first_index = lambda a: max(int(np.floor(a / CELL)), 0)
        last_index = lambda a: max(int(np.ceil(a / CELL)) + 1, 0)
        return slice(first_index(x0), last_index(x1)), slice(first_index(y0), last_index(y1))

    def reachable_cells(
        self, free: np.ndarray, room: int, corners: np.ndarray
    ) -> np.ndarray | None:
        """Return the cells [w, d] of a room, padded by one cell, that are reachable from its doors.

        Return None if its doors are not connected through it. Without doors: the largest component.
        """
        x0, y0, x1, y1 = corners
        part = free[max(x0 - 1, 0) : x1 + 1, max(y0 - 1, 0) : y1 + 1]
        parts = _label_components(part)
        offset = (max(x0 - 1, 0), max(y0 - 1, 0))
        found = {int(parts[i - offset[0], j - offset[1]]) for i, j in self.gates[room]}
        if not found:
            counts = np.bincount(parts.ravel())
            counts[0] = 0
            found = {int(counts.argmax())}
        return parts == found.pop() if len(found) == 1 and 0 not in found else None

    def navigable_cells(self) -> np.ndarray:
        """Return all cells [CELLS, CELLS] that are reachable from the doors."""
        parts = _label_components(self.free)
        gates = [cell for room in self.gates for cell in room]
        counts = np.bincount(parts.ravel())
        counts[0] = 0
        label = parts[gates[0]] if gates else counts.argmax()
        found = np.zeros((CELLS, CELLS), bool)
        found[: self.free.shape[0], : self.free.shape[1]] = (parts == label) & (parts > 0)
        return found


def _label_components(free: np.ndarray) -> np.ndarray:
    """Label the connected components of free cells; 0 where a cell is not free."""
    from scipy import ndimage

    found = np.zeros(free.shape, np.int32)
    ndimage.label(free, output=found)
    return found
