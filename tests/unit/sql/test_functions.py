from __future__ import annotations

import pytest

from muntin.sql.functions import Ban, refused_functions, why_refused


@pytest.mark.parametrize(
    ("ban", "names"),
    [
        (
            Ban.AGGREGATE,
            (
                "count sum min max avg list first string_agg histogram geomean weighted_avg "
                "json_group_array"
            ),
        ),
        (Ban.WINDOW, "row_number lag rank"),
        (Ban.TABLE, "unnest read_ndjson generate_subscripts regexp_split_to_table"),
        (
            Ban.VOLATILE,
            (
                "random now today uuid gen_random_uuid nextval setseed current_timestamp "
                "get_current_time ago"
            ),
        ),
        (
            Ban.OUTSIDE,
            (
                "getenv current_setting getvariable version query read_csv read_text glob "
                "pg_sleep current_user"
            ),
        ),
    ],
)
def test_what_is_banned_and_why(ban: Ban, names: str) -> None:
    assert {name: refused_functions().get(name) for name in names.split()} == dict.fromkeys(
        names.split(), ban
    )


def test_functions_of_their_arguments_alone_are_allowed() -> None:
    names = (
        "lower abs list_sum range generate_series repeat nullif split_part array_to_string age "
        "date_trunc hash list_aggregate"
    )
    assert {name: why_refused(name, 2) for name in names.split()} == dict.fromkeys(names.split())


def test_the_number_of_arguments_can_matter() -> None:
    assert why_refused("AGE", 1) is Ban.VOLATILE
    assert why_refused("AGE", 2) is None


def test_functions_without_a_specific_reason_are_refused_too() -> None:
    assert why_refused("create_sort_key", 2) is Ban.UNLISTED
