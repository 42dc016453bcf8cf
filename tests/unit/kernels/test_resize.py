"""Resizing rings and scanning stores, against a list of the inserted rows."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin.kernels import layout
from muntin.kernels.arrays import Span
from muntin.kernels.nway_join import join_arrivals
from muntin.kernels.resize import count_inside, mark_codes, positions_inside
from muntin.state import join_state
from tests.unit.kernels.naive import Rig, Row, Scene, Window, scenes


def fill(rig: Rig, policy: int) -> list[list[int]]:
    program, expiry = rig.program(), np.array([layout.EVER, 3], np.int64)
    return list(rig.drive(
        lambda event, resume, enough: join_arrivals(
            rig.state.arena, program, rig.events, 0, policy, expiry,
            Span(event, len(rig.times), resume, enough), rig.output,
        )
    ))  # fmt: skip


def chains(rig: Rig, s: int) -> dict[int, list[int]]:
    """Return, for each bucket of the first index, the positions along its chain."""
    state, found = rig.state, {}
    x, store = int(state.first_index[s]), state.stores[s]
    for bucket in range(int(state.indexes[x, layout.BUCKETS])):
        head = int(
            state.halves[
                state.indexes[x, layout.HEADS] + bucket * state.indexes[x, layout.HEAD_STEP]
            ]
        )
        newest = int(store[layout.NEXT]) - 1
        seq = newest - ((newest - (head - 1)) & 0x7FFFFFFF) if head else -1
        met = []
        while seq >= store[layout.TAIL]:
            slot = (int(store[layout.TAIL_SLOT]) + seq - int(store[layout.TAIL])) % int(
                store[layout.CAP]
            )
            address = int(store[layout.ROWS]) + slot * int(store[layout.WIDTH])
            met.append(int(state.halves[2 * address + layout.POSITION]))
            link = int(state.halves[2 * address + int(state.indexes[x, layout.LINK])])
            seq = seq - link if link else -1
        if met:
            found[bucket] = met
    return found


@given(
    scenes(2, operators=(layout.EQ,)),
    st.sampled_from([layout.OWN, layout.EAGER, layout.PROBE, layout.ALL]),
    st.integers(0, 4),
)
def test_counting_and_positions_see_exactly_the_rows_inside(
    scene: Scene, policy: int, later: int
) -> None:
    rig = Rig(scene, cleaning=policy >= layout.PROBE)
    fill(rig, policy)
    now = max((row.time for row in scene.arriving), default=0) + later
    limits, state = rig.final_limits(now), rig.state
    for s, expected in enumerate(scene.held(now)):
        assert count_inside(state.arena, s, limits[s]) == len(expected)
        out = np.full(state.rows(s), -1, np.int64)
        assert positions_inside(state.arena, s, limits[s], out) == len(expected)
        assert out[: len(expected)].tolist() == expected


@given(
    scenes(2, operators=(layout.EQ,)),
    st.sampled_from([layout.OWN, layout.EAGER, layout.LAZY, layout.PROBE]),
    st.sampled_from([None, 1, 3]),
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 40)), min_size=1, max_size=3),
)  # fmt: skip
def test_a_ring_of_another_size_holds_the_same_rows_in_the_same_chains(
    scene: Scene, policy: int, buckets: int | None, sizes: list[tuple[int, int]]
) -> None:  # fmt: skip
    rig = Rig(scene, buckets=buckets, cleaning=policy >= layout.PROBE)
    fill(rig, policy)
    now = max((row.time for row in scene.arriving), default=0)
    limits = rig.final_limits(now)
    for s, more in sizes:
        rig.state._resize({s % rig.n: rig.state.rows(s % rig.n) + more + 1}, int(limits[s % rig.n]))
    assert rig.held(now) == scene.held(now)
    codes = {(row.source, row.position): row.code for row in scene.rows}
    for s in range(rig.n):
        met = chains(rig, s)
        assert all(positions == sorted(positions, reverse=True) for positions in met.values())
        assert {position for positions in met.values() for position in positions} >= set(
            scene.held(now)[s]
        )
        if buckets is None:
            for positions in met.values():
                assert len({codes[s, position] for position in positions}) <= 3
        homes: dict[int, int] = {}
        for bucket, positions in met.items():
            for position in positions:
                assert homes.setdefault(codes[s, position], bucket) == bucket


@pytest.mark.parametrize("first", [0, 2**31 - 2, 2**32 - 2])
def test_rows_keep_their_places_when_sequence_numbers_outgrow_their_halves(first: int) -> None:
    rows = [Row(place % 2, place, place % 3, 0, place // 2) for place in range(40)]
    scene = Scene((Window(layout.TIME, 1000), Window(layout.TIME, 9)), tuple(rows))
    with patch.object(join_state, "_LEAST", 2):
        rig = Rig(scene, first=first, room=1000)
        results = fill(rig, layout.OWN)
    assert [tuple(column[1:]) for column in results] == scene.inserts()
    assert rig.held(39) == scene.held(39)


@given(st.lists(st.integers(-5, 5), max_size=60), st.sampled_from([64, 1024]))
def test_marking_counts_no_more_places_than_there_are_codes(codes: list[int], places: int) -> None:
    rows = [Row(0, place, code, 0, place) for place, code in enumerate(codes)]
    rig = Rig(Scene((Window(layout.TIME, 1000),), tuple(rows)))
    fill(rig, layout.OWN)
    marks = np.zeros(places, np.uint8)
    marked = mark_codes(rig.state.arena, 0, layout.CODES, marks)
    assert marked == marks.sum()
    assert bool(codes) <= marked <= len(set(codes))
