"""Random cases have the properties that they are drawn for."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from muntin.sql.script import read_query
from muntin.testing.case import Case
from muntin.testing.golden import read_script
from muntin.testing.oracle_driver import OracleDriver
from muntin.testing.runner import run_script
from muntin.testing.strategies import Shape, cases
from muntin.testing.watermark import Watermark

drawn = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@drawn
@given(cases())
def test_a_case_printed_as_a_script_holds_against_the_definition_of_correct(case: Case) -> None:
    query = read_query(case.query, "q", case.catalog())
    report = run_script(read_script(case.script(query)), driver=lambda _: OracleDriver(read_query))
    assert report.ok, str(report)


@drawn
@given(cases(Shape(sources=1)))
def test_no_row_is_late(case: Case) -> None:
    watermark = Watermark()
    for stream in case.streams:
        watermark.declare(stream.name, stream.slack)
    assert all(watermark.arrive(event.stream, event.time) for event in case.events)


@drawn
@given(cases(Shape(sources=1)))
def test_batches_hold_every_row_once_and_in_order(case: Case) -> None:
    for stream in case.streams:
        parts = [
            row for name, rows in case.batches() if name == stream.name for row in rows.to_pylist()
        ]
        assert parts == case.rows()[stream.name].to_pylist()


@drawn
@given(cases(Shape(sources=2, emits=("EMIT CHANGES",), every=False, tables=False, slack=False)))
def test_the_shape_bounds_what_is_drawn(case: Case) -> None:
    query = read_query(case.query, "q", case.catalog())
    assert len(query.sources) <= 2
    assert (query.every, query.emit, case.tables) == (None, "changes", ())
    assert not any(stream.slack for stream in case.streams)
