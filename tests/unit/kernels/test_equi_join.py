"""The kernel specialized for two windows against the general one.

Results, order, counts and remaining state must be equal.
"""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from muntin.kernels import layout
from muntin.kernels.arrays import Span
from muntin.kernels.equi_join import join_pair
from muntin.kernels.nway_join import join_arrivals
from muntin.state import join_state
from tests.unit.kernels.naive import Rig, Row, Scene, Window, scenes

PAIRS = scenes(2, kinds=(layout.TIME, layout.COUNT, layout.STORED), operators=(layout.EQ,)).filter(
    lambda scene: len(scene.windows) == 2
)


def pair(rig: Rig) -> list[list[int]]:
    return list(rig.drive(
        lambda event, resume, enough: join_pair(
            rig.state.arena, rig.events, Span(event, len(rig.times), resume, enough), rig.output
        )
    ))  # fmt: skip


def general(rig: Rig) -> list[list[int]]:
    program, expiry = rig.program(), np.zeros(2, np.int64)
    return list(rig.drive(
        lambda event, resume, enough: join_arrivals(
            rig.state.arena, program, rig.events, 0, layout.OWN, expiry,
            Span(event, len(rig.times), resume, enough), rig.output,
        )
    ))  # fmt: skip


@given(
    PAIRS,
    st.sampled_from([1, 2, 7, 1000]),
    st.sampled_from([1, 2, 256]),
    st.sampled_from([0, 2**31 - 4, 2**32 - 4]),
)
def test_it_equals_the_general_kernel(scene: Scene, room: int, least: int, first: int) -> None:
    with patch.object(join_state, "_LEAST", least):
        mine, other = (Rig(scene, room=room, first=first) for _ in range(2))
        found = pair(mine)
        assert found == general(other)
    assert [tuple(column[1:]) for column in found] == scene.inserts()
    assert mine.state.counters.tolist() == other.state.counters.tolist()
    fields = [layout.TAIL, layout.NEXT, layout.LAST, layout.HELD]
    assert mine.state.stores[:, fields].tolist() == other.state.stores[:, fields].tolist()
    now = max((row.time for row in scene.arriving), default=0)
    assert mine.held(now) == scene.held(now)


def test_all_reasons_to_return_happen_on_long_input() -> None:
    """The input exceeds the kernel's lookahead, repeats keys and wraps the rings around."""
    rows = [Row(place % 2, place // 3, (place * 7) % 5, 0, place // 2) for place in range(400)]
    scene = Scene((Window(layout.TIME, 30), Window(layout.COUNT, 40)), tuple(rows))
    with patch.object(join_state, "_LEAST", 2):
        mine, other = Rig(scene, room=9), Rig(scene, room=9)
        assert pair(mine) == general(other)
    assert mine.seen == {layout.DONE, layout.FULL, layout.GROW, layout.OVERFLOW}
    assert mine.state.counters.tolist() == other.state.counters.tolist()
    assert mine.held(rows[-1].time) == scene.held(rows[-1].time)
