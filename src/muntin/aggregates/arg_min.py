"""ARG_MIN(x, key): the value of the row with the least key, the oldest of several."""

from __future__ import annotations

from muntin.aggregates.extreme import by_key
from muntin.aggregates.function import RankKind

FUNCTION = by_key("arg_min", RankKind.LEAST, ("argmin", "min_by"))
