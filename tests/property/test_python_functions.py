"""A Python function has the results of the SQL expression that it stands for, at every instant."""

from __future__ import annotations

import re
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given
from hypothesis import strategies as st

import muntin
from muntin.testing.compare import difference

_Row: TypeAlias = tuple[str, int | None, int | None, int, bool]
"""The stream, both values, the seconds since the row before, and whether time is advanced."""
_QUERIES = (
    """SELECT {A.k, B.v} AS x, A.v FROM A, B WHERE {A.k, A.v} = {B.k, B.v} WINDOW 4 SECONDS""",
    """SELECT A.v, B.v AS w FROM A [ROWS 3], B WHERE A.k = B.k AND {A.v, B.v} > 1
    WINDOW 5 SECONDS EMIT CHANGES""",
    """SELECT {k, v} AS x, SUM({v, k}) AS s FROM A GROUP BY {k, v}
    HAVING {COUNT(*), MIN(v)} <> 3 WINDOW 4 SECONDS""",
    """SELECT A.k, B.v AS w FROM A LEFT JOIN B ON {A.k, A.v} = B.k
    WINDOW 3 SECONDS EMIT CHANGES""",
)
_VALUE = st.none() | st.integers(0, 4)
_ROW = st.tuples(st.sampled_from("AB"), _VALUE, _VALUE, st.integers(0, 2), st.booleans())


def _mixed(a: pa.Array, b: pa.Array) -> pa.Array:
    assert a.null_count == b.null_count == 0
    total = pc.add(pc.multiply(a, 3), b)
    return pc.subtract(total, pc.multiply(pc.divide(total, 5), 5))


def _written(query: str, call: str) -> str:
    """Return the query with a call in the place of each ``{first, second}``."""
    return re.sub(r"\{(.*?), ([^,]*?)\}", lambda found: call.format(a=found[1], b=found[2]), query)


@given(st.sampled_from(_QUERIES), st.lists(_ROW, max_size=14))
def test_a_function_equals_its_expression(query: str, story: list[_Row]) -> None:
    engine = muntin.Engine(clock=None)
    for name in ("A", "B"):
        engine.stream(name, {"k": "bigint", "v": "bigint", "ts": "timestamp"})
    engine.function("mixed", _mixed, {"a": "bigint", "b": "bigint"}, "bigint")
    called = engine.query(_written(query, "mixed({a}, {b})"), name="called")
    plain = engine.query(_written(query, "((({a}) * 3 + ({b})) % 5)"), name="plain")
    second = 0
    for stream, k, v, gap, cut in [*story, ("A", None, None, 20, True)]:
        second += gap
        engine.push(stream, [(k, v, second * 1_000_000)])
        if cut:
            engine.advance(second * 1_000_000)
            assert not difference(plain.poll(), called.poll())
            assert not difference(plain.answer(), called.answer())
