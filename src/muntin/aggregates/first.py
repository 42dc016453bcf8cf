"""FIRST: the value of the oldest row, ignoring NULLs."""

from __future__ import annotations

from muntin.aggregates.edge import by_time
from muntin.aggregates.function import Edge

FUNCTION = by_time("first", Edge.OLDEST, oracle="arg_min({argument}, row({order}))")
