"""The state of a dataflow between two steps, from which another one continues.

Windows and operators are functions of the rows that windows reach, so a snapshot has those rows
instead of operator state: it is small, and independent of the operators that a plan chose.
:mod:`muntin.runtime.codec` can encode it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from muntin.model.clock import BEFORE_ALL
from muntin.runtime.stream_input import Place


@dataclass(frozen=True)
class Snapshot:
    """The rows that are held of each stream, in order, and the frontier.

    ``came_before`` is for each query how many of the rows, stream by stream, came before it. The
    total order is final up to ``final``; event time was advanced to ``advanced``.
    """

    rows: Mapping[str, pa.Table]
    came_before: Mapping[str, Mapping[str, int]]
    final: Place
    advanced: int = BEFORE_ALL
