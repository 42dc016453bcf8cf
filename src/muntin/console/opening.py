"""How engines open a console; what it is made of is imported only then, as it is an extra."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muntin.console.source import ConsoleSource, TextPages
from muntin.errors import InputError

if TYPE_CHECKING:
    from muntin.console.server import Console

_EXTRA = {"anyio", "starlette", "uvicorn", "h11"}


def open_console(
    source: ConsoleSource,
    address: str | None,
    *,
    read_only: bool,
    pages: TextPages | None = None,
) -> Console:
    """Open a console of an engine, with ``pages`` for programs beside it."""
    try:
        from muntin.console.app import ConsoleOptions  # noqa: PLC0415 (an extra)
        from muntin.console.server import Console as Opened  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name not in _EXTRA:
            raise
        raise InputError(
            f"the console needs {error.name}", hint="Run: pip install 'muntin[console]'"
        ) from error
    return Opened(source, address, ConsoleOptions(read_only=read_only, pages=pages or {}))
