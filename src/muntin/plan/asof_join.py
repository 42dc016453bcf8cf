"""The node of as-of joins: each left row with the last right row that is not after it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from muntin.plan.description import Fact
from muntin.plan.expression import Expression
from muntin.plan.node import Node
from muntin.plan.semi_join import KeyPair
from muntin.plan.top_n import SortKey


@dataclass(frozen=True)
class AsofJoin(Node):
    """Each left row with the nearest right row of its keys, at most one.

    ``at`` is what rows are ordered by, and the ``operator`` says on which side of it the match is:
    the last right row before (``>=``, ``>``) or the first one after (``<=``, ``<``). ``ties`` are
    columns of the right input that order rows at one place. A left row that fails one of
    ``conditions``, which read the left input only, matches nothing. NULL matches nothing.

    With ``outer``, left rows without a match are in the result, beside NULLs. With ``inserts`` rows
    are only emitted: a match when it arises, a left row without one when it comes. ``identity``
    has the columns of each input that identify its rows, all if there are none. The
    ``left_columns`` and then the ``right_columns`` are passed on.
    """

    left: Node
    right: Node
    keys: tuple[KeyPair, ...]
    at: KeyPair
    operator: str
    ties: tuple[SortKey, ...]
    conditions: tuple[Expression, ...]
    identity: tuple[tuple[int, ...], tuple[int, ...]]
    left_columns: tuple[int, ...]
    right_columns: tuple[int, ...]
    outer: bool = False
    inserts: bool = False

    @cached_property
    def schema(self) -> pa.Schema:
        """Return the columns that are passed on."""
        left, right = self.left.schema, self.right.schema
        fields = [left.field(place) for place in self.left_columns]
        return pa.schema([*fields, *(right.field(place) for place in self.right_columns)])

    @property
    def is_forward(self) -> bool:
        """Return whether the match is after the left row."""
        return self.operator in {"<", "<="}

    @property
    def label(self) -> str:
        """Return which rows it keeps."""
        which = "first row after it" if self.is_forward else "last row before it"
        return f"each row with the {which}{', or NULLs' if self.outer else ''}"

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Keys, order and conditions."""
        texts = [
            *(f"{key.left.sql} = {key.right.sql}" for key in self.keys),
            f"{self.at.left.sql} {self.operator} {self.at.right.sql}",
            *(condition.sql for condition in self.conditions),
        ]
        plain = [text.replace('"', "") for text in texts]
        return (Fact("conditions", plain, f"on {' and '.join(plain)}"),)
