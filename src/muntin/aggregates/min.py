"""MIN: the least value, ignoring NULLs; NULL if there are none."""

from __future__ import annotations

from muntin.aggregates.extreme import by_value
from muntin.aggregates.function import RankKind
from muntin.aggregates.types import is_ordered

FUNCTION = by_value("min", RankKind.LEAST, is_ordered)
