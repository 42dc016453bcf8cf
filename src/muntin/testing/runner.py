"""Runs golden scripts against a driver and checks what comes out, also against the oracle.

``out``, ``state``, ``late`` and ``explain`` are compared with what the script says; ``answer`` with
the script *and* the oracle. At the end of the script (and when a query is dropped) everything a
query sent out is compared with the oracle too, so a script cannot be completed with wrong results.
A failed check does not stop the script; an unexpected error does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from muntin.errors import MuntinError
from muntin.model.catalog import Catalog
from muntin.plan.query import Query
from muntin.testing.checks import (
    Completion,
    check_answer,
    check_explain,
    check_late,
    check_out,
    check_state,
)
from muntin.testing.driver import Driver, DriverFactory
from muntin.testing.golden import (
    Explain,
    GoldenScriptError,
    Late,
    Out,
    Script,
    ScriptAnswer,
    ScriptDrop,
    ScriptState,
    ScriptStep,
    read_script,
)
from muntin.testing.session import Binder, Session


@dataclass(frozen=True)
class Failure:
    """A check that failed, by the line of the script it stands on."""

    line: int
    message: str


@dataclass(frozen=True)
class Report:
    """How a script went."""

    path: str
    about: str
    steps: int
    failures: tuple[Failure, ...]
    completed: int = 0

    @property
    def ok(self) -> bool:
        """Return whether every check held."""
        return not self.failures

    def __str__(self) -> str:
        if self.failures:
            return "\n".join(
                f"{self.path}:{failure.line}: {failure.message}" for failure in self.failures
            )
        completed = f", {self.completed} blocks written" if self.completed else ""
        return f"{self.path}: ok ({self.steps} steps{completed})"


def run_file(
    path: str | Path,
    *,
    complete: bool = False,
    settings: Mapping[str, object] | None = None,
    driver: DriverFactory | None = None,
    bind: Binder | None = None,
) -> Report:
    """Run one golden script.

    Parameters
    ----------
    path : str or Path
        The script.
    complete : bool
        Write what came out into the file's ``out`` and ``state`` blocks instead of comparing it.
        Never touches ``answer``.
    settings : Mapping[str, object], optional
        Settings of the engine that override those of the script, to run every script under every
        algorithm.
    driver : DriverFactory, optional
        What to run the script against; the engine in process by default.
    bind : Binder, optional
        How query texts are bound for the oracle; Muntin's SQL by default.

    Returns
    -------
    Report
        What failed, if anything.

    Examples
    --------
    >>> report = run_file("tests/golden/join_equality.cqt")  # doctest: +SKIP
    >>> assert report.ok, str(report)  # doctest: +SKIP
    """
    path = Path(path)
    completion = Completion() if complete else None
    text = path.read_text(encoding="utf-8")
    try:
        script = read_script(text, str(path))
    except GoldenScriptError as error:
        return Report(str(path), "", 0, (Failure(error.line, error.fact),))
    report = run_script(script, completion=completion, settings=settings, driver=driver, bind=bind)
    if completion and completion.edits:
        path.write_text(completion.apply(script.lines), encoding="utf-8")
    return report


def run_script(
    script: Script,
    *,
    completion: Completion | None = None,
    settings: Mapping[str, object] | None = None,
    driver: DriverFactory | None = None,
    bind: Binder | None = None,
) -> Report:
    """Run a parsed golden script; ``completion`` collects new text, see :func:`run_file`."""
    session = Session(driver or _engine_driver, bind or _bind, dict(settings or {}))
    try:
        failures = tuple(_failures(script, session, completion))
    finally:
        session.close()
    return Report(
        script.path,
        script.about,
        len(script.steps),
        failures,
        len(completion.edits) if completion else 0,
    )


def _failures(script: Script, session: Session, completion: Completion | None) -> Iterator[Failure]:
    for step in script.steps:
        try:
            problem = _take(step, session, completion)
        except Exception as error:  # noqa: BLE001 - any error of a driver is reported
            message = (
                str(error)
                if isinstance(error, MuntinError | ValueError)
                else f"{type(error).__name__}: {error}"
            )
            if not step.errors or not isinstance(error, MuntinError):
                yield Failure(step.line, f"unexpected error: {message}")
                return
            problem = "".join(
                f"expected the error: {piece}\ngot: {message}"
                for piece in step.errors
                if piece not in message
            )
        else:
            if step.errors and not problem:
                problem = f"expected the error: {step.errors[0]}\ngot none"
        if problem:
            yield Failure(step.line, problem)
    for name in session.running():
        if problem := session.against_oracle(name):
            yield Failure(
                len(script.lines), f"{name}: what was sent out differs from the oracle\n{problem}"
            )


def _take(step: ScriptStep, session: Session, completion: Completion | None) -> str:
    """Do or check one step; what is wrong, or nothing."""
    match step.action:
        case Out():
            return check_out(session, step, step.action, completion)
        case ScriptAnswer():
            return check_answer(session, step.action)
        case ScriptState():
            return check_state(session, step, step.action, completion)
        case Late():
            return check_late(session, step.action)
        case Explain():
            return check_explain(session, step.action)
        case ScriptDrop(query):
            problem = session.against_oracle(query)
            session.perform(step.action)
            return problem
        case action:
            session.perform(action)
            return ""


def _engine_driver(settings: Mapping[str, object]) -> Driver:
    from muntin.testing.engine_driver import EngineDriver  # noqa: PLC0415 - optional

    return EngineDriver(settings)


def _bind(text: str, name: str, catalog: Catalog) -> Query:
    from muntin.sql.script import read_query  # noqa: PLC0415 - as above, with other SQL

    return read_query(text, name, catalog)
