"""The example apps run on Spark as their READMEs describe.

Their results are those of their scripts in process.
"""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path

import pytest

from tests.spark.support import muntin_command

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-2")]

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    ("name", "app", "folder", "ask"),
    [
        ("disagreeing_stations", "stations.sql", "readings", "alarms"),
        ("connecting_flights", "connections.sql", "flights", "board"),
    ],
)
def test_an_app_gives_on_spark_what_its_script_gives(
    name: str,
    app: str,
    folder: str,
    ask: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    script = str(EXAMPLES / name / f"{name}.py")
    monkeypatch.setattr(sys, "argv", [script, "--write", folder])
    functions = runpy.run_path(script, run_name="__main__")
    code, printed, reported = muntin_command(
        f"muntin run {EXAMPLES / name / app} --once --json", monkeypatch, capsys
    )
    assert code == 0, reported
    rows = [json.loads(line) for line in printed.splitlines()]
    expected = functions[ask](functions["generate"]()).to_pylist()
    # With --once time ends with the last row, so the answer at the instant after it is not there.
    last = max(row["_ts"] for row in expected)
    column = "station" if name == "disagreeing_stations" else "via"
    theirs = [(row["_ts"][:19].replace("T", " "), row[column]) for row in rows]
    ours = [(str(row["_ts"]), row[column]) for row in expected if row["_ts"] < last]
    assert sorted(theirs)[: len(ours)] == sorted(ours)
    assert len(ours) > 20
