"""Run all queries of NEXMark at once, over the events of some seconds of an online auction."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import muntin

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # the events are the benchmark's

from benchmarks.nexmark.events import Load, chunks
from benchmarks.nexmark.files import write_files, write_side_input
from benchmarks.nexmark.queries import STREAMS, queries, script


def run(load: Load, count: int) -> dict[str, int]:
    """Push all events, and return how many results each query has."""
    engine = muntin.Engine()
    with tempfile.TemporaryDirectory() as folder:
        write_side_input(Path(folder))
        engine.execute(script(Path(folder)))
    results = dict.fromkeys(queries(), 0)
    for chunk in chunks(load, count, 10_000):
        for stream, rows in zip(STREAMS, chunk, strict=True):
            engine.push(stream, rows)
        for name in results:
            results[name] += len(engine.handle(name).poll())
    return results


def main() -> None:
    """Run the queries, or write the events as files for ``muntin run``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--rate", type=int, default=500, help="events per second of event time")
    parser.add_argument("--write", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    load = Load(options.rate)
    if options.write:
        write_files(options.write, load, options.events)
        print(f"{options.events} events in {options.write}")
        return
    results = run(load, options.events)
    print(f"{options.events} events, {sum(results.values())} results of {len(results)} queries")
    for name, count in results.items():
        print(f"{name}: {count}")


if __name__ == "__main__":
    main()
