"""Random SQL expressions as trees, with a reference that shares nothing with the evaluator.

The reference computes one operator at a time with an ordinary DuckDB connection: the operands are
columns of values found before, so no expression repeats and nothing is hoisted. An operator fails
on a row if DuckDB fails on it or if an operand that the row needs has failed. CASE and COALESCE
need the operands that SQL's order of evaluation reaches. Of AND and OR, DuckDB computes the second
operand for a row that the first one decides if other rows of the batch need it: the row may fail.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import duckdb
import pyarrow as pa
from hypothesis import strategies as st

SCHEMA = pa.schema(
    {"k": pa.int64(), "i": pa.int32(), "g": pa.int8(), "x": pa.float64(), "s": pa.string()}
)
LITERALS = ("1", "3")


class Failed:
    """The type of FAILED, the value of an expression that fails."""

    def __repr__(self) -> str:
        return "failed"


FAILED: Final = Failed()


@dataclass(frozen=True)
class Outcome:
    """The value of an expression for one row; ``may_fail`` if that depends on other rows."""

    value: object
    may_fail: bool = False

    @property
    def fails(self) -> bool:
        """Return whether the row has no value."""
        return self.value is FAILED


NEEDED: Mapping[str, Callable[[Sequence[Outcome]], tuple[list[int], bool]]]


@dataclass(frozen=True)
class Tree:
    """An operator as a template of SQL, with its operands; ``needs`` is a key of NEEDED."""

    template: str
    operands: tuple[Tree, ...] = ()
    needs: str = "all"

    def __str__(self) -> str:
        return self.template.format(*self.operands)

    def values(self, rows: pa.Table) -> list[Outcome]:
        """Return the outcome for every row."""
        operands = [operand.values(rows) for operand in self.operands]
        outcomes: list[Outcome] = []
        ready: list[tuple[int, list[object]]] = []
        for place in range(len(rows)):
            cells = [values[place] for values in operands]
            needed, may_fail = NEEDED[self.needs](cells)
            may_fail = may_fail or any(cells[number].may_fail for number in needed)
            if any(cells[number].fails for number in needed):
                outcomes.append(Outcome(FAILED))
                continue
            taken = [cell.value if n in needed else None for n, cell in enumerate(cells)]
            ready.append((place, taken))
            outcomes.append(Outcome(None, may_fail))
        for place, value in self._apply(ready, rows):
            outcomes[place] = Outcome(value, outcomes[place].may_fail and value is not FAILED)
        return outcomes

    def _apply(
        self, ready: list[tuple[int, list[object]]], rows: pa.Table
    ) -> list[tuple[int, object]]:
        """Return the operator's value for rows whose operands have values."""
        if not ready:
            return []
        names = [
            str(one) if str(one) in LITERALS else f"o{number}"
            for number, one in enumerate(self.operands)
        ]
        columns = {
            f"o{number}": pa.array([cells[number] for _, cells in ready], type_of(str(one)))
            for number, one in enumerate(self.operands)
        }
        places = pa.array([place for place, _ in ready], pa.int64())
        batch = pa.table(
            {**columns, **dict(zip(rows.column_names, rows.take(places).columns, strict=True))}
        )
        text = self.template.format(*names)
        try:
            values = _run(text, batch)
        except duckdb.Error:
            values = [alone(text, batch.slice(number, 1)) for number in range(len(batch))]
        return [(place, value) for (place, _), value in zip(ready, values, strict=True)]


def _all(cells: Sequence[Outcome]) -> tuple[list[int], bool]:
    # Where one operand is NULL in all rows, DuckDB need not compute the other: both make NULL.
    computed = [number for number, cell in enumerate(cells) if not cell.fails]
    if any(cells[number].value is None for number in computed):
        return computed, len(computed) < len(cells)
    return list(range(len(cells))), False


def _case(cells: Sequence[Outcome]) -> tuple[list[int], bool]:
    if cells[0].value is True:
        return [0, 1], False
    return [0] if cells[0].fails else [0, *range(2, len(cells))], False


def _coalesce(cells: Sequence[Outcome]) -> tuple[list[int], bool]:
    return [0] if cells[0].value is not None else [0, 1], False


def _decided_by(*, decisive: bool) -> Callable[[Sequence[Outcome]], tuple[list[int], bool]]:
    def needed(cells: Sequence[Outcome]) -> tuple[list[int], bool]:
        if cells[0].value is decisive:
            return [0], cells[1].fails or cells[1].may_fail
        return [0, 1], False

    return needed


NEEDED = {
    "all": _all,
    "case": _case,
    "coalesce": _coalesce,
    "and": _decided_by(decisive=False),
    "or": _decided_by(decisive=True),
}


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(":memory:", config={"threads": 1})


def _run(text: str, batch: pa.Table) -> list[object]:
    with_batch = _connection().from_arrow(batch)
    found = with_batch.project(f"{text} AS c").to_arrow_table()
    return list(found.column(0).to_pylist())


def alone(text: str, row: pa.Table) -> object:
    """Return the value of a text for a single row, or FAILED."""
    try:
        return _run(text, row)[0]
    except duckdb.Error:
        return FAILED


@cache
def type_of(text: str) -> pa.DataType:
    """Return the type that DuckDB gives an expression over the columns of SCHEMA."""
    return (
        _connection()
        .from_arrow(SCHEMA.empty_table())
        .project(f"{text} AS c")
        .to_arrow_table()
        .schema[0]
        .type
    )


def _deeper(inner: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    """Combine numbers into larger expressions with repeated parts, conditions and casts."""

    def binary(signs: Sequence[str]) -> st.SearchStrategy[Tree]:
        return st.builds(
            lambda left, sign, right: Tree(f"(({{0}}) {sign} ({{1}}))", (left, right)),
            inner,
            st.sampled_from(signs),
            inner,
        )

    condition = binary(["<", ">", "=", "<>", "<="])
    boolean = condition | st.builds(
        lambda left, word, right: Tree(f"({{0}} {word} {{1}})", (left, right), word.lower()),
        condition,
        st.sampled_from(["AND", "OR"]),
        condition,
    )
    kinds = st.sampled_from(["TINYINT", "INTEGER", "BIGINT", "DOUBLE", "DECIMAL(9, 2)"])
    case, case_else = "(CASE WHEN {0} THEN {1} END)", "(CASE WHEN {0} THEN {1} ELSE {2} END)"
    return st.one_of(
        binary(["+", "-", "*", "/", "//", "%"]),
        inner.map(lambda part: Tree("(({0}) + ({0}))", (part,))),
        st.builds(lambda part, kind: Tree(f"CAST({{0}} AS {kind})", (part,)), inner, kinds),
        st.builds(lambda *parts: Tree(case_else, parts, "case"), boolean, inner, inner),
        st.builds(lambda *parts: Tree(case, parts, "case"), boolean, inner),
        st.builds(lambda *parts: Tree("coalesce({0}, {1})", parts, "coalesce"), inner, inner),
        boolean.map(lambda part: Tree("CAST(({0}) AS INTEGER)", (part,))),
    )


_LEAVES = [*LITERALS, "k", "i", "g", "x", "length(s)"]
_CASTS = [f"CAST(s AS {kind})" for kind in ("INTEGER", "BIGINT", "DOUBLE")]
TREES = st.recursive(st.sampled_from([*_CASTS, *_LEAVES]).map(Tree), _deeper, max_leaves=6)
