"""The types of expressions, found by running all of them once in DuckDB over a row of NULLs.

A row is better than none: a constant that cannot be what its place demands, ``ts > '2026-13-01'``,
fails here and not when the first row arrives. What fails only because the row is NULL is not held
against it.

Nothing runs before DuckDB's own parse of it has been checked against what is allowed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import pyarrow as pa

from muntin.errors import SqlError
from muntin.expressions.allowed import ALLOWED
from muntin.expressions.validator import NotAllowedError, select_text
from muntin.plan.expression import ColumnRef, Expression, quote
from muntin.sql.functions import why_refused
from muntin.sql.probe import DuckRefusalError, ask, check
from muntin.sql.scope import NameScope
from muntin.sql.types import UNSUPPORTED_HINT, unsupported_type
from muntin.sql.writer import Draft, plain_text

_GROUP = 200
"""How many expressions DuckDB gets at once."""


@dataclass(frozen=True)
class Condition:
    """A conjunct that was written down; a comparison has its operator and both sides too.

    ``entry`` is the place in FROM whose ON or USING it is part of.
    """

    whole: Draft
    operator: str = ""
    sides: tuple[Draft, ...] = ()
    entry: int | None = None


def find_types(
    outputs: Sequence[Draft], conditions: Sequence[Condition], scope: NameScope
) -> Mapping[str, pa.DataType]:
    """Return the types of all expressions, by their text."""
    types: dict[str, pa.DataType] = {}
    unknown: dict[str, Draft] = {}
    for draft in (
        *outputs,
        *(draft for condition in conditions for draft in (condition.whole, *condition.sides)),
    ):
        if len(draft.references) == 1 and draft.sql == quote(draft.references[0].flat):
            types[draft.sql] = _column_type(draft.references[0], scope)
        else:
            unknown.setdefault(draft.sql, draft)
    if not unknown:
        return types
    drafts = list(unknown.values())
    _check_allowed(drafts, scope)
    try:
        found = dict(zip(unknown, _run_types(drafts, scope, rows=1), strict=True))
    except DuckRefusalError:
        found = _find_types_apart(drafts, scope)
        _check_constants(conditions, scope)
    for draft in drafts:
        _check_type(draft, found[draft.sql])
    return types | found


def typed(draft: Draft, types: Mapping[str, pa.DataType]) -> Expression:
    """Return the expression with its type."""
    return Expression(draft.sql, draft.references, types[draft.sql])


def _check_allowed(drafts: Sequence[Draft], scope: NameScope) -> None:
    """Refuse expressions that DuckDB must not run."""
    columns = {reference.flat for draft in drafts for reference in draft.references}
    try:
        check([draft.sql for draft in drafts], columns)
    except NotAllowedError as error:
        raise _not_allowed(drafts[error.index], error) from error
    except DuckRefusalError as refusal:
        if len(drafts) > 1:  # one by one, to find the expression to blame
            for draft in drafts:
                _check_allowed([draft], scope)
        raise _error(drafts[0], refusal, scope) from refusal


def _not_allowed(draft: Draft, error: NotAllowedError) -> SqlError:
    """Return the error at the word that is to blame."""
    tokens = draft.tokens
    blamed = (error.function or error.column).lower()
    where = next((token for token in tokens if token.text.lower() == blamed), tokens.start)
    if error.column:
        hint = "Name columns of the entries of FROM"
        return tokens.error(where, f"there is no column {error.column!r}", hint)
    if not error.function:
        hint = "Use columns, constants, operators and functions only"
        return tokens.error(where, f"{error.what} cannot be part of an expression", hint)
    reason = why_refused(error.function, error.arguments)
    if reason is not None:
        return tokens.error(
            where, f"the function {error.function} {reason.value[0]}", reason.value[1]
        )
    near = get_close_matches(blamed, ALLOWED, n=1)
    hint = f'Did you mean "{near[0]}"?' if near else "Functions are those of DuckDB"
    return tokens.error(where, f"there is no function {error.function}", hint)


def _check_type(draft: Draft, kind: pa.DataType) -> None:
    if (name := unsupported_type(kind)) is not None:
        fact = f"the expression {plain_text(draft.tokens)} has type {name}, which is not supported"
        raise draft.tokens.error(draft.tokens.start, fact, UNSUPPORTED_HINT)


def _column_type(reference: ColumnRef, scope: NameScope) -> pa.DataType:
    return scope.sources[reference.source].schema.field(reference.column).type


def _run(drafts: Sequence[Draft], scope: NameScope, rows: int) -> pa.Table:
    references = dict.fromkeys(reference for draft in drafts for reference in draft.references)
    columns = {
        reference.flat: pa.nulls(rows, _column_type(reference, scope)) for reference in references
    }
    batch = pa.table(columns or {"": pa.nulls(rows, pa.bool_())})
    result = ask(select_text([draft.sql for draft in drafts]), batch=batch)
    assert len(result.schema) == len(drafts), "every expression makes one column"
    return result


def _run_types(drafts: Sequence[Draft], scope: NameScope, rows: int) -> list[pa.DataType]:
    """Return the types of the expressions.

    DuckDB's optimizer is quadratic in their number, so they run in groups.
    """
    starts = range(0, len(drafts), _GROUP)
    return [
        kind
        for start in starts
        for kind in _run(drafts[start : start + _GROUP], scope, rows).schema.types
    ]


def _find_types_apart(drafts: Sequence[Draft], scope: NameScope) -> dict[str, pa.DataType]:
    """Return the types of expressions that need not work for NULL if they read columns."""
    types: dict[str, pa.DataType] = {}
    for rows, group in (
        (0, [draft for draft in drafts if draft.references]),
        (1, [draft for draft in drafts if not draft.references]),
    ):
        for draft, refusal in _failing(group, scope, rows):
            raise _error(draft, refusal, scope) from refusal
        if group:
            types |= zip(
                (draft.sql for draft in group), _run_types(group, scope, rows), strict=True
            )
    return types


def _failing(
    drafts: Sequence[Draft], scope: NameScope, rows: int
) -> Iterator[tuple[Draft, DuckRefusalError]]:
    """Find the expressions that fail, by halves: a few among many take only a few runs."""
    if not drafts:
        return
    try:
        _run_types(drafts, scope, rows)
    except DuckRefusalError as refusal:
        if len(drafts) == 1:
            yield drafts[0], refusal
            return
        middle = len(drafts) // 2
        yield from _failing(drafts[:middle], scope, rows)
        yield from _failing(drafts[middle:], scope, rows)


def _check_constants(conditions: Sequence[Condition], scope: NameScope) -> None:
    """Refuse comparisons with a constant that cannot be compared with the other side."""
    others: dict[str, Draft] = {}
    wholes: dict[str, Draft] = {}
    for condition in conditions:
        reading = [draft for draft in condition.sides if draft.references]
        if len(condition.sides) == 2 and len(reading) == 1:
            others[condition.whole.sql] = reading[0]
            wholes[condition.whole.sql] = condition.whole
    for draft, refusal in _failing(list(wholes.values()), scope, rows=1):
        if _value(others[draft.sql], scope) is None:
            raise _error(draft, refusal, scope) from refusal


def _value(draft: Draft, scope: NameScope) -> Any:
    try:
        return _run([draft], scope, rows=1).column(0)[0].as_py()
    except DuckRefusalError:
        return draft


def _error(draft: Draft, refusal: DuckRefusalError, scope: NameScope) -> SqlError:
    """DuckDB's words about an expression, with the names that the user knows."""
    fact, advice = refusal.fact, refusal.advice
    for reference in sorted(draft.references, key=lambda known: -len(known.flat)):
        for spelled in (quote(reference.flat), reference.flat):
            fact = fact.replace(spelled, scope.show(reference))
            advice = advice.replace(spelled, scope.show(reference))
    lowered = fact[:1].lower() + fact[1:] if fact[1:2].islower() else fact
    return draft.tokens.error(draft.tokens.start, lowered, advice or "Correct the expression")
