"""Statistics of streams, declared before a query runs or measured while it runs."""

from __future__ import annotations

from dataclasses import dataclass

from muntin.errors import InputError
from muntin.model.catalog import Catalog, Options


@dataclass(frozen=True)
class StreamStatistics:
    """Rows per second, and the number of distinct values of the join attribute."""

    rate: float
    distinct: float

    def __post_init__(self) -> None:
        assert self.rate > 0, "declared_statistics checks it"
        assert self.distinct >= 1, "declared_statistics checks it"


@dataclass(frozen=True)
class SourceStatistics:
    """Statistics of one window of a query.

    ``rate`` is the number of new rows per second, 0 for a stored table; ``rows`` the number of rows
    inside; ``distinct`` has the number of distinct values of each code.
    """

    rate: float
    rows: float
    distinct: tuple[float, ...]


@dataclass(frozen=True)
class JoinStatistics:
    """Statistics of all sources of a query.

    ``edges`` has the measured selectivity of each equality of two codes. A code is identified by
    (source, number of the code), an edge by two of them in ascending order.
    """

    sources: tuple[SourceStatistics, ...]
    edges: tuple[tuple[tuple[tuple[int, int], tuple[int, int]], float], ...] = ()


def declared_statistics(options: Options) -> StreamStatistics | None:
    """Return the statistics that ``WITH (rate = ..., distinct = ...)`` declares; None unless both.

    >>> declared_statistics((("rate", "10"), ("distinct", "500")))
    StreamStatistics(rate=10.0, distinct=500.0)
    """
    given = {name.lower(): value for name, value in options}
    if not {"rate", "distinct"} <= given.keys():
        return None
    numbers = {}
    for name, least in (("rate", 0.0), ("distinct", 1.0)):
        try:
            numbers[name] = float(given[name])
        except ValueError:
            numbers[name] = -1.0
        if not least <= numbers[name] < float("inf") or numbers[name] == 0:
            raise InputError(
                f"{name} cannot be {given[name]!r}",
                hint="rate is rows per second, distinct the number of key values",
            )
    return StreamStatistics(numbers["rate"], numbers["distinct"])


def known_statistics(catalog: Catalog) -> dict[str, StreamStatistics]:
    """Return the declared statistics of all streams that have them."""
    found = {stream.name: declared_statistics(stream.options) for stream in catalog.streams()}
    return {name: statistics for name, statistics in found.items() if statistics is not None}
