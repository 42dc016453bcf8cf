"""Sub-selects in expressions: found on the tokens of a select, and cut out of it.

``EXISTS (SELECT ...)`` and ``x IN (SELECT ...)``, with or without NOT, between the ANDs of WHERE
and HAVING become TRUE: they are joins and no conditions on a row. Elsewhere they are values, and a
value becomes a name. What is left is a plain select; :mod:`muntin.sql.nested_joins` adds the joins.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from sqlglot import Token, TokenType

from muntin.errors import SqlError
from muntin.sql.aggregates import find_calls
from muntin.sql.conjuncts import is_loose, is_tight, split_conjuncts, unwrap
from muntin.sql.lexer import Tokens, closing, is_symbol, split_commas, word
from muntin.sql.refusals import ends_operand, is_called
from muntin.sql.shape import SelectParts, read_shape
from muntin.sql.syntax import ColumnUse, find_columns, parse_select

_ELSEWHERE = "Write it as an entry of FROM, (SELECT ...) AS name, and join with that"
_QUANTIFIED = "Compare with an aggregate of it, such as (SELECT MAX(x) ...)"
_SETS = {"UNION", "INTERSECT", "EXCEPT", "MINUS"}
_NAME = "#select"
_OPENERS, _CLOSERS = "([{", ")]}"


class Role(StrEnum):
    """What a sub-select is to the expression that it stands in."""

    EXISTS = "EXISTS"
    IN = "IN"
    VALUE = "value"


@dataclass(frozen=True)
class NestedSelect:
    """A sub-select: what stands in its parentheses, and the token that stands for it.

    That is in place of what begins at the offset ``first``, and known by its own offset, at which
    nothing else begins that is written.
    ``operand`` is what stands before IN. ``above`` a grouping are those that see groups and not
    rows. EXISTS and IN are ``truth`` values unless they are conditions that AND connects.
    """

    role: Role
    body: Tokens
    token: Token
    first: int
    negated: bool = False
    operand: Tokens | None = None
    above: bool = False
    truth: bool = False

    @property
    def joins_rows(self) -> bool:
        """Return whether it keeps or drops rows, whatever it is compared by."""
        return self.role is not Role.VALUE and not self.truth

    @property
    def operands(self) -> list[Tokens]:
        """What stands before IN: one expression, or those of a row in parentheses."""
        if self.operand is None:
            return []
        body = unwrap(self.operand)
        if len(body) > 2 and is_symbol(body[0], "(") and closing(body, 0) == len(body) - 1:
            return split_commas(body.part(1, len(body) - 1))
        return [body]


def cut_selects(tokens: Tokens) -> tuple[Tokens, tuple[NestedSelect, ...]]:
    """Return a select without the sub-selects in its expressions, and these."""
    if not any(index and word(token) == "SELECT" for index, token in enumerate(tokens)):
        return tokens, ()
    shape = read_shape(tokens)
    grouped = is_grouped(shape)
    found: dict[int, NestedSelect] = {}
    for part, above in ((shape.where, False), (shape.having, True)):
        for one in () if part is None else _conditions(part, above=above):
            found[one.token.start] = one
    values = [(item, grouped) for item in shape.items]
    values += [(shape.where, False)] if shape.where is not None else []
    values += [(shape.having, True)] if shape.having is not None else []
    for part, above in values:
        for one in _values(part, found, above=above):
            found[one.token.start] = one
    _refuse_elsewhere(shape)
    stand_ins = {one.first: one.token for one in found.values()}
    return _without(tokens, stand_ins), tuple(found[start] for start in sorted(found))


def is_grouped(shape: SelectParts) -> bool:
    """Return whether the select list of a select is over groups."""
    return (
        shape.group is not None
        or shape.having is not None
        or any(True for item in shape.items for _ in _calls(item))
    )


def _calls(tokens: Tokens) -> Iterator[tuple[int, int]]:
    """Yield the first and last offsets of the calls of aggregates outside sub-selects."""
    stand_ins = {
        tokens[start].start: _stand_in(tokens, (start, end), TokenType.IDENTIFIER)
        for start, end in _selects(tokens)
    }
    plain = _without(tokens, stand_ins)
    for call in find_calls(plain):
        yield plain[call.start].start, plain[call.end - 1].end


def _selects(tokens: Tokens) -> Iterator[tuple[int, int]]:
    """Yield where the parentheses of sub-selects open and close."""
    index = 0
    while index < len(tokens):
        end = _select_end(tokens, index)
        if end is not None:
            yield index, end
            index = end
        index += 1


def _select_end(tokens: Tokens, index: int) -> int | None:
    """Return where a sub-select closes that opens here; None if none does."""
    if not is_symbol(tokens[index], "(") or index + 1 == len(tokens):
        return None
    end = closing(tokens, index)
    if end is None:
        return None
    if word(tokens[index + 1]) in {"SELECT", "WITH"}:
        return end
    inner = _select_end(tokens, index + 1)
    combined = inner is not None and word(tokens[inner + 1]) in _SETS
    return end if combined else None


def _conditions(part: Tokens, *, above: bool) -> Iterator[NestedSelect]:
    """Yield the conjuncts that are EXISTS or IN of a sub-select."""
    for conjunct in split_conjuncts(part):
        if conjunct.sides is None and len(conjunct.tokens):
            found = _condition(conjunct.tokens)
            if found is not None:
                yield replace(found, above=above)


def _condition(whole: Tokens) -> NestedSelect | None:
    """Return the sub-select that a condition is about, if it is about one only."""
    negated, tokens = False, unwrap(whole)
    while len(tokens) and word(tokens[0]) == "NOT":
        negated, tokens = not negated, unwrap(tokens.part(1))
    opening = next((start for start, end in _selects(tokens) if end == len(tokens) - 1), None)
    if not opening:
        return None
    body = tokens.part(opening + 1, len(tokens) - 1)
    token = _stand_in(tokens, (opening, len(tokens) - 1), TokenType.TRUE, whole[-1].end)
    before = [word(one) or one.text for one in tokens.part(max(0, opening - 2), opening)]
    if before == ["EXISTS"]:
        return NestedSelect(Role.EXISTS, body, token, whole[0].start, negated)
    cut = opening - 1
    if before[-1:] == ["IN"]:
        if before[0] == "NOT":
            negated, cut = not negated, cut - 1
    elif before in (["=", "ANY"], ["=", "SOME"]):
        cut -= 1
    elif before in (["<>", "ALL"], ["!=", "ALL"]):
        negated, cut = not negated, cut - 1
    else:
        return None
    operand = tokens.part(0, cut)
    if not len(operand) or not is_tight(operand):
        return None
    _refuse_selects(operand)
    return NestedSelect(Role.IN, body, token, whole[0].start, negated, operand)


def _values(
    part: Tokens, found: Mapping[int, NestedSelect], *, above: bool
) -> Iterator[NestedSelect]:
    """Yield the sub-selects of an expression that are values; of groups, if outside aggregates."""
    done = [one.token for one in found.values()]
    calls = list(_calls(part)) if above else []
    for start, end in _selects(part):
        opening = part[start]
        if any(one.start <= opening.start <= one.end for one in done):
            continue
        below = any(first < opening.start < last for first, last in calls)
        yield replace(_value(part, start, end), above=above and not below)


def _value(part: Tokens, start: int, end: int) -> NestedSelect:
    """Return the sub-select between two parentheses with what stands before it."""
    name = word(part[start - 1]) if start else ""
    role, first, negated = Role.VALUE, start, False
    operand: Tokens | None = None
    if name == "EXISTS":
        role, first = Role.EXISTS, start - 1
    elif name == "IN":
        negated = start > 1 and word(part[start - 2]) == "NOT"
        stop = start - 2 if negated else start - 1
        role, first = Role.IN, _operand_start(part, stop)
        operand = part.part(first, stop)
        _refuse_selects(operand)
    else:
        _check_value(part, start)
    token = _stand_in(part, (start, end), TokenType.IDENTIFIER)
    body = part.part(start + 1, end)
    truth = role is not Role.VALUE
    return NestedSelect(role, body, token, part[first].start, negated, operand, truth=truth)


def _operand_start(part: Tokens, stop: int) -> int:
    """Return where the operand begins that ends at a place: before it stands what binds loosely."""
    first, depth = stop, 0
    while first:
        token = part[first - 1]
        depth += any(is_symbol(token, mark) for mark in _CLOSERS)
        if not depth and (is_loose(part, first - 1) or is_symbol(token, ",")):
            break
        depth -= any(is_symbol(token, mark) for mark in _OPENERS)
        if depth < 0:
            break
        first -= 1
    if first == stop:
        fact = "what stands before IN (SELECT ...) cannot be understood"
        raise part.error(part[max(0, stop - 1)], fact, "Put it into parentheses")
    return first


def _check_value(part: Tokens, start: int) -> None:
    """Raise if what stands before a sub-select does not take a value."""
    before = part[start - 1] if start else None
    if before is None or not word(before):
        return
    if word(before) in {"ANY", "ALL", "SOME"}:
        fact = f"{word(before)} (SELECT ...) is supported as = ANY and as <> ALL between ANDs only"
        raise part.error(before, fact, _QUANTIFIED)
    if ends_operand(before) and is_called(before, part[start - 2] if start > 1 else None):
        fact = f"{before.text} cannot take a sub-select in this form"
        raise part.error(part[start], fact, "Put it into parentheses of its own if it is a value")


def _refuse_selects(operand: Tokens) -> None:
    """Raise if a sub-select stands before IN."""
    for start, _ in _selects(operand):
        fact = "a sub-select cannot stand before IN (SELECT ...)"
        raise operand.error(operand[start], fact, _ELSEWHERE)


def _refuse_elsewhere(shape: SelectParts) -> None:
    """Raise if a sub-select stands in another clause."""
    ons = [("ON", entry.on) for entry in shape.entries]
    clauses = [("GROUP BY", shape.group), ("ORDER BY", shape.order), ("QUALIFY", shape.qualify)]
    for name, part in [*ons, *clauses]:
        for token in part or ():
            if word(token) == "SELECT":
                raise _misplaced(shape, token, name)


def _misplaced(shape: SelectParts, token: Token, name: str) -> SqlError:
    fact = f"sub-selects cannot stand in {name}"
    hint = "Put it into WHERE or the select list" if name != "GROUP BY" else _ELSEWHERE
    return shape.plain.error(token, fact, hint)


def _stand_in(tokens: Tokens, span: tuple[int, int], kind: TokenType, until: int = 0) -> Token:
    """Return a token in place of a sub-select between parentheses, and what follows ``until``."""
    first, last = tokens[span[0]], tokens[span[1]]
    text = _NAME if kind is TokenType.IDENTIFIER else "TRUE"
    return Token(kind, text, first.line, first.col, first.start, max(until, last.end))


def _without(tokens: Tokens, stand_ins: Mapping[int, Token]) -> Tokens:
    """Return the tokens with others, by their offsets, in place of what these stand for."""
    items: list[Token] = []
    stop = -1
    for token in tokens:
        if token.start > stop:
            one = stand_ins.get(token.start)
            items.append(token if one is None else one)
            stop = -1 if one is None else one.end
    return replace(tokens, items=tuple(items))


def columns_of(nested: Sequence[NestedSelect], select: Token) -> dict[int, ColumnUse]:
    """Return the uses of columns before IN, given the word SELECT to parse them behind."""
    uses: dict[int, ColumnUse] = {}
    for one in nested:
        for operand in one.operands:
            uses |= find_columns(parse_select(replace(operand, items=(select, *operand.items))))
    return uses


def is_stand_in(tokens: Tokens) -> bool:
    """Return whether an expression is nothing but a sub-select."""
    return len(tokens) == 1 and tokens[0].text == _NAME and tokens.source(tokens[0])[0] == "("
