"""Plans as pictures: every part is in it, in its place, and nothing escapes from it."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from muntin.plan.description import Description, Fact
from muntin.plan.explanation import Explanation
from muntin.plan.picture import picture

SPACE = "{http://www.w3.org/2000/svg}"


def source(name: str, *lines: str) -> Description:
    notes = tuple(Description("filters[]", line) for line in lines)
    return Description("sources[]", f"source {name}", (), notes)


def plan() -> Description:
    join = Description(
        "operators[]",
        "join",
        (Fact("method", "hash", "hash"),),
        (source("A", "k > 1"), source("B")),
    )
    return Description("query", "query q", (), (join,))


def boxes(svg: str) -> list[ET.Element]:
    return ET.fromstring(svg).findall(f"{SPACE}rect")


def test_each_part_that_rows_pass_is_a_box_and_the_rest_are_lines() -> None:
    svg = picture(plan())
    texts = [text.text for text in ET.fromstring(svg).findall(f"{SPACE}text")]
    assert texts == ["source A", "k > 1", "source B", "join", "hash", "query q"]
    assert len(boxes(svg)) == 4


def test_rows_flow_from_left_to_right_and_no_boxes_overlap() -> None:
    a, b, join, query = [
        tuple(float(box.attrib[name]) for name in ("x", "y", "width", "height"))
        for box in boxes(picture(plan()))
    ]
    assert a[0] == b[0] < join[0] < query[0]
    assert a[1] + a[3] < b[1], "one source stands below the other"
    assert a[0] + a[2] < join[0]
    assert join[0] + join[2] < query[0]


def test_text_is_escaped_and_long_text_wrapped() -> None:
    svg = picture(Description("query", "query <script>alert(1)</script> " + "x" * 100))
    lines = [text.text or "" for text in ET.fromstring(svg).findall(f"{SPACE}text")]
    assert "<script>" not in svg
    assert "".join(lines).count("x") == 100
    assert max(map(len, lines)) <= 38


def test_an_explanation_is_text_and_has_a_picture_per_plan() -> None:
    explained = Explanation([plan(), plan()])
    assert explained.startswith("query q\n└─ join: hash")
    assert explained.svg().count("<svg ") == 2
    assert explained._repr_html_() == explained.svg()


def test_without_queries_it_says_so() -> None:
    assert Explanation([]) == "no queries"
    assert Explanation([])._repr_html_() == "<p>no queries</p>"
