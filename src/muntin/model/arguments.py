"""Checks of the arguments that users pass to methods of the engines."""

from __future__ import annotations

import math
import threading

from muntin.errors import InputError


def check_text(value: object, what: str, hint: str) -> None:
    """Raise unless a value is text that can be written as UTF-8.

    >>> check_text(None, "the query", "Write SELECT ...")
    Traceback (most recent call last):
    muntin.errors.InputError: the query must be text, not NoneType. Write SELECT ...
    """
    if not isinstance(value, str):
        raise InputError(f"{what} must be text, not {type(value).__name__}", hint=hint)
    try:
        value.encode()
    except UnicodeEncodeError as error:
        fact = f"{what} has a character at position {error.start} that is not valid Unicode"
        raise InputError(fact, hint="Remove it") from error


def check_name(value: object, what: str) -> None:
    """Raise unless a value is usable as a name.

    >>> check_name("", "the name of a query")
    Traceback (most recent call last):
    muntin.errors.InputError: the name of a query is empty. Pass the name as text
    """
    check_text(value, what, "Pass the name as text")
    if not value:
        raise InputError(f"{what} is empty", hint="Pass the name as text")


def read_timeout(value: object) -> float | None:
    """Return a timeout in seconds, capped at the longest one the system supports; None: no limit.

    >>> read_timeout("5")
    Traceback (most recent call last):
    muntin.errors.InputError: a timeout cannot be '5'. Pass a number of seconds
    """
    if value is None:
        return None
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or math.isnan(value):  # type: ignore[arg-type]
        raise InputError(f"a timeout cannot be {value!r}", hint="Pass a number of seconds")
    return max(0.0, float(min(value, threading.TIMEOUT_MAX)))  # type: ignore[call-overload]
