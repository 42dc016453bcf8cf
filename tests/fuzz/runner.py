"""Runs cases: every call of the engine is one step, and anything but a MuntinError is a failure."""

from __future__ import annotations

import random
import signal
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from types import FrameType
from typing import Any

import pandas as pd
import pyarrow as pa

import muntin
from muntin.kernels.jit import all_kernels
from muntin.model.catalog import Stream
from muntin.model.clock import parse_instant
from muntin.runtime.holdings import bytes_held, rows_held, state_rows
from muntin.sql.types import build_schema
from muntin.testing.compare import changes_difference
from tests.fuzz.model import Model, arrow_rows, plain, sent_by
from tests.fuzz.script import Step

DEADLINE = 20.0
"""Seconds of CPU time that a step may take; it may wait for ``_WAITING`` times as long."""
_WAITING = 6.0


class HangError(BaseException):
    """Raised when a step takes too long; engines do not treat it as the failure of a query."""


@dataclass
class Outcome:
    """The outcome of a case: counts of steps by kind and result, and the first failure."""

    steps: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    accepted: set[str] = field(default_factory=set)
    failure: str = ""
    failed_at: int = -1


def run_case(
    steps: Sequence[Step], *, cut: int | None = None
) -> tuple[Outcome, Mapping[str, pa.Table]]:
    """Run steps on a new engine; with ``cut``, pushes are cut into smaller ones by that seed."""
    _compile_kernels()
    run = Run(None if cut is None else random.Random(cut))
    for number, step in enumerate(steps):
        run.outcome.steps += 1
        try:
            with _deadline():
                problem = run.take(step)
        except (Exception, HangError) as error:  # noqa: BLE001 (this is what it looks for)
            problem = "".join(traceback.format_exception(error))
        if problem:
            run.outcome.failure, run.outcome.failed_at = problem, number
            break
    return run.outcome, sent_by(run.model)


def compare_cuts(steps: Sequence[Step], cut: int) -> tuple[Outcome, str]:
    """Run steps twice and return how results differ, if they do.

    The second time, pushes are cut into smaller ones.
    """
    outcome, sent = run_case(steps)
    if outcome.failure:
        return outcome, ""
    other, again = run_case(steps, cut=cut)
    outcome.steps += other.steps
    if other.failure:
        return outcome, f"with other cuts ({cut}): {other.failure}"
    for name in sent.keys() & again.keys():
        if found := changes_difference(plain(sent[name]), plain(again[name])):
            return (
                outcome,
                f"{name}: results depend on how rows are cut into pushes ({cut})\n{found}",
            )
    return outcome, ""


@cache
def _compile_kernels() -> None:
    """Compile everything before the first step: minutes on a new machine, but no hang."""
    for kernel in all_kernels():
        kernel.compile()


@contextmanager
def _deadline() -> Iterator[None]:
    """Raise HangError in a step that computes or waits for too long."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise HangError(f"the step takes more than {DEADLINE} seconds")

    limits = {signal.SIGPROF: DEADLINE, signal.SIGALRM: DEADLINE * _WAITING}
    before = {number: signal.signal(number, stop) for number in limits}
    signal.setitimer(signal.ITIMER_PROF, limits[signal.SIGPROF])
    signal.setitimer(signal.ITIMER_REAL, limits[signal.SIGALRM])
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


class Run:
    """An engine, its input and its results. The methods called ``_do_...`` are the steps."""

    def __init__(self, cuts: random.Random | None = None) -> None:
        self.engine = muntin.Engine()
        self.model = Model()
        self.outcome = Outcome()
        self._cuts = cuts
        self._settled: int | None = None

    def take(self, step: Step) -> str:
        """Run a step and return what is wrong, or None."""
        word, *arguments = step
        do: Callable[..., str | None] = getattr(self, f"_do_{word}")
        try:
            problem = do(*arguments)
        except muntin.MuntinError as error:
            self.outcome.counts[f"{word} refused"] += 1
            return self._refused(word, error)
        self.outcome.counts[f"{word} done"] += 1
        return problem or ""

    def _refused(self, word: str, error: muntin.MuntinError) -> str:
        if word in {
            "check",
            "poll",
            "answer",
            "explain",
            "stats",
            "settle",
        } and "there is no query" not in str(error):
            return f"refused: {error}"
        if not str(error) or len(str(error)) > 20_000:
            return f"an error says nothing, or too much: {str(error)[:200]!r}"
        return ""

    # -- declarations ------------------------------------------------------------------------------

    def _do_engine(self, settings: Mapping[str, object]) -> None:
        self.engine = muntin.Engine(**settings)

    def _do_stream(self, name: str, columns: Mapping[str, str], time: str, slack: int) -> None:
        self.engine.stream(name, columns, time=time, slack=slack)
        self.model.declare(Stream(name, build_schema(columns), time, slack))

    def _do_table(self, name: str, columns: Mapping[str, str], rows: list[Any]) -> None:
        self.engine.table(name, rows, columns)
        self.model.table(name, arrow_rows(rows, build_schema(columns)))

    def _do_query(self, name: str, sql: str, exact: bool) -> None:  # noqa: FBT001 (plain tuples)
        self.engine.query(sql, name=name)
        query = self.engine.dataflow.queries[name].query
        self.model.register(query, exact=exact)
        self.outcome.accepted.add(name)

    def _do_broken(self, sql: str) -> None:
        self.engine.query(sql, name="broken")
        self.engine.drop("broken")

    def _do_script(self, script: str) -> None:
        try:
            self.engine.execute(script)
        finally:
            for query in self.engine.queries():
                if query.name not in self.model.queries:
                    self.engine.drop(query.name)

    def _do_drop(self, name: str) -> None:
        self.engine.drop(name)
        self.model.drop(name)

    # -- rows and time -----------------------------------------------------------------------------

    def _do_push(self, stream: str, form: str, rows: list[tuple[Any, ...]]) -> None:
        pieces = [rows]
        if self._cuts is not None and len(rows) > 1:
            edge = self._cuts.randrange(len(rows))
            pieces = [piece for piece in (rows[:edge], rows[edge:]) if piece]
        for piece in pieces:
            self._settled = None
            self.engine.push(stream, self._formed(stream, form, piece))
            self.model.feed(stream, piece)

    def _do_junk(self, stream: str, form: str, rows: list[Any]) -> None:
        try:
            formed = self._formed(stream, form, rows)
        except Exception:  # noqa: BLE001 (Arrow and pandas cannot hold such rows; Python can)
            formed = rows
        self._settled = None
        self.engine.push(stream, formed)
        self.model.exact = False

    def _formed(self, stream: str, form: str, rows: list[Any]) -> Any:
        names = [field.name for field in self.engine._state(stream).stream.schema]
        if form == "dicts":
            return [dict(zip(names, row, strict=False)) for row in rows]
        if form == "pandas":
            return pd.DataFrame([list(row) for row in rows], columns=names, dtype=object)
        if form in {"arrow", "batch"}:
            table = arrow_rows(rows, self.engine._state(stream).stream.schema)
            return table if form == "arrow" else table.combine_chunks().to_batches()[0]
        return rows

    def _do_advance(self, to: Any) -> None:
        self._settled = None
        self.engine.advance(to)
        self.model.advance(parse_instant(to))

    def _do_settle(self, at: int) -> None:
        self.engine.advance(at)
        self.model.advance(at)
        self._settled = at

    # -- looking -----------------------------------------------------------------------------------

    def _do_poll(self, name: str) -> None:
        table = self.engine.handle(name).poll()
        self.model.queries[name].got.append(table)

    def _do_answer(self, name: str) -> None:
        self.engine.handle(name).answer()

    def _do_check(self, name: str) -> str:
        if name not in self.model.queries or self._settled is None:
            return ""
        return self.model.problem(self.engine, name, self._settled)

    def _do_explain(self) -> None:
        assert self.engine.explain()

    def _do_plan(self) -> None:
        [query.plan() for query in self.engine.queries()]

    def _do_stats(self) -> None:
        self.engine.stats()

    def _do_state(self) -> None:
        assert rows_held(self.engine.dataflow) >= 0
        assert bytes_held(self.engine.dataflow) >= 0
        state_rows(self.engine.dataflow)

    def _do_late(self) -> None:
        for name in self.model.fed:
            self.engine.late(name)
