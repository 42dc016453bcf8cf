"""The sink that prints results."""

from __future__ import annotations

import io
from dataclasses import dataclass

import pyarrow as pa

from muntin.model.printable import printable
from muntin.spark.batch_results import BatchResults
from muntin.spark.exchange.merge_results import in_order
from muntin.spark.json_lines import write_json
from muntin.spark.sink import Sink


@dataclass
class ConsoleSink(Sink):
    """Prints results batch by batch; a repeated batch is printed again."""

    name: str
    as_json: bool = False
    most: int = 20

    def write(self, results: BatchResults, batch: int) -> None:
        """Print the first results of a batch, or all of them as lines of JSON."""
        if not len(results):
            return
        if self.as_json:
            self._print_json(results.table(), batch)
            return
        first = in_order([table.slice(0, self.most) for table in results.tables()])
        lines = ["  ".join(map(printable, results.schema.names))]
        shown = first.slice(0, self.most).to_pylist()
        lines += ["  ".join(map(printable, row.values())) for row in shown]
        if len(results) > self.most:
            lines.append(f"... {len(results) - self.most:,} more")
        title = f"-- {printable(self.name)}, batch {batch}: {len(results):,} changes"
        print("\n".join([title, *lines]), flush=True)  # noqa: T201 (that is the sink)

    def _print_json(self, results: pa.Table, batch: int) -> None:
        origin = [pa.repeat(self.name, len(results)), pa.repeat(batch, len(results))]
        names = ["query", "batch", *results.column_names]
        text = io.BytesIO()
        write_json(pa.table([*origin, *results.columns], names=names), text)
        print(text.getvalue().decode(), end="", flush=True)  # noqa: T201 (that is the sink)
