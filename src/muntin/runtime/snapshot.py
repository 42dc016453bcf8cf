"""The state of a dataflow between two steps, from which another one continues.

Windows and operators are functions of the rows that windows reach, so a snapshot has those rows
instead of operator state: it is small, and independent of the operators that a plan chose. As bytes
it is a frame (:mod:`muntin.runtime.frames`): version, JSON header, Arrow streams and checksum.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from muntin.model.clock import BEFORE_ALL
from muntin.runtime.codec import decode, encode
from muntin.runtime.stream_input import Place

_KIND = "dataflow"


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

    def to_bytes(self) -> bytes:
        """Return the snapshot as a frame."""
        return encode(self, _KIND)

    @classmethod
    def from_bytes(cls, content: bytes, where: str = "a snapshot") -> Snapshot:
        """Return the snapshot in a frame; ``where`` names the frame in errors.

        Raises
        ------
        CheckpointError
            When the frame is damaged or holds something else.
        """
        return decode(content, _KIND, cls, where)
