"""Which selects are nothing but select, project and join."""

from __future__ import annotations

from muntin.model.catalog import Catalog, Table
from muntin.sql.aggregates import is_aggregate
from muntin.sql.lexer import Tokens, top_level, word
from muntin.sql.order_by import ORDER_WORDS
from muntin.sql.outer_joins import kind_of
from muntin.sql.over_syntax import is_over
from muntin.sql.shape import read_shape

_ABOVE = {"GROUP BY", "HAVING", "QUALIFY", *ORDER_WORDS}


def is_plain(tokens: Tokens, catalog: Catalog) -> bool:
    """Return whether a select is an inner join of streams and tables and nothing else."""
    return is_joins(tokens, catalog) and not any(
        kind_of(entry.join) for entry in read_shape(tokens).entries
    )


def is_joins(tokens: Tokens, catalog: Catalog) -> bool:
    """Return whether a select is joins of any kind of streams and tables and nothing else."""
    for index, token in enumerate(tokens):
        if index and word(token) == "SELECT":
            return False
        if is_aggregate(tokens, index) or is_over(tokens, index):
            return False
    names = {word(tokens[index]) for index in top_level(tokens)}
    if names & _ABOVE or (len(tokens) > 1 and word(tokens[1]) == "DISTINCT"):
        return False
    entries = read_shape(tokens).entries
    named = [each.tokens[0].text for each in entries if len(each.tokens) and each.call is None]
    return not any(catalog.find_view(name) or _changes(name, catalog) for name in named)


def _changes(name: str, catalog: Catalog) -> bool:
    """Return whether a name is that of a table whose rows may change."""
    relation = catalog.find(name)
    return isinstance(relation, Table) and bool(relation.key)
