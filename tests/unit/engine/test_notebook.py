"""What notebooks show of engines and queries."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import muntin


def shown(value: object) -> tuple[str, ET.Element]:
    """Return the HTML of a value, and its tree: it must be well-formed."""
    html = value._repr_html_()  # type: ignore[attr-defined]
    return html, ET.fromstring(f"<div>{html}</div>")


def filled() -> tuple[muntin.Engine, muntin.StandingQuery]:
    engine = muntin.Engine()
    for name in "AB":
        engine.stream(name, {"k": "bigint", "s": "varchar", "ts": "timestamp"}, time="ts")
    query = engine.query(
        "SELECT A.k FROM A, B WHERE A.k = B.k AND A.s <> '<b>' WINDOW 1 MINUTE", name="pairs"
    )
    engine.push("A", [(1, "x", 0)])
    engine.push("B", [(1, "y", 1)])
    engine.advance(2)
    return engine, query


def test_an_engine_shows_its_streams_and_queries_with_their_counts() -> None:
    engine, _ = filled()
    html, tree = shown(engine)
    rows = [["".join(cell.itertext()) for cell in row] for row in tree.iter("tr")]
    assert ["A", "1", "0", "0", "1"] in [row[:5] for row in rows]
    assert next(row for row in rows if row[0] == "pairs")[3] == "1", "rows out"
    assert "<b>'" not in html


def test_a_query_shows_its_text_counts_and_plan() -> None:
    _, query = filled()
    html, tree = shown(query)
    assert "A.s <> '<b>'" in "".join(tree.itertext())
    assert "'<b>'" not in html
    assert html.count("<svg ") == 1


def test_a_suspended_query_shows_why() -> None:
    engine, query = filled()
    engine.drop("pairs")
    assert "no queries" in engine.explain()
    html, _ = shown(engine)
    assert "pairs" not in html
    del query


def test_explain_is_the_same_text_as_before_with_a_picture() -> None:
    engine, query = filled()
    assert str(engine.explain("pairs")) == str(query.explain())
    assert query.explain().startswith("query pairs: emits inserts")
    assert shown(query.explain())[0].startswith("<svg ")
