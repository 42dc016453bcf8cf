"""The partial matches of a tree against all combinations of the rows alive: a naive twin."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin.expressions.duck import Duck
from muntin.expressions.evaluator import Evaluator
from muntin.kernels import layout
from muntin.model.catalog import Catalog, Stream
from muntin.model.settings import Settings
from muntin.operators import workspace
from muntin.operators.join import JoinOperator, NewRows, Tools, make_join
from muntin.operators.join.tree import TreeTactic
from muntin.operators.workspace import Workspace
from muntin.planner.join_planner import plan_join
from muntin.sql.script import read_query
from muntin.state import partial_matches
from muntin.state.batch import Batch
from muntin.state.partial_matches import PartialMatches

SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))])
NAMES = "ABCD"
WINDOW = 10
SQL = (
    "SELECT A.k FROM A, B, C, D WHERE A.k = B.k AND B.k = C.k AND C.k = D.k "
    f"WINDOW {WINDOW} MICROSECONDS"
)
TREES = ("(((A, B), C), D)", "((A, B), (C, D))", "((D, (B, A)), C)")

Rows = list[list[tuple[int, int]]]
"""(time, key) of each stream, by time."""

batches = st.lists(
    st.tuples(*[st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2)), max_size=6)] * 4),
    min_size=1,
    max_size=8,
)


def operator(tree: str) -> JoinOperator:
    catalog = Catalog()
    for name in NAMES:
        catalog.add(Stream(name, SCHEMA, "ts"))
    plan = plan_join(read_query(SQL, "q", catalog), Settings.of(tree=tree))
    return make_join(plan, list(NAMES), {}, Tools(Evaluator(Duck()), Workspace()))


def feed(join: JoinOperator, rows: Rows, before: list[int], now: int) -> list[tuple[int, ...]]:
    """Feed the rows beyond ``before`` of each stream; return the positions of their results."""
    news = []
    for stream, count in zip(rows, before, strict=True):
        times = np.array([time for time, _ in stream[count:]], np.int64)
        table = pa.table(
            [
                pa.array([key for _, key in stream[count:]], pa.int64()),
                pa.array(times).cast(pa.timestamp("us")),
            ],
            SCHEMA,
        )
        news.append(
            NewRows(np.arange(count, len(stream)), Batch(table, times, np.zeros(len(times))), count)
        )
    return [
        tuple(column) for matches in join.join(news, now) for column in matches.positions.T.tolist()
    ]


def tree_of(join: JoinOperator) -> PartialMatches:
    assert isinstance(join.tactic, TreeTactic)
    return join.tactic.tree.partial_matches


def held(found: PartialMatches, node: int) -> list[tuple[int, ...]]:
    """Return the partial matches of a node as row numbers; without NULL keys, as positions."""
    row = found.nodes[node]
    width = int(row[layout.NODE_WIDTH])
    begin = int(row[layout.NODE_MEMBERS])
    return [
        tuple(members)
        for members in found.members[begin : begin + int(row[layout.NODE_USED]) * width]
        .reshape(-1, width)
        .tolist()
    ]


def chained(found: PartialMatches, node: int) -> Iterator[int]:
    """Yield the slots on the chains of a node."""
    row = found.nodes[node]
    for head in found.links[
        row[layout.NODE_HEADS] : row[layout.NODE_HEADS] + row[layout.NODE_BUCKETS]
    ].tolist():
        slot = head
        while slot:
            yield slot - 1
            slot = int(found.links[row[layout.NODE_LINKS] + slot - 1])


def combinations_alive(rows: Rows, sources: tuple[int, ...], now: int) -> list[tuple[int, ...]]:
    alive = [
        [
            (place, key)
            for place, (time, key) in enumerate(rows[source])
            if now - WINDOW < time <= now
        ]
        for source in sources
    ]
    return sorted(
        tuple(place for place, _ in chosen)
        for chosen in product(*alive)
        if len({key for _, key in chosen}) == 1
    )


@given(batches, st.sampled_from(TREES), st.sampled_from([1, 2, 256]), st.sampled_from([4, 1 << 10]))
def test_a_node_holds_all_combinations_alive_each_once_and_chained(
    drawn: list[tuple[list[tuple[int, int]], ...]], tree: str, least: int, columns: int
) -> None:
    rows: Rows = [[], [], [], []]
    with (
        patch.object(partial_matches, "_LEAST", least),
        patch.object(workspace, "_COLUMNS", columns),
        patch.object(workspace, "_MARGIN", min(columns // 2, 1 << 8)),
    ):
        join = operator(tree)
        expected, results = [], []
        for turn, batch in enumerate(drawn):
            before = [len(stream) for stream in rows]
            for stream, more in zip(rows, batch, strict=True):
                stream.extend(sorted((6 * turn + time, key) for time, key in more))
            now = 6 * turn + 5
            results += feed(join, rows, before, now)
            expected += [
                chosen
                for chosen in product(*(range(len(stream)) for stream in rows))
                if is_result(rows, chosen)
                and max(rows[source][place][0] for source, place in enumerate(chosen)) >= 6 * turn
            ]
            found = tree_of(join)
            for node, spec in enumerate(found.specs):
                alive = [
                    members
                    for members in held(found, node)
                    if all(
                        rows[source][place][0] > now - WINDOW
                        for source, place in zip(spec.sources, members, strict=True)
                    )
                ]
                assert sorted(alive) == combinations_alive(rows, spec.sources, now)
                assert sorted(chained(found, node)) == list(range(len(held(found, node))))
    assert sorted(results) == sorted(expected)


def is_result(rows: Rows, chosen: tuple[int, ...]) -> bool:
    times, keys = zip(*(rows[source][place] for source, place in enumerate(chosen)), strict=True)
    return len(set(keys)) == 1 and max(times) - min(times) < WINDOW


def test_nodes_grow_with_what_is_alive_and_shrink_when_it_is_gone() -> None:
    join = operator(TREES[0])
    rows: Rows = [[(1, 0)] * 60, [(2, 0)] * 60, [], []]
    feed(join, rows, [0] * 4, 3)
    found = tree_of(join)
    assert held(found, 0) == [(a, b) for b in range(60) for a in reversed(range(60))]
    assert found.nodes[0, layout.NODE_CAP] >= 3_600
    large = found.nbytes()
    feed(join, rows, [60, 60, 0, 0], 50)
    assert found.rows() == 0
    assert found.nbytes() < large / 4


def test_dead_partial_matches_never_outnumber_the_living_by_far() -> None:
    join = operator(TREES[0])
    rows: Rows = [[], [], [], []]
    before = [0] * 4
    for time in range(2_000):
        before = [len(stream) for stream in rows]
        rows[0].append((time, 0))
        rows[1].append((time, 0))
        feed(join, rows, before, time)
    alive = len(combinations_alive(rows, (0, 1), 1_999))
    assert alive == WINDOW * WINDOW
    assert tree_of(join).rows() <= max(8 * alive, 256)


@pytest.mark.parametrize("columns", [2, 5])
def test_a_climb_with_more_results_than_fit_is_undone_and_repeated(
    columns: int,
) -> None:
    with patch.object(workspace, "_COLUMNS", columns), patch.object(workspace, "_MARGIN", 1):
        join = operator(TREES[0])
        rows: Rows = [[(1, 0)] * 4, [(2, 0)] * 3, [(4, 0)], [(3, 0)] * 5]
        results = feed(join, rows, [0] * 4, 5)
    assert results == [
        (a, b, 0, d)
        for a in reversed(range(4))
        for b in reversed(range(3))
        for d in reversed(range(5))
    ]
    assert sorted(held(tree_of(join), 0)) == sorted(product(range(4), range(3)))
    assert sorted(held(tree_of(join), 1)) == sorted(product(range(4), range(3), range(1)))
    assert join.state.counters[layout.N_PARTIAL_MATCHES] == 24, "what was undone does not count"
