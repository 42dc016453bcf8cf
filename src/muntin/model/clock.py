"""Instants and intervals in integer microseconds, with their text forms."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from numbers import Integral
from typing import TypeAlias

from muntin.errors import InputError

Instant: TypeAlias = int | str | datetime
"""A time as users pass it: integer microseconds since 1970, ISO text, or a datetime."""

SECOND = 1_000_000
"""Microseconds of a second."""
BEFORE_ALL = -(2**62)
"""Earlier than any accepted time."""
AFTER_ALL = 2**62
"""Later than any accepted time."""
# The bounds leave room to add a window to any accepted time without overflowing 64 bits.

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_SHORT = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}
TOO_FINE = re.compile(r"[.,]\d{6}\d*[1-9]")
"""Matches a fraction of a second that is finer than microseconds."""
_PIECE = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*([A-Za-z]+)")


def unit_micros(unit: str) -> int | None:
    """Return the microseconds of one ``unit`` (``second``, ``SECONDS``, ``ms``); None if unknown.

    >>> unit_micros("MINUTES")
    60000000
    """
    name = unit.lower()
    return _SHORT.get(name) or _UNITS.get(name) or _UNITS.get(name.removesuffix("s"))


def parse_interval(text: str) -> int:
    """Return the microseconds of an interval such as ``2 seconds`` or ``1 hour 30 minutes``.

    >>> parse_interval("1 minute 500 ms")
    60500000
    """
    body = text.strip()
    micros = 0.0
    end = 0
    for piece in _PIECE.finditer(body):
        scale = unit_micros(piece.group(2))
        if scale is None or body[end : piece.start()].strip(" ,"):
            break
        micros += float(piece.group(1)) * scale
        end = piece.end()
    if end != len(body) or not body:
        raise InputError(
            f"{text!r} is not an interval",
            hint="Write a number and a unit, for example '2 seconds' or '1 hour 30 minutes'",
        )
    if abs(micros) >= AFTER_ALL:
        raise InputError(
            f"the interval {text!r} is too long", hint="Intervals reach up to about 100,000 years"
        )
    return round(micros)


def format_interval(micros: int) -> str:
    """Return the interval as text, in the largest unit that divides it.

    >>> format_interval(90_000_000)
    '90 seconds'
    """
    for unit in reversed(_UNITS):
        scale = _UNITS[unit]
        if micros and micros % scale == 0:
            count = micros // scale
            return f"{count} {unit}" if count == 1 else f"{count} {unit}s"
    return f"{micros} microseconds"


def parse_instant(value: Instant) -> int:
    """Return the microseconds since 1970 of an instant; naive times count as UTC.

    >>> parse_instant("1970-01-01 00:00:05")
    5000000
    """
    if not _is_time(value):
        raise InputError(
            f"{value!r} is not a time", hint="Pass a datetime, an ISO text or integer microseconds"
        )
    if isinstance(value, str):
        if TOO_FINE.search(value):
            raise InputError(
                f"{value!r} is finer than microseconds", hint="Give at most six decimals"
            )
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError as error:
            raise InputError(
                f"{value!r} is not a time", hint="Write it like '2026-01-01 00:00:05'"
            ) from error
    if isinstance(value, datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=UTC)
        return (aware - _EPOCH) // timedelta(microseconds=1)
    micros = int(value)
    if not BEFORE_ALL < micros < AFTER_ALL:
        raise InputError(
            f"the time {micros} is out of range", hint="Times are microseconds since 1970"
        )
    return micros


def _is_time(value: object) -> bool:
    """Return whether a value is of a type for instants; NaT, which differs from itself, is not."""
    if type(value) is bool or not isinstance(value, Integral | str | datetime):
        return False
    return bool(value == value)  # noqa: PLR0124


def format_instant(micros: int) -> str:
    """Return the ISO text of an instant; instants outside the calendar print as microseconds.

    >>> format_instant(5_000_000)
    '1970-01-01 00:00:05'
    """
    try:
        moment = _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return f"{micros} us"
    return moment.replace(tzinfo=None).isoformat(sep=" ")
