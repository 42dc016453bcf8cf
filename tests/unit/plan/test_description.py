from __future__ import annotations

import pytest

from muntin.plan.description import Description, Fact, draw, to_dict

TREE = Description(
    "query",
    "query",
    (Fact("name", "q"), Fact("rows", 3, "3 rows"), Fact("cost", 1.5, "costs 1.5")),
    (
        Description(
            "parts[]",
            "first",
            (Fact("a", 1),),
            (Description("inner", "inside"), Description("last", "last inside")),
        ),
        Description("parts[]", "", (Fact("a", None),), (Description("inner", "never drawn"),)),
        Description("parts[]", "second", (), (Description("inner", "below nothing"),)),
        Description("hidden", "", (Fact("b", ["x", "y"]),)),
    ),
    ("parts", "others"),
)


def test_text_output_has_lines_with_branches() -> None:
    assert draw(TREE).splitlines() == [
        "query: 3 rows, costs 1.5",
        "├─ first",
        "│  ├─ inside",
        "│  └─ last inside",
        "└─ second",
        "   └─ below nothing",
    ]


def test_json_output_has_everything() -> None:
    assert to_dict(TREE) == {
        "name": "q",
        "rows": 3,
        "cost": 1.5,
        "parts": [{"a": 1, "inner": {}, "last": {}}, {"a": None, "inner": {}}, {"inner": {}}],
        "others": [],
        "hidden": {"b": ["x", "y"]},
    }


def test_two_parts_cannot_have_the_same_place() -> None:
    with pytest.raises(AssertionError, match="keys of their own"):
        to_dict(
            Description(
                "query", "query", (), (Description("join", "one"), Description("join", "two"))
            )
        )
