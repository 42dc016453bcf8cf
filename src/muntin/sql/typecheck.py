"""The types of a query's expressions, found by running them all in DuckDB, once, over a single row of NULLs.

A row is better than none: a constant that cannot be what its place demands, ``ts > '2026-13-01'``, fails
here and not when the first row arrives. What fails only because the row is NULL is not held against it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from muntin.errors import SqlError
from muntin.plan.query import ColumnRef, Expression, quote
from muntin.sql.probe import DuckRefusalError, ask
from muntin.sql.scope import Scope
from muntin.sql.writer import Draft


@dataclass(frozen=True)
class Condition:
    """A conjunct that was written down; a comparison has its operator and both sides too."""

    whole: Draft
    operator: str = ""
    sides: tuple[Draft, ...] = ()


def find_types(outputs: Sequence[Draft], conditions: Sequence[Condition], scope: Scope) -> Mapping[str, pa.DataType]:
    """The types of all expressions, by their text."""
    types: dict[str, pa.DataType] = {}
    unknown: dict[str, Draft] = {}
    for draft in (*outputs, *(draft for condition in conditions for draft in (condition.whole, *condition.sides))):
        if len(draft.references) == 1 and draft.sql == quote(draft.references[0].flat):
            types[draft.sql] = _column_type(draft.references[0], scope)
        else:
            unknown.setdefault(draft.sql, draft)
    if not unknown:
        return types
    try:
        row = _run(list(unknown.values()), scope, rows=1)
    except DuckRefusalError:
        types |= {draft.sql: _find_type(draft, scope) for draft in unknown.values()}
        for condition in conditions:
            _check_constant(condition, scope)
        return types
    return types | dict(zip(unknown, row.schema.types, strict=True))


def typed(draft: Draft, types: Mapping[str, pa.DataType]) -> Expression:
    """The expression with its type."""
    return Expression(draft.sql, draft.references, types[draft.sql])


def _column_type(reference: ColumnRef, scope: Scope) -> pa.DataType:
    return scope.sources[reference.source].schema.field(reference.column).type


def _run(drafts: Sequence[Draft], scope: Scope, rows: int) -> pa.Table:
    references = dict.fromkeys(reference for draft in drafts for reference in draft.references)
    columns = {reference.flat: pa.nulls(rows, _column_type(reference, scope)) for reference in references}
    batch = pa.table(columns or {"": pa.nulls(rows, pa.bool_())})
    items = ", ".join(f'{draft.sql} AS "={place}"' for place, draft in enumerate(drafts))
    result = ask(f"SELECT {items} FROM batch", batch=batch)
    assert len(result.schema) == len(drafts), "every expression makes one column"
    return result


def _find_type(draft: Draft, scope: Scope) -> pa.DataType:
    """The type of one expression, which need not work for NULL if it reads columns."""
    try:
        return _run([draft], scope, rows=1 if not draft.references else 0).schema.field(0).type
    except DuckRefusalError as refusal:
        raise _error(draft, refusal, scope) from refusal


def _check_constant(condition: Condition, scope: Scope) -> None:
    """Refuse a comparison with a constant that cannot be compared with the other side."""
    others = [draft for draft in condition.sides if draft.references]
    if len(condition.sides) != 2 or len(others) != 1:
        return
    try:
        _run([condition.whole], scope, rows=1)
    except DuckRefusalError as refusal:
        if _value(others[0], scope) is None:
            raise _error(condition.whole, refusal, scope) from refusal


def _value(draft: Draft, scope: Scope) -> Any:
    try:
        return _run([draft], scope, rows=1).column(0)[0].as_py()
    except DuckRefusalError:
        return draft


def _error(draft: Draft, refusal: DuckRefusalError, scope: Scope) -> SqlError:
    """DuckDB's words about an expression, with the names that the user knows."""
    fact, advice = refusal.fact, refusal.advice
    for reference in sorted(draft.references, key=lambda known: -len(known.flat)):
        for spelled in (quote(reference.flat), reference.flat):
            fact = fact.replace(spelled, scope.show(reference))
            advice = advice.replace(spelled, scope.show(reference))
    lowered = fact[:1].lower() + fact[1:] if fact[1:2].islower() else fact
    return draft.tokens.error(draft.tokens.start, lowered, advice or "Correct the expression")
