"""Log warnings about times that are probably wrong; results do not depend on them."""

from __future__ import annotations

import logging

from muntin.model.clock import format_instant

_log = logging.getLogger("muntin")

_DECADES = 20 * 365 * 86_400_000_000


def warn_of_epoch(stream: str, first: int, now: int) -> None:
    """Warn if the first time of a stream is decades from now: its unit is probably wrong.

    ``now`` is the clock in microseconds since 1970.
    """
    if abs(first - now) > _DECADES:
        _log.warning(
            "stream %s begins at %s, decades away from now. Integers are microseconds since 1970: "
            "multiply seconds by 1000000 and milliseconds by 1000",
            stream,
            format_instant(first),
        )


def warn_of_rows_ahead(stream: str, first: int | None = None) -> None:
    """Warn that rows of a stream are too far ahead and were set aside.

    ``first`` is the time of the first of them, if known.
    """
    _log.warning(
        "stream %s has rows%s further ahead of the others than max_advance allows. "
        "They are set aside with the late rows. "
        "If they are right, set max_advance to a longer interval or 'off'",
        stream,
        "" if first is None else f" (the first at {format_instant(first)})",
    )
