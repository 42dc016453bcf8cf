from __future__ import annotations

import pyarrow as pa
import pytest

from muntin.errors import SettingError
from muntin.model.settings import Algorithm, parse_orders
from muntin.model.window import TimeWindow
from muntin.plan.nodes import Join, Scan
from muntin.plan.query import Query
from muntin.planner.orders import OrderSources, along_graph, choose_orders, resolve_orders

SCHEMA = pa.schema([("k", pa.int64())])
QUERY = Query(
    "q",
    "",
    Join(
        tuple(
            Scan(alias, alias, stored=False, window=TimeWindow(1), schema=SCHEMA)
            for alias in ("A", "B", "Ć")
        ),
        (),
        (),
        (),
    ),
)


def nothing(_bound: int, _source: int) -> bool:
    return False


@pytest.mark.parametrize(
    ("text", "algorithm", "orders"),
    [
        ("C, B, A", Algorithm.EAGER, [(0, 2, 1), (1, 2, 0), (2, 1, 0)]),
        ("C, B, A", Algorithm.LAZY, [(0, 2, 1), (1, 2, 0), (2, 1, 0)]),
        ("C, B, A", Algorithm.NAIVE, [(2, 1, 0)] * 3),
        ("C, B, A", Algorithm.GENERAL_LAZY, [(2, 1, 0)] * 3),
        ("A: C, B; b : A , C; C: B, A", Algorithm.EAGER, [(0, 2, 1), (1, 0, 2), (2, 1, 0)]),
        ("A: C, A, B", Algorithm.NAIVE, [(2, 0, 1), (1, 0, 2), (2, 0, 1)]),
        ("A: C, A, B", Algorithm.EAGER, [(0, 2, 1), (1, 0, 2), (2, 0, 1)]),
        ("A: C, B; B, C, A", Algorithm.EAGER, [(0, 2, 1), (1, 2, 0), (2, 1, 0)]),
        ("", Algorithm.EAGER, [(0, 1, 2), (1, 0, 2), (2, 0, 1)]),
        (" ; ", Algorithm.EAGER, [(0, 1, 2), (1, 0, 2), (2, 0, 1)]),
    ],
)
def test_orders_as_users_write_them(
    text: str, algorithm: Algorithm, orders: list[tuple[int, ...]]
) -> None:
    assert (
        choose_orders(
            QUERY, OrderSources(parse_orders(text.replace("C", "ć")), None, nothing), algorithm
        )
        == orders
    )


def test_the_cheapest_orders_count_unless_the_user_gave_one() -> None:
    cheapest = [(0, 2, 1), (1, 2, 0), (2, 0, 1)]
    assert choose_orders(QUERY, OrderSources((), cheapest, nothing), Algorithm.EAGER) == cheapest
    assert choose_orders(
        QUERY, OrderSources(parse_orders("A, B, Ć"), cheapest, nothing), Algorithm.EAGER
    ) == [
        (0, 1, 2),
        (1, 0, 2),
        (2, 0, 1),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "A, B",
            r"the join order of query q must name every source once\. Its sources are A, B, Ć",
        ),
        ("A, B, B", "must name every source once"),
        ("A: B", "must name every source once"),
        ("A, B, Z", r"the join order names 'Z', which is not in FROM of query q\. Use A, B, Ć"),
        ("Z: A, B, Ć", "names 'Z'"),
        ("A, , B", "names ''"),
        (":", "names ''"),
    ],
)
def test_orders_that_do_not_fit_are_refused(text: str, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        resolve_orders(QUERY, parse_orders(text))


def test_the_graph_is_followed_before_from_order() -> None:
    edges = {(0, 3), (3, 2), (1, 2)}
    assert along_graph(
        4, 0, lambda bound, source: (bound, source) in edges or (source, bound) in edges
    ) == (0, 3, 2, 1)
    assert along_graph(3, 1, nothing) == (1, 0, 2)
