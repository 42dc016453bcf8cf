"""Which queries of a checkpoint a start resumes, restarts or refuses."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from muntin.engine.declaration_checks import SINK_OPTIONS
from muntin.model.catalog import Stream
from muntin.model.settings import Settings
from muntin.spark.driver.checkpoint import Checkpoint, CheckpointError
from muntin.spark.driver.query_meaning import meaning_of
from muntin.spark.driver.resume_plan import ResumePlan, plan_resume
from muntin.spark.driver.suspended_queries import SuspendedQueries
from muntin.spark.exchange.deployment import DeployedQuery, Deployment, QueryChange
from muntin.spark.exchange.deployment_file import StoredDeployment
from muntin.spark.replacement import NOTHING, Replacement

STREAMS = (
    Stream(
        "A", pa.schema([("k", pa.int64()), ("v", pa.int64()), ("ts", pa.timestamp("us"))]), "ts"
    ),
)
CHANGES = "SELECT v FROM A WINDOW 10 SECONDS EMIT CHANGES"
WIDER = "SELECT v FROM A WINDOW 20 SECONDS EMIT CHANGES"
INSERTS = "SELECT v FROM A WINDOW 10 SECONDS"
NONE: frozenset[str] = frozenset()
ALL = Replacement(everything=True)


def registered(
    sql: str, sink: str = "parquet /out", name: str = "q", incarnation: str = "old", **settings: str
) -> DeployedQuery:
    plain = DeployedQuery(name, sql, settings)
    query = Deployment(STREAMS).bind(plain)
    meaning = meaning_of(query, Settings.of(**settings).of_query(query.options, SINK_OPTIONS))
    return DeployedQuery(name, sql, settings, meaning, sink, incarnation)


def deployment(*queries: DeployedQuery) -> Deployment:
    return Deployment(STREAMS, {}, queries)


def planned(
    before: list[DeployedQuery],
    now: list[DeployedQuery],
    replacement: Replacement = NOTHING,
    anew: frozenset[str] = NONE,
) -> ResumePlan:
    stored = StoredDeployment("run", deployment(*before))
    return plan_resume(stored, deployment(*now), anew, replacement)


def outcome(
    before: DeployedQuery,
    now: DeployedQuery,
    anew: frozenset[str] = NONE,
    replacement: Replacement = NOTHING,
) -> str:
    found = planned([before], [now], replacement, anew)
    if found.added:
        assert (found.dropped, found.added) == ((before.name,), (now,))
        return "anew"
    (query,) = found.deployment.queries
    assert (query.sql, query.settings, query.incarnation) == (
        now.sql,
        now.settings,
        before.incarnation,
    )
    return "resumed"


@pytest.mark.parametrize(
    "sink", ["parquet /out", "orc /out", "a function", "kafka", "memory", "console"]
)
def test_a_query_with_the_same_results_is_resumed_despite_other_layout_and_settings(
    sink: str,
) -> None:
    for sql, settings in (
        (CHANGES, {}),
        (CHANGES.replace(" WINDOW", "\n-- wide\nWINDOW"), {}),
        (CHANGES, {"expiry": "lazy", "scheduler": "lwo", "sharing": "off", "pipeline": "negative"}),
        (f"{CHANGES} WITH (expiry = 'lazy')", {}),
        (f"{CHANGES} WITH (sink = 'console')", {}),
    ):
        assert (
            outcome(registered(CHANGES, sink), registered(sql, sink, incarnation="new", **settings))
            == "resumed"
        )


@pytest.mark.parametrize("sink", ["parquet /out", "a function", "kafka", "memory", "console"])
@pytest.mark.parametrize(
    ("now", "settings", "what"),
    [
        (WIDER, {}, r"its windows: A \[RANGE 10 seconds\] is now \[RANGE 20 seconds\]"),
        (CHANGES.replace("WINDOW 10 SECONDS", "WINDOW 5 ROWS"), {}, r"its windows: .*\[ROWS 5\]"),
        (CHANGES.replace("10 SECONDS", "'10 seconds'"), {}, "the text of its windows"),
        (CHANGES.replace("v FROM", "v + 1 AS v FROM"), {}, "its text"),
        (WIDER.replace("v FROM", "v + 1 AS v FROM"), {}, "its text"),
        (INSERTS, {}, "its text"),
        (
            CHANGES,
            {"reevaluation": "5 seconds"},
            "the setting reevaluation, which was the default and is '5 seconds'",
        ),
        (
            f"{WIDER} WITH (reevaluation = '5 seconds')",
            {},
            "its windows: .* and the setting reevaluation, which was the default",
        ),
    ],
    ids=["window", "kind", "units", "select", "both", "emit", "setting", "with"],
)
def test_a_changed_query_is_refused_with_a_remedy_until_it_is_named(
    sink: str, now: str, settings: dict[str, str], what: str
) -> None:
    before, changed = (
        registered(CHANGES, sink),
        registered(now, sink, incarnation="new", **settings),
    )
    fact = rf"^query q has changed \({what}.*\), so it can .* nor its results \({sink}\)\. "
    remedies = {
        NOTHING: r"""SparkEngine\(\.\.\., replace=\["q"\]\)""",
        Replacement(names=("r",)): r"""SparkEngine\(\.\.\., replace=\["r", "q"\]\)""",
        Replacement(command="muntin run app.sql --once"): "muntin run app.sql --once --replace q",
    }
    for replacement, remedy in remedies.items():
        with pytest.raises(CheckpointError, match=fact + rf"To start it again .*: {remedy}\. "):
            outcome(before, changed, replacement=replacement)
    for replacement in (ALL, Replacement(names=("Q",))):
        assert outcome(before, changed, replacement=replacement) == "anew"


def test_all_changed_queries_are_named_at_once() -> None:
    before = [registered(CHANGES, f"parquet /{name}", name) for name in ("a", "b", "c")]
    now = [registered(WIDER, f"parquet /{name}", name) for name in ("a", "b c", "c")]
    with pytest.raises(
        CheckpointError,
        match=(
            r"query a has changed .*\(parquet /a\); query c has changed .*start them again.*: "
            r"muntin run x --replace b --replace a --replace c\. .*give them"
        ),
    ):
        planned(before, now, Replacement(names=("b",), command="muntin run x --replace b"))


def test_a_named_query_starts_again_and_the_others_are_resumed() -> None:
    before = [registered(CHANGES, f"parquet /{name}", name) for name in ("a", "b", "c")]
    now = [registered(CHANGES, f"parquet /{name}", name, "new") for name in ("a", "b", "c")]
    now[2] = registered(WIDER, "parquet /c", "c", "new")
    found = planned(before, now, Replacement(names=("B", "c")))
    assert (found.dropped, found.added) == (("b", "c"), (now[1], now[2]))
    assert dict(found.replaced) == {
        "b": "",
        "c": "its windows: A [RANGE 10 seconds] is now [RANGE 20 seconds]",
    }
    kept = [query for query in found.deployment.in_force() if query.name not in found.dropped]
    assert [(query.name, query.incarnation) for query in kept] == [("a", "old")]


def test_a_named_query_starts_again_once() -> None:
    named = Replacement(names=("q",))
    unchanged = registered(CHANGES), registered(CHANGES, incarnation="new")
    assert outcome(*unchanged, replacement=named) == "anew"
    assert outcome(*unchanged, replacement=named.finished()) == "resumed"
    assert outcome(registered(CHANGES), registered(WIDER), replacement=named.finished()) == "anew"


def test_permission_for_all_resumes_what_has_not_changed() -> None:
    unchanged = registered(CHANGES), registered(CHANGES, incarnation="new")
    assert outcome(*unchanged, replacement=ALL) == "resumed"


def test_a_query_under_another_name_is_another_query() -> None:
    renamed = planned([registered(CHANGES)], [registered(WIDER, name="r")])
    assert (renamed.dropped, [query.name for query in renamed.added]) == (("q",), ["r"])


def test_another_sink_restarts_changes_and_resumes_inserts() -> None:
    for sink in ("memory", "parquet /other", "a function"):
        assert outcome(registered(CHANGES, "console"), registered(CHANGES, sink)) == "anew"
        assert outcome(registered(INSERTS, "console"), registered(INSERTS, sink)) == "resumed"


def test_a_query_that_was_dropped_and_declared_again_starts_over() -> None:
    assert outcome(registered(CHANGES), registered(CHANGES), frozenset({"q"})) == "anew"


def test_under_overload_every_setting_affects_results() -> None:
    join = "SELECT a.v AS x, b.v AS y FROM A a, A b WHERE a.k = b.k WINDOW 10 SECONDS"
    before = registered(join, overload="adapt", resources="10")
    with pytest.raises(CheckpointError, match="the setting resources, which was '10' and is '20'"):
        outcome(before, registered(join, overload="adapt", resources="20"))
    assert outcome(before, registered(join, overload="adapt", resources="10")) == "resumed"


def test_the_query_in_force_is_resumed_not_one_of_the_same_name_before_it() -> None:
    first, second = (
        registered(CHANGES, incarnation="first"),
        registered(WIDER, incarnation="second"),
    )
    stored = Deployment(
        STREAMS,
        {},
        (first,),
        (QueryChange(3, dropped="q"), QueryChange(3, added=second, dataflow="x")),
    )
    found = plan_resume(
        StoredDeployment("run", stored),
        deployment(registered(WIDER, expiry="lazy")),
        NONE,
        NOTHING,
    )
    assert found.deployment.queries == (first,)
    assert [(query.incarnation, query.settings) for query in found.deployment.in_force()] == [
        ("second", {"expiry": "lazy"})
    ]
    assert (found.dropped, found.added) == ((), ())


def test_results_in_a_checkpoint_whose_spark_files_are_gone_are_not_overwritten(
    tmp_path: Path,
) -> None:
    checkpoint = Checkpoint(tmp_path)
    declared = deployment(registered(CHANGES))
    assert checkpoint.resume(declared).begins
    checkpoint.write("run", declared)
    for place in ("results/abc", "late/A"):
        (tmp_path / "muntin" / place).mkdir(parents=True)
        batch = tmp_path / "muntin" / place / "batch-000000000.parquet"
        batch.touch()
        with pytest.raises(
            CheckpointError,
            match=r"holds results of a run whose Spark files are gone.*replace=True",
        ):
            checkpoint.resume(deployment(registered(CHANGES)))
        assert batch.exists()
        named = Replacement(names=("q",))
        with pytest.raises(CheckpointError, match=r"--replace-all|replace=True"):
            checkpoint.resume(deployment(registered(CHANGES)), NONE, named)
        checkpoint.resume(deployment(registered(CHANGES)), NONE, ALL)
        assert batch.exists(), "the sinks have not been checked"
        checkpoint.clear()
        assert not batch.exists()
    for place in ("global", "carried", "spool"):
        checkpoint.storage.put(f"{place}/0/file", b"")
    checkpoint.clear()
    assert checkpoint.storage.tree() == ["program"]


def test_state_in_a_checkpoint_whose_spark_files_are_gone_is_not_deleted_without_permission(
    tmp_path: Path,
) -> None:
    checkpoint = Checkpoint(tmp_path)
    declared = deployment(registered(CHANGES))
    checkpoint.write(checkpoint.resume(declared).run, declared)
    checkpoint.manifests.commit([], 0)
    SuspendedQueries(checkpoint.files).add(0, "q", "reason")
    before = checkpoint.storage.tree()
    for given in (NOTHING, Replacement(names=("q",))):
        with pytest.raises(
            CheckpointError,
            match=r"holds the state of a run whose Spark files are gone.*replace=True",
        ):
            checkpoint.resume(declared, NONE, given)
    assert checkpoint.resume(declared, NONE, ALL).begins
    assert checkpoint.storage.tree() == before
    checkpoint.clear()
    assert checkpoint.storage.tree() == ["program"]
