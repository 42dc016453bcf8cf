"""The select as sqlglot reads it.

Mistakes of syntax, the kinds and aliases of the items, and where columns stand.

Only names are taken from sqlglot's tree. Expressions are never rendered from it, because that
rewrites them: what reads ``j -> 'a' = 'b'`` one way in DuckDB reads another way in sqlglot.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import Token, exp
from sqlglot.errors import ErrorLevel, ParseError

from muntin.errors import SqlError
from muntin.sql.lexer import DIALECT, Tokens

_KNOWN_PARTS = {"expressions", "from", "from_", "joins", "where", "group", "having", "distinct"}
_KNOWN_PARTS |= {"qualify", "order", "limit", "offset"}
_NESTED = (exp.Query, exp.Subquery, exp.Table, exp.Exists)


@dataclass(frozen=True)
class ColumnUse:
    """A column as written, ``alias.column.field`` say.

    Its names and the offsets where they stand.
    """

    names: tuple[str, ...]
    offsets: tuple[int, ...]


def parse_select(tokens: Tokens) -> exp.Select:
    """Return the tree of a plain select."""
    try:
        trees = DIALECT.parser(error_level=ErrorLevel.IMMEDIATE).parse(list(tokens), tokens.text)
    except ParseError as error:
        raise _translate(error, tokens) from error
    except RecursionError as error:
        raise tokens.error(
            tokens.start, "the query is nested too deeply", "Write it with fewer parentheses"
        ) from error
    except (
        Exception
    ) as error:  # sqlglot's parser meets some broken texts with exceptions of other kinds
        raise tokens.error(
            tokens.start,
            "the query cannot be understood",
            "Check it for missing or misplaced words",
        ) from error
    tree = trees[0] if len(trees) == 1 else None
    if not isinstance(tree, exp.Select):
        raise tokens.error(
            tokens.start, "the query cannot be understood", "Write SELECT ... FROM ... WHERE ..."
        )
    for part, value in tree.args.items():
        if value and part not in _KNOWN_PARTS:
            name = part.rstrip("_").replace("_", " ").upper()
            raise tokens.error(
                tokens.start, f"{name} is not supported", "Write SELECT ... FROM ... WHERE ..."
            )
    for expression in _expressions(tree):
        if next(expression.find_all(*_NESTED), None) is not None:
            raise tokens.error(
                tokens.start,
                "a sub-select stands where none can",
                "Write it as an entry of FROM, (SELECT ...) AS name",
            )
    return tree


def find_columns(tree: exp.Select) -> dict[int, ColumnUse]:
    """Return every use of a column in expressions, by the offset where it begins."""
    uses: dict[int, ColumnUse] = {}
    for expression in _expressions(tree):
        for node, local in _walk(expression):
            if not isinstance(node, (exp.Column, exp.Dot)):
                continue
            names = _leading_names(node)
            if names and "start" in names[0].meta and names[0].name.casefold() not in local:
                offset = names[0].meta["start"]
                use = ColumnUse(
                    tuple(name.name for name in names),
                    tuple(name.meta.get("start", offset) for name in names),
                )
                if offset not in uses or len(uses[offset].names) < len(names):
                    uses[offset] = use
    return uses


def _walk(root: exp.Expression) -> Iterator[tuple[exp.Expression, frozenset[str]]]:
    """Yield the nodes of a tree, each with the parameters of the lambdas around it.

    Comprehensions count as lambdas.
    """
    stack: list[tuple[exp.Expression, frozenset[str]]] = [(root, frozenset())]
    while stack:
        node, local = stack.pop()
        yield node, local
        inner = local | _parameters(node)
        stack.extend((child, inner) for child in node.iter_expressions())


def _parameters(node: exp.Expression) -> frozenset[str]:
    """Return the names that a lambda or comprehension introduces."""
    if isinstance(node, exp.Lambda):
        return frozenset(parameter.name.casefold() for parameter in node.expressions)
    if isinstance(node, exp.Comprehension):
        return frozenset(name.name.casefold() for name in node.expression.find_all(exp.Identifier))
    return frozenset()


def _expressions(tree: exp.Select) -> Iterator[exp.Expression]:
    yield from tree.expressions
    for join in tree.args.get("joins") or ():
        if join.args.get("on") is not None:
            yield join.args["on"]
    if tree.args.get("where") is not None:
        yield tree.args["where"].this
    if tree.args.get("group") is not None:
        yield from tree.args["group"].expressions
    if tree.args.get("having") is not None:
        yield tree.args["having"].this
    if tree.args.get("qualify") is not None:
        yield tree.args["qualify"].this
    if tree.args.get("order") is not None:
        yield from (ordered.this for ordered in tree.args["order"].expressions)


def _leading_names(node: exp.Expression) -> list[exp.Identifier]:
    """Return the leading identifiers of a column or of a chain such as ``alias.column.lower()``."""
    if isinstance(node, exp.Dot):
        base = _chain(node.this) or []
        return (
            [*base, node.expression]
            if base and isinstance(node.expression, exp.Identifier)
            else base
        )
    return _chain(node) or []


def _chain(node: exp.Expression) -> list[exp.Identifier] | None:
    """Return the identifiers of a node that is nothing but identifiers and dots."""
    if isinstance(node, exp.Identifier):
        return [node]
    if isinstance(node, exp.Column):
        return [part for part in node.parts if isinstance(part, exp.Identifier)]
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        base = _chain(node.this)
        return None if base is None else [*base, node.expression]
    return None


def _translate(error: ParseError, tokens: Tokens) -> SqlError:
    """Return the complaint of sqlglot in our words, at the token it is about."""
    detail = error.errors[0] if error.errors else {}
    token = _blamed(detail.get("line"), detail.get("col"), tokens)
    text = tokens.source(token)
    description = str(detail.get("description") or "")
    if description.startswith(("Required keyword", "Expected table name")):
        fact = (
            f"something is missing after {text!r}"
            if token is tokens[-1]
            else f"something is missing before {text!r}"
        )
    elif description.startswith("Expecting "):
        fact = f"a {description.removeprefix('Expecting ')} is missing at {text!r}"
    else:
        fact = f"unexpected {text!r}"
    return tokens.error(
        token, fact, "Write SELECT ... FROM ... WHERE ..., with commas between the items"
    )


def _blamed(line: int | None, column: int | None, tokens: Tokens) -> Token:
    found = (token for token in tokens if token.line == line and token.col == column)
    return next(found, tokens[-1])
