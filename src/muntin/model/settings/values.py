"""Parsers of the values of settings: text in, typed value out, or a refusal with a hint.

An empty text means "not given" where a parser is wrapped in :func:`optional`, and stands for None.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from typing import Generic, TypeVar

from muntin.errors import InputError
from muntin.model.clock import parse_interval

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)

_AUTO = "auto"
_YEARS = re.compile(r"(\d+(?:\.\d+)?)\s*years?\b", re.IGNORECASE)
_DAYS_PER_YEAR = 365
_BYTE_UNITS = (("gb", 10**9), ("mb", 10**6), ("kb", 10**3), ("b", 1))
_MOST_BYTES = 2**62


class RefusedValueError(ValueError):
    """A text that a setting does not accept; ``fact`` replaces the usual message."""

    def __init__(self, hint: str, fact: str = "") -> None:
        super().__init__(hint)
        self.hint = hint
        self.fact = fact


@dataclass(frozen=True)
class Parser(Generic[T]):
    """A function from text to value; ``choices`` are all texts there are, empty for free text."""

    parse: Callable[[str], T]
    choices: tuple[str, ...] = ()


def optional(parser: Parser[T]) -> Parser[T | None]:
    """Return a parser that also takes an empty text, for None."""
    return Parser(lambda text: parser.parse(text) if text else None)


# -- choices ---------------------------------------------------------------------------------------


def choice(kind: type[E]) -> Parser[E]:
    """Return the parser of the members of an enumeration."""
    return _among({str(member): member for member in kind})


def auto_or(kind: type[E]) -> Parser[E | None]:
    """Return the parser of the members of an enumeration, and of ``auto`` for None."""
    return _among({_AUTO: None, **{str(member): member for member in kind}})


def switch() -> Parser[bool]:
    """Return the parser of ``on`` and ``off``."""
    return _among({"on": True, "off": False})


def _among(values: dict[str, T]) -> Parser[T]:
    def parse(text: str) -> T:
        if text not in values:
            raise RefusedValueError(f"It is one of {', '.join(values)}")
        return values[text]

    return Parser(parse, tuple(values))


# -- intervals -------------------------------------------------------------------------------------


def interval() -> Parser[int]:
    """Return the parser of an interval longer than nothing, in microseconds."""
    return Parser(_parse_interval)


def long_interval_or_off() -> Parser[int | None]:
    """Return the parser of an interval that may name years, of 365 days, and of ``off`` for None.

    >>> long_interval_or_off().parse("1 year") == 365 * 86_400_000_000
    True
    """
    return Parser(_parse_long_interval)


def _parse_long_interval(text: str) -> int | None:
    if text.lower() == "off":
        return None
    days = _YEARS.sub(lambda found: f"{float(found.group(1)) * _DAYS_PER_YEAR} days", text)
    try:
        return _parse_interval(days)
    except RefusedValueError as refusal:
        raise RefusedValueError(f"{refusal.hint}; or 'off'") from refusal


def _parse_interval(text: str) -> int:
    try:
        micros = parse_interval(text)
    except InputError as error:
        raise RefusedValueError(error.hint) from error
    if micros <= 0:
        raise RefusedValueError("Give an interval longer than nothing")
    return micros


# -- numbers ---------------------------------------------------------------------------------------


def number(least: float, wanted: str) -> Parser[float]:
    """Return the parser of a finite number of at least ``least``; ``wanted`` describes it."""

    def parse(text: str) -> float:
        try:
            found = float(text)
        except ValueError:
            found = -inf
        if not least <= found < inf:
            raise RefusedValueError(f"Give {wanted}")
        return found

    return Parser(parse)


def whole_number(least: int, most: int) -> Parser[int]:
    """Return the parser of a whole number between two bounds."""

    def parse(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) <= most:
            raise RefusedValueError(f"Give a whole number of at least {least}")
        return int(text)

    return Parser(parse)


def byte_size() -> Parser[int]:
    """Return the parser of a number of bytes, also in kB, MB or GB.

    >>> byte_size().parse("64 kB")
    64000
    """
    return Parser(_parse_bytes)


def _parse_bytes(text: str) -> int:
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
