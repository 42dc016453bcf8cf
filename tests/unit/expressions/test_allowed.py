"""The reviewed list against DuckDB's catalog: every function that DuckDB lists is judged."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from muntin.expressions.allowed import (
    ALLOWED,
    GROUPS,
    LIST_AGGREGATES,
    NAMING_AGGREGATES,
    is_allowed,
)
from muntin.expressions.duck import Duck, DuckError
from muntin.expressions.validator import NotAllowedError, check_expressions

CATALOG = """
SELECT DISTINCT function_name AS name, function_type AS kind, stability,
    len(parameters) AS arguments, parameters, parameter_types,
    macro_definition AS body
FROM duckdb_functions() ORDER BY ALL
"""
SAMPLES = {
    "VARCHAR": "s",
    "BIGINT": "k",
    "INTEGER": "k::INTEGER",
    "DOUBLE": "k::DOUBLE",
    "BOOLEAN": "k > 2",
    "TIMESTAMP": "ts",
    "DATE": "ts::DATE",
    "TIME": "ts::TIME",
    "INTERVAL": "to_days(k::INTEGER)",
    "BLOB": "s::BLOB",
    "TIMESTAMP WITH TIME ZONE": "ts::TIMESTAMPTZ",
    "ANY": "k",
    "T[]": "[k, 1, 3]",
    "ANY[]": "[k, 1, 3]",
    "T": "k",
    "JSON": "to_json([k])",
    "BIT": "k::BIT",
    "MAP(K, V)": "MAP {s: k}",
    "K": "s",
    "STRUCT": "{'a': k}",
    "UUID": "md5(s)::UUID",
    "VARCHAR[]": "[s, 'b']",
    "DOUBLE[]": "[k::DOUBLE, 2.0]",
    "UBIGINT": "k::UBIGINT",
    "HUGEINT": "k::HUGEINT",
    "DECIMAL": "k::DECIMAL(9, 1)",
    "FLOAT": "k::FLOAT",
    "LAMBDA": "lambda x: x + 1",
    "TIMESTAMP_NS": "ts::TIMESTAMP_NS",
    "UNION": "union_value(a := k)",
    "VARIANT": "k::VARIANT",
    "UHUGEINT": "k::UHUGEINT",
    "SMALLINT": "k::SMALLINT",
    "TINYINT": "k::TINYINT",
    "FLOAT[ANY]": "[k, 1, 2]::FLOAT[3]",
    "DOUBLE[ANY]": "[k, 1, 2]::DOUBLE[3]",
    "BIGINT[]": "[k, 2]",
    "BOOLEAN[]": "[k > 1, true, false]",
}
ROWS = (
    "SELECT range AS k, 'row ' || range AS s, TIMESTAMP '2026-01-01' + to_hours(range::INTEGER) "
    "AS ts FROM range(1, 6)"
)


@pytest.fixture(name="catalog", scope="module")
def read_catalog() -> list[dict[str, object]]:
    rows: list[dict[str, object]] = Duck().run(CATALOG).to_pylist()
    return rows


def _is_accepted(duck: Duck, name: object, arguments: object) -> bool:
    assert isinstance(arguments, int)
    try:
        check_expressions(duck, [f'"{name}"({", ".join(["k"] * arguments)})'], {"k"})
    except NotAllowedError:
        return False
    return True


def test_every_function_of_duckdb_is_accepted_only_if_listed(
    catalog: list[dict[str, object]],
) -> None:
    duck = Duck()
    judged = {
        (str(row["name"]), row["arguments"]): _is_accepted(duck, row["name"], row["arguments"])
        for row in catalog
    }
    assert len(judged) > 1_000
    assert {call for call, accepted in judged.items() if accepted} == {
        (name, arguments)
        for name, arguments in judged
        if isinstance(arguments, int)
        and is_allowed(name, arguments)
        and name not in NAMING_AGGREGATES  # those need a constant
    }
    scalar = {row["name"] for row in catalog if row["kind"] in {"scalar", "macro"}}
    changing = {
        row["name"]
        for row in catalog
        if row["stability"] in {"VOLATILE", "CONSISTENT_WITHIN_QUERY"}
    }
    never = {call for call in judged if call[0] not in scalar or call[0] in changing}
    assert len(never) > 200
    assert [call for call in never if judged[call]] == []


def test_the_list_names_scalar_functions_that_exist_each_once(
    catalog: list[dict[str, object]],
) -> None:
    known = {str(row["name"]).lower() for row in catalog if row["kind"] in {"scalar", "macro"}}
    listed = [name.lower() for group in GROUPS.values() for name in group.split()]
    assert len(listed) == len(set(listed)) == len(ALLOWED)
    named = {name.rpartition("/")[0] or name for name in listed if name not in {"/", "//"}}
    assert (named | NAMING_AGGREGATES) - known == set()
    assert {row["name"] for row in catalog if row["kind"] == "aggregate"} >= LIST_AGGREGATES


def test_allowed_macros_call_nothing_that_is_not_allowed(catalog: list[dict[str, object]]) -> None:
    duck = Duck()
    macros = []
    for row in catalog:
        parameters = len(row["parameters"])  # type: ignore[arg-type]
        if row["kind"] == "macro" and is_allowed(str(row["name"]), parameters):
            macros.append(row)
    assert len(macros) > 40
    for row in macros:
        names = set(row["parameters"])  # type: ignore[call-overload]
        check_expressions(duck, [str(row["body"])], names)


def _calls(catalog: list[dict[str, object]]) -> Iterator[tuple[str, str]]:
    """Yield calls of every form of the allowed functions whose parameter types have samples."""
    for row in catalog:
        types, name = row["parameter_types"], str(row["name"])
        if isinstance(types, list) and is_allowed(name, len(types)) and name[0].isalpha():
            arguments = [SAMPLES.get(kind or "ANY") for kind in types]
            if name in NAMING_AGGREGATES:
                arguments[1] = "'sum'"
            if None not in arguments:
                yield name, f'"{name}"({", ".join(map(str, arguments))})'


def test_allowed_functions_give_the_same_values_at_any_time_and_for_any_batches(
    catalog: list[dict[str, object]],
) -> None:
    one, other = Duck(), Duck()
    rows = one.run(ROWS)
    pieces = [rows.slice(0, 2), rows.slice(2)]
    worked = set()
    for name, call in _calls(catalog):
        if name in worked:
            continue
        sql = f"SELECT {call} AS x FROM batch"
        try:
            first = one.run(sql, batch=rows).column("x").to_pylist()
        except (DuckError, pa.ArrowException, NotImplementedError):
            continue  # these samples do not suit it, for example a text that is no date
        cut = [
            value
            for piece in pieces
            for value in other.run(sql, batch=piece).column("x").to_pylist()
        ]
        assert repr(cut) == repr(first), call
        worked.add(name)
    assert len(worked) > 300, sorted(worked)
