"""The join loops against nested loops over lists.

Buffers and rings are so small that kernels return for every possible reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from unittest.mock import patch

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from muntin.kernels import layout
from muntin.kernels.arrays import Output, Span
from muntin.kernels.nway_join import (
    expire_all,
    join_arrivals,
    join_interval,
    join_intervals,
    join_snapshot,
)
from muntin.state import join_state
from tests.unit.kernels.naive import Result, Rig, Row, Scene, Window, scenes

POLICIES = st.sampled_from(
    [
        layout.OWN,
        layout.EAGER,
        layout.LAZY,
        layout.PROBE,
        layout.PROBE_INSERT,
        layout.PROBE_ALL,
        layout.ALL,
    ]
)
BUCKETS = st.sampled_from([None, None, 1, 2, 5])
ROOMS = st.sampled_from([1, 2, 3, 50])
METHODS = st.sampled_from(["index", "scan"])
FIRSTS = st.sampled_from([0, 0, 2**31 - 3, 2**32 - 3])


def arrivals(
    rig: Rig, policy: int, *, order: list[int] | None = None, cuts: Sequence[int] = ()
) -> list[Result]:
    """Return the results of join_arrivals; with an order, evaluate as NAIVE.

    At each cut the state is fitted to its contents, as between batches.
    """
    program, expiry = rig.program(order), np.array([layout.EVER, 2], np.int64)
    results: list[Result] = []
    for start, stop in pairwise(sorted({0, *cuts, len(rig.times)})):
        columns = rig.drive(
            lambda event, resume, enough, start=start, stop=stop: (  # type: ignore[misc]
                join_arrivals(
                    rig.state.arena,
                    program,
                    rig.events,
                    int(order is not None),
                    policy,
                    expiry,
                    Span(max(event, start), stop, resume, enough),
                    rig.output,
                )
            )
        )
        results += [tuple(column[1:]) for column in columns]
        limits = rig.limits(int(rig.times[stop - 1]), rig.counts[stop - 1])
        state = rig.state
        expire_all(state.arena, limits, policy, state.counters)
        state.fit(limits)
    return results


@given(scenes(), POLICIES, BUCKETS, ROOMS, FIRSTS, METHODS, st.sampled_from([1, 2, 256]), st.data())
def test_arrivals_equal_nested_loops_in_content_and_order(
    scene: Scene, policy: int, buckets: int | None, room: int, first: int, method: str, least: int,
    data: st.DataObject
) -> None:  # fmt: skip
    with patch.object(join_state, "_LEAST", least):
        rig = Rig(
            scene,
            method == "index",
            buckets,
            cleaning=policy >= layout.PROBE,
            room=room,
            first=first,
        )
        cuts = data.draw(st.lists(st.integers(0, len(rig.times)), max_size=5))
        assert arrivals(rig, policy, cuts=cuts) == scene.inserts()
        now = max((row.time for row in scene.arriving), default=0)
        assert rig.held(now) == scene.held(now)
        assert rig.state.counters[layout.N_INSERTED] == len(scene.arriving)
        rig.expire(now + 100, layout.OWN)
        assert rig.held(now + 100) == scene.held(now + 100)


@given(
    scenes(), st.sampled_from([layout.OWN, layout.EAGER, layout.LAZY]), BUCKETS, ROOMS, st.data()
)
def test_naive_finds_the_same_for_any_place_of_the_new_row_in_the_order(
    scene: Scene, policy: int, buckets: int | None, room: int, data: st.DataObject
) -> None:  # fmt: skip
    order = data.draw(st.permutations(range(len(scene.windows))))
    with patch.object(join_state, "_LEAST", 2):
        assert sorted(
            arrivals(Rig(scene, buckets=buckets, room=room), policy, order=order)
        ) == sorted(scene.inserts())


@given(scenes(), BUCKETS, ROOMS, st.data())
def test_intervals_find_the_same_for_any_cut(
    scene: Scene, buckets: int | None, room: int, data: st.DataObject
) -> None:
    rig = Rig(scene, buckets=buckets, room=room)
    program = rig.program(data.draw(st.permutations(range(rig.n))))
    events = len(rig.times)
    cuts = sorted({0, *data.draw(st.lists(st.integers(0, events), max_size=4)), events})
    results: list[list[int]] = []
    for start, stop in pairwise(cuts):
        for s in range(rig.n):
            rig.state.reserve(s, int(np.sum(rig.sources[start:stop] == s)), layout.EVER)
        order = np.empty(stop - start, np.int64)
        results += rig.drive(
            lambda _, resume, __, start=start, stop=stop, order=order: (  # type: ignore[misc]
                join_interval(
                    rig.state.arena,
                    program,
                    rig.events,
                    Span(start, stop, resume, 0),
                    order,
                    rig.output,
                )
            )
        )
    assert sorted(tuple(column[1:]) for column in results) == sorted(scene.inserts())
    now = max((row.time for row in scene.arriving), default=0)
    assert rig.held(now) == scene.held(now)


@given(scenes(), st.sampled_from([layout.OWN, layout.LAZY]), BUCKETS, ROOMS, st.data())
def test_many_intervals_in_one_call_find_the_same_for_any_cut(
    scene: Scene, policy: int, buckets: int | None, room: int, data: st.DataObject
) -> None:
    with patch.object(join_state, "_LEAST", 2):
        rig = Rig(scene, buckets=buckets, room=room)
        program = rig.program(data.draw(st.permutations(range(rig.n))))
        events = len(rig.times)
        inner = data.draw(st.lists(st.integers(1, events), max_size=4)) if events else []
        stops = np.array(sorted({*inner, events} - {0}), np.int64)
        timer, order = np.array([0, 2], np.int64), np.empty(events, np.int64)

        def grow(event: int) -> None:
            stop = int(stops[np.searchsorted(stops, event, side="right")])
            for s in range(rig.n):
                arriving = rig.sources[event:stop][rig.offsets[event:stop] >= 0]
                rig.state.reserve(s, int(np.sum(arriving == s)), layout.EVER)

        results = list(
            rig.drive(
                lambda event, resume, enough: join_intervals(
                    rig.state.arena, program, rig.events, stops, rig.times[stops - 1], policy,
                    timer, Span(event, events, resume, enough), order, rig.output,
                ),
                grow,
            )
        )  # fmt: skip
    assert sorted(tuple(column[1:]) for column in results) == sorted(scene.inserts())
    now = max((row.time for row in scene.arriving), default=0)
    assert rig.held(now) == scene.held(now)
    if policy == layout.OWN:
        assert all(
            rig.state.rows(s) == len(held)
            for s, held in enumerate(scene.held(now))
            if scene.windows[s].kind in {layout.TIME, layout.COUNT}
        )


@given(scenes(), BUCKETS, ROOMS, st.integers(0, 6))
def test_a_snapshot_is_the_join_of_the_rows_in_the_windows(
    scene: Scene, buckets: int | None, room: int, later: int
) -> None:
    rig = Rig(scene, buckets=buckets, room=room)
    arrivals(rig, layout.OWN)
    now = max((row.time for row in scene.arriving), default=0) + later
    origin = next(s for s, window in enumerate(scene.windows) if window.kind != layout.STORED)
    program, limits = rig.program(), rig.final_limits(now)
    begin, stop = (
        int(rig.state.stores[origin, layout.TAIL]),
        int(rig.state.stores[origin, layout.NEXT]),
    )
    results = rig.drive(
        lambda seq, _resume, _enough: join_snapshot(
            rig.state.arena, program, origin, limits, Span(max(seq, begin), stop, 0, 0),
            Output(rig.out, np.zeros(layout.COUNTERS, np.int64), rig.scratch),
        )
    )  # fmt: skip
    assert sorted(tuple(column[2:]) for column in results) == scene.answer(now)


def test_small_buffers_make_the_kernels_return_for_every_reason() -> None:
    rows = [Row(place % 2, place // 2, 0, 0, place // 2) for place in range(60)]
    scene = Scene((Window(layout.TIME, 100), Window(layout.TIME, 100)), tuple(rows))
    with patch.object(join_state, "_LEAST", 2):
        rig = Rig(scene, room=3)
        assert arrivals(rig, layout.OWN) == scene.inserts()
    assert rig.seen == {layout.DONE, layout.FULL, layout.GROW, layout.OVERFLOW}


def test_nothing_is_counted_twice_when_a_step_is_repeated() -> None:
    rows = [Row(place % 2, place // 2, 0, 0, place // 2) for place in range(60)]
    scene = Scene((Window(layout.TIME, 100), Window(layout.COUNT, 5)), tuple(rows))
    large = Rig(scene, room=10_000)
    arrivals(large, layout.OWN)
    small = Rig(scene, room=1)
    arrivals(small, layout.OWN)
    assert layout.OVERFLOW in small.seen
    assert layout.OVERFLOW not in large.seen
    assert small.state.counters.tolist() == large.state.counters.tolist()


@given(
    st.lists(st.tuples(st.sampled_from([0, 0, 0, 1]), st.integers(0, 2), st.integers(0, 3)),
        max_size=70),
    st.sampled_from([layout.OWN, layout.PROBE, layout.PROBE_INSERT, layout.PROBE_ALL, layout.ALL]),
    st.lists(st.integers(0, 100), max_size=12),
)  # fmt: skip
@example(
    [(0, 0, 3), (0, 2, 2), (0, 0, 0), (0, 0, 0), (0, 1, 1), (0, 2, 2), (0, 0, 0), (0, 0, 0)],
    layout.ALL,
    [],
)
def test_buckets_are_cleaned_correctly_after_rows_in_their_middle_remained(
    drawn: list[tuple[int, int, int]], policy: int, cuts: list[int]
) -> None:  # fmt: skip
    """A partitioned window expires rows in any order, and its ring is resized repeatedly."""
    rows: list[Row] = []
    for time, (source, code, group) in enumerate(drawn):
        rows.append(Row(source, time, code, group, sum(row.source == source for row in rows)))
    scene = Scene((Window(layout.PARTITIONED, 1), Window(layout.TIME, 1000)), tuple(rows))
    with patch.object(join_state, "_LEAST", 1):
        rig = Rig(scene, cleaning=policy >= layout.PROBE, room=50)
        assert (
            arrivals(rig, policy, cuts=[min(cut, len(rig.times)) for cut in cuts])
            == scene.inserts()
        )
        assert rig.held(len(rows)) == scene.held(len(rows))
