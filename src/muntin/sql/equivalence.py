"""What a query asks for, apart from how its text is laid out and where its results go."""

from __future__ import annotations

from muntin.sql.lexer import Tokens, tokenize, word

_DEPTH = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}


def meaning(text: str) -> str:
    r"""Return the text of a query without comments, line breaks and its ``WITH (...)``.

    Two texts with the same meaning give the same results. Settings in ``WITH`` are compared by
    their own rules, and a sink changes no result.

    >>> meaning("SELECT v  -- values\nFROM A WINDOW 1 MINUTE WITH (sink = 'console')")
    'SELECT v FROM A WINDOW 1 MINUTE'
    """
    tokens = tokenize(text)
    kept = []
    depth, skipping = 0, False
    for place, token in enumerate(tokens):
        if depth == 0 and word(token) == "WITH" and place and _opens(tokens, place + 1):
            skipping = True
        depth += _DEPTH.get(tokens.source(token), 0)
        if not skipping:
            kept.append(tokens.source(token))
        elif depth == 0 and tokens.source(token) == ")":
            skipping = False
    return " ".join(kept).rstrip("; ")


def _opens(tokens: Tokens, place: int) -> bool:
    return place < len(tokens) and tokens[place].text == "("
