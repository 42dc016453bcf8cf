"""What a query asks for, apart from how its text is laid out and where its results go."""

from __future__ import annotations

from muntin.sql.lexer import Tokens, closing, is_symbol, tokenize, top_level, word

_WINDOWS = {"RANGE", "ROWS", "PARTITION", "PARTITION BY"}
_CLAUSES = {"EVERY", "EMIT", "FRESHNESS", "WITH"}


def meaning(text: str) -> str:
    r"""Return the text of a query without comments, line breaks and its ``WITH (...)``.

    Two texts with the same meaning give the same results. Settings in ``WITH`` are compared by
    their own rules, and a sink changes no result.

    >>> meaning("SELECT v  -- values\nFROM A WINDOW 1 MINUTE WITH (sink = 'console')")
    'SELECT v FROM A WINDOW 1 MINUTE'
    """
    tokens = tokenize(text)
    starts = [
        index
        for index in top_level(tokens)[1:]
        if word(tokens[index]) == "WITH" and index + 1 < len(tokens)
        if is_symbol(tokens[index + 1], "(")
    ]
    ends = [closing(tokens, index + 1) or len(tokens) for index in starts]
    left_out = {at for start, end in zip(starts, ends, strict=True) for at in range(start, end + 1)}
    kept = (tokens.source(token) for at, token in enumerate(tokens) if at not in left_out)
    return " ".join(kept).rstrip("; ")


def without_windows(text: str) -> str:
    """Return the meaning of a query without its windows: ``[ROWS 5]``, ``WINDOW 1 MINUTE``.

    Two texts with different meanings that are equal here differ in their windows only.

    >>> without_windows("SELECT v, [1] AS l FROM A [ROWS 5], B WINDOW 1 MINUTE EMIT CHANGES")
    'SELECT v , [ 1 ] AS l FROM A , B EMIT CHANGES'
    """
    tokens = tokenize(meaning(text))
    kept = []
    until: set[str] = set()
    for place, token in enumerate(tokens):
        source = tokens.source(token)
        if not until and source == "[" and _word_at(tokens, place + 1) in _WINDOWS:
            until = {"]"}
        elif not until and word(token) == "WINDOW":
            until = _CLAUSES
        elif source == "]" and source in until:
            until = set()
            continue
        elif word(token) in until or (until is _CLAUSES and source == ")"):
            until = set()
        if not until:
            kept.append(source)
    return " ".join(kept)


def _word_at(tokens: Tokens, place: int) -> str:
    return word(tokens[place]) if place < len(tokens) else ""
