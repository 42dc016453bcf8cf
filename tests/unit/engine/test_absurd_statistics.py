"""Declared statistics that make no sense: queries are planned and run; the data overrule them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import muntin

THREE = (
    "SELECT A.k, A.ts AS a, B.ts AS b, C.ts AS c FROM A, B, C WHERE A.k = B.k AND B.k = C.k "
    "WINDOW 1 SECOND"
)
NUMBERS = ("1e-300", "1", "1e300")


def run(options: str, **settings: str) -> tuple[pa.Table, dict[str, Any]]:
    engine = muntin.Engine(**settings)
    for name in "ABC":
        engine.execute(f"CREATE STREAM {name} (k BIGINT, ts TIMESTAMP) WITH (time = 'ts'{options})")
    q = engine.query(THREE)
    random = np.random.default_rng(1)
    for start in range(0, 1_500, 100):
        times = np.arange(start, start + 100) * 4_000
        for name in "ABC":
            engine.push(
                name,
                pa.table(
                    {
                        "k": random.integers(0, 60, 100),
                        "ts": pa.array(times).cast(pa.timestamp("us")),
                    }
                ),
            )
    engine.advance(6_000_000)
    assert "query q" in engine.explain()
    return q.poll(), q.stats()


@pytest.mark.parametrize("rate", NUMBERS)
@pytest.mark.parametrize("distinct", ["1", "1e300"])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"index_memory": "1 kB"},
        {"join": "nested_loop"},
        {"tree": "((A, B), C)"},
        {"replan": "off"},
    ],
)
def test_a_query_over_absurd_declarations_gives_the_same_results(
    rate: str, distinct: str, settings: dict[str, str]
) -> None:
    results, _ = run(f", rate = {rate}, distinct = {distinct}", **settings)
    expected, _ = run("", replan="off", tree="off")
    assert len(expected) > 1_000
    assert results.equals(expected)


def test_what_the_data_contradict_is_in_the_stats() -> None:
    _, stats = run(", rate = 1e300, distinct = 1")
    assert len(stats["hints_overruled"]) == 6
    assert (
        stats["hints_overruled"][0]
        == "rate of stream A: declared 1e+300, measured 250, which counts"
    )
    reported = re.fullmatch(
        r"distinct of stream A: declared 1, measured ([\d.]+), which counts",
        stats["hints_overruled"][1],
    )
    assert reported
    assert float(reported[1]) == pytest.approx(60, rel=0.1)
    _, honest = run(", rate = 250, distinct = 60")
    assert honest["hints_overruled"] == []
