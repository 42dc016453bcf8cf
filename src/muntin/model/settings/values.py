"""Parsers of the values of settings: text in, typed value out, or a refusal with a hint.

An empty text means "not given" where a parser is wrapped in :func:`optional`, and stands for None.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from math import inf
from typing import Generic, TypeAlias, TypeVar

from muntin.errors import InputError
from muntin.model.clock import parse_interval

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)

Parse: TypeAlias = Callable[[str], T]
"""From the text of a setting to its value."""

_YEARS = re.compile(r"(\d+(?:\.\d+)?)\s*years?\b", re.IGNORECASE)
_DAYS_PER_YEAR = 365
_BYTE_UNITS = (("gb", 10**9), ("mb", 10**6), ("kb", 10**3), ("b", 1))
_MOST_BYTES = 2**62
_LEAST_POSITIVE, _MOST_POSITIVE = 1e-6, 1e6


class RefusedValueError(ValueError):
    """A text that a setting does not accept; ``fact`` replaces the usual message."""

    def __init__(self, hint: str, fact: str = "") -> None:
        super().__init__(hint)
        self.hint = hint
        self.fact = fact


@dataclass(frozen=True)
class Choices(Generic[T]):
    """Parses the texts of some values, which are all there are."""

    values: Mapping[str, T]

    def __call__(self, text: str) -> T:
        """Return the value of a text."""
        if text not in self.values:
            raise RefusedValueError(f"It is one of {', '.join(self.values)}")
        return self.values[text]


def choice(kind: type[E]) -> Choices[E]:
    """Return the parser of the members of an enumeration."""
    return Choices({str(member): member for member in kind})


def auto_or(kind: type[E]) -> Choices[E | None]:
    """Return the parser of the members of an enumeration, and of ``auto`` for None."""
    return Choices({"auto": None, **{str(member): member for member in kind}})


def or_auto(parse: Parse[T]) -> Parse[T | None]:
    """Return a parser that also takes ``auto``, for None."""

    def parsed(text: str) -> T | None:
        if text == "auto":
            return None
        try:
            return parse(text)
        except RefusedValueError as refusal:
            raise RefusedValueError(f"{refusal.hint}; or 'auto'") from refusal

    return parsed


SWITCH = Choices({"on": True, "off": False})


def optional(parse: Parse[T]) -> Parse[T | None]:
    """Return a parser that also takes an empty text, for None."""
    return lambda text: parse(text) if text else None


def parse_long_interval(text: str) -> int | None:
    """Return an interval that may name years, of 365 days, in microseconds; None for ``off``.

    >>> parse_long_interval("1 year") == 365 * 86_400_000_000
    True
    """
    if text.lower() == "off":
        return None
    days = _YEARS.sub(lambda found: f"{float(found.group(1)) * _DAYS_PER_YEAR} days", text)
    try:
        return parse_length(days)
    except RefusedValueError as refusal:
        raise RefusedValueError(f"{refusal.hint}; or 'off'") from refusal


def parse_length(text: str) -> int:
    """Return an interval longer than nothing, in microseconds."""
    try:
        micros = parse_interval(text)
    except InputError as error:
        raise RefusedValueError(error.hint) from error
    if micros <= 0:
        raise RefusedValueError("Give an interval longer than nothing")
    return micros


def number(least: float, wanted: str) -> Parse[float]:
    """Return the parser of a finite number of at least ``least``; ``wanted`` describes it."""

    def parse(text: str) -> float:
        try:
            found = float(text)
        except ValueError:
            found = -inf
        if not least <= found < inf:
            raise RefusedValueError(f"Give {wanted}")
        return found

    return parse


def positive_number(text: str) -> Fraction:
    """Return a number between a millionth and a million, exactly.

    >>> positive_number("0.1")
    Fraction(1, 10)
    """
    try:
        near = float(text)
    except ValueError:
        near = -inf
    if not _LEAST_POSITIVE <= near <= _MOST_POSITIVE:
        raise RefusedValueError("Give a number from 0.000001 to 1000000, for example 3")
    return Fraction(text)


def whole_number(least: int, most: int) -> Parse[int]:
    """Return the parser of a whole number between two bounds."""

    def parse(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) <= most:
            raise RefusedValueError(f"Give a whole number of at least {least}")
        return int(text)

    return parse


def parse_bytes(text: str) -> int:
    """Return a number of bytes, also in kB, MB or GB.

    >>> parse_bytes("64 kB")
    64000
    """
    written, unit = text.strip(), 1
    for name, factor in _BYTE_UNITS:
        if written.lower().endswith(name):
            written, unit = written[: -len(name)].strip(), factor
            break
    if not written.isdecimal() or not 0 < int(written) * unit < _MOST_BYTES:
        raise RefusedValueError(
            "Write for example '64 kB' or '10 MB'", fact=f"{text!r} is not a number of bytes"
        )
    return int(written) * unit


def format_bytes(size: float) -> str:
    """Return a number of bytes for people.

    >>> format_bytes(64_000)
    '64.0 kB'
    """
    for name, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= factor:
            return f"{size / factor:,.1f} {name}"
    return f"{size:,.0f} bytes"
