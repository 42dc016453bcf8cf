"""MODE: the most frequent value, the least of several, ignoring NULLs; NULL if there are none.

Among equally frequent values, DuckDB's own choice depends on the order of its scan.
"""

from __future__ import annotations

from muntin.aggregates.function import AggregateFunction, Frequency
from muntin.aggregates.types import is_ordered

FUNCTION = AggregateFunction(
    name="mode",
    example="MODE(x)",
    accepts=is_ordered,
    needs=lambda _kind, _fraction: (Frequency.MOST,),
    result=lambda kept, _kind, _fraction: kept.pick(Frequency.MOST),
    takes_distinct=False,
    oracle="mode({argument} ORDER BY {argument})",
)
