"""Limited joins: exact without a limit; with one, a subset that does not depend on batches."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import cast

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import muntin
from muntin.plan.query import Emit
from muntin.sql.script import read_query
from muntin.testing.case import Case
from muntin.testing.compare import assert_same_changes, assert_same_rows, assert_same_sequence
from muntin.testing.strategies import Shape, cases
from tests.property.case_runs import poll_every_batch

SECOND = 1_000_000
LIMITED = Shape(emits=("", "EMIT INSERTS"), least=2, partitions=False, every=False, landmarks=False)

Row = tuple[object, ...]


@st.composite
def limits(draw: st.DrawFn) -> dict[str, str]:
    """Draw settings under which work is limited."""
    return {
        "resources": draw(st.sampled_from(["0.2", "1", "2", "3.5", "8"])),
        "monitoring": draw(st.sampled_from(["1 second", "2 seconds", "700 milliseconds", "auto"])),
        "adapt_change": draw(st.sampled_from(["0.05", "auto"])),
        "adapt_gain": draw(st.sampled_from(["0.05", "auto"])),
        "policy": draw(
            st.sampled_from(
                [
                    "jaqpot",
                    "jaqpot",
                    "grepp",
                    "greedy",
                    "knapsack",
                    "equal_hj",
                    "global_hjpr",
                    "ebest_hjp",
                    "sbest_hjp",
                    "best_hjp",
                ]
            )
        ),
        "probe_cost": draw(st.sampled_from(["unit", "measured"])),
        "probe_choice": draw(st.sampled_from(["key", "oldest", "newest", "random"])),
        "probe_seed": draw(st.sampled_from(["0", "7"])),
    }


def run(
    case: Case, settings: dict[str, str], cuts: Sequence[int] | None = None
) -> tuple[pa.Table, muntin.StandingQuery]:
    case = (
        case
        if cuts is None
        else Case(case.streams, case.tables, case.query, case.events, tuple(sorted(set(cuts))))
    )
    return poll_every_batch(case, muntin.Engine(**settings))


def rows_of(table: pa.Table) -> list[Row]:
    return [tuple(row.values()) for row in table.to_pylist()]


def is_part(part: list[Row], whole: list[Row]) -> bool:
    """Return whether a list is another with some rows left out."""
    rest = iter(whole)
    return all(any(row == other for other in rest) for row in part)


@given(cases(Shape()), st.sampled_from(["", "1000000"]), limits())
def test_with_enough_resources_results_are_exact(
    case: Case, resources: str, settings: dict[str, str]
) -> None:
    query = read_query(case.query, "q", case.catalog())
    results, q = run(case, {**settings, "overload": "adapt", "resources": resources})
    oracle = case.oracle(query)
    if query.emit is Emit.CHANGES:
        assert_same_changes(oracle.changes(case.end), results)
    else:
        assert_same_sequence(oracle.inserts(case.end), results)
    assert_same_rows(oracle.answer(case.end), q.answer())


@given(cases(LIMITED), limits(), st.data())
def test_under_limits_results_are_a_subset_of_the_exact_ones_for_any_batches(
    case: Case, settings: dict[str, str], data: st.DataObject
) -> None:
    settings = {**settings, "overload": "adapt"}
    exact, _ = run(case, {})
    limited, q = run(case, settings)
    again, other = run(
        case, settings, data.draw(st.lists(st.integers(0, len(case.events)), max_size=6))
    )
    assert is_part(rows_of(limited), rows_of(exact))
    assert_same_sequence(limited, again)
    mine, theirs = (cast("dict[str, object]", each.stats()["overload"]) for each in (q, other))
    assert mine["probes"] == theirs["probes"]
    assert mine["decisions"] == theirs["decisions"]
    assert mine["stale_results"] == 0
    cycles = 2 + case.end // min(SECOND * 7 // 10, SECOND)
    probes = cast("dict[str, int]", mine["probes"])
    assert sum(probes.values()) <= float(settings["resources"]) * 2 * (cycles + 1), (
        "a cycle may use what the one before left"
    )


@given(
    cases(
        Shape(emits=("",), least=3, partitions=False, every=False, tables=False, landmarks=False)
    ),
    limits(),
    st.sampled_from(["1", "2", "5"]),
    st.integers(8, 10),
)
def test_with_states_of_a_fixed_size_no_result_is_older_than_freshness(
    case: Case, settings: dict[str, str], rows: str, fresh: int
) -> None:
    aliases = [source.alias for source in read_query(case.query, "q", case.catalog()).sources]
    times = ", ".join(f"{alias}.ts AS t{place}" for place, alias in enumerate(aliases))
    body = re.sub(r" WINDOW .*", "", re.sub(r" \[[^\]]*\]", "", case.query.split(" FROM ", 1)[1]))
    text = f"SELECT {times} FROM {body} WINDOW 3 SECONDS FRESHNESS {fresh} SECONDS"
    case = Case(case.streams, case.tables, text, case.events, case.cuts)
    settings = {**settings, "overload": "adapt", "state_rows": rows}
    for resources in (settings["resources"], ""):
        results, q = run(case, {**settings, "resources": resources})
        for row in results.to_pylist():
            ages = [
                (row["_ts"] - row[f"t{place}"]).total_seconds() for place in range(len(aliases))
            ]
            assert max(ages) < fresh
        assert cast("dict[str, object]", q.stats()["overload"])["stale_results"] == 0
