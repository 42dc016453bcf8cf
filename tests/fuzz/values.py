"""Column types, values that fit them, and values that fit nothing."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

Draw = random.Random

SECOND = 1_000_000

_DAY = dt.date(2026, 1, 1)
_NOON = dt.datetime(2026, 1, 1, 12)  # noqa: DTZ001 (a timestamp without a zone)

SMALL: dict[str, tuple[object, ...]] = {
    "BOOLEAN": (True, False),
    "TINYINT": (0, 1, 2, 3),
    "SMALLINT": (0, 1, 2, 3),
    "INTEGER": (0, 1, 2, 3),
    "BIGINT": (0, 1, 2, 3),
    "UTINYINT": (0, 1, 2, 3),
    "USMALLINT": (0, 1, 2, 3),
    "UINTEGER": (0, 1, 2, 3),
    "UBIGINT": (0, 1, 2, 3),
    "FLOAT": (0.0, 1.0, 2.0, 0.5),
    "DOUBLE": (0.0, 1.0, 2.0, 0.5),
    "DECIMAL(10, 2)": (Decimal("0.00"), Decimal("1.00"), Decimal("2.50")),
    "VARCHAR": ("", "a", "b", "ß", "a b"),
    "BLOB": (b"", b"\x00", b"ab"),
    "DATE": (_DAY, _DAY + dt.timedelta(1)),
    "TIME": (dt.time(1), dt.time(2, 3, 4)),
    "TIMESTAMP": (_NOON, _NOON + dt.timedelta(seconds=1)),
    "TIMESTAMP_S": (_NOON, _NOON + dt.timedelta(seconds=1)),
    "TIMESTAMP_MS": (_NOON, _NOON + dt.timedelta(milliseconds=1)),
    "TIMESTAMP_NS": (_NOON, _NOON + dt.timedelta(microseconds=1)),
    "UUID": ("00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"),
    "INTEGER[]": ([], [1], [1, None]),
    "STRUCT(x INTEGER, y VARCHAR)": ({"x": 1, "y": "a"}, {"x": None, "y": "b"}),
}
"""Few values of each type, so that rows meet."""

HUGE: dict[str, tuple[object, ...]] = {
    "TINYINT": (-128, 127),
    "SMALLINT": (-(2**15), 2**15 - 1),
    "INTEGER": (-(2**31), 2**31 - 1),
    "BIGINT": (-(2**63), 2**63 - 1, 2**53 + 1),
    "UTINYINT": (255,),
    "USMALLINT": (2**16 - 1,),
    "UINTEGER": (2**32 - 1,),
    "UBIGINT": (2**64 - 1, 2**63),
    "FLOAT": (math.inf, -math.inf, math.nan, -0.0, 3e38),
    "DOUBLE": (math.inf, -math.inf, math.nan, -0.0, 1e308, 5e-324),
    "DECIMAL(10, 2)": (Decimal("99999999.99"), Decimal("-99999999.99")),
    "VARCHAR": ("x" * 2000, "\x00", "\U0001f600", "e\u0301", "\ufeff", "';--", "1e400", "12"),
    "BLOB": (b"\xff" * 500,),
    "DATE": (dt.date(1, 1, 1), dt.date(9999, 12, 31)),
    "TIME": (dt.time(23, 59, 59, 999_999), dt.time(0)),
}
"""Values at the edges of their types."""

NUMBERS = (
    *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"),
    *("FLOAT", "DOUBLE", "DECIMAL(10, 2)"),
)
TEXTS = ("VARCHAR",)
OTHERS = tuple(name for name in SMALL if name not in (*NUMBERS, *TEXTS))
KEYS = ("INTEGER", "BIGINT", "DOUBLE", "SMALLINT", "UINTEGER")
TIMES = ("TIMESTAMP",) * 12 + ("TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMPTZ")

_JUNK: tuple[Callable[[], object], ...] = (
    lambda: "no number",
    lambda: Decimal("1e50"),
    lambda: Decimal("sNaN"),
    lambda: Decimal("NaN"),
    lambda: 2**70,
    lambda: -(2**200),
    lambda: math.nan,
    lambda: 1.5,
    lambda: 1e300,
    lambda: b"\xff\xfe",
    lambda: "\ud800",
    lambda: [[[]]],
    lambda: {"x": {"y": 1}},
    lambda: {1, 2},
    lambda: 1j,
    lambda: dt.timedelta.max,
    lambda: dt.date(9999, 12, 31),
    lambda: dt.datetime(9999, 12, 31, 23, 59, 59),  # noqa: DTZ001 (as users write it)
    lambda: dt.datetime(2026, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=5))),
    lambda: True,
    lambda: "",
    lambda: "2026-13-45",
    lambda: ("a", 1),
    lambda: range(3),
    lambda: "1" * 400,
)


def value(draw: Draw, kind: str, *, huge: bool) -> object:
    """Return a value of a type, sometimes NULL."""
    if draw.random() < 0.12:
        return None
    if huge and kind in HUGE and draw.random() < 0.15:
        return draw.choice(HUGE[kind])
    return draw.choice(SMALL[kind])


def junk(draw: Draw) -> object:
    """Return a value that fits few types or none."""
    return draw.choice(_JUNK)()


def columns(draw: Draw, *, time: bool) -> dict[str, str]:
    """Return the columns of a stream or table: a key, some of any type, and a time."""
    found = {"k": draw.choice(KEYS)}
    if draw.random() < 0.7:
        found["v"] = draw.choice(NUMBERS)
    if draw.random() < 0.5:
        found["s"] = "VARCHAR"
    if draw.random() < 0.5:
        found["o"] = draw.choice(OTHERS)
    if draw.random() < 0.2:
        found["p"] = draw.choice(OTHERS + NUMBERS)
    if time:
        found["ts"] = draw.choice(TIMES)
    return found


def named(**kinds: str) -> dict[str, Any]:
    """Return columns as a mapping; for scripts written by hand."""
    return dict(kinds)
