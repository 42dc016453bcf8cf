"""Why a query must not call a function, in words for the user.

What queries may call is decided by the list in :mod:`muntin.expressions.allowed`, not here: a
function that is missing below is refused all the same, with a more general reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import cache

from muntin.expressions.allowed import ALLOWED, is_allowed
from muntin.sql.probe import ask


class Ban(Enum):
    """Why a function is refused: the fact, and the advice to give."""

    AGGREGATE = ("is an aggregate", "Aggregates can stand in the select list and in HAVING")
    WINDOW = (
        "is a window function",
        "Write it with OVER (...) in the select list or in QUALIFY",
    )
    TABLE = ("makes rows", "Only functions that make one value of each row can be used")
    VOLATILE = (
        "does not depend on the rows alone",
        (
            "A row must give the same result whenever it is looked at; "
            "use a column, such as the stream's time, instead"
        ),
    )
    OUTSIDE = ("looks outside the rows", "Expressions cannot read files, settings or the system")
    UNLISTED = (
        "is not supported in queries",
        "Use functions whose value depends on their arguments alone",
    )


WITHOUT_PARENTHESES = {
    "CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP",
    "CURRENT_USER", "CURRENT_ROLE", "CURRENT_CATALOG", "CURRENT_SCHEMA", "CURRENT_DATABASE",
    "SESSION_USER",
}  # fmt: skip
"""Words that call a function although no parenthesis follows."""

_REASONS = {
    Ban.VOLATILE: """
        age ago current_localtime current_localtimestamp current_date current_time current_timestamp
        localtime localtimestamp pg_conf_load_time pg_postmaster_start_time
    """,
    Ban.AGGREGATE: """
        geomean geometric_mean wavg weighted_avg json_group_array json_group_object
        json_group_structure variant_group_array
    """,
    Ban.TABLE: "generate_subscripts regexp_split_to_table",
    Ban.OUTSIDE: """
        getenv current_setting getvariable version current_user current_role session_user user
        current_catalog current_database current_schema current_schemas in_search_path query
        query_table glob read_text read_blob read_csv read_csv_auto read_json read_parquet
        parquet_scan pragma_version pragma_platform write_log sleep_ms pg_sleep stats
        get_block_size format_type pg_get_constraintdef pg_get_viewdef
    """,
}
"""Reasons that DuckDB's catalog does not give."""

_KINDS = {
    "aggregate": Ban.AGGREGATE,
    "window": Ban.WINDOW,
    "table": Ban.TABLE,
    "table_macro": Ban.TABLE,
    "pragma": Ban.TABLE,
}


@cache
def refused_functions() -> Mapping[str, Ban]:
    """Return the reason for every function that is known and not allowed, by name in lower case."""
    columns = "lower(function_name) AS name, function_type AS kind, stability"
    found = ask(f"SELECT DISTINCT {columns} FROM duckdb_functions() ORDER BY ALL").to_pylist()
    reasons: dict[str, Ban] = {}
    for row in found:
        known = _KINDS.get(row["kind"], Ban.UNLISTED)
        volatile = row["stability"] in {"VOLATILE", "CONSISTENT_WITHIN_QUERY"}
        reasons.setdefault(row["name"], Ban.VOLATILE if volatile else known)
    for reason, names in _REASONS.items():
        reasons |= dict.fromkeys(names.split(), reason)
    return {name: reason for name, reason in reasons.items() if name not in ALLOWED}


def why_refused(function: str, arguments: int) -> Ban | None:
    """Return the reason to refuse a function with this number of arguments.

    None means that it may be called, or does not exist.
    """
    return None if is_allowed(function, arguments) else refused_functions().get(function.lower())
