"""LAST: the value of the newest row, ignoring NULLs."""

from __future__ import annotations

from muntin.aggregates.edge import by_time
from muntin.aggregates.function import Edge

FUNCTION = by_time("last", Edge.NEWEST, oracle="arg_max({argument}, row({order}))")
