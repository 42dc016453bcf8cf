"""The program that the cluster test runs.

A subscriber in the driver records the results that arrive from partitions on executors.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow as pa

from muntin.spark import Mark, Once, SparkEngine, local_session


def main(base: Path, master: str, sql: str, settings: dict[str, str]) -> None:
    engine = SparkEngine(
        local_session(2, settings, master), checkpoint=base / "state", partitions=2
    )
    engine.execute((base / "app.sql").read_text(encoding="utf-8").partition("CREATE QUERY")[0])
    once = Once()
    values: list[int] = []
    partitions: set[int] = set()

    def take(batch: pa.RecordBatch, mark: Mark) -> None:
        values.extend(once.new(batch, mark).column("x").to_pylist())
        partitions.add(mark.partition)
        (base / f"batch-{mark.batch}").touch()

    engine.query(sql, name="pairs", sink={"format": "parquet", "path": "out"}).subscribe(take)
    engine.process_available()
    assert engine.progress is not None
    reported = {
        "values": values,
        "partitions": sorted(partitions),
        "unsent": engine.progress["muntin"]["unsent"],
    }
    (base / "told.json").write_text(json.dumps(reported), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], json.loads(sys.argv[4]))
