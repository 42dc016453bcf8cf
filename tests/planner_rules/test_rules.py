"""Every query pair of the files in this folder gets the plan written there.

The plan is run, and its results are compared with the oracle.

``MUNTIN_COMPLETE=1`` writes the plans that come out into the files instead of comparing them, each
only after its results were found right; an error is written only where one stands, so write
``error:`` below ``=>`` of a new pair that must be refused.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import muntin
from muntin.engine.explain import describe_plan
from muntin.errors import MuntinError
from muntin.plan.description import draw
from muntin.plan.query import Emit
from muntin.runtime.running_query import RunningQuery
from muntin.testing.compare import assert_same_changes, assert_same_rows, assert_same_sequence
from muntin.testing.oracle import Oracle
from tests.planner_rules.pairs import Pair, read_rules, write_plan, write_rules

FILES = sorted(Path(__file__).parent.glob("*.txt"))
COMPLETE = os.environ.get("MUNTIN_COMPLETE", "0") != "0"
SECOND = 1_000_000
ROWS = 40
END = 31 * SECOND


def all_pairs() -> Iterator[object]:
    for path in FILES:
        rules = read_rules(path.read_text(encoding="utf-8"))
        for pair in rules.pairs:
            yield pytest.param(path, rules.declarations, pair, id=f"{path.stem}: {pair.title}")


def random_column(random: np.random.Generator, arrow: pa.DataType, count: int) -> pa.Array:
    """Return a random column: few values, so that rows join, some NULLs, and ascending times."""
    if pa.types.is_timestamp(arrow):
        return pa.array(np.sort(random.integers(0, 30, count)) * SECOND).cast(arrow)
    values = random.integers(0, 4, count)
    if pa.types.is_string(arrow):
        return pa.array([None if value == 3 else "xyz"[value] for value in values])
    return pa.array(values, mask=random.random(count) < 0.1).cast(arrow)


def random_rows(schema: pa.Schema, count: int, random: np.random.Generator) -> pa.Table:
    return pa.table([random_column(random, arrow, count) for arrow in schema.types], schema=schema)


def plan_of(engine: muntin.Engine) -> str:
    (running,) = engine.dataflow.queries.values()
    assert isinstance(running, RunningQuery)
    return draw(describe_plan(running.plan))


def run_against_oracle(
    engine: muntin.Engine, random: np.random.Generator, stored: dict[str, pa.Table]
) -> int:
    """Push random rows, compare all results with the oracle, and return their number."""
    (running,), (handle,) = engine.dataflow.queries.values(), engine.queries()
    rows = {
        stream.name: random_rows(stream.schema, ROWS, random)
        for stream in engine._declared.catalog.streams()
    }
    for start in range(0, ROWS, 7):
        for name, table in rows.items():
            engine.push(name, table.slice(start, 7))
    engine.advance(END)
    oracle = Oracle(running.query, rows, stored, engine._declared.catalog)
    results = handle.poll()
    if running.query.emit is Emit.INSERTS:
        assert_same_sequence(oracle.inserts(END), results)
    else:
        assert_same_changes(oracle.changes(END), results)
    assert_same_rows(oracle.answer(END), handle.answer())
    return len(results)


def plan_and_run(declarations: str, script: str, seed: int) -> tuple[str, int]:
    """Return the plan or the error, and the number of results, compared with the oracle."""
    random = np.random.default_rng(seed)
    engine = muntin.Engine()
    stored = random_rows(pa.schema({"k": pa.int32(), "w": pa.int32()}), 6, random)
    engine.table("T", stored)
    engine.execute(declarations)
    try:
        engine.execute(script)
    except MuntinError as error:
        return f"error: {error}", 0
    plan = plan_of(engine)
    results = run_against_oracle(engine, random, {"T": stored})
    assert plan_of(engine) == plan, "it ran by this plan all the time"
    return plan, results


@pytest.mark.parametrize(("path", "declarations", "pair"), list(all_pairs()))
def test_a_query_gets_its_plan_and_the_plan_gives_right_results(
    path: Path, declarations: str, pair: Pair
) -> None:
    (plan, some), (again, more) = (plan_and_run(declarations, pair.script, seed) for seed in (1, 2))
    assert plan == again
    assert some + more > 0 or pair.plan.startswith("error: "), (
        "a pair must give results, or it proves nothing"
    )
    if COMPLETE:
        write_plan(path, pair.title, plan)
    else:
        assert plan == pair.plan


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_states_its_rule_and_has_the_form_that_completion_writes(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    rules = read_rules(text)
    assert rules.about.removeprefix("#").strip()
    assert len({pair.title for pair in rules.pairs}) == len(rules.pairs) > 0
    assert COMPLETE or write_rules(rules) == text


def test_completion_writes_one_plan_and_leaves_the_others(tmp_path: Path) -> None:
    path = tmp_path / "rule.txt"
    path.write_text(
        "# about\nCREATE x;\n\n=== one\nSELECT 1;\n=>\nold\n├─ plan\n\n=== two\nSELECT "
        "2;\n=>\nstays\n",
        encoding="utf-8",
    )
    write_plan(path, "one", "new\n└─ plan")
    assert path.read_text(encoding="utf-8") == (
        "# about\nCREATE x;\n\n=== one\nSELECT 1;\n=>\nnew\n└─ plan\n\n=== two\nSELECT "
        "2;\n=>\nstays\n"
    )
