"""Expressions in the form the rest of Muntin computes with.

The user's tokens, columns under their flat names.

The text is that of the user but for spaces, comments and columns, so DuckDB reads what the user
meant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import Token, TokenType

from muntin.model.functions import FunctionSignature
from muntin.plan.expression import ColumnRef, quote
from muntin.sql.lexer import Tokens, is_number, is_symbol, is_text, word
from muntin.sql.python_functions import called_function
from muntin.sql.refusals import ends_operand
from muntin.sql.scope import NameScope
from muntin.sql.syntax import ColumnUse

_BINARY = {
    "+", "-", "*", "/", "//", "%", "^", "**", "||", "&", "|", "=", "==", "<>", "!=", "<", "<=",
    ">", ">=", "->", "->>", "&&",
}  # fmt: skip


@dataclass(frozen=True)
class Draft:
    """An expression whose type is not known yet, and the tokens to blame for it."""

    sql: str
    references: tuple[ColumnRef, ...]
    tokens: Tokens


@dataclass(frozen=True)
class Writer:
    """Writes the expressions of one query; ``functions`` are the user's, by folded name.

    ``values`` are what stands for sub-selects, by their offsets.
    """

    uses: Mapping[int, ColumnUse]
    functions: Mapping[str, FunctionSignature] = field(default_factory=dict)
    values: Mapping[int, Draft] = field(default_factory=dict)

    def write(self, tokens: Tokens, scope: NameScope) -> Draft:
        """Return the expression with its columns resolved."""
        pieces: list[tuple[str, Token, Token]] = []
        references: dict[ColumnRef, None] = {}
        index = 0
        while index < len(tokens):
            token = tokens[index]
            use = self.uses.get(token.start)
            if (value := self.values.get(token.start)) is not None:
                pieces.append((value.sql, token, token))
                references |= dict.fromkeys(value.references)
                index += 1
                continue
            if use is None:
                pieces.append((self.text_of(tokens, index), token, token))
                index += 1
                continue
            reference, consumed = scope.resolve(use, tokens)
            flat, columns = scope.value_of(reference, consumed)
            references |= dict.fromkeys(columns)
            index = end_of(tokens, index, use.offsets[consumed - 1])
            deeper = index < len(tokens) and is_symbol(tokens[index], ".")
            pieces.append((f"({flat})" if deeper else flat, token, tokens[index - 1]))
        return Draft(join_pieces(pieces), tuple(references), tokens)

    def text_of(self, tokens: Tokens, index: int) -> str:
        """Return the text of a token that is not a column; a function of the user has a key."""
        function = called_function(tokens, index, self.functions)
        return tokens.source(tokens[index]) if function is None else quote(function.key)


def plain_text(tokens: Tokens) -> str:
    """Return the expression as the user wrote it, with even spaces and no comments."""
    return join_pieces([(tokens.source(token), token, token) for token in tokens])


def end_of(tokens: Tokens, index: int, last: int) -> int:
    """Return the place behind the token that begins at the offset ``last``."""
    while tokens[index].start < last:
        index += 1
    return index + 1


def join_pieces(pieces: Sequence[tuple[str, Token, Token]]) -> str:
    """Return texts with even spaces between them, each with the first and last token it is for."""
    text = ""
    unary = True
    for index, (piece, first, _) in enumerate(pieces):
        if index:
            text += " " if _has_gap(pieces[index - 1][2], first, unary=unary) else ""
        text += piece
        before = pieces[index - 1][2] if index else None
        unary = _is_sign(first) and (
            before is None or _is_binary(before) or not ends_operand(before)
        )
    return text


def _has_gap(before: Token, after: Token, *, unary: bool) -> bool:
    """Return whether a space stands between two tokens.

    ``unary`` if the first is a sign and not an operator.
    """
    adjacent = before.end + 1 == after.start
    if is_symbol(before, "*") and is_symbol(after, ")"):
        return False
    if _is_binary(before) and _is_binary(after):
        return not adjacent or _is_sign(after)
    if _is_binary(after) and ends_operand(before):
        return True
    if _is_binary(before) and not unary:
        return True
    if any(is_symbol(before, symbol) for symbol in ("(", "[")) or any(
        is_symbol(after, symbol) for symbol in (")", "]", ",")
    ):
        return False
    return is_symbol(before, ",") or not adjacent


def _is_sign(token: Token) -> bool:
    return is_symbol(token, "-") or is_symbol(token, "+")


def _is_binary(token: Token) -> bool:
    return token.text in _BINARY and not (
        word(token)
        or is_number(token)
        or is_text(token)
        or token.token_type == TokenType.IDENTIFIER
    )
