"""``async for batch in query.changes()``: in order, bounded, and ended cleanly."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Coroutine
from typing import Any

import pytest

import muntin
from muntin.errors import CatalogError, InputError, QuerySuspendedError, SubscriberError

SECOND = 1_000_000


def made() -> tuple[muntin.Engine, muntin.StandingQuery]:
    engine = muntin.Engine()
    engine.stream("A", {"k": "bigint", "ts": "timestamp"})
    return engine, engine.query("SELECT k FROM A WINDOW 1 MINUTE", name="q")


def run(program: Coroutine[Any, Any, None]) -> None:
    async def limited() -> None:
        await asyncio.wait_for(program, 60)

    asyncio.run(limited())


async def collect(query: muntin.StandingQuery, wanted: int) -> list[int]:
    found: list[int] = []
    async for batch in query.changes():
        found += batch.column("k").to_pylist()
        if len(found) >= wanted:
            break
    return found


@pytest.mark.parametrize("live", [False, True])
def test_results_come_in_order_while_another_task_pushes(live: bool) -> None:  # noqa: FBT001
    engine, query = made()

    async def program() -> None:
        if live:
            engine.start()
        reader = asyncio.create_task(collect(query, 100))
        await asyncio.sleep(0)
        for number in range(100):
            await asyncio.to_thread(engine.push, "A", [(number, number * SECOND)])
        assert await reader == list(range(100))
        gc.collect()
        assert not query.stats()["subscribers"], "a loop that was left is forgotten"
        await asyncio.to_thread(engine.stop)
        assert len(query.poll()) == (0 if live else 100)

    run(program())


def test_a_task_that_is_cancelled_leaves_nothing_behind() -> None:
    engine, query = made()

    async def program() -> None:
        reader = asyncio.create_task(collect(query, 5))
        await asyncio.sleep(0.01)
        assert len(query.stats()["subscribers"]) == 1  # type: ignore[arg-type]
        reader.cancel()
        await asyncio.wait([reader])  # an exception caught here would refer to the iterator
        assert reader.cancelled()
        del reader
        gc.collect()
        engine.push("A", [(1, 0)])
        assert not query.stats()["subscribers"]

    run(program())


def test_the_buffer_is_bounded_and_a_gap_is_an_error_after_what_was_before_it() -> None:
    engine, query = made()

    async def program() -> None:
        changes = query.changes(buffer=100)
        for number in range(10):
            engine.push("A", [(number, number * SECOND)])
        taken: list[int] = []

        async def take_all() -> None:
            async for batch in changes:
                taken.extend(batch.column("k").to_pylist())

        with pytest.raises(SubscriberError, match="more than 100 bytes wait"):
            await take_all()
        assert taken == list(range(len(taken)))
        assert 0 < len(taken) < 10
        with pytest.raises(StopAsyncIteration):
            await anext(changes)
        assert len(query.answer()) == 10

    run(program())


def test_iteration_ends_when_the_query_is_dropped_or_the_iterator_closed() -> None:
    engine, query = made()

    async def program() -> None:
        changes, other = query.changes(), query.changes()
        await other.aclose()
        engine.push("A", [(1, 0)])
        engine.drop("q")
        assert [batch.num_rows async for batch in changes] == [1]
        assert [batch.num_rows async for batch in other] == []
        with pytest.raises(CatalogError):
            query.changes()

    run(program())


def test_a_query_that_fails_raises_in_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, query = made()

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("broken")

    async def program() -> None:
        changes = query.changes()
        engine.push("A", [(1, 0)])
        monkeypatch.setattr(engine.dataflow.queries["q"], "taken", fail)
        engine.push("A", [(2, 1)])
        assert (await anext(changes)).column("k").to_pylist() == [1]
        with pytest.raises(QuerySuspendedError):
            await anext(changes)

    run(program())


def test_results_after_the_loop_has_ended_do_no_harm() -> None:
    engine, query = made()
    kept = []

    async def program() -> None:
        kept.append(query.changes())

    run(program())
    engine.push("A", [(1, 0)])
    assert len(query.poll()) == 1


def test_it_needs_a_running_loop_and_a_sensible_buffer() -> None:
    _, query = made()
    with pytest.raises(RuntimeError):
        query.changes()

    async def program() -> None:
        with pytest.raises(InputError, match="buffer"):
            query.changes(buffer=0)

    run(program())
