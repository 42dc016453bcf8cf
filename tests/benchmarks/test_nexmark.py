"""Every query of NEXMark gives at every instant what DuckDB computes from all events.

The events cross midnight and last twice as long as the longest window, with five per second, all of
which have the same time.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

import muntin
from benchmarks.nexmark.events import START, Load, chunks, events
from benchmarks.nexmark.files import side_input, write_side_input
from benchmarks.nexmark.oracle import ANSWERS, Oracle
from benchmarks.nexmark.queries import STREAMS, queries, script

SECOND = 1_000_000
LOAD = Load(rate=5, start=START - 600 * SECOND, step=SECOND)
COUNT = 6_000
INSTANTS = (0, 1, 100, 595, 600, 601, 1_000, 1_190, 1_205, 1_500, 2_500)
"""Seconds after the first event."""


@pytest.fixture(scope="module")
def oracle() -> Oracle:
    return Oracle(events(LOAD, 0, COUNT), side_input())


@pytest.fixture(scope="module", params=[1_499, 170], ids="{} events per chunk".format)
def changes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, pa.Table]:
    """All changes of all queries; the engine is restored from a checkpoint in the first case."""
    folder = tmp_path_factory.mktemp("nexmark")
    write_side_input(folder)
    engine = muntin.Engine()
    engine.execute(script(folder))
    for place, chunk in enumerate(chunks(LOAD, COUNT, request.param)):
        for name, rows in zip(STREAMS, chunk, strict=True):
            engine.push(name, rows)
        if place == 1 and request.param > 1_000:
            engine.checkpoint(folder / "checkpoint")
            engine = muntin.Engine.restore(folder / "checkpoint")
    engine.advance(LOAD.start + INSTANTS[-1] * SECOND)
    return {name: engine.handle(name).poll() for name in queries()}


@pytest.mark.parametrize("name", list(queries()))
def test_a_query_gives_the_answers_of_duckdb(
    name: str, oracle: Oracle, changes: dict[str, pa.Table]
) -> None:
    found = [oracle.difference(name, changes[name], LOAD.start + at * SECOND) for at in INSTANTS]
    assert [(missing, wrong) for _, missing, wrong in found] == [(0, 0)] * len(INSTANTS)
    assert any(right for right, _, _ in found)


def test_every_query_has_an_answer_to_compare_with() -> None:
    assert set(ANSWERS) == set(queries())
