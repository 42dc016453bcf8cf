"""Every golden script through partitions without Spark, with random partitions and batches.

Scripts about features that partitions do not have are left out: statements and their errors
(``errors_*``, ``settings``) and plans (``explain``). Scripts about late rows are fed row by row,
because on Spark the batches before a row decide whether it is late.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from muntin.testing.partition_driver import PartitionDriver
from muntin.testing.runner import run_file

ABOUT_STATEMENTS = {"settings", "explain"}
SCRIPTS = [
    path
    for path in sorted(Path(__file__).parent.glob("*.cqt"))
    if not path.stem.startswith("errors_") and path.stem not in ABOUT_STATEMENTS
]
ABOUT_LATE_ROWS = {
    "emit_final_late", "late_rows", "sessions_late", "silent_stream", "slack", "slack_and_late",
    "tumble_late",
}  # fmt: skip


@pytest.mark.parametrize("partitions", [1, 2, 5])
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_partitions_pass_a_script(script: Path, partitions: int) -> None:
    seed = None if script.stem in ABOUT_LATE_ROWS else sum(script.name.encode()) + partitions
    report = run_file(script, driver=lambda settings: PartitionDriver(settings, partitions, seed))
    assert report.ok, str(report)
