"""BOOL_AND: whether all values are true, ignoring NULLs; NULL if there are none."""

from __future__ import annotations

import pyarrow.types as pat

from muntin.aggregates.extreme import by_value
from muntin.aggregates.function import RankKind

FUNCTION = by_value("bool_and", RankKind.LEAST, pat.is_boolean)
