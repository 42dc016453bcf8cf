"""Write results where they are computed, so that the driver handles only names and counts.

Results of a query whose changes may cancel out across partitions are not final here. Many of them
are split by value, so that equal rows of all partitions meet in one part
(:mod:`muntin.spark.partition.merge_task`); few go to the driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from muntin.errors import RunError
from muntin.expressions.duck import Duck
from muntin.expressions.evaluator import Evaluator
from muntin.operators.row_keys import row_keys
from muntin.spark.exchange.messages import PartitionOutput
from muntin.spark.partition.partition import RESULTS
from muntin.spark.partition.spool import FEW, Sent, Spool
from muntin.spark.result_target import ResultTarget

_SYNCED = 8
"""The most files that are synchronized at the same time."""

WRITTEN = "written"
"""The kind of output that is a file in the folder of a sink."""


def changes_kind(part: int) -> str:
    """Return the kind of output with one part of the changes of a query."""
    return f"changes/{part}"


@dataclass(frozen=True)
class ResultPlan:
    """What happens to the results of a batch.

    ``targets`` has the folders of queries whose results are final in partitions, by name.
    ``merged`` are queries whose changes are split into ``parts`` if there are many.
    """

    targets: Mapping[str, ResultTarget] = field(default_factory=dict)
    merged: tuple[str, ...] = ()
    parts: int = 1

    def send(
        self, outputs: Iterable[PartitionOutput], spool: Spool, batch: int, part: int
    ) -> list[Sent]:
        """Write outputs to their targets or to the spool; return what to send to the driver.

        Each file is synchronized with the disk while the next ones are written.
        """
        sent: list[Sent] = []
        synced: list[Future[None]] = []
        with ThreadPoolExecutor(_SYNCED) as pool:  # it starts threads as they are needed
            for output in outputs:
                target = self.targets.get(output.name) if output.kind == RESULTS else None
                if target is None:
                    sent += self._spooled(output, spool)
                    continue
                with _writing(output.name, target):
                    file = target.write(output.table, batch, part)
                synced.append(pool.submit(_sync, output.name, target, file))
                sent.append(Sent(WRITTEN, output.name, len(output.table), b"", file))
        for done in synced:
            done.result()
        return sent

    def _spooled(self, output: PartitionOutput, spool: Spool) -> Iterator[Sent]:
        """Write an output to the spool, in parts if it has many changes to merge."""
        if output.kind == RESULTS and output.name in self.merged and output.table.nbytes > FEW:
            for number, piece in split(output.table, self.parts).items():
                yield spool.put(PartitionOutput(changes_kind(number), output.name, piece))
        else:
            yield spool.put(output)


@contextmanager
def _writing(query: str, target: ResultTarget) -> Iterator[None]:
    """Name the query and its folder if writing fails."""
    try:
        yield
    except OSError as error:
        raise RunError(
            f"the results of query {query} cannot be written to {target.folder}: {error.strerror}",
            hint="Give a folder that every machine can write to, with room on its disk",
        ) from error


def _sync(query: str, target: ResultTarget, file: str) -> None:
    with _writing(query, target):
        target.sync(file)


def split(changes: pa.Table, parts: int) -> dict[int, pa.Table]:
    """Return the rows of each part that has any, in their order; equal rows are in one part."""
    keys, _ = row_keys(changes.select(range(1, changes.num_columns)), Evaluator(Duck()))
    numbers = (keys.view(np.uint64) % np.uint64(parts)).astype(np.int64)
    order = np.argsort(numbers, kind="stable")
    ends = np.bincount(numbers, minlength=parts).cumsum()
    taken = changes.combine_chunks().take(pa.array(order))
    return {
        part: taken.slice(begin, end - begin)
        for part, (begin, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True))
        if begin < end
    }
