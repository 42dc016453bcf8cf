"""The workload of [HammadTR, section 6, Table 1]: sales of stores, favorites, five queries.

Selectivities are the paper's: predicates 0.25, the window join of Q2 0.6 (the share of rows that
find a partner in the other window), joins with favorites 0.1; where there are two tables of
favorites, both together. Gaps between rows are exponential. All windows are a minute.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import log, sqrt

import numpy as np
import pyarrow as pa

import muntin

SECOND = 1_000_000
WINDOW = 60
_PRICES = 20
_MATCHED = 0.6
_FAVOURITE = 0.1
_STEP = 8
"""Modulus that keeps the times of different streams distinct."""
_COLUMNS = {"StoreID": "bigint", "ItemID": "bigint", "Price": "bigint", "ts": "timestamp"}
_QUERIES = {
    "Q1": "SELECT SUM(S.Price) AS total FROM Sales_1 S WHERE S.ItemID >= {threshold}",
    "Q3": (
        "SELECT COUNT(DISTINCT S.StoreID) AS stores FROM Sales_1 S, FavoriteItems F WHERE "
        "S.ItemID = F.ItemID"
    ),
    "Q4": (
        "SELECT S.ItemID, SUM(S.Price) AS total FROM FavoriteItems FI, Sales_1 S, FavoriteStores FS"
        " WHERE FI.ItemID = S.ItemID AND S.StoreID = FS.StoreID GROUP BY S.ItemID"
    ),
    "Q5": (
        "SELECT S.ItemID, SUM(S.Price) AS total FROM FavoriteItems F,"
        " (SELECT ItemID, Price FROM Sales_1 MINUS SELECT ItemID, Price FROM Sales_2) AS S WHERE "
        "F.ItemID = S.ItemID GROUP BY S.ItemID"
    ),
}
QUERIES = ("Q1", "Q2", "Q3", "Q4", "Q5")


@dataclass(frozen=True)
class Case:
    """A query of the workload and its streams.

    Parameters
    ----------
    query
        Q1 to Q5.
    rate
        Rows per second of each stream.
    seconds
        How long rows come after the window has been filled once.
    selectivity
        That of the predicate of Q1 and Q2.
    depth
        How many streams Q2 joins.
    values
        How many items and stores there are; items of Q2 follow from its selectivity.
    stores
        How many stores there are, if not as many as items.
    """

    query: str
    rate: float
    seconds: float
    selectivity: float = 0.25
    depth: int = 2
    values: int = 100
    stores: int = 0

    @property
    def names(self) -> list[str]:
        """The streams."""
        return [
            f"Sales_{number + 1}"
            for number in range({"Q2": self.depth, "Q5": 2}.get(self.query, 1))
        ]

    @property
    def _items(self) -> int:
        """Items of Q2: a row has a partner in the window with the probability of [HammadTR]."""
        return round(self.rate * WINDOW / -log(1 - _MATCHED)) if self.query == "Q2" else self.values

    @property
    def sql(self) -> str:
        """The query without its window."""
        if self.query != "Q2":
            return _QUERIES[self.query].format(
                threshold=round(self._items * (1 - self.selectivity))
            )
        aliases = [f"S{number + 1}" for number in range(self.depth)]
        sources = ", ".join(
            f"{name} {alias}" for name, alias in zip(self.names, aliases, strict=True)
        )
        same = [f"S1.ItemID = {alias}.ItemID" for alias in aliases[1:]]
        return (
            f"SELECT DISTINCT S1.ItemID FROM {sources} WHERE {' AND '.join(same)} AND S1.Price > "
            f"{_PRICES * (1 - self.selectivity):g}"
        )

    @cached_property
    def streams(self) -> dict[str, pa.Table]:
        """The rows of all streams; the first window's length fills the window."""
        return {name: self._stream(number) for number, name in enumerate(self.names)}

    def _stream(self, number: int) -> pa.Table:
        random = np.random.default_rng(100 + number)
        count = int((WINDOW + self.seconds) * self.rate)
        gaps = np.maximum(random.exponential(SECOND / self.rate / _STEP, count).astype(np.int64), 1)
        times = np.cumsum(gaps) * _STEP + number
        return pa.table(
            {
                "StoreID": random.integers(0, self.stores or self.values, count),
                "ItemID": random.integers(0, self._items, count),
                "Price": random.integers(1, _PRICES + 1, count),
                "ts": pa.array(times).cast(pa.timestamp("us")),
            }
        )

    def start(
        self, strategy: str | None, window: float = WINDOW
    ) -> tuple[muntin.Engine, muntin.StandingQuery]:
        """Return an engine that runs the query by a strategy; None: the engine's choice."""
        engine = muntin.Engine() if strategy is None else muntin.Engine(pipeline=strategy)
        for name in self.names:
            engine.stream(name, _COLUMNS, time="ts")
        share = sqrt(_FAVOURITE) if self.query == "Q4" else _FAVOURITE
        favourites = np.arange(round(self.values * share))
        engine.table("FavoriteItems", pa.table({"ItemID": favourites}))
        engine.table("FavoriteStores", pa.table({"StoreID": favourites}))
        return engine, engine.query(
            f"{self.sql} WINDOW {round(window * 1_000)} MILLISECONDS EMIT CHANGES"
        )
