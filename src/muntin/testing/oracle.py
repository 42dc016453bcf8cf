"""The oracle: what a query must answer and send out, computed at once by plain DuckDB SQL.

It is the definition of correct (docs/design), so it shares nothing with the engine but the bound
query:

* All rows of all streams have one order, by (time, order of declaration, arrival): their position.
* Under every entry of FROM a row has an end. In a time window ``w`` it is gone from time ``t + w``
  on, in a count window ``n`` from the position of the ``n``-th later row of its stream (or
  partition) on. Rows of stored tables have neither position nor end.
* A combination of rows, one per entry of FROM, that satisfies the predicates is *inserted* by its
  newest member, if no member is gone at the newest member's position.
* The combination is in the *answer* from the newest member's time until the first time at which a
  member is gone.
* *Changes* are the differences between the answers at successive instants.

Everything is computed again from all rows; cost is no concern beyond tests with hundreds of rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from muntin.model.catalog import Catalog, Stream
from muntin.model.window import PartitionedWindow, RowsWindow, TimeWindow
from muntin.plan.expression import POSITION, quote
from muntin.plan.nodes import Scan
from muntin.plan.query import Query
from muntin.testing.connection import run_sql
from muntin.testing.watermark import OrderFrontier


class Oracle:
    """Computes the results of one query from all accepted rows of its streams.

    Parameters
    ----------
    query : Query
        The bound query.
    streams : Mapping[str, pa.Table]
        For every stream its accepted rows in order of arrival, in its full schema. A missing
        stream has no rows.
    tables : Mapping[str, pa.Table]
        The rows of the stored tables.
    catalog : Catalog
        Where the streams are declared; gives their time columns and their order.
    after : OrderFrontier, optional
        How far everything was processed when the query was registered: combinations whose newest
        row is not beyond it are not results of the query.

    Examples
    --------
    >>> oracle = Oracle(query, {"A": rows_a, "B": rows_b}, {}, catalog)  # doctest: +SKIP
    >>> oracle.answer(5_000_000).num_rows  # doctest: +SKIP
    2
    """

    def __init__(
        self,
        query: Query,
        streams: Mapping[str, pa.Table],
        tables: Mapping[str, pa.Table],
        catalog: Catalog,
        *,
        after: OrderFrontier | None = None,
    ) -> None:
        assert any(not source.stored for source in query.sources), (
            "a query without a stream never changes; the binder refuses it"
        )
        self._query = query
        ranks = _ranks(query, _by_name(streams), catalog)
        self._inputs = _number(query, ranks, _by_name(streams), _by_name(tables))
        seen = sum(stream.seen(after) for stream in ranks.values()) if after else 0
        self._sources = ", ".join(
            f"source{place} AS ({_source_sql(place, source)})"
            for place, source in enumerate(query.sources)
        )
        self._results = {
            "result": run_sql(f"WITH {self._sources} {_result_sql(query, seen)}", self._inputs)
        }

    def inserts(self, until: int | None = None) -> pa.Table:
        """Return all insertions with ``_ts <= until`` in the order in which they come out.

        ``_op``, ``_ts``, select list.

        Parameters
        ----------
        until : int, optional
            The last instant, in microseconds; everything when it is missing.
        """
        recency = ", ".join(f"pos{place} DESC" for place in range(len(self._query.sources)))
        bound = "" if until is None else f"WHERE {self._shown('begins')} <= {until} "
        select = (
            f"SELECT {self._shown('begins')} AS instant, {self._names} FROM result {bound}"
            f"ORDER BY newest, newest_source, {recency}"
        )
        rows = run_sql(select, self._results)
        return self._output(rows, np.ones(rows.num_rows, dtype=np.int64))

    def answer(self, at: int) -> pa.Table:
        """Return the answer at an instant.

        A multiset of rows of the select list, in no particular order.
        """
        every = self._query.every
        instant = at if every is None else at - at % every
        rows = run_sql(
            f"SELECT {self._names} FROM result WHERE {_in_answer(str(instant))}", self._results
        )
        return _typed(rows, pa.schema(list(self._query.output_schema)[2:]))

    def lifetimes(self) -> pa.Table:
        """Return all results: select list, and when each begins and ends."""
        names = ", ".join(
            f"c{place} AS {quote(column.name)}" for place, column in enumerate(self._query.select)
        )
        return run_sql(f"SELECT {names}, begins, ends FROM result", self._results)

    def changes(self, until: int) -> pa.Table:
        """Return the differences between the answers at successive instants up to ``until``.

        ``_op``, ``_ts``, select list.

        Ordered by instant, removals first; the order is not defined beyond that.
        """
        instants = self._instants(["begins", "ends"], "result", until)
        rows = run_sql(
            f"WITH step AS (SELECT instant, lead(instant) OVER (ORDER BY instant) AS next"
            f" FROM ({instants})), "
            f"answers AS (SELECT instant, next, {self._names}, count(*) AS n FROM step JOIN result"
            f" ON {_in_answer('instant')} GROUP BY ALL) "
            f"SELECT instant, {self._names}, sum(n)::BIGINT AS n FROM ("
            f" SELECT instant, {self._names}, n FROM answers"
            f" UNION ALL SELECT next, {self._names}, -n FROM answers WHERE next IS NOT NULL"
            f") GROUP BY ALL HAVING sum(n) <> 0 ORDER BY instant, n",
            self._results,
        )
        return self._output(rows.drop_columns(["n"]), rows.column("n").to_numpy())

    def instants(self, until: int) -> list[int]:
        """Return the instants up to ``until`` at which a row comes or goes, in order.

        Between them the answer cannot change.
        """
        streams = [place for place, source in enumerate(self._query.sources) if not source.stored]
        each = " UNION ".join(
            self._instants([f"ts{place}", f"end{place}"], f"source{place}", until)
            for place in streams
        )
        rows = run_sql(
            f"WITH {self._sources} SELECT instant FROM ({each}) ORDER BY instant", self._inputs
        )
        return [int(instant) for instant in rows.column("instant").to_pylist()]

    @property
    def _names(self) -> str:
        return ", ".join(f"c{place}" for place in range(len(self._query.select)))

    def _shown(self, instant: str) -> str:
        """Return SQL for the instant at which an event at ``instant`` becomes visible.

        Itself, or the next multiple of EVERY.
        """
        every = self._query.every
        return (
            instant
            if every is None
            else f"({instant} + ((-{instant} % {every}) + {every}) % {every})"
        )

    def _instants(self, columns: list[str], table: str, until: int) -> str:
        each = " UNION ".join(
            f"SELECT {self._shown(column)} AS instant FROM {table}" for column in columns
        )
        return f"SELECT instant FROM ({each}) WHERE instant <= {until}"

    def _output(
        self, rows: pa.Table, weights: np.ndarray[tuple[int], np.dtype[np.int64]]
    ) -> pa.Table:
        """Return result rows from (instant, select list).

        Each as often as its weight says, ``_op`` by the weight's sign.
        """
        repeated = rows.take(pa.array(np.repeat(np.arange(rows.num_rows), np.abs(weights))))
        operations = pa.array(
            np.where(np.repeat(weights, np.abs(weights)) > 0, "+", "-").tolist(), type=pa.string()
        )
        columns = [operations, repeated.column(0).cast(pa.timestamp("us")), *repeated.columns[1:]]
        return _typed(
            pa.table(columns, names=[str(place) for place in range(len(columns))]),
            self._query.output_schema,
        )


def _in_answer(instant: str) -> str:
    return f"begins <= {instant} AND coalesce({instant} < ends, true)"


def _result_sql(query: Query, seen: int) -> str:
    """Return every combination that is a result and has a row behind the ``seen`` ones.

    Select list, positions, when it begins and ends.
    """
    streams = [place for place, source in enumerate(query.sources) if not source.stored]
    timed = [place for place in streams if isinstance(query.sources[place].window, TimeWindow)]
    counted = [place for place in streams if place not in timed]
    begins, newest = _over("greatest", "ts", streams), _over("greatest", "pos", streams)
    newest_source = " ".join(
        f"WHEN pos{place} = {newest} THEN {place}" for place in reversed(streams)
    )
    columns = [f"{column.expression.sql} AS c{place}" for place, column in enumerate(query.select)]
    columns += [f"pos{place}" for place in range(len(query.sources))]
    columns += [f"{begins} AS begins", f"{_over('least', 'end', streams)} AS ends"]
    columns += [f"{newest} AS newest", f"CASE {newest_source} END AS newest_source"]
    conditions = [
        f"{newest} > {seen}",
        *(f"({predicate.expression.sql})" for predicate in (*query.join.on, *query.join.where)),
    ]
    conditions += [f"{begins} < end{place}" for place in timed]
    conditions += [f"coalesce({newest} < count_end{place}, true)" for place in counted]
    tables = ", ".join(f"source{place}" for place in range(len(query.sources)))
    return f"SELECT {', '.join(columns)} FROM {tables} WHERE {' AND '.join(conditions)}"


def _source_sql(place: int, source: Scan) -> str:
    """Return one entry of FROM.

    Its rows with the time ``end`` and, under a count window, the position ``count_end`` at which
    they are gone.
    """
    match source.window:
        case TimeWindow(micros, phase=int(phase)):
            begun = f"(((ts{place} - {phase}) % {micros}) + {micros}) % {micros}"
            return f"SELECT *, ts{place} - {begun} + {micros} AS end{place} FROM input{place}"
        case TimeWindow(micros, until=str(column)):
            own = f"epoch_us({quote(f'{place}.{column}')})"
            end = f"coalesce({own}, ts{place} + {micros}) AS end{place}"
            return f"SELECT *, {end} FROM input{place}"
        case TimeWindow(micros):
            return f"SELECT *, ts{place} + {micros} AS end{place} FROM input{place}"
        case RowsWindow(rows):
            partition = ""
        case PartitionedWindow(columns, rows):
            partition = (
                f"PARTITION BY {', '.join(quote(f'{place}.{column}') for column in columns)} "
            )
        case _:
            return f"SELECT * FROM input{place}"
    later = f"OVER ({partition}ORDER BY pos{place})"
    ends = (
        f"lead(ts{place}, {rows}) {later} AS end{place}, "
        f"lead(pos{place}, {rows}) {later} AS count_end{place}"
    )
    return f"SELECT *, {ends} FROM input{place}"


def _over(function: str, column: str, places: list[int]) -> str:
    """Return SQL for the greatest or least of a column over several sources, without NULLs."""
    return f"{function}({', '.join(f'{column}{place}' for place in places)})"


@dataclass(frozen=True)
class _Ranks:
    """Positions of a stream's rows among the rows of all streams (from 1), and their times."""

    positions: pa.Array
    times: pa.Array
    order: int

    def seen(self, frontier: OrderFrontier) -> int:
        """Return the number of rows that are not beyond the frontier."""
        return int(np.count_nonzero(self.times.to_numpy() <= frontier.last_time(self.order)))


def _number(
    query: Query,
    ranks: Mapping[str, _Ranks],
    streams: Mapping[str, pa.Table],
    tables: Mapping[str, pa.Table],
) -> dict[str, pa.Table]:
    """Return one table per entry of FROM.

    Its columns under flat names, and each row's position (and time, for streams).
    """
    inputs = {}
    for place, source in enumerate(query.sources):
        name = source.relation.casefold()
        table = (tables if source.stored else streams).get(name)
        table = source.schema.empty_table() if table is None else table.select(source.schema.names)
        numbered = table.rename_columns([f"{place}.{column}" for column in table.column_names])
        if source.stored:
            numbered = numbered.append_column(
                f"pos{place}", pa.array(range(table.num_rows), type=pa.int64())
            )
        else:
            none = pa.array([], type=pa.int64())
            rank = ranks.get(name, _Ranks(none, none, 0))
            numbered = numbered.append_column(f"pos{place}", rank.positions).append_column(
                f"ts{place}", rank.times
            )
        # Unlike pos, the place of a row in its own stream is the same whatever else a query reads.
        own = np.argsort(np.argsort(numbered.column(f"pos{place}").to_numpy()))
        inputs[f"input{place}"] = numbered.append_column(f"{place}.{POSITION}", pa.array(own))
    return inputs


def _ranks(query: Query, streams: Mapping[str, pa.Table], catalog: Catalog) -> dict[str, _Ranks]:
    """Return the places of all rows of the query's streams in the one order of them all."""
    read = {
        source.relation.casefold() for source in query.sources if not source.stored
    } & streams.keys()
    declared = [stream for stream in catalog.streams() if stream.name.casefold() in read]
    if not declared:
        return {}
    times = [_times(streams[stream.name.casefold()], stream) for stream in declared]
    lengths = [len(column) for column in times]
    everything = pa.table(
        {
            "stream": np.repeat([stream.order for stream in declared], lengths),
            "arrival": np.concatenate([np.arange(length) for length in lengths]),
            "ts": pa.concat_arrays(times),
        }
    )
    ranking = (
        "SELECT row_number() OVER (ORDER BY ts, stream, arrival) AS pos FROM everything "
        "ORDER BY stream, arrival"
    )
    positions = run_sql(ranking, {"everything": everything}).column("pos").combine_chunks()
    starts = np.cumsum([0, *lengths])
    return {
        stream.name.casefold(): _Ranks(positions.slice(start, length), column, stream.order)
        for stream, column, start, length in zip(declared, times, starts, lengths, strict=False)
    }


def _times(table: pa.Table, stream: Stream) -> pa.Array:
    """Return the times of a stream's rows as integer microseconds."""
    column = table.column(stream.time).combine_chunks()
    return (
        column
        if pa.types.is_integer(column.type)
        else column.cast(pa.timestamp("us")).cast(pa.int64())
    )


def _typed(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the rows under the names and types of the schema."""
    return pa.table(
        [column.cast(field.type) for column, field in zip(rows.columns, schema, strict=True)],
        schema=schema,
    )


def _by_name(tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    return {name.casefold(): table for name, table in tables.items()}
