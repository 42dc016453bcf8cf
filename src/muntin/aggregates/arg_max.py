"""ARG_MAX(x, key): the value of the row with the greatest key, the oldest of several."""

from __future__ import annotations

from muntin.aggregates.extreme import by_key
from muntin.aggregates.function import RankKind

FUNCTION = by_key("arg_max", RankKind.GREATEST, ("argmax", "max_by"))
