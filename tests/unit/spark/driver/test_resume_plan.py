"""Which queries of a checkpoint a start resumes, restarts or refuses."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from muntin.engine.declaration_checks import SINK_OPTIONS
from muntin.model.catalog import Stream
from muntin.model.settings import Settings
from muntin.spark.driver.checkpoint import Checkpoint, CheckpointError
from muntin.spark.driver.resume_plan import meaning_of, plan_resume
from muntin.spark.exchange.deployment import DeployedQuery, Deployment, QueryChange
from muntin.spark.exchange.deployment_file import StoredDeployment

STREAMS = (
    Stream(
        "A", pa.schema([("k", pa.int64()), ("v", pa.int64()), ("ts", pa.timestamp("us"))]), "ts"
    ),
)
CHANGES = "SELECT v FROM A WINDOW 10 SECONDS EMIT CHANGES"
WIDER = "SELECT v FROM A WINDOW 20 SECONDS EMIT CHANGES"
INSERTS = "SELECT v FROM A WINDOW 10 SECONDS"
NOTHING: frozenset[str] = frozenset()


def registered(
    sql: str, sink: str = "parquet /out", name: str = "q", incarnation: str = "old", **settings: str
) -> DeployedQuery:
    plain = DeployedQuery(name, sql, settings)
    query = Deployment(STREAMS).bind(plain)
    meaning = meaning_of(query, Settings.of(**settings).of_query(query.options, SINK_OPTIONS))
    return DeployedQuery(name, sql, settings, meaning, sink, incarnation)


def deployment(*queries: DeployedQuery) -> Deployment:
    return Deployment(STREAMS, {}, queries)


def outcome(
    before: DeployedQuery,
    now: DeployedQuery,
    anew: frozenset[str] = NOTHING,
    *,
    may_replace: bool = False,
) -> str:
    found = plan_resume(
        StoredDeployment("run", deployment(before)), deployment(now), anew, may_replace=may_replace
    )
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


@pytest.mark.parametrize("sink", ["parquet /out", "orc /out", "a function", "kafka"])
@pytest.mark.parametrize(
    ("now", "settings", "what"),
    [
        (WIDER, {}, "its text"),
        (CHANGES.replace("v FROM", "v + 1 AS v FROM"), {}, "its text"),
        (INSERTS, {}, "its text"),
        (CHANGES, {"reevaluation": "5 seconds"}, "a setting"),
    ],
    ids=["window", "select", "emit", "setting"],
)
def test_a_changed_query_is_refused_in_the_same_sink_and_may_replace_it(
    sink: str, now: str, settings: dict[str, str], what: str
) -> None:
    before, changed = (
        registered(CHANGES, sink),
        registered(now, sink, incarnation="new", **settings),
    )
    with pytest.raises(
        CheckpointError,
        match=(
            rf"query q has changed \({what}.*its sink \({sink}\).*another name or "
            r"sink.*--replace"
        ),
    ):
        outcome(before, changed)
    assert outcome(before, changed, may_replace=True) == "anew"


def test_a_changed_query_starts_over_if_nothing_is_left_of_the_old_one() -> None:
    for sink in ("memory", "console"):
        assert outcome(registered(CHANGES, sink), registered(WIDER, sink)) == "anew"
    assert outcome(registered(CHANGES), registered(WIDER, "parquet /other")) == "anew"
    renamed = plan_resume(
        StoredDeployment("run", deployment(registered(CHANGES))),
        deployment(registered(WIDER, name="r")),
        NOTHING,
        may_replace=False,
    )
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
    with pytest.raises(CheckpointError, match="a setting that determines its results"):
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
        NOTHING,
        may_replace=False,
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
    checkpoint.resume(deployment(registered(CHANGES)))
    for place in ("results/abc", "late/A"):
        (tmp_path / "muntin" / place).mkdir(parents=True)
        batch = tmp_path / "muntin" / place / "batch-000000000.parquet"
        batch.touch()
        with pytest.raises(
            CheckpointError, match=r"holds results of a run whose Spark files are gone.*--replace"
        ):
            checkpoint.resume(deployment(registered(CHANGES)))
        assert batch.exists()
        checkpoint.resume(deployment(registered(CHANGES)), may_replace=True)
        assert not batch.exists()
    for place in ("global", "carried", "spool"):
        (tmp_path / "muntin" / place / "0").mkdir(parents=True)
    checkpoint.resume(deployment(registered(CHANGES)))
    assert sorted(path.name for path in (tmp_path / "muntin").iterdir()) == [
        "late",
        "program",
        "results",
    ]
