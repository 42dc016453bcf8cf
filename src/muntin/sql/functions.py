"""Which functions a standing query must not call, and why; DuckDB's own catalogue says what they are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from functools import cache

from muntin.sql.probe import ask


class Ban(Enum):
    """Why a function is refused: the fact, and the advice to give."""

    AGGREGATE = ("is an aggregate", "Aggregates can stand in the select list and in HAVING")
    WINDOW = ("is a window function", "Window functions are not supported; use WINDOW or [ROWS n] to bound a stream")
    TABLE = ("makes rows", "Only functions that make one value of each row can be used")
    VOLATILE = (
        "does not depend on the rows alone",
        "A row must give the same result whenever it is looked at; use a column, such as the stream's time, instead",
    )
    OUTSIDE = ("looks outside the rows", "Expressions cannot read files, settings or the system")


WITHOUT_PARENTHESES = {"CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP"}
WITHOUT_PARENTHESES |= {"CURRENT_USER", "CURRENT_ROLE", "CURRENT_CATALOG", "CURRENT_SCHEMA", "CURRENT_DATABASE", "SESSION_USER"}
"""Words that call a function although no parenthesis follows."""

_OUTSIDE = re.findall(
    r"\w+",
    """
    getenv current_setting getvariable version current_user current_role session_user user current_catalog current_database
    current_schema current_schemas in_search_path query query_table glob read_text read_blob read_csv read_csv_auto read_json
    read_parquet parquet_scan pragma_version pragma_platform write_log sleep_ms stats
    """,
)
_CALL = re.compile(r'(\w+)"?\(')


@cache
def banned_functions() -> Mapping[str, Ban]:
    """The refused functions by their name in lower case."""
    columns = "function_name AS name, function_type AS kind, stability, macro_definition AS body"
    catalogue = ask(f"SELECT {columns} FROM duckdb_functions()").to_pylist()
    scalars = {row["name"] for row in catalogue if row["kind"] in {"scalar", "macro"}}
    bans: dict[str, Ban] = {}
    for row in catalogue:
        if row["stability"] in {"VOLATILE", "CONSISTENT_WITHIN_QUERY"}:
            bans[row["name"]] = Ban.VOLATILE
        elif row["kind"] == "aggregate":
            bans[row["name"]] = Ban.AGGREGATE
        elif row["kind"] == "window":
            bans.setdefault(row["name"], Ban.WINDOW)
        elif row["kind"] in {"table", "table_macro", "pragma"} and row["name"] not in scalars:
            bans.setdefault(row["name"], Ban.TABLE)
    bans |= dict.fromkeys(_OUTSIDE, Ban.OUTSIDE)
    bans |= {name.lower(): Ban.VOLATILE for name in WITHOUT_PARENTHESES if name.lower() not in bans}
    _ban_macros(bans, {row["name"]: row["body"] for row in catalogue if row["kind"] == "macro"})
    return bans


def _ban_macros(bans: dict[str, Ban], macros: Mapping[str, str]) -> None:
    """Ban what calls something banned, until nothing new is found."""
    found = True
    while found:
        found = False
        for name, body in macros.items():
            calls = [call.lower() for call in _CALL.findall(body)] + [body.strip().lower()]
            calls += ["current_timestamp"] if "current_timestamp" in body else []
            ban = Ban.OUTSIDE if "(SELECT " in body else next((bans[call] for call in calls if call in bans and call != name), None)
            if ban is not None and name not in bans:
                bans[name] = ban
                found = True
