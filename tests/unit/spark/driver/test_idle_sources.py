"""Sources that are silent longer than their stream allows are declared idle, once."""

from __future__ import annotations

from dataclasses import dataclass, field

from muntin.model.catalog import Catalog
from muntin.plan.statement import CreateStream
from muntin.spark.driver.idle_sources import IdleSources, idle_limits
from muntin.spark.exchange.controls import ControlRow
from muntin.sql.script import read_script


@dataclass
class Watch:
    """Idle sources with a clock that tests set."""

    now: float = 0.0
    sent: list[ControlRow] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.sources = IdleSources(self.sent.append, lambda: self.now)
        self.sources._limits = {"A": 10.0}

    def batch(self, *active: str, idle: tuple[str, ...] = (), known: tuple[str, ...] = ()) -> None:
        self.sources.observe(
            [
                {
                    "sources": {"A": dict.fromkeys((*active, *known), 1), "B": {"b/0": 1}},
                    "active": {"A": list(active)},
                    "idle": [("A", one) for one in idle],
                }
            ]
        )

    def at(self, now: float) -> list[tuple[str, str]]:
        """Look at the clock; return the sources that became idle."""
        self.now = now
        self.sent.clear()
        self.sources.check()
        return [source for row in self.sent for source in row.idle]


def test_a_silent_source_becomes_idle_once_and_active_again_with_its_next_row() -> None:
    watch = Watch()
    watch.batch("t/0", "t/1")
    assert watch.at(9.0) == []
    watch.batch("t/0")
    assert watch.at(10.0) == [("A", "t/1")]
    watch.batch("t/0", idle=("t/1",))
    assert watch.at(19.0) == []
    watch.batch("t/0", "t/1")
    assert watch.at(28.5) == []
    assert watch.at(29.0) == [("A", "t/0"), ("A", "t/1")]


def test_sources_that_a_checkpoint_knows_count_from_the_first_batch_of_the_run() -> None:
    watch = Watch()
    watch.now = 100.0
    watch.batch("t/0", known=("t/1", "t/2"), idle=("t/2",))
    assert watch.at(109.0) == []
    assert watch.at(110.0) == [("A", "t/0"), ("A", "t/1")]


def test_a_run_that_starts_again_measures_anew() -> None:
    watch = Watch()
    watch.batch("t/0")
    watch.now = 1000.0
    watch.sources.start({"A": 10.0})
    watch.sources.stop()
    assert watch.at(1009.0) == []
    assert watch.at(1010.0) == [("A", "t/0")]


def test_control_rows_carry_idle_sources() -> None:
    row = ControlRow("idle", idle=(("A", "t/0"), ("A", "t/1")))
    assert ControlRow.from_text(row.to_text()) == row


def test_streams_declare_the_silence_after_which_a_source_is_idle() -> None:
    script = (
        "CREATE STREAM A (ts TIMESTAMP) WITH (format = 'kafka', servers = 'h:1', topic = 't', "
        "value = 'json', idle = '2 minutes'); CREATE STREAM B (ts TIMESTAMP);"
    )

    streams = [
        statement.stream
        for statement in read_script(script, Catalog())
        if isinstance(statement, CreateStream)
    ]
    assert idle_limits(streams) == {"A": 120.0}
