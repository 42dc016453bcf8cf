from __future__ import annotations

import pytest

from muntin.sql.functions import Ban, banned_functions


@pytest.mark.parametrize(
    ("ban", "names"),
    [
        (Ban.AGGREGATE, "count sum min max avg list first string_agg histogram geomean weighted_avg json_group_array"),
        (Ban.WINDOW, "row_number lag rank"),
        (Ban.TABLE, "unnest read_ndjson generate_subscripts regexp_split_to_table"),
        (Ban.VOLATILE, "random now today uuid gen_random_uuid nextval setseed current_timestamp get_current_time ago"),
        (Ban.OUTSIDE, "getenv current_setting getvariable version query read_csv read_text glob pg_sleep current_user"),
    ],
)
def test_what_is_banned_and_why(ban: Ban, names: str) -> None:
    assert {name: banned_functions().get(name) for name in names.split()} == dict.fromkeys(names.split(), ban)


def test_what_depends_on_its_arguments_alone_is_free() -> None:
    names = "lower abs list_sum range generate_series repeat coalesce nullif split_part array_to_string age date_trunc hash"
    assert not set(names.split()) & set(banned_functions())
