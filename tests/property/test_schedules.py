"""Under each scheduler every query gets its own results in its own order, for any input.

Streams, windows, queries and arrivals are random.
"""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from muntin.model.settings import Scheduler
from muntin.testing.schedule_trace import (
    FoundPair,
    Number,
    ReleasedPair,
    ScanStep,
    ScheduleRow,
    Setup,
    Viewer,
    ViewerChange,
)
from muntin.testing.schedules import alone, simulate

LENGTHS = st.integers(1, 8)
WINDOWS = st.one_of(LENGTHS.map(lambda length: (length, length)), st.tuples(LENGTHS, LENGTHS))
WEIGHTS: st.SearchStrategy[Number] = st.sampled_from([1, 1, 3, Fraction(1, 2), Fraction(5, 3)])
SCHEDULERS = st.sampled_from(list(Scheduler))


@st.composite
def streams(draw: st.DrawFn) -> tuple[ScheduleRow, ...]:
    drawn = draw(
        st.lists(
            st.tuples(
                st.integers(0, 1),
                st.integers(0, 2),
                st.sampled_from([1, 1, 2, None]),
                st.sampled_from([0, 0, 1, 2, 5]),
            ),
            max_size=16,
        )
    )
    history = draw(st.integers(0, 5))
    rows, time, clock = [], 0, 0
    for number, (stream, gap, key, wait) in enumerate(drawn):
        time, clock = time + gap, clock + wait
        rows.append(ScheduleRow(stream, time, key, None if number < history else clock))
    return tuple(rows)


@st.composite
def setups(draw: st.DrawFn, *, changing: bool) -> Setup:
    rows = draw(streams())
    queries = tuple(
        Viewer(f"q{number}", draw(WINDOWS), draw(WEIGHTS))
        for number in range(draw(st.integers(0 if changing else 1, 4)))
    )
    first = Setup(rows, queries).first
    changes: list[ViewerChange] = []
    present = [query.name for query in queries]
    places = draw(st.lists(st.integers(first, len(rows)), max_size=5)) if changing else []
    for number, before in enumerate(sorted(places)):
        if draw(st.booleans()) and present:
            changes.append(
                ViewerChange(before, drop=present.pop(draw(st.integers(0, len(present) - 1))))
            )
        else:
            present.append(f"later{number}")
            changes.append(
                ViewerChange(before, add=Viewer(present[-1], draw(WINDOWS), draw(WEIGHTS)))
            )
    return Setup(
        rows,
        queries,
        tuple(changes),
        counted=draw(st.tuples(st.booleans(), st.booleans())),
        buckets=draw(st.sampled_from([None, None, 1, 2, 3])),
        result=draw(st.sampled_from([0, 0, 1])),
        slice=draw(st.sampled_from([None, None, 1, 2])),
        rates=draw(st.sampled_from([(1, 1), (1, 3)])),
    )


@given(setups(changing=False), SCHEDULERS)
def test_every_query_gets_the_results_it_gets_alone_in_order(
    setup: Setup, scheduler: Scheduler
) -> None:
    trace = simulate(setup, scheduler)
    for query in setup.queries:
        assert trace.output(query.name) == alone(setup, query.name)
    assert not any(step.held for step in trace.steps[-1:] if isinstance(step, ScanStep))


@given(setups(changing=True), SCHEDULERS)
def test_adding_and_dropping_queries_does_not_affect_the_others(
    setup: Setup, scheduler: Scheduler
) -> None:
    trace = simulate(setup, scheduler)
    dropped = {change.drop: change.before for change in setup.changes if change.drop}
    for name in [query.name for query in setup.queries] + [
        change.add.name for change in setup.changes if change.add
    ]:
        output, expected = trace.output(name), alone(setup, name)
        if name not in dropped:
            assert output == expected
        else:
            assert output == expected[: len(output)]
            assert all(outer < dropped[name] for outer, _ in output)


@given(setups(changing=False), SCHEDULERS)
def test_time_moves_forward_and_nothing_is_released_before_it_is_found(
    setup: Setup, scheduler: Scheduler
) -> None:
    trace = simulate(setup, scheduler)
    times = [step.time for step in trace.steps]
    assert times == sorted(times)
    found = {
        (step.outer, step.partner): step.time for step in trace.steps if isinstance(step, FoundPair)
    }
    for step in trace.steps:
        if isinstance(step, ReleasedPair):
            assert found[step.outer, step.partner] <= step.time
            arrival = setup.rows[step.outer].arrival
            assert arrival is not None
            assert arrival < step.time


@given(setups(changing=False))
def test_the_work_is_the_same_under_every_scheduler_and_only_its_order_differs(
    setup: Setup,
) -> None:
    traces = [simulate(setup, scheduler) for scheduler in Scheduler]
    pairs = [
        sorted((step.outer, step.partner) for step in trace.steps if isinstance(step, FoundPair))
        for trace in traces
    ]
    assert pairs[0] == pairs[1] == pairs[2]
    candidates = [
        sum(step.candidates for step in trace.steps if isinstance(step, ScanStep))
        for trace in traces
    ]
    assert candidates[0] == candidates[1] == candidates[2]
    assert traces[0].most_held == 0


@given(setups(changing=False))
def test_swf_scans_no_window_while_a_row_waits_for_a_smaller_one(setup: Setup) -> None:
    """Serve, of two arrived rows, the one with fewer completed levels, as observed from outside."""
    levels = sorted(
        {query.windows for query in setup.queries}, key=lambda windows: (sum(windows), windows)
    )
    behind = {number: 0 for number, row in enumerate(setup.rows) if row.arrival is not None}
    for step in simulate(setup, Scheduler.SWF).steps:
        if isinstance(step, ScanStep):
            arrived = [
                number for number in behind if (setup.rows[number].arrival or 0) <= step.begin
            ]
            assert levels.index(step.windows) == min(behind[number] for number in arrived)
            behind[step.outer] += step.finished
            if behind[step.outer] == len(levels):
                del behind[step.outer]


@given(setups(changing=False), SCHEDULERS)
def test_queues_hold_consecutive_rows_the_older_ones_wait_for_larger_windows(
    setup: Setup, scheduler: Scheduler
) -> None:
    for step in simulate(setup, scheduler).steps:
        if isinstance(step, ScanStep):
            rows = [number for queue in reversed(step.waiting) for number in queue]
            assert rows == list(range(rows[0], rows[0] + len(rows)) if rows else [])


@given(setups(changing=True), SCHEDULERS)
def test_no_row_overtakes_an_older_one_while_queries_are_added_and_dropped(
    setup: Setup, scheduler: Scheduler
) -> None:
    for step in simulate(setup, scheduler).steps:
        if isinstance(step, ScanStep):
            rows = [number for queue in reversed(step.waiting) for number in queue]
            assert rows == sorted(rows)
