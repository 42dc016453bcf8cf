"""The changelog join, against results and removals computed from lists."""

from __future__ import annotations

from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from muntin.kernels import layout
from muntin.kernels.arrays import Span
from muntin.kernels.changelog_join import join_signed
from muntin.state import join_state
from tests.unit.kernels.naive import Result, Rig, Row, Scene, Window, scenes


def signed(rig: Rig, now: int) -> list[tuple[str, Result]]:
    program = rig.program()
    columns = rig.drive(
        lambda event, resume, enough: join_signed(
            rig.state.arena, program, rig.events,
            Span(event, len(rig.times), resume, enough), now, rig.output,
        )
    )  # fmt: skip
    return [("-" if column[0] < 0 else "+", tuple(column[1:])) for column in columns]


@given(
    scenes(), st.sampled_from([None, 1, 3]), st.sampled_from([1, 2, 3, 100]),
    st.sampled_from([1, 2, 256]),
    st.integers(0, 9), st.sampled_from(["index", "scan"]),
    st.sampled_from([0, 2**31 - 3, 2**32 - 3]),
)  # fmt: skip
def test_every_result_is_added_once_and_removed_once(
    scene: Scene, buckets: int | None, room: int, least: int, later: int, method: str, first: int
) -> None:  # fmt: skip
    now = max((row.time for row in scene.arriving), default=0) + later
    with patch.object(join_state, "_LEAST", least):
        rig = Rig(scene, method == "index", buckets, room=room, retracting=True, first=first)
        changes = signed(rig, now)
    assert sorted(changes) == scene.changes(now)
    times = [result[0] for _, result in changes]
    assert times == sorted(times)
    assert [result for sign, result in changes if sign == "+"] == scene.inserts()
    assert rig.held(now) == scene.held(now)
    assert rig.state.counters[layout.N_RETRACTED] == sum(sign == "-" for sign, _ in changes)


def test_small_buffers_lose_nothing() -> None:
    rows = [Row(place % 3, place // 3, 0, place % 2, place // 3) for place in range(45)]
    scene = Scene(
        (Window(layout.TIME, 4), Window(layout.COUNT, 4), Window(layout.PARTITIONED, 2)),
        tuple(rows),
    )
    with patch.object(join_state, "_LEAST", 1):
        rig = Rig(scene, room=2, retracting=True)
        assert sorted(signed(rig, 100)) == scene.changes(100)
    assert rig.seen == {layout.DONE, layout.FULL, layout.GROW, layout.OVERFLOW}
    assert rig.held(100) == scene.held(100)
    assert rig.held(100)[0] == []
