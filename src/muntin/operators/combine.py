"""A select over sub-selects, on signed rows.

One input: conditions and the select list, row by row, nothing is kept. Several: a join. With weights the rows of an input at an
instant are a sum over all its changes up to then, and a join is linear in each input. So the changes of the join are all
combinations of changes of which at least one is new, with the product of their signs, at the greatest of their times. Where rows have
ends, a combination ends with the first of them, and is none if that is before all of them have come.

Changes taken before are kept, those that cancel out taken away from time to time. DuckDB joins them with the new ones, so a batch
costs a look at all that is kept of the other inputs; joins of streams alone are made by the window join instead.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from muntin.expressions.duck import Duck, DuckError
from muntin.expressions.evaluator import Evaluator
from muntin.operators.signed import BEGINNING, Changes
from muntin.plan.pipeline import Combine
from muntin.plan.query import ColumnRef, quote

_LEAST = 1 << 12


class ProjectOperator:
    """A select over one sub-select."""

    tidy = False

    def __init__(self, node: Combine, evaluator: Evaluator) -> None:
        self._node = node
        self._evaluator = evaluator
        self._flat = [ColumnRef(0, name).flat for name in node.inputs[0].schema.names]

    def begin(self, inputs: Sequence[Changes]) -> Changes:
        """The changes before any row has come."""
        return self.run(inputs)

    def run(self, inputs: Sequence[Changes]) -> Changes:
        """The changes that pass, with the select list for their columns."""
        node = self._node
        (changes,) = inputs
        if not len(changes):
            return Changes.none(node.schema)
        changes = changes.with_columns(changes.columns.rename_columns(self._flat))
        if node.predicates:
            changes = changes.where(self._evaluator.holds([predicate.expression for predicate in node.predicates], changes.columns))
        columns = self._evaluator.columns([column.expression for column in node.select], changes.columns)
        return changes.with_columns(pa.table(columns, schema=node.schema))

    def groups(self) -> int:
        """None."""
        return 0

    def nbytes(self) -> int:
        """Bytes of state."""
        return 0


class _Kept:
    """The changes of one input so far; ``place`` is its place in FROM."""

    def __init__(self, place: int, schema: pa.Schema, duck: Duck, *, ending: bool) -> None:
        self._place = place
        self._ending = ending
        self._duck = duck
        self.names = [ColumnRef(place, name).flat for name in schema.names]
        self.rows = self.named(Changes.none(schema), new=False)
        self._settled = 0

    def named(self, changes: Changes, *, new: bool) -> pa.Table:
        """Changes with columns under names that no other input has: values, time, weight, whether they are new, and the end."""
        table = changes.columns.rename_columns(self.names)
        added = [("t", changes.times), ("w", changes.signs), ("n", np.full(len(changes), new))]
        for name, column in [*added, ("e", changes.explicit_ends())] if self._ending else added:
            table = table.append_column(f"{name}{self._place}", pa.array(column))
        return table

    def take(self, changes: Changes, now: int) -> None:
        """Keep changes that are no longer new; what has ended by now can be forgotten."""
        self.rows = pa.concat_tables([self.rows, self.named(changes, new=False)])
        if len(self.rows) < 2 * self._settled + _LEAST:
            return
        names, place = ", ".join(map(quote, self.names)), self._place
        end, there = (f", e{place}", f" WHERE e{place} > {now}") if self._ending else ("", "")
        sql = (
            f"SELECT {names}, max(t{place}) AS t{place}, sum(w{place})::BIGINT AS w{place}, false AS n{place}{end}"
            f" FROM kept{there} GROUP BY {names}{end} HAVING sum(w{place}) <> 0"
        )
        self.rows = self._duck.run(sql, kept=self.rows).cast(self.rows.schema)
        self._settled = len(self.rows)


class CombineOperator:
    """A select over several inputs, at least one of them a sub-select; ``ending``: rows may have ends."""

    tidy = True

    def __init__(self, node: Combine, evaluator: Evaluator, duck: Duck, *, ending: bool = False) -> None:
        self._node = node
        self._evaluator = evaluator
        self._duck = duck
        self._ending = ending
        self._now = BEGINNING
        self._kept = [_Kept(place, child.schema, duck, ending=ending) for place, child in enumerate(node.inputs)]

    def begin(self, inputs: Sequence[Changes]) -> Changes:
        """The changes before any row has come."""
        return self.run(inputs)

    def run(self, inputs: Sequence[Changes]) -> Changes:
        """The changes of the join that changes of the inputs make, those of one time put together."""
        node = self._node
        if not any(len(changes) for changes in inputs):
            return Changes.none(node.schema)
        tables = {
            f"i{place}": pa.concat_tables([kept.rows, kept.named(changes, new=True)]) if len(changes) else kept.rows
            for place, (kept, changes) in enumerate(zip(self._kept, inputs, strict=True))
        }
        try:
            found = self._duck.run(self._sql("{}"), **tables)
        except DuckError as error:
            # Some row overflows, divides by zero or cannot be cast: its value is NULL, as in Evaluator.
            self._evaluator.failures += 1
            self._evaluator.last_failure = str(error).splitlines()[0]
            found = self._duck.run(self._sql("TRY({})"), **tables)
        self._now = max(self._now, *(int(changes.times[-1]) for changes in inputs if len(changes)))
        for kept, changes in zip(self._kept, inputs, strict=True):
            if len(changes):
                kept.take(changes, self._now)
        weights = found.column("w").to_numpy()
        rows = np.repeat(np.arange(len(found)), np.abs(weights))
        values = found.select(range(len(node.schema))).take(pa.array(rows)).columns
        columns = [
            column if column.type == field.type else column.cast(field.type) for column, field in zip(values, node.schema, strict=True)
        ]
        ends = found.column("e").to_numpy()[rows] if self._ending else None
        return Changes(pa.table(columns, schema=node.schema), found.column("t").to_numpy()[rows], np.sign(weights)[rows], ends)

    def _sql(self, form: str) -> str:
        """The join; ``form`` is what expressions are put into."""
        places = range(len(self._kept))
        items = [f"{form.format(column.expression.sql)} AS c{number}" for number, column in enumerate(self._node.select)]
        conditions = [f"({' OR '.join(f'n{place}' for place in places)})"]
        conditions += [f"({form.format(predicate.expression.sql)})" for predicate in self._node.predicates]
        weight = f"sum({' * '.join(f'w{place}' for place in places)})"
        begin, end = (
            f"{name}({', '.join(f'{letter}{place}' for place in places)})" for name, letter in (("greatest", "t"), ("least", "e"))
        )
        if self._ending:
            items.append(f"{end} AS e")
            conditions.append(f"{begin} < {end}")
        return (
            f"SELECT {', '.join(items)}, {begin} AS t, {weight}::BIGINT AS w"
            f" FROM {', '.join(f'i{place}' for place in places)} WHERE {' AND '.join(conditions)}"
            f" GROUP BY ALL HAVING {weight} <> 0 ORDER BY t, w"
        )

    def groups(self) -> int:
        """Rows that are kept of all inputs."""
        return sum(len(kept.rows) for kept in self._kept)

    def nbytes(self) -> int:
        """Bytes of state."""
        return sum(int(kept.rows.nbytes) for kept in self._kept)
