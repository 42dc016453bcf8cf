"""The program that the crash tests run and kill.

It runs queries with file sinks over folders, from a checkpoint, until all input is processed; given
an instant, it then advances time to it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from muntin.spark import SparkEngine


def main(
    base: Path, declarations: str, queries: dict[str, str], partitions: int, until: int | None
) -> None:
    engine = SparkEngine(checkpoint=base / "checkpoint", partitions=partitions)
    engine.execute(declarations)
    for name, sql in queries.items():
        engine.query(sql, name=name, sink={"format": "parquet", "path": str(base / "out" / name)})
    engine.process_available(until=until)
    (base / "done").touch()


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    texts = sorted(folder.glob("query-*.sql"))
    main(
        folder,
        (folder / "streams.sql").read_text(encoding="utf-8"),
        {path.stem.removeprefix("query-"): path.read_text(encoding="utf-8") for path in texts},
        int(sys.argv[2]),
        int(sys.argv[3]) if sys.argv[3:] else None,
    )
