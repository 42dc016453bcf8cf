"""Decide from DuckDB's syntax tree whether expressions are safe to run.

The tree is the one that DuckDB builds for the text that it will run, so nothing depends on how
another parser reads it. Every node must be of a known kind with known fields, every function must
be in the reviewed list of :mod:`muntin.expressions.allowed` or a function that the user declared in
Python, and every column must be one that the caller names. All else is refused: sub-selects,
aggregates, parameters, ``COLUMNS(...)``, and node kinds that later versions of DuckDB add.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection, Sequence
from typing import Any, TypeAlias

from muntin.expressions.allowed import LIST_AGGREGATES, NAMING_AGGREGATES, is_allowed
from muntin.expressions.duck import Duck
from muntin.expressions.json_reader import read_json
from muntin.expressions.python_functions import loaded

Json: TypeAlias = Any

_ALIAS = f"column {secrets.token_hex(8)} "
"""The prefix of result columns; random, so that no text can end its item early and imitate it."""

_SELECT = {"type", "cte_map", "select_list", "from_table", "aggregate_handling"}
_COMMON = {"class", "type", "alias", "query_location", "query_location_length"}
_FIELDS: dict[str, set[str]] = {
    "BETWEEN": {"input", "lower", "upper"},
    "CASE": {"case_checks", "else_expr"},
    "CAST": {"child", "type_expr", "try_cast"},
    "COLLATE": {"child", "collation"},
    "COLUMN_REF": {"column_names"},
    "COMPARISON": {"left", "right"},
    "CONJUNCTION": {"children"},
    "CONSTANT": {"literal"},
    "FUNCTION": {
        "function_name", "schema", "catalog", "qualified_name", "arguments", "is_operator",
        "order_bys",
    },
    "LAMBDA": {"lhs", "expr", "syntax_type"},
    "OPERATOR": {"children"},
    "SUBQUERY": {"subquery_type", "subquery", "child", "comparison_type"},
    "TYPE": {"type_name", "children", "qualified_name"},
}  # fmt: skip
"""The kinds of nodes, each with the fields it may have; absent fields have their defaults."""

_OPERATORS = {
    "ARRAY_CONSTRUCTOR", "ARRAY_EXTRACT", "ARRAY_SLICE", "COMPARE_IN", "COMPARE_NOT_IN",
    "OPERATOR_COALESCE", "OPERATOR_IS_NOT_NULL", "OPERATOR_IS_NULL", "OPERATOR_NOT", "OPERATOR_TRY",
    "STRUCT_EXTRACT",
}  # fmt: skip
_BRANCHES = ("input", "lower", "upper", "else_expr", "child", "left", "right", "type_expr")
_NO_ORDER = {"type": "ORDER_MODIFIER"}
_NO_TABLE = {"type": "EMPTY"}
_NAMES = {
    "SUBQUERY": "a sub-select",
    "STAR": "*",
    "WINDOW": "a window function",
    "PARAMETER": "a parameter",
    "DEFAULT": "DEFAULT",
    "POSITIONAL_REFERENCE": "a column named by its position",
}


class UnparsableError(Exception):
    """DuckDB cannot parse the expressions; the message is DuckDB's."""


class NotAllowedError(Exception):
    """One of the expressions contains something that is not allowed.

    ``index`` is the place of the expression. ``function`` or ``column`` is set if it is the cause,
    with ``arguments`` the number of arguments of the function; otherwise ``what`` describes the
    node.
    """

    def __init__(
        self,
        what: str,
        *,
        index: int = 0,
        function: str = "",
        arguments: int = 0,
        column: str = "",
    ) -> None:
        self.what = what
        self.index = index
        self.function = function
        self.arguments = arguments
        self.column = column
        super().__init__(what)


def select_text(texts: Sequence[str]) -> str:
    """Return the SELECT that computes the expressions over the table ``batch``.

    >>> select_text(['"0.x" + 1']).replace(_ALIAS, "")
    'SELECT "0.x" + 1 AS "0" FROM batch'
    """
    items = ", ".join(f'{text} AS "{_ALIAS}{place}"' for place, text in enumerate(texts))
    return f"SELECT {items} FROM batch"


def check_expressions(duck: Duck, texts: Sequence[str], columns: Collection[str]) -> list[Json]:
    """Raise unless all expressions are safe to run over those columns; return their trees."""
    nodes = _parse(duck, texts)
    for index, node in enumerate(nodes):
        try:
            _check(node, columns)
        except NotAllowedError as error:
            error.index = index
            raise
        except (AttributeError, IndexError, KeyError, TypeError) as error:
            raise NotAllowedError("an expression of an unknown form", index=index) from error
    return nodes


def _parse(duck: Duck, texts: Sequence[str]) -> list[Json]:
    """Return one tree per expression.

    A text that ends its item and begins another changes the number of items or their names.
    """
    tree = read_json(duck.parse(select_text(texts)))
    if tree["error"]:
        raise UnparsableError(str(tree.get("error_message", "")))
    statements = tree["statements"]
    node = statements[0]["node"] if len(statements) == 1 and set(statements[0]) == {"node"} else {}
    table = node.get("from_table", {})
    items: list[Json] = node.get("select_list", [])
    names = [item.get("alias") for item in items]
    plain = (
        set(node) <= _SELECT
        and node.get("type") == "SELECT_NODE"
        and not node.get("cte_map")
        and node.get("aggregate_handling") == "STANDARD_HANDLING"
        and table.get("type") == "BASE_TABLE"
        and table.get("qualified_name") == {"path": ["batch"]}
        and names == [f"{_ALIAS}{place}" for place in range(len(texts))]
    )
    if not plain:
        raise UnparsableError("the text is not one expression")
    return items


def _check(root: Json, columns: Collection[str]) -> None:
    """Walk one tree. ``names`` are the parameters of the lambdas around a node."""
    stack: list[tuple[Json, frozenset[str]]] = [(root, frozenset())]
    while stack:
        node, names = stack.pop()
        kind = node.get("class", "")
        if not set(node) <= _COMMON | _FIELDS.get(kind, set()) or kind not in _FIELDS:
            raise NotAllowedError(_NAMES.get(kind, _describe(node)))
        match kind:
            case "COLUMN_REF":
                _check_column(node["column_names"], columns, names)
            case "FUNCTION":
                _check_function(node, names)
            case "OPERATOR" if node["type"] not in _OPERATORS:
                raise NotAllowedError(_describe(node))
            case "TYPE" if len(node["qualified_name"]["path"]) != 1:
                raise NotAllowedError(f"the type {'.'.join(node['qualified_name']['path'])}")
            case "LAMBDA":
                stack.extend(_lambda_branches(node, columns, names))
            case "SUBQUERY":
                stack.append((_any_list(node), names))
            case _:
                pass
        stack.extend((node[branch], names) for branch in _BRANCHES if branch in node)
        stack.extend((child, names) for child in node.get("children", ()))
        stack.extend((argument["expression"], names) for argument in node.get("arguments", ()))
        for check in node.get("case_checks", ()):
            stack.extend([(check["when_expr"], names), (check["then_expr"], names)])


def _check_column(path: Sequence[str], columns: Collection[str], names: frozenset[str]) -> None:
    """Accept the caller's columns, and parameters of lambdas with fields in them.

    DuckDB reads an unknown name such as ``current_user`` as a call, so names matter.
    """
    if not ((len(path) == 1 and path[0] in columns) or path[0].lower() in names):
        raise NotAllowedError(f"the name {'.'.join(path)}", column=".".join(path))


def _check_function(node: Json, names: frozenset[str]) -> None:
    path = node["qualified_name"]["path"]
    arguments = [argument["expression"] for argument in node.get("arguments", ())]
    # A call x.f(y) on a parameter of a lambda has x in its path, not among its arguments.
    called_on = len(path) > 1 and path[0].lower() in names
    count = len(arguments) + called_on
    name = str(node["function_name"])
    if path[-1] != name or not (is_allowed(name, count) or loaded(name)):
        raise NotAllowedError(f"the function {name}", function=name, arguments=count)
    if len(path) > 1 and not called_on:
        raise NotAllowedError(f"{'.'.join(path)}(...), a function with a schema,")
    if node.get("order_bys", _NO_ORDER) != _NO_ORDER:
        raise NotAllowedError(f"ORDER BY inside {name}")
    if name.lower() in NAMING_AGGREGATES:
        named = arguments[1 - called_on] if len(arguments) > 1 - called_on else {}
        aggregate = str(named.get("literal", {}).get("text", ""))
        if aggregate.lower() not in LIST_AGGREGATES:
            what = (
                f"the aggregate {aggregate}" if aggregate else "an aggregate that is not a constant"
            )
            raise NotAllowedError(f"{what} in {name}")


def _lambda_branches(
    node: Json, columns: Collection[str], names: frozenset[str]
) -> list[tuple[Json, frozenset[str]]]:
    """Return the branches to check of a lambda, or of ``json -> path``, which DuckDB confuses."""
    left = node["lhs"]
    if node["syntax_type"] == "LAMBDA_KEYWORD":
        inner = [argument["expression"] for argument in left.get("arguments", ())] or [left]
        if not all(
            set(each) <= _COMMON | {"column_names"} and len(each["column_names"]) == 1
            for each in inner
        ):
            raise NotAllowedError("a lambda with parameters of this form")
        return [(node["expr"], names | {each["column_names"][0].lower() for each in inner})]
    path = left.get("column_names", [])
    if (
        left.get("class") == "COLUMN_REF"
        and path[0] not in columns
        and path[0].lower() not in names
    ):
        raise UnparsableError("Deprecated lambda arrow")
    return [(left, names), (node["expr"], names)]


def _any_list(node: Json) -> Json:
    """Return the list of ``x = ANY(list)``, which DuckDB parses as a sub-select over an unnest."""
    inner = node["subquery"].get("node", {})
    items = inner.get("select_list", [])
    plain = (
        node["subquery_type"] == "ANY"
        and set(node["subquery"]) == {"node"}
        and set(inner) <= _SELECT
        and inner.get("type") == "SELECT_NODE"
        and not inner.get("cte_map")
        and inner.get("from_table") == _NO_TABLE
        and len(items) == 1
        and set(items[0]) <= _COMMON | _FIELDS["FUNCTION"]
        and items[0].get("qualified_name") == {"path": ["unnest"]}
        and items[0].get("order_bys", _NO_ORDER) == _NO_ORDER
        and len(items[0].get("arguments", ())) == 1
    )
    if not plain:
        raise NotAllowedError(_NAMES["SUBQUERY"])
    return items[0]["arguments"][0]["expression"]


def _describe(node: Json) -> str:
    """Return a description of a node without a better name."""
    if "function_name" in node:
        return f"this form of {node['function_name']}(...)"
    return str(node.get("type") or json.dumps(node)[:40]).replace("_", " ").lower()
