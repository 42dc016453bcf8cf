"""The runner against a driver that is right, and against drivers that are wrong in one way each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from muntin.model.catalog import Catalog
from muntin.model.window import TimeWindow
from muntin.plan.query import Emit, Query
from muntin.testing.checks import Completion
from muntin.testing.golden import read_script
from muntin.testing.oracle_driver import OracleDriver
from muntin.testing.runner import Report, run_file, run_script

SECOND = 1_000_000

GOOD = """\
# about: a pair comes and goes
stream A (k int, v int)
stream B (k int, v int)
query q: inserts
query c: changes
feed A
1  1 10
feed B
2  1 20
3  NULL 30
feed A
4  1 11
advance 5
out q
+ 2  10 20
+ 4  11 20
out c
+ 2 10 20
+ 4 11 20
answer q
11 20
10 20
state A=2 B=2
advance 13
out q
(empty)
out c
- 11 10 20
- 12 11 20
answer c
(empty)
state A=1 B=0
"""


@pytest.fixture
def bind(workshop: Any) -> Callable[[str, str, Catalog], Query]:
    """Return a function that binds two queries by their text."""
    ten = TimeWindow(10 * SECOND)

    def find(text: str, name: str, _: Catalog) -> Query:
        query: Query = workshop.query(
            [("A", ten), ("B", ten)], ['"0.k" = "1.k"'], emit=Emit(text), name=name
        )
        return query

    return find


def run(
    text: str,
    bind: Any,
    driver: Callable[[Any], Any] = OracleDriver,
    completion: Completion | None = None,
) -> Report:
    return run_script(
        read_script(text), driver=lambda _: driver(bind), bind=bind, completion=completion
    )


def replaced(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new, 1)


def test_a_good_script_passes(bind: Any) -> None:
    report = run(GOOD, bind)
    assert report.ok
    assert str(report) == f"script: ok ({report.steps} steps)"
    assert report.about == "a pair comes and goes"


def test_a_restart_after_every_step_changes_nothing(bind: Any) -> None:
    steps = read_script(GOOD).steps
    lines = GOOD.splitlines()
    for step in reversed(steps):
        lines.insert(step.last_line, "restart")
    report = run("\n".join(lines), bind)
    assert report.ok, str(report)


def test_wrong_results_are_shown_beside_the_right_ones(bind: Any) -> None:
    report = run(replaced("+ 4  11 20\n", "+ 4  11 99\n"), bind)
    assert str(report) == (
        "script:14: out q: the results differ\n"
        "expected:\n  +  2  10  20\n  +  4  11  99\n"
        "got:\n  +  2  10  20\n  +  4  11  20"
    )  # fmt: skip


def test_the_order_of_inserts_counts(bind: Any) -> None:
    assert not run(replaced("+ 2  10 20\n+ 4  11 20\n", "+ 4  11 20\n+ 2  10 20\n"), bind).ok


def test_the_order_of_changes_counts_between_instants_only(bind: Any) -> None:
    assert not run(replaced("- 11 10 20\n- 12 11 20\n", "- 12 11 20\n- 11 10 20\n"), bind).ok
    text = (
        "stream A (k int, v int)\nstream B (k int, v int)\nquery c: changes\nfeed A\n1  1 1\n1  "
        "1 2\nfeed B\n1  1 3\nadvance 2\nout c\n"
    )
    assert run(text + "+ 1 1 3\n+ 1 2 3\n", bind).ok
    assert run(text + "+ 1 2 3\n+ 1 1 3\n", bind).ok


def test_a_wrong_answer_in_the_script_is_contradicted_by_engine_and_oracle(bind: Any) -> None:
    report = run(replaced("answer q\n11 20\n", "answer q\n"), bind)
    assert "script:20: answer q: the answer differs" in str(report)
    assert "the oracle says" in str(report)


def test_wrong_state_is_found(bind: Any) -> None:
    report = run(replaced("state A=2 B=2", "state A=2 B=3"), bind)
    assert (
        str(report) == "script:23: state differs\nexpected:\n  state A=2 B=3\ngot:\n  state A=2 B=2"
    )


def test_an_out_without_a_body_is_not_taken_for_empty(bind: Any) -> None:
    assert "not even (empty)" in str(run(replaced("out q\n(empty)\n", "out q\n"), bind))


def test_an_unexpected_error_stops_the_script(bind: Any) -> None:
    report = run(replaced("feed A\n", "stream a (k int)\nfeed A\n"), bind)
    assert str(report) == (
        "script:6: unexpected error: there is already a stream A. Choose another name, or "
        "drop it first"
    )


def test_an_expected_error_leaves_everything_as_it_was(bind: Any) -> None:
    assert run(
        replaced(
            "feed A\n", "stream a (k int)\nerror: already a stream A\nerror: another name\nfeed A\n"
        ),
        bind,
    ).ok
    assert run(
        replaced("advance 5\n", "feed A\n4.5 1 10\nNULL 1 10\nerror: is NULL\nadvance 5\n"), bind
    ).ok


def test_an_expected_error_must_occur_with_the_expected_message(bind: Any) -> None:
    assert "got: there is already" in str(
        run(replaced("feed A\n", "stream a (k int)\nerror: something else\nfeed A\n"), bind)
    )
    assert "got none" in str(run(replaced("advance 5\n", "advance 5\nerror: no\n"), bind))


def test_a_step_that_crashes_is_reported_with_the_type_of_the_error(bind: Any) -> None:
    class Crashing(OracleDriver):
        def advance(self, at: int) -> None:
            raise ZeroDivisionError(at)

    assert "script:13: unexpected error: ZeroDivisionError: 5000000" in str(
        run(GOOD, bind, Crashing)
    )


def test_queries_can_be_dropped_and_explained(bind: Any) -> None:
    class Planning(OracleDriver):
        def explain(self, query: str) -> str:
            return f"{query} is run by hand"

    dropped = "drop q\nout q\nerror: no query q\ndrop q\nerror: no query q\n"
    text = replaced("state A=1 B=0", "explain q\n  by hand\n  nothing of the kind\n" + dropped)
    assert "does not contain 'nothing of the kind'" in str(run(text, bind, Planning))
    assert run(text.replace("  nothing of the kind\n", ""), bind, Planning).ok
    assert run(text, bind).ok  # the oracle has no plan to check


def test_late_rows_are_kept_out_of_the_oracle_too(bind: Any) -> None:
    late = (
        "feed A\n0.5 1 12\n6 1 13\n2 1 14\nadvance 7\nout q\n+ 6 13 20\nlate A\n0.5 1 12\n2 1 "
        "14\nrestart\n"
    )
    text = replaced("advance 13\n", late + "advance 13\n").replace("state A=1 B=0", "state A=2 B=0")
    text = text.replace(
        "- 11 10 20\n- 12 11 20\n", "+ 6 13 20\n- 11 10 20\n- 12 11 20\n- 12 13 20\n"
    )
    report = run(text, bind)
    assert report.ok, str(report)
    assert "late A: the rows differ" in str(
        run(text.replace("late A\n0.5 1 12\n", "late A\n"), bind)
    )


def test_a_query_added_while_running_has_results_from_then_on(bind: Any) -> None:
    text = replaced(
        "advance 13\n",
        "query later: inserts\nfeed B\n6 1 21\nadvance 7\nout later\n+ 6 11 21\n+ 6 10 21\n"
        "advance 13\n",
    )
    text = text.replace("out q\n(empty)", "out q\n+ 6 11 21\n+ 6 10 21")
    text = text.replace(
        "- 11 10 20\n- 12 11 20", "+ 6 10 21\n+ 6 11 21\n- 11 10 20\n- 11 10 21\n- 12 11 20"
    )
    report = run(
        text.replace("answer c\n(empty)", "answer c\n11 21").replace(
            "state A=1 B=0", "state A=1 B=1"
        ),
        bind,
    )
    assert report.ok, str(report)


def test_external_settings_take_precedence(bind: Any) -> None:
    changes: list[tuple[str, str]] = []
    settings_seen: list[Mapping[str, object]] = []

    class Noting(OracleDriver):
        def change(self, setting: str, value: str) -> None:
            changes.append((setting, value))

    def make(settings: Mapping[str, object]) -> OracleDriver:
        settings_seen.append(dict(settings))
        return Noting(bind)

    script = read_script("set expiry = 'lazy'\nset partitions = 5\n")
    assert run_script(script, driver=make, bind=bind, settings={"expiry": "eager"}).ok
    assert changes == [("partitions", "5")]
    assert settings_seen == [{"expiry": "eager"}]


class _Doubling(OracleDriver):
    """A driver that sends every result twice."""

    def take(self, query: str) -> pa.Table:
        results = super().take(query)
        return pa.concat_tables([results, results])


class _Forgetful(OracleDriver):
    """A driver whose answers are always empty."""

    def answer(self, query: str) -> pa.Table:
        return super().answer(query).slice(0, 0)


def test_completion_writes_out_and_state_but_never_answers(bind: Any, tmp_path: Path) -> None:
    empty = replaced("+ 2  10 20\n+ 4  11 20\n", "+ 7 7 7\n").replace(
        "state A=2 B=2", "state A=0 B=9"
    )
    empty = empty.replace("out c\n+ 2 10 20\n+ 4 11 20\n", "out c\n")
    path = tmp_path / "script.cqt"
    path.write_text(empty)
    report = run_file(path, complete=True, driver=lambda _: OracleDriver(bind), bind=bind)
    assert report.ok
    assert report.completed == 3
    assert path.read_text() == GOOD.replace(
        "out c\n+ 2 10 20\n+ 4 11 20\n", "out c\n+ 2  10 20\n+ 4  11 20\n"
    )
    path.write_text(replaced("answer q\n11 20\n", "answer q\n"))
    assert not run_file(path, complete=True, driver=lambda _: OracleDriver(bind), bind=bind).ok
    assert path.read_text() == replaced("answer q\n11 20\n", "answer q\n")


def test_wrong_results_are_not_accepted_by_completing_them(bind: Any) -> None:
    completion = Completion()
    report = run(GOOD, bind, _Doubling, completion)
    assert completion.edits
    assert "what was sent out differs from the oracle" in str(report)


def test_an_engine_with_a_wrong_answer_is_found(bind: Any) -> None:
    report = run(GOOD, bind, _Forgetful)
    assert "answer q: the engine differs from the oracle\nmissing (2 rows)" in str(report)


def test_a_file_that_cannot_be_read_is_a_failure(tmp_path: Path) -> None:
    path = tmp_path / "bad.cqt"
    path.write_text("stream A (k int)\nadvance x\n")
    assert str(run_file(path)) == f"{path}:2: line 2: 'x' is not a time in seconds"
