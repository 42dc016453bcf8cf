"""How deep queries may be nested."""

from __future__ import annotations

from muntin.errors import SqlError
from muntin.plan.node import Node
from muntin.sql.lexer import Tokens

MOST_LEVELS = 100
"""How many levels of nodes a query may have; planning and running recurse over them."""


def too_deep(tokens: Tokens) -> SqlError:
    """Return the error for a query with too many levels."""
    fact = f"the query has more than {MOST_LEVELS} levels of sub-selects and set operators"
    hint = "Split it; a chain of EXCEPT can be written as one EXCEPT of a UNION ALL"
    return tokens.error(tokens.start, fact, hint)


def checked_levels(root: Node, tokens: Tokens) -> Node:
    """Return a tree that has no more levels of nodes than it may have."""
    level, count = [root], 0
    while level:
        level, count = [child for node in level for child in node.inputs], count + 1
    if count > MOST_LEVELS:
        raise too_deep(tokens)
    return root
