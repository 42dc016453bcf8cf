from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from muntin.expressions.json_reader import read_deep_json, read_json

ATOMS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
VALUES = st.recursive(
    ATOMS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=30
)


@given(VALUES, st.booleans())
def test_the_loop_reads_what_json_reads(
    value: object,
    indented: bool,  # noqa: FBT001 (drawn)
) -> None:
    text = json.dumps(value, indent=2 if indented else None)
    assert read_deep_json(text) == value


def test_depth_does_not_matter() -> None:
    depth = 100_000
    value = read_json("[" * depth + "]" * depth)
    for _ in range(depth - 1):
        (value,) = value
    assert value == []
