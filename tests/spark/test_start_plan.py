"""What a start would do with a checkpoint is what it then does, and finding out changes nothing."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from muntin.errors import MuntinError
from muntin.spark import SparkEngine
from muntin.spark.driver.start_plan import StartPlan
from tests.spark.support import JOIN, SECOND, Folders, muntin_command, rows

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-2")]

NARROW = "SELECT v FROM A WINDOW 5 SECONDS EMIT CHANGES"
WIDE = "SELECT v FROM A WINDOW 50 SECONDS EMIT CHANGES"
INSERTS = "SELECT v FROM A WINDOW 5 SECONDS"


def sink(folders: Folders, name: str) -> dict[str, str]:
    return {"format": "parquet", "path": str(folders.base / name)}


def engine_over(
    spark: SparkSession, folders: Folders, queries: dict[str, str], **options: object
) -> SparkEngine:
    arguments: dict[str, object] = {"partitions": 1, "checkpoint": folders.base / "state"}
    engine = SparkEngine(spark, **(arguments | options))  # type: ignore[arg-type]
    engine.execute(folders.declarations())
    for name, sql in queries.items():
        engine.query(sql, name=name, sink=sink(folders, name))
    return engine


def content(folder: Path) -> dict[str, str]:
    """Return the digest of every file below a folder."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def actions(plan: StartPlan) -> dict[str, str]:
    return {one.name: one.action for one in plan.queries}


@pytest.fixture
def folders(spark: SparkSession, tmp_path: Path) -> Folders:
    """Return folders in which a run of three queries has ended."""
    made = Folders(tmp_path, ("A", "B"))
    made.write("A", rows([1, 2], start=1))
    made.write("B", rows([1, 2], start=1))
    first = engine_over(spark, made, {"kept": JOIN, "changed": WIDE, "gone": INSERTS})
    first.process_available(until=int(2.5 * SECOND))
    return made


def test_each_query_is_kept_started_replaced_or_dropped_as_planned(
    spark: SparkSession, folders: Folders
) -> None:
    before = content(folders.base)
    engine = engine_over(
        spark,
        folders,
        {"kept": JOIN, "changed": NARROW, "fresh": INSERTS},
        partitions=2,
        replace=["changed"],
    )
    plan = engine.plan_start()
    assert (plan.batch, plan.partitions, plan.errors) == (engine.last_batch, (1, 2), ())
    assert [line.rstrip() for line in plan.lines()] == [
        f"{folders.base}/state: batch {plan.batch} is complete",
        "state: redistributed from 1 to 2 partitions",
        "keep     kept     continues",
        (
            "replace  changed  starts again; its earlier results are deleted: "
            "its windows: A [RANGE 50 seconds] is now [RANGE 5 seconds]"
        ),
        "start    fresh    starts",
        "drop     gone     is not declared any more; what its sink has received remains there",
    ]
    assert content(folders.base) == before, "nothing was written"

    folders.write("A", rows([3], start=7))
    engine.process_available(until=int(3.5 * SECOND))
    assert sorted(folders.base.joinpath("fresh").glob("batch-*"))
    again = engine_over(
        spark, folders, {"kept": JOIN, "changed": NARROW, "fresh": INSERTS}, partitions=2
    ).plan_start()
    assert actions(again) == {"kept": "keep", "changed": "keep", "fresh": "keep"}
    assert again.partitions == (2, 2)


def test_a_refused_start_is_refused_in_the_plan_with_the_same_error(
    spark: SparkSession, folders: Folders
) -> None:
    queries = {"kept": JOIN, "changed": NARROW, "gone": INSERTS}
    plan = engine_over(spark, folders, queries).plan_start()
    assert actions(plan) == {"kept": "keep", "changed": "refuse", "gone": "keep"}
    with pytest.raises(MuntinError) as refused:
        engine_over(spark, folders, queries).process_available()
    assert [str(error) for error in plan.errors] == [str(refused.value)]

    before = content(folders.base)
    other = SparkEngine(spark, checkpoint=folders.base / "state")
    other.execute(folders.declarations().splitlines()[0])
    other.query(INSERTS, name="gone", sink=sink(folders, "gone"))
    plan = other.plan_start()
    assert (plan.queries, len(plan.errors)) == ((), 1)
    assert "its streams are A, B, not A" in str(plan.errors[0])

    new = engine_over(spark, folders, queries, checkpoint=folders.base / "new").plan_start()
    assert (new.batch, actions(new)) == (-1, dict.fromkeys(queries, "start"))
    assert "changed holds results of query changed of run" in str(new.errors[0])
    unnamed = engine_over(spark, folders, queries, replace=["nosuch"]).plan_start()
    assert "there is no query 'nosuch' to replace" in str(unnamed.errors[0])
    assert content(folders.base) == before


def test_settings_and_sinks_that_change_are_named(spark: SparkSession, folders: Folders) -> None:
    engine = engine_over(spark, folders, {"kept": JOIN}, scheduler="swf")
    engine.query(WIDE, name="changed", sink={"format": "json", "path": str(folders.base / "x")})
    engine.query(INSERTS, name="gone", sink={"format": "json", "path": str(folders.base / "y")})
    plan = engine.plan_start()
    assert actions(plan) == {"kept": "keep", "changed": "restart", "gone": "keep"}
    reasons = {one.name: one.reason for one in plan.queries}
    assert reasons["kept"] == "continues: scheduler is swf, was the default"
    assert "a new one has none of the rows that EMIT CHANGES may retract" in reasons["changed"]
    assert f"results go to json {folders.base}/y, not to parquet" in reasons["gone"]
    assert plan.errors == ()


def test_a_checkpoint_in_use_can_be_looked_at(spark: SparkSession, folders: Folders) -> None:
    queries = {"kept": JOIN, "changed": WIDE, "gone": INSERTS}
    running = engine_over(spark, folders, queries)
    running.start()
    try:
        plan = engine_over(spark, folders, queries).plan_start()
        assert actions(plan) == dict.fromkeys(queries, "keep")
        folders.write("A", rows([3], start=3))
        running.process_available(timeout=60)
        assert running.exception() is None
    finally:
        running.stop()


SCRIPT = """
CREATE STREAM A (k BIGINT, v BIGINT, ts TIMESTAMP) WITH (format = 'parquet', path = 'A');
CREATE QUERY q AS SELECT v FROM A WINDOW {seconds} SECONDS WITH (sink = 'parquet', path = 'out');
"""


@pytest.mark.usefixtures("spark")
def test_the_command_names_the_command_that_replaces_and_exits_with_2_if_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Folders(tmp_path, ("A",)).write("A", rows([1], start=1))
    app = tmp_path / "app.sql"
    app.write_text(SCRIPT.format(seconds=5), encoding="utf-8")
    plan = "muntin plan app.sql --checkpoint state"
    code, said, _ = muntin_command(plan, monkeypatch, capsys)
    assert code == 0, said
    assert said.splitlines()[1:] == ["start    q  starts"]
    assert not (tmp_path / "state").exists()
    run = "muntin run app.sql --checkpoint state --once"
    assert muntin_command(run, monkeypatch, capsys)[0] == 0

    app.write_text(SCRIPT.format(seconds=6), encoding="utf-8")
    code, said, errors = muntin_command(plan, monkeypatch, capsys)
    assert (code, said.splitlines()[-1].split()[:2]) == (2, ["refuse", "q"])
    assert "muntin run app.sql --checkpoint state --replace q" in errors
    assert "The start would be refused." in errors
    code, said, _ = muntin_command(f"{plan} --json --replace q", monkeypatch, capsys)
    found = json.loads(said)
    assert (code, found["starts"], found["queries"][0]["action"]) == (0, True, "replace")
