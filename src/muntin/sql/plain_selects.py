"""Which selects are nothing but select, project and join."""

from __future__ import annotations

from muntin.model.catalog import Catalog
from muntin.sql.aggregates import is_aggregate
from muntin.sql.lexer import Tokens, top_level, word
from muntin.sql.order_by import ORDER_WORDS
from muntin.sql.outer_joins import kind_of
from muntin.sql.refusals import is_numbering
from muntin.sql.shape import read_shape

_ABOVE = {"GROUP BY", "HAVING", "QUALIFY", *ORDER_WORDS}


def is_plain(tokens: Tokens, catalog: Catalog) -> bool:
    """Return whether a select is a window join of streams and tables and nothing else."""
    for index, token in enumerate(tokens):
        if index and word(token) == "SELECT":
            return False
        if is_aggregate(tokens, index) or is_numbering(tokens, index):
            return False
    names = {word(tokens[index]) for index in top_level(tokens)}
    if names & _ABOVE or (len(tokens) > 1 and word(tokens[1]) == "DISTINCT"):
        return False
    return not any(
        kind_of(entry.join)
        or (len(entry.tokens) and catalog.find_view(entry.tokens[0].text) is not None)
        for entry in read_shape(tokens).entries
    )
