"""Every golden script, against the oracle and against the engine under every algorithm.

``MUNTIN_PROFILE=deep`` adds all settings for all scripts;
the other profiles try them on a few.
"""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from muntin.sql.script import read_query
from muntin.testing.engine_driver import EngineDriver
from muntin.testing.oracle_driver import OracleDriver
from muntin.testing.runner import run_file

SCRIPTS = sorted(Path(__file__).parent.glob("*.cqt"))
TELLING = {
    "changes_three_way",
    "four_way",
    "mixed_windows",
    "self_join_three",
    "stored_table_and_two_streams",
    "three_way_windows",
}
SETTINGS = [
    {"algorithm": "naive"},
    {"algorithm": "lazy"},
    {"algorithm": "general_lazy"},
    {"algorithm": "lazy", "reevaluation": "2 seconds"},
    {"join": "nested_loop"},
    {"buckets": "1"},
    {"expiry": "eager"},
    {"expiry": "lazy", "expiry_interval": "3 seconds"},
    {"expiry": "probe"},
    {"expiry": "probe_insert"},
    {"expiry": "probe_all"},
    {"expiry": "all"},
    {"overload": "adapt"},
    {"overload": "adapt", "resources": "1000", "monitoring": "3 seconds"},
]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_agrees_with_the_definition_of_correct(script: Path) -> None:
    report = run_file(script, driver=lambda _: OracleDriver(read_query))
    assert report.ok, str(report)
    assert report.about, "a script says what it is about"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_the_engine_passes_a_script(script: Path) -> None:
    report = run_file(script)
    assert report.ok, str(report)


class Restored(EngineDriver):
    """An engine that is restored from a checkpoint before every step."""

    def feed(self, stream: str, rows: pa.Table) -> None:
        self.restart()
        super().feed(stream, rows)

    def advance(self, at: int) -> None:
        self.restart()
        super().advance(at)

    def query(self, name: str, sql: str) -> None:
        self.restart()
        super().query(name, sql)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_an_engine_restored_before_every_step_passes_a_script(script: Path) -> None:
    report = run_file(script, driver=Restored)
    assert report.ok, str(report)


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: "-".join(settings.values()))
@pytest.mark.parametrize(
    "script",
    [
        path
        for path in SCRIPTS
        if os.environ.get("MUNTIN_PROFILE") == "deep" or path.stem in TELLING
    ],
    ids=lambda path: path.stem,
)
def test_the_engine_passes_a_script_under_every_setting(
    script: Path, settings: dict[str, str]
) -> None:
    report = run_file(script, settings=settings)
    assert report.ok, str(report)
