"""ANY_VALUE: the value of the oldest row, ignoring NULLs, so that it is the same in every run."""

from __future__ import annotations

from muntin.aggregates.edge import by_time
from muntin.aggregates.function import Edge

FUNCTION = by_time("any_value", Edge.OLDEST, oracle="arg_min({argument}, row({order}))")
