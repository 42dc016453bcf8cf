"""The node of semi and anti joins: the rows of one input that have, or have not, a match."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from muntin.plan.description import Fact
from muntin.plan.expression import Expression
from muntin.plan.node import Node


@dataclass(frozen=True)
class KeyPair:
    """An equality: an expression over the left input and one over the right input."""

    left: Expression
    right: Expression


@dataclass(frozen=True)
class SemiJoin(Node):
    """The rows of the left input that match a row of the right one; ``anti``: that match none.

    Rows match if all ``keys`` are equal. A left row that fails one of ``conditions``, which read
    the left input only, matches nothing. NULL equals nothing, unless ``nulls_match``: then rows are
    compared as in DISTINCT. A left row stays with all of its duplicates.
    """

    left: Node
    right: Node
    keys: tuple[KeyPair, ...]
    conditions: tuple[Expression, ...] = ()
    anti: bool = False
    nulls_match: bool = False

    @property
    def schema(self) -> pa.Schema:
        """Return the columns of the left input."""
        return self.left.schema

    @property
    def label(self) -> str:
        """Return which rows it keeps."""
        return "rows without a match" if self.anti else "rows with a match"

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Keys and conditions."""
        texts = [
            *(f"{key.left.sql} = {key.right.sql}" for key in self.keys),
            *(condition.sql for condition in self.conditions),
        ]
        plain = [text.replace('"', "") for text in texts]
        return (Fact("conditions", plain, f"on {' and '.join(plain)}"),)
