"""Every golden script through partitions whose number changes again and again."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from muntin.testing.partition_driver import PartitionDriver
from muntin.testing.runner import run_file
from tests.golden.test_partitions import ABOUT_LATE_ROWS, SCRIPTS


class Rescaled(PartitionDriver):
    """Partitions whose number changes before every second step."""

    def __init__(self, settings: dict[str, object], seed: int, *, row_by_row: bool) -> None:
        self._chosen = Random(seed)
        super().__init__(settings, self._chosen.randint(1, 5), None if row_by_row else seed)

    def feed(self, stream: str, rows: pa.Table) -> None:
        self._maybe_rescale()
        super().feed(stream, rows)

    def advance(self, at: int) -> None:
        self._maybe_rescale()
        super().advance(at)

    def _maybe_rescale(self) -> None:
        if self._chosen.random() < 0.5:
            self.rescale(self._chosen.randint(1, 5))


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_partitions_pass_a_script_while_their_number_changes(script: Path, seed: int) -> None:
    row_by_row = script.stem in ABOUT_LATE_ROWS
    report = run_file(
        script,
        driver=lambda settings: Rescaled(
            dict(settings), sum(script.name.encode()) + seed, row_by_row=row_by_row
        ),
    )
    assert report.ok, str(report)
