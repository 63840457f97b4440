"""Tables of rows that are filled one after the other and then padded to a fixed length."""

import math
from typing import Any

import numpy as np


class Rows:
    """Rows of one table, each a mapping from its columns to numbers."""

    def __init__(self, name: str, most: int, absent: dict[str, Any]) -> None:
        self.name, self.most, self.absent = name, most, absent
        self.held: list[dict[str, Any]] = []

    def add(self, **row: Any) -> None:
        """One more row."""
        self.held.append(row)

    def arrays(self) -> dict[str, Any]:
        """The columns, padded, and how many rows are in use.

        Raises:
            ValueError: there are more rows than fit.
        """
        count = len(self.held)
        if count > self.most:
            enough = 32 * math.ceil(count / 32)
            raise ValueError(
                f"houses.generate: {self.name}={self.most} and the house has {count}; it must be "
                f"at least that; give {self.name}={enough}"
            )
        columns: dict[str, Any] = {}
        for name, absent in self.absent.items():
            empty = np.asarray(absent)
            column = np.broadcast_to(empty, (self.most, *empty.shape)).copy()
            if count:
                column[:count] = [row[name] for row in self.held]
            columns[name] = column
        return columns | {"count": np.int32(count)}
