"""The program that is killed while its checkpoint is on S3."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from muntin.spark import SparkEngine
from muntin.spark.session import local_session


def main(base: Path, checkpoint: str, until: int) -> None:
    session = local_session(2, json.loads(os.environ["CHILD_SETTINGS"]))
    engine = SparkEngine(session, checkpoint=checkpoint, partitions=2)
    engine.execute((base / "streams.sql").read_text(encoding="utf-8"))
    queries = json.loads((base / "queries.json").read_text(encoding="utf-8"))
    for name, sql in queries.items():
        engine.query(sql, name=name, sink={"format": "parquet", "path": str(base / "out" / name)})
    engine.process_available(until=until)
    (base / "done").touch()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
