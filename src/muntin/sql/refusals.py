"""What SQL has and Muntin does not take (yet): found on the tokens, refused where it stands.

Runs before anything else looks at a query, so that a user reads "ORDER BY is not supported" and not
that something near it is odd. Aggregates are judged where they are bound.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import Token, TokenType

from muntin.errors import SqlError
from muntin.sql.functions import WITHOUT_PARENTHESES, Ban, refused_functions, why_refused
from muntin.sql.lexer import Tokens, closing, is_symbol, is_text, split_commas, top_level, word
from muntin.sql.over_syntax import is_over, over_findings

_JOINS = "Write INNER, LEFT, RIGHT, FULL, SEMI, ANTI or ASOF JOIN with ON, or CROSS JOIN"
_SELECTS = "Write it as an entry of FROM, (SELECT ...) AS name, and join with that"
_SET_WORDS = {"UNION", "INTERSECT", "EXCEPT", "MINUS"}

_CLAUSES = {
    "LATERAL": _SELECTS,
    "PIVOT": "Select the columns themselves",
    "UNPIVOT": "Select the columns themselves",
    "TABLESAMPLE": "Use a condition in WHERE to take fewer rows",
}
_JOIN_KINDS = {"POSITIONAL"}
_NESTED = {
    "SELECT", "FROM", "WITH", "VALUES", "TABLE", "PIVOT", "UNPIVOT", "DESCRIBE", "SUMMARIZE",
    "SHOW",
}  # fmt: skip
_NOT_OPERANDS = {
    "SELECT", "DISTINCT", "ALL", "FROM", "WHERE", "ON", "USING", "JOIN", "AS", "BY", "FOR",
    "IF", "AND", "OR", "NOT", "IN", "IS", "LIKE", "ILIKE", "GLOB", "BETWEEN", "ESCAPE",
    "COLLATE", "INTERVAL", "LAMBDA", "CASE", "WHEN", "THEN", "ELSE", "HAVING", "UNION",
    "INTERSECT", "EXCEPT", "SIMILAR TO", "GROUP BY", "QUALIFY", "ORDER BY", "LIMIT",
    "OFFSET", *_CLAUSES,
}  # fmt: skip
_OPERAND_ENDS = {")", "]", "}", "*"}


def refuse(tokens: Tokens) -> None:
    """Raise on the first thing in the query that is not supported."""
    outside = set(top_level(tokens))
    for index, token in enumerate(tokens):
        before = tokens[index - 1] if index else None
        after = tokens[index + 1] if index + 1 < len(tokens) else None
        if (
            before is not None
            and (is_symbol(before, ".") or word(before) == "AS")
            and not (after and is_symbol(after, "("))
        ):
            continue
        for error in _findings(tokens, index, before, after):
            raise error
        if index in outside and index > 0:
            for error in _clause_findings(tokens, token, before, after):
                raise error


def ends_operand(token: Token) -> bool:
    """Return whether an expression or an entry of FROM can end with this token."""
    if word(token):
        return word(token) not in _NOT_OPERANDS
    return (
        token.text in _OPERAND_ENDS
        or token.token_type in {TokenType.IDENTIFIER, TokenType.NUMBER}
        or is_text(token)
    )


def _findings(
    tokens: Tokens, index: int, before: Token | None, after: Token | None
) -> Iterator[SqlError]:
    """Yield what is refused at any depth."""
    token = tokens[index]
    name = word(token)
    opens = after is not None and is_symbol(after, "(")
    if token.token_type == TokenType.PLACEHOLDER or (is_symbol(token, "$") and after is not None):
        yield tokens.error(token, "parameters are not supported", "Write the value itself")
    elif is_symbol(token, "#") and after is not None and after.token_type == TokenType.NUMBER:
        yield tokens.error(
            token, "columns cannot be named by their position", "Write the name of the column"
        )
    elif (
        is_symbol(token, "(") and after is not None and word(after) in _NESTED - {"SELECT", "WITH"}
    ):
        fact = f"{after.text} cannot begin a sub-select"
        yield tokens.error(after, fact, "Write (SELECT ... FROM ...)")
    elif (
        name == "SELECT"
        and before is not None
        and not (_joins_selects(before) or is_symbol(before, "(") or _ends_names(tokens, index))
    ):
        yield tokens.error(token, "a sub-select needs parentheses", "Write (SELECT ... FROM ...)")
    elif name == "COLUMNS" and opens:
        yield tokens.error(token, "COLUMNS(...) is not supported", "List the columns, or select *")
    elif opens and is_called(token, before):
        findings = over_findings if is_over(tokens, index) else _call_findings
        yield from findings(tokens, index)
    elif name in WITHOUT_PARENTHESES and not opens:
        fact, hint = refused_functions()[name.lower()].value
        yield tokens.error(
            token,
            f"{token.text} {fact}",
            f'{hint}. A column of that name is written "{token.text}"',
        )


def _call_findings(tokens: Tokens, index: int) -> Iterator[SqlError]:
    token = tokens[index]
    end = closing(tokens, index + 1)
    inside = tokens.part(index + 2, end)
    called_on = index > 0 and is_symbol(tokens[index - 1], ".")
    ban = why_refused(token.text, (len(split_commas(inside)) if len(inside) else 0) + called_on)
    if ban is not None and ban is not Ban.AGGREGATE:
        fact, hint = ban.value
        yield tokens.error(token, f"the function {token.text} {fact}", hint)


def _clause_findings(
    tokens: Tokens, token: Token, before: Token | None, after: Token | None
) -> Iterator[SqlError]:
    """Yield what is refused outside parentheses."""
    name = word(token)
    follower = word(after) if after is not None else ""
    if name in _CLAUSES:
        yield tokens.error(token, f"{name} is not supported", _CLAUSES[name])
    elif (
        name == "DISTINCT" and before is not None and word(before) == "SELECT" and follower == "ON"
    ):
        yield tokens.error(
            token,
            "DISTINCT ON is not supported",
            "It depends on an order; write GROUP BY with MIN or MAX",
        )
    elif name in _SET_WORDS and follower == "BY":
        yield tokens.error(
            token,
            f"{name} BY NAME is not supported",
            "List the columns of both selects in the same order",
        )
    elif name == "USING" and follower == "SAMPLE":
        yield tokens.error(token, "USING SAMPLE is not supported", _CLAUSES["TABLESAMPLE"])
    elif name == "FETCH" and follower in {"FIRST", "NEXT"}:
        yield tokens.error(token, "FETCH is not supported", "Write LIMIT n")
    elif name in _JOIN_KINDS and follower in {"JOIN", "LEFT", "RIGHT", "FULL", "INNER", "OUTER"}:
        yield tokens.error(token, f"{name} JOIN is not supported", _JOINS)


def _joins_selects(before: Token) -> bool:
    return word(before) in {*_SET_WORDS, "ALL", "DISTINCT"}


def _ends_names(tokens: Tokens, index: int) -> bool:
    """Return whether the parenthesis that closes before a place holds a select of WITH."""
    depth = 0
    for place in range(index - 1, -1, -1):
        depth += is_symbol(tokens[place], ")") - is_symbol(tokens[place], "(")
        if depth <= 0:
            return depth == 0 and place < index - 1 and word(tokens[place - 1]) == "AS"
    return False


def is_called(token: Token, before: Token | None) -> bool:
    """Return whether a parenthesis after this token makes it a call.

    An infix word such as IN or GLOB follows an operand.
    """
    named = bool(word(token)) or token.token_type == TokenType.IDENTIFIER
    return named and (before is None or is_symbol(before, "*") or not ends_operand(before))
