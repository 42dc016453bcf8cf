"""The hierarchy of all errors that are raised on purpose: a short fact, a place and a remedy.

These classes are for users' mistakes, after which the engine is as it was before the call, and
(:class:`RunError`) for failures on Spark, after which a run resumes from its checkpoint. Mistakes
in Muntin are assertions with a reason.
"""

from __future__ import annotations

from dataclasses import dataclass


class MuntinError(Exception):
    """Base of all errors that Muntin raises on purpose.

    Parameters
    ----------
    fact : str
        What is wrong, in one sentence without a full stop.
    hint : str, optional
        What to do about it.
    option : str, optional
        The option of a WITH clause that caused the error, if any.
    """

    def __init__(self, fact: str, *, hint: str = "", option: str = "") -> None:
        self.fact = fact
        self.hint = hint
        self.option = option
        super().__init__(fact)

    def __str__(self) -> str:
        return f"{self.fact}. {self.hint}" if self.hint else self.fact


@dataclass(frozen=True)
class Place:
    """A position in the user's text; lines and columns count from 1."""

    line: int
    column: int
    query: str | None = None

    def __str__(self) -> str:
        where = f"line {self.line}, column {self.column}"
        return f"query {self.query}, {where}" if self.query else where


class SqlError(MuntinError):
    """A statement that cannot be parsed or does not fit the catalog."""

    def __init__(self, fact: str, *, place: Place, hint: str = "") -> None:
        self.place = place
        super().__init__(fact, hint=hint)

    def __str__(self) -> str:
        return f"{self.place}: {super().__str__()}"


class CatalogError(MuntinError):
    """A name that is unknown, taken or still in use."""


class SettingError(MuntinError):
    """A setting that does not exist or a value it cannot take."""


class InputError(MuntinError):
    """Rows, times or files that do not fit their declaration; none of them was accepted."""


class MemoryLimitError(MuntinError):
    """Rows that the setting ``memory_limit`` leaves no room for; none of them was accepted."""


class SubscriberError(MuntinError):
    """A subscriber's callback failed; the results of that call stay available to ``poll``."""


class RunError(MuntinError):
    """A failure at run time that is not a mistake in a program: of a sink, process or machine."""


class EvaluationError(MuntinError):
    """An expression that cannot be evaluated for any rows."""


class FunctionError(EvaluationError):
    """A Python function that failed, or whose result is not what was declared."""


class QuerySuspendedError(MuntinError):
    """A query that was suspended because it failed; other queries are not affected."""

    def __init__(self, query: str, reason: str) -> None:
        self.query = query
        self.reason = reason
        super().__init__(
            f"query {query} is suspended: {reason}",
            hint="Drop it and register it again, with a changed text if the reason is one of its "
            "expressions",
        )
