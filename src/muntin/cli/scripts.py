"""Scripts read without running them: by ``check``, ``explain``, and ``run`` before Spark starts."""

from __future__ import annotations

from pathlib import Path

from muntin.engine.script_check import Scope, ScriptCheck
from muntin.errors import InputError, SqlError
from muntin.plan.join import JoinPlan
from muntin.plan.query_plan import QueryPlan

_NO_FILES = Scope(files=False)


class InvalidScriptError(SqlError):
    """All errors of a script; the place is that of the first."""

    def __init__(self, errors: list[SqlError]) -> None:
        self.errors = errors
        super().__init__(errors[0].fact, place=errors[0].place, hint=errors[0].hint)

    def __str__(self) -> str:
        return "\n".join(map(str, self.errors))


def read_text(path: Path) -> str:
    """Return the text of a script."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise InputError(f"there is no file {str(path)!r}", hint="Check the path") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"cannot read {str(path)!r}: {error}", hint="It must be a text file in UTF-8"
        ) from error


def check_app(path: Path, scope: Scope) -> tuple[ScriptCheck, list[SqlError]]:
    """Check a script; return its declarations and all its errors."""
    check = ScriptCheck(scope)
    return check, check.read(read_text(path))


def read_app(path: Path, scope: Scope = _NO_FILES) -> list[JoinPlan | QueryPlan]:
    """Return the plans of the queries that a script leaves registered; raise all its errors."""
    check, errors = check_app(path, scope)
    if errors:
        raise InvalidScriptError(errors)
    return list(check.plans.values())
