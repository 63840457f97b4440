"""Tables that are filled row by row and padded to a fixed length."""

import math
from typing import Any

import numpy as np


class PaddedTable:
    """Growing table whose rows are mappings from column names to values."""

    def __init__(self, name: str, most: int, absent: dict[str, Any]) -> None:
        self.name, self.most, self.absent = name, most, absent
        self.held: list[dict[str, Any]] = []

    def add(self, **row: Any) -> None:
        """Append a row."""
        self.held.append(row)

    def arrays(self) -> dict[str, Any]:
        """Return the padded columns and the number of rows in use.

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
