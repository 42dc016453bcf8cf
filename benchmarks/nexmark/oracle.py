"""What the queries of NEXMark give at an instant, by DuckDB from all events.

Each query is written once more, over plain tables: ``person``, ``auction`` and ``bid`` have the
rows up to the instant ``now()``, and those of ``recent_*`` are at most ten minutes old. Every row
has its number in its stream as ``n``, which decides between equal times.
"""

from __future__ import annotations

from collections.abc import Mapping

import duckdb
import pyarrow as pa

from benchmarks.nexmark.events import Events

_RECENT = "INTERVAL 10 MINUTES"
_WHILE_OPEN = (
    "recent_auction a JOIN recent_bid b ON a.id = b.auction "
    "AND b.date_time >= a.date_time AND b.date_time <= a.expires"
)
_BEST = (
    "SELECT *, row_number() OVER (PARTITION BY id ORDER BY price DESC, bid_time, bid_n) AS place "
    "FROM (SELECT a.* EXCLUDE (n), b.auction, b.bidder, b.price, b.date_time AS bid_time, "
    f"b.extra AS bid_extra, b.n AS bid_n FROM {_WHILE_OPEN})"
)
_TEN = "time_bucket(INTERVAL 10 SECONDS, date_time, TIMESTAMP '1970-01-01')"
_PRICES = {
    "total": "true",
    "rank1": "price < 10000",
    "rank2": "price >= 10000 AND price < 1000000",
    "rank3": "price >= 1000000",
}
_LEVELS = ", ".join(
    f"count({what}) FILTER (WHERE {level}) AS {name}_{kind}"
    for kind, what in {
        "bids": "*",
        "bidders": "DISTINCT bidder",
        "auctions": "DISTINCT auction",
    }.items()
    for name, level in _PRICES.items()
)
_TODAY = "bid WHERE CAST(date_time AS DATE) = CAST(instant() AS DATE)"
_DAY = "CAST(CAST(instant() AS DATE) AS VARCHAR) AS day"


def _near(*times: str) -> str:
    """Return the condition that these times are less than ten minutes apart."""
    return f"greatest({', '.join(times)}) - least({', '.join(times)}) < {_RECENT}"


ANSWERS: Mapping[str, str] = {
    "q0": "SELECT auction, bidder, price, date_time, extra FROM bid",
    "q1": "SELECT auction, bidder, price * 0.908 AS price, date_time, extra FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE auction // 123 * 123 = auction",
    "q3": (
        "SELECT name, city, state, a.id FROM auction a, person p WHERE seller = p.id "
        f"AND category = 10 AND state <> 'AZ' AND state[1] <> 'W' "
        f"AND {_near('a.date_time', 'p.date_time')}"
    ),
    "q4": (
        "SELECT category, avg(final) AS price FROM "
        f"(SELECT id, category, price AS final FROM ({_BEST}) WHERE place = 1) GROUP BY category"
    ),
    "q5": (
        "WITH ends AS (SELECT unnest(generate_series(1, 5)) AS step), windows AS ("
        "SELECT auction, time_bucket(INTERVAL 2 SECONDS, date_time, TIMESTAMP '1970-01-01') "
        "+ step * INTERVAL 2 SECONDS AS window_end, count(*) AS num FROM bid, ends GROUP BY ALL) "
        "SELECT auction, num, window_end FROM windows WHERE {over} "
        "QUALIFY rank() OVER (PARTITION BY window_end ORDER BY num DESC) = 1"
    ),
    "q6": (
        "SELECT seller, avg(price) AS price FROM (SELECT seller, price, row_number() OVER "
        f"(PARTITION BY seller ORDER BY bid_time DESC, id DESC) AS last FROM ({_BEST}) "
        "WHERE place = 1) WHERE last <= 10 GROUP BY seller"
    ),
    "q7": (
        "SELECT auction, price, bidder, date_time, extra FROM (SELECT *, rank() OVER "
        f"(PARTITION BY {_TEN} ORDER BY price DESC) AS place, {_TEN} + INTERVAL 10 SECONDS "
        "AS window_end FROM bid) WHERE place = 1 AND {over}"
    ),
    "q8": (
        f"SELECT id, name, window_start FROM (SELECT id, name, {_TEN} AS window_start, "
        "window_start + INTERVAL 10 SECONDS AS window_end FROM person) AS p WHERE {over} "
        f"AND EXISTS (FROM auction WHERE seller = p.id AND {_TEN} = p.window_start)"
    ),
    "q9": f"SELECT * EXCLUDE (bid_n, place) FROM ({_BEST}) WHERE place = 1",
    "q10": (
        "SELECT auction, bidder, price, date_time, extra, CAST(CAST(date_time AS DATE) AS VARCHAR) "
        "AS dt, CAST(date_time AS VARCHAR)[12:16] AS hm FROM bid"
    ),
    "q11": (
        "SELECT bidder, count(*), min(date_time) AS window_start, max(date_time) + "
        "INTERVAL 10 SECONDS AS window_end FROM (SELECT *, sum(first) OVER (PARTITION BY bidder "
        "ORDER BY date_time, n) AS session FROM (SELECT *, CASE WHEN date_time - lag(date_time) "
        "OVER (PARTITION BY bidder ORDER BY date_time, n) <= INTERVAL 10 SECONDS THEN 0 ELSE 1 "
        "END AS first FROM bid)) GROUP BY bidder, session HAVING {over}"
    ),
    "q12": (
        "SELECT bidder, count(*), window_start, window_end FROM (SELECT bidder, "
        f"{_TEN} AS window_start, {_TEN} + INTERVAL 10 SECONDS AS window_end FROM bid) "
        "WHERE {over} GROUP BY bidder, window_start, window_end"
    ),
    "q13": (
        "SELECT auction, bidder, price, date_time, value FROM bid, side_input "
        "WHERE key = auction - auction // 10000 * 10000"
    ),
    "q14": (
        "SELECT auction, bidder, price * 0.908 AS price, CASE WHEN part BETWEEN 8 AND 18 "
        "THEN 'dayTime' WHEN part IN (7, 19) THEN 'otherTime' ELSE 'nightTime' END, "
        "date_time, extra, len(list_filter(string_split(extra, ''), lambda letter: letter = 'c')) "
        "FROM (SELECT *, date_part('hour', date_time) AS part FROM bid) "
        "WHERE price > 1000000 / 0.908 AND price < 50000000 / 0.908"
    ),
    "q15": f"SELECT {_DAY}, {_LEVELS} FROM {_TODAY} HAVING count(*) > 0",
    "q16": (
        f"SELECT channel, {_DAY}, max(CAST(date_time AS VARCHAR)[12:16]) AS minute, {_LEVELS} "
        f"FROM {_TODAY} GROUP BY channel"
    ),
    "q17": (
        f"SELECT auction, {_DAY}, count(*), count(*) FILTER (WHERE {_PRICES['rank1']}), "
        f"count(*) FILTER (WHERE {_PRICES['rank2']}), count(*) FILTER (WHERE {_PRICES['rank3']}), "
        f"min(price), max(price), sum(price) / count(*), sum(price) FROM {_TODAY} GROUP BY auction"
    ),
    "q18": (
        "SELECT auction, bidder, price, channel, url, date_time, extra FROM recent_bid b "
        "WHERE NOT EXISTS (FROM recent_bid o WHERE (o.bidder, o.auction) = (b.bidder, b.auction) "
        "AND (o.date_time > b.date_time OR o.date_time = b.date_time AND o.n < b.n))"
    ),
    "q19": (
        "SELECT auction, bidder, price, channel, url, date_time, extra, place FROM (SELECT *, "
        "row_number() OVER (PARTITION BY auction ORDER BY price DESC, date_time, n) AS place "
        "FROM recent_bid) WHERE place <= 10"
    ),
    "q20": (
        "SELECT auction, bidder, price, channel, url, b.date_time, b.extra, item_name, "
        "description, initial_bid, reserve, a.date_time, expires, seller, category, a.extra "
        "FROM auction a, bid b WHERE id = auction AND category = 10 "
        f"AND {_near('a.date_time', 'b.date_time')}"
    ),
    "q21": (
        "SELECT auction, bidder, price, channel, coalesce(CASE channel WHEN 'Apple' THEN '0' "
        "WHEN 'Google' THEN '1' WHEN 'Facebook' THEN '2' WHEN 'Baidu' THEN '3' END, "
        "string_split(url, '&channel_id=')[2]) AS number FROM bid WHERE number IS NOT NULL"
    ),
    "q22": (
        "SELECT auction, bidder, price, channel, parts[4], parts[5], parts[6] "
        "FROM (SELECT *, string_split(url, '/') AS parts FROM bid)"
    ),
    "q23": (
        "SELECT bidder, price, channel, url, b.extra, p.id, name, email_address, credit_card, "
        "city, state, p.extra, item_name, description, initial_bid, reserve, a.date_time, expires, "
        "seller, category, a.extra FROM person p, auction a, bid b WHERE bidder = p.id "
        f"AND p.id = seller AND {_near('a.date_time', 'b.date_time', 'p.date_time')}"
    ),
}
"""The SQL of each query, with columns in the order of the script's."""


class Oracle:
    """Compares results of the queries with what DuckDB computes from all events."""

    def __init__(self, events: Events, side_input: pa.Table) -> None:
        self._connection = duckdb.connect(config={"threads": 1})
        self._connection.register("side_input", side_input)
        self._connection.execute(
            "CREATE MACRO instant() AS CAST(getvariable('instant') AS TIMESTAMP)"
        )
        for name, rows in zip(Events._fields, events, strict=True):
            numbered = rows.append_column("n", pa.array(range(len(rows)), pa.int64()))
            self._connection.register(f"all_{name}", numbered)
            self._connection.execute(
                f"CREATE VIEW {name} AS FROM all_{name} WHERE date_time <= instant()"
            )
            self._connection.execute(
                f"CREATE VIEW recent_{name} AS FROM {name} WHERE date_time > instant() - {_RECENT}"
            )

    def difference(self, name: str, changes: pa.Table, at: int) -> tuple[int, int, int]:
        """Return how many rows are right, missing and wrong in the changes up to an instant.

        The instant is in microseconds.
        """
        self._connection.execute(f"SET VARIABLE instant = make_timestamp({at})")
        self._connection.register("changes", changes)
        expected = ANSWERS[name].replace("{over}", "window_end > instant()")
        held = "SELECT * EXCLUDE (_op, _ts) FROM changes WHERE _ts <= instant() AND _op = '{}'"
        self._connection.execute(f"CREATE OR REPLACE TEMP TABLE expected AS {expected}")
        self._connection.execute(
            "CREATE OR REPLACE TEMP TABLE found AS "
            f"{held.format('+')} EXCEPT ALL {held.format('-')}"
        )
        counts = [
            self._connection.sql(f"SELECT count(*) FROM ({rows})").fetchall()[0][0]
            for rows in (
                "FROM expected",
                "FROM expected EXCEPT ALL FROM found",
                "FROM found EXCEPT ALL FROM expected",
            )
        ]
        return counts[0] - counts[1], counts[1], counts[2]
