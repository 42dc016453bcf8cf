"""Join orders: given by the user, the cheapest found, or along the join graph in FROM order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from muntin.errors import SettingError
from muntin.model.settings import Algorithm, GivenOrder
from muntin.plan.query import Query

Order = tuple[int, ...]
Connected = Callable[[int, int], bool]
"""Whether a bound source can look up another by an equality."""


@dataclass(frozen=True)
class OrderSources:
    """Where orders may come from.

    The user, else the cheapest ones found (by origin), else the graph.
    """

    given: Sequence[GivenOrder]
    cheapest: Sequence[Order] | None
    connected: Connected


def choose_orders(query: Query, sources: OrderSources, algorithm: Algorithm) -> list[Order]:
    """Return for each origin the order in which the sources are bound, the origin included."""
    count = len(query.sources)
    given = resolve_orders(query, sources.given)
    if not given and sources.cheapest is not None:
        return list(sources.cheapest)
    orders = []
    for origin in range(count):
        order = given.get(origin) or given.get(None)
        if order is None:
            order = along_graph(count, origin, sources.connected)
        elif algorithm in {Algorithm.EAGER, Algorithm.LAZY} or origin not in order:
            order = (origin, *(source for source in order if source != origin))
        orders.append(order)
    return orders


def along_graph(count: int, origin: int, connected: Connected) -> Order:
    """Return the origin, then always the first source in FROM that a bound one can look up."""
    order = [origin]
    while len(order) < count:
        rest = [source for source in range(count) if source not in order]
        order.append(
            next(
                (source for source in rest if any(connected(bound, source) for bound in order)),
                rest[0],
            )
        )
    return tuple(order)


def resolve_orders(query: Query, given: Sequence[GivenOrder]) -> dict[int | None, Order]:
    """Return the orders of the ``order`` setting: by origin, or under None the one for all."""
    names = {source.alias.casefold(): place for place, source in enumerate(query.sources)}

    def place(alias: str) -> int:
        found = names.get(alias.casefold())
        if found is None:
            aliases = ", ".join(source.alias for source in query.sources)
            raise SettingError(
                f"the join order names {alias!r}, which is not in FROM of query {query.name}",
                hint=f"Use {aliases}",
            )
        return found

    orders: dict[int | None, Order] = {}
    for one in given:
        order = tuple(place(alias) for alias in one.aliases)
        origin = None if one.origin is None else place(one.origin)
        _check(query, order, origin)
        orders[origin] = order
    return orders


def _check(query: Query, order: Sequence[int], origin: int | None) -> None:
    wanted = set(range(len(query.sources)))
    if len(set(order)) != len(order) or set(order) | ({origin} - {None}) != wanted:
        aliases = ", ".join(source.alias for source in query.sources)
        raise SettingError(
            f"the join order of query {query.name} must name every source once",
            hint=f"Its sources are {aliases}",
        )
