"""Warn, in the log, about times that are probably wrong; results do not depend on it."""

from __future__ import annotations

import logging

from muntin.model.clock import BEFORE_ALL, format_instant

_log = logging.getLogger("muntin")

_DECADES = 20 * 365 * 86_400_000_000


def warn_of_epoch(stream: str, first: int, now: int) -> None:
    """Warn if the first time of a stream is decades away from the clock: probably its unit is wrong.

    ``now`` is the clock in microseconds since 1970.
    """
    if abs(first - now) > _DECADES:
        _log.warning(
            "stream %s begins at %s, decades away from now. Integers are microseconds since 1970: "
            "multiply seconds by 1000000 and milliseconds by 1000",
            stream,
            format_instant(first),
        )


def warn_of_rows_ahead(stream: str, first: int, reference: int) -> None:
    """Warn that rows of a stream are too far ahead and were set aside."""
    since = "its first row" if reference <= BEFORE_ALL else format_instant(reference)
    _log.warning(
        "stream %s has a row at %s, further ahead of %s than max_advance allows. Such rows are set aside; "
        "late() returns them. If they are right, SET max_advance to a longer interval or 'off'",
        stream,
        format_instant(first),
        since,
    )
