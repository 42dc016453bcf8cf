"""WITH: selects under names, which the select after them can read like tables.

``WITH a AS (SELECT ...), b AS (SELECT ... FROM a) SELECT ... FROM a, b``. A named select may end
with a WINDOW for its streams; otherwise they have that of the query. Views and queries that a
query reads by name are written in front of it in this form, so that its text needs no catalog but
that of streams and tables. For this, one WITH may follow another: a name means the last select
before it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from sqlglot import Token

from muntin.model.catalog import View
from muntin.plan.expression import quote
from muntin.sql.clauses import Clauses, cut_clauses
from muntin.sql.cursor import Cursor
from muntin.sql.lexer import Tokens, closing, is_symbol, word

_HINT = "Write WITH name AS (SELECT ...), ... SELECT ..."
_RECURSIVE = "Select from streams, tables and names that are defined before it"


@dataclass(frozen=True)
class NamedSelect:
    """One entry of WITH: its name and what stands in the parentheses."""

    name: Token
    body: Tokens


def begins_names(tokens: Tokens) -> bool:
    """Return whether a query begins with WITH."""
    return len(tokens) > 0 and word(tokens[0]) == "WITH"


def cut_names(tokens: Tokens) -> tuple[list[NamedSelect], Tokens]:
    """Return the entries of a WITH, and what follows it."""
    cursor = Cursor(tokens)
    cursor.expect("WITH")
    if cursor.match("RECURSIVE"):
        raise tokens.error(tokens[1], "WITH RECURSIVE is not supported", _RECURSIVE)
    found: list[NamedSelect] = []
    seen: set[str] = set()
    while not found or cursor.match_symbol(","):
        name = cursor.name("a name for a select")
        if name.text.casefold() in seen:
            raise tokens.error(name, f"WITH defines {name.text} twice", "Choose another name")
        opening = cursor.look()
        if opening is not None and is_symbol(opening, "("):
            hint = f"Name the columns in its select list: WITH {name.text} AS (SELECT x AS a ...)"
            raise tokens.error(opening, "lists of columns in WITH are not supported", hint)
        cursor.expect("AS", _HINT)
        start = cursor.index
        cursor.expect("(", _HINT)
        end = closing(tokens, start)
        if end is None:
            raise tokens.error(
                tokens[start], f"the parenthesis of {name.text} is not closed", _HINT
            )
        if end == start + 1:
            raise tokens.error(tokens[start], f"{name.text} has no select", _HINT)
        seen.add(name.text.casefold())
        found.append(NamedSelect(name, tokens.part(start + 1, end)))
        cursor.index = end + 1
    rest = tokens.part(cursor.index)
    if not len(rest):
        raise cursor.unexpected("SELECT", _HINT)
    return found, rest


def own_clauses(body: Tokens, outer: Clauses) -> tuple[Tokens, Clauses]:
    """Return a named select without its WINDOW, and the clauses under which it is bound."""
    select, own = cut_clauses(body)
    given = {
        "EVERY": own.every, "EMIT": own.emit, "FRESHNESS": own.freshness, "WITH": own.options,
    }  # fmt: skip
    for name, value in given.items():
        if value:
            where = next(token for token in body.part(len(select)) if word(token) == name)
            raise body.error(
                where,
                f"{name} cannot stand inside a query",
                f"Write {name} at the end of the query that reads it; "
                "a named select can have a WINDOW only",
            )
    return select, outer if own.window is None else replace(outer, window=own.window)


def with_views(text: str, views: Iterable[View]) -> str:
    """Return the text of a select with the views that it reads in front of it."""
    named = ", ".join(f"{quote(view.name)} AS ({view.text})" for view in views)
    return f"WITH {named} {text}" if named else text
