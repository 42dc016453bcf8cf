"""Expressions over other columns: the same text, with some of the columns it names replaced."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from muntin.plan.expression import ColumnRef, Expression, Predicate, quote

_TOKEN = re.compile(
    r"[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\$(\w*)\$.*?\$\1\$|\s+|\w+|.",
    re.DOTALL,
)


def pieces_of(sql: str) -> Iterator[str]:
    """Return the text in pieces: spaces, words, texts and names in quotes, single signs."""
    return (match.group() for match in _TOKEN.finditer(sql))


def renamed(expression: Expression, names: Mapping[ColumnRef, ColumnRef]) -> Expression:
    """Return the expression over the columns that stand for its own.

    Those that nothing is said of stay.
    """
    references = tuple(names.get(reference, reference) for reference in expression.references)
    texts = {
        quote(old.flat): quote(new.flat)
        for old, new in zip(expression.references, references, strict=True)
    }
    return Expression(
        "".join(texts.get(piece, piece) for piece in pieces_of(expression.sql)),
        references,
        expression.type,
    )


def renamed_predicate(predicate: Predicate, names: Mapping[ColumnRef, ColumnRef]) -> Predicate:
    """Return the same for a condition, and for both sides of a comparison."""
    comparison = predicate.comparison
    if comparison is not None:
        comparison = replace(
            comparison, left=renamed(comparison.left, names), right=renamed(comparison.right, names)
        )
    return Predicate(renamed(predicate.expression, names), comparison)
