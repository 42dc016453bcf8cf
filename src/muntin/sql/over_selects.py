"""Window functions in a select and in QUALIFY: from tokens to rows with their values.

A call is replaced by a name, that of a column of one more source; the select list and QUALIFY are
then expressions like any other. Below them, rows carry the columns that they read, and what the
calls are over, partition and order by. Calls of one order are made by one node; nodes of several
orders stand one above the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import pyarrow as pa
from sqlglot import Token, TokenType

from muntin.model.window import Unbounded
from muntin.plan.column_rename import renamed, renamed_predicate
from muntin.plan.expression import ColumnRef, Expression, OutputColumn, Predicate, column_expression
from muntin.plan.node import Node
from muntin.plan.nodes import Project, Scan
from muntin.plan.top_n import SortKey, TopN
from muntin.plan.window_functions import RowFunction, WindowCall, WindowFunctions
from muntin.sql.binder import Conditions, name_outputs, predicate_of, split_condition
from muntin.sql.conjuncts import unwrap
from muntin.sql.frames import bind_frame, offset_frame
from muntin.sql.lexer import Tokens
from muntin.sql.order_by import check_ordered, tie_keys
from muntin.sql.over_calls import OverCall, default_draft, read_over_call
from muntin.sql.over_syntax import is_over
from muntin.sql.scope import NameScope
from muntin.sql.shape import SelectParts
from muntin.sql.syntax import ColumnUse
from muntin.sql.typecheck import find_types, typed
from muntin.sql.writer import Draft, Writer

_SOURCE = "#calls"


@dataclass(frozen=True)
class OverSelect:
    """A select whose calls are replaced by names; ``shape`` has those."""

    shape: SelectParts
    calls: tuple[OverCall, ...]
    uses: Mapping[int, ColumnUse]

    def names(self, outputs: Sequence[tuple[str, Draft]]) -> list[tuple[str, Draft]]:
        """Return outputs, calls without an alias under their text."""
        texts = {f"#n{number}": call.text for number, call in enumerate(self.calls)}
        return [(texts.get(name, name), draft) for name, draft in outputs]

    def scope(self, scope: NameScope, types: Sequence[pa.DataType] = ()) -> NameScope:
        """Return a scope that has the calls too; ``*`` does not stand for them.

        Without ``types``, which are those of the calls, it only serves to resolve names.
        """
        types = types or [pa.int64()] * len(self.calls)
        schema = pa.schema([(f"#n{number}", kind) for number, kind in enumerate(types)])
        source = Scan(_SOURCE, _SOURCE, stored=True, window=Unbounded(), schema=schema)
        place = len(scope.sources)
        hidden = {ColumnRef(place, name) for name in schema.names}
        sources = (*scope.sources, source)
        return replace(scope, sources=sources, end=place + 1, merged=scope.merged | hidden)


def read_over(shape: SelectParts) -> OverSelect | None:
    """Return a select with its calls replaced; None if it has none."""
    calls: dict[str, tuple[int, OverCall]] = {}
    uses: dict[int, ColumnUse] = {}

    def replaced(tokens: Tokens) -> Tokens:
        items: list[Token] = []
        index = 0
        while index < len(tokens):
            if not is_over(tokens, index):
                items.append(tokens[index])
                index += 1
                continue
            token, (call, end) = tokens[index], read_over_call(tokens, index)
            number, _ = calls.setdefault(call.text.casefold(), (len(calls), call))
            uses[token.start] = ColumnUse((_SOURCE, f"#n{number}"), (token.start, token.start))
            where = token.line, token.col, token.start, token.end
            items.append(Token(TokenType.IDENTIFIER, f"#n{number}", *where))
            index = end
        return replace(tokens, items=tuple(items))

    select = tuple(map(replaced, shape.items))
    qualify = None if shape.qualify is None else replaced(shape.qualify)
    aliases = {
        item[-1].text.casefold(): uses[item[0].start]
        for item in select
        if 1 < len(item) <= 3 and item[0].start in uses
    }
    for token in qualify or ():
        if token.start not in uses and token.text.casefold() in aliases:
            uses[token.start] = ColumnUse(
                aliases[token.text.casefold()].names, (token.start, token.start)
            )
    if not calls:
        if shape.qualify is not None:
            fact = "QUALIFY needs a window function"
            raise shape.qualify.error(shape.qualify.start, fact, "Write the condition in WHERE")
        return None
    _refuse_beside(shape)
    found = tuple(call for _, call in calls.values())
    return OverSelect(replace(shape, items=select, qualify=qualify), found, uses)


def _refuse_beside(shape: SelectParts) -> None:
    """Raise on what a select cannot have beside window functions."""
    clauses = (
        ("GROUP BY", shape.group),
        ("HAVING", shape.having),
        ("ORDER BY", shape.order),
    )
    for name, part in clauses:
        if part is not None:
            hint = "Put one of them into a sub-select in FROM"
            fact = f"{name} beside a window function is not supported"
            raise part.error(part.start, fact, hint)
    if shape.distinct:
        fact = "DISTINCT beside a window function is not supported"
        raise shape.plain.error(shape.plain.start, fact, "Put one of them into a sub-select")


@dataclass
class _Inputs:
    """What calls are over, partition and order by: each expression once, in a column below."""

    writer: Writer
    scope: NameScope
    drafts: dict[str, Draft] = field(default_factory=dict)
    types: dict[str, pa.DataType] = field(default_factory=dict)

    def add(self, tokens: Tokens) -> Draft:
        """Return the expression of tokens, which gets a column."""
        draft = self.writer.write(unwrap(tokens), self.scope)
        return self.drafts.setdefault(draft.sql, draft)

    def find(self) -> None:
        """Find the types of all expressions."""
        self.types.update(find_types(list(self.drafts.values()), [], self.scope))

    def columns(self) -> tuple[OutputColumn, ...]:
        """Return all expressions as columns."""
        drafts = enumerate(self.drafts.values())
        return tuple(OutputColumn(f"#by{at}", typed(draft, self.types)) for at, draft in drafts)


class _Parts(NamedTuple):
    """The expressions of a call."""

    keys: tuple[Draft, ...]
    order: tuple[Draft, ...]
    argument: Draft | None
    default: Draft | None


class OverParts(NamedTuple):
    """A select with calls, all types known; ``by`` is what its calls are over and go by."""

    outputs: tuple[OutputColumn, ...]
    qualify: tuple[Predicate, ...]
    by: tuple[OutputColumn, ...]

    @property
    def expressions(self) -> list[Expression]:
        """What stands above the calls."""
        return [
            *(output.expression for output in self.outputs),
            *(predicate.expression for predicate in self.qualify),
        ]


def _read_columns(parts: OverParts, scope: NameScope) -> dict[ColumnRef, OutputColumn]:
    """Return the columns of sources that the select list and QUALIFY read, for the rows below."""
    references = dict.fromkeys(ref for one in parts.expressions for ref in one.references)
    return {
        ref: OutputColumn(
            f"#c{ref.flat}",
            column_expression(ref, scope.sources[ref.source].schema.field(ref.column).type),
        )
        for ref in references
        if ref.source < len(scope.sources)
    }


def bind_over(
    select: OverSelect,
    outputs: Sequence[tuple[str, Draft]],
    names: tuple[Writer, NameScope],
    conditions: Conditions,
    below: tuple[Sequence[OutputColumn], Callable[..., Node]],
) -> Node:
    """Return the node of a select with window functions.

    ``below`` has the columns that order rows, and makes the rows that satisfy predicates.
    """
    (writer, plain), (ties, make) = names, below
    inputs = _Inputs(writer, plain)
    written = [_written(call, inputs) for call in select.calls]
    inputs.find()
    calls = [_with_default(call, inputs) for call in written]
    inputs.find()
    kinds = [
        call.type_over(None if one.argument is None else inputs.types[one.argument.sql])
        for call, one in zip(select.calls, calls, strict=True)
    ]
    scope = select.scope(plain, kinds)
    qualify = select.shape.qualify
    above = [] if qualify is None else list(split_condition(qualify, writer, scope))
    types = find_types([draft for _, draft in outputs], [*conditions.all, *above], scope)
    parts = OverParts(
        name_outputs([(name, typed(draft, types)) for name, draft in select.names(outputs)]),
        tuple(predicate_of(one, types) for one in above),
        inputs.columns(),
    )
    read = _read_columns(parts, plain)
    rows = make(predicates=conditions.predicates(types), select=(*read.values(), *parts.by, *ties))
    node = _Stack(rows, inputs, len(read), len(ties)).over(
        list(zip(select.calls, calls, kinds, strict=True))
    )
    return _project(parts, read, node)


def _written(call: OverCall, inputs: _Inputs) -> _Parts:
    return _Parts(
        tuple(inputs.add(key) for key in call.keys),
        tuple(inputs.add(item.tokens) for item in call.items),
        None if call.argument is None else inputs.add(call.argument),
        None if call.default is None else inputs.writer.write(unwrap(call.default), inputs.scope),
    )


def _with_default(parts: _Parts, inputs: _Inputs) -> _Parts:
    """Return the expressions of a call, its default in the type of its argument."""
    if parts.default is None or parts.argument is None:
        return parts
    draft = default_draft(parts.default, inputs.types[parts.argument.sql])
    return parts._replace(default=inputs.drafts.setdefault(draft.sql, draft))


@dataclass
class _Stack:
    """The nodes of calls, one above the other.

    The rows below have ``read`` columns for the select, then those of ``inputs``, and the order of
    rows in the last ``ties``.
    """

    rows: Node
    inputs: _Inputs
    read: int
    ties: int

    def over(self, calls: Sequence[tuple[OverCall, _Parts, pa.DataType]]) -> Node:
        """Return the nodes of all calls; those that number rows are on top.

        So the rule ``limit_numbers`` of the planner can bound numbers by what QUALIFY states.
        """
        node = self.rows
        groups: dict[tuple[tuple[int, ...], tuple[SortKey, ...]], list[WindowCall]] = {}
        numbered = []
        for number, (call, parts, kind) in enumerate(calls):
            keys, order = self._sorted(call, parts)
            if call.numbering is not None:
                numbered.append((f"#n{number}", call.numbering, keys, order))
            else:
                bound = self._call(f"#n{number}", call, parts, kind)
                groups.setdefault((keys, order), []).append(bound)
        for (keys, order), bound_calls in groups.items():
            every = (*order, *self._rest(node, order))
            node = WindowFunctions(node, keys, every, len(order), tuple(bound_calls))
        for name, numbering, keys, order in numbered:
            columns = tuple(range(len(node.schema)))
            every = (*order, *self._rest(node, order))
            node = TopN(node, keys, every, len(order), None, 0, columns, numbering, name)
        return node

    def _place(self, draft: Draft) -> int:
        return self.read + list(self.inputs.drafts).index(draft.sql)

    def _sorted(self, call: OverCall, parts: _Parts) -> tuple[tuple[int, ...], tuple[SortKey, ...]]:
        for item, draft in zip(call.items, parts.order, strict=True):
            check_ordered(self.inputs.types[draft.sql], item.tokens)
        order = tuple(
            SortKey(self._place(draft), item.descending, item.nulls_first)
            for item, draft in zip(call.items, parts.order, strict=True)
        )
        return tuple(self._place(draft) for draft in parts.keys), order

    def _rest(self, node: Node, order: tuple[SortKey, ...]) -> list[SortKey]:
        """Return the keys that order rows with equal sort keys, values of other calls included."""
        taken = {key.column for key in order}
        schema = self.rows.schema if self.ties else node.schema
        return tie_keys(schema, taken, len(node.schema), self.ties)

    def _call(self, name: str, call: OverCall, parts: _Parts, kind: pa.DataType) -> WindowCall:
        types = [self.inputs.types[draft.sql] for draft in parts.order]
        frame = bind_frame(call.frame, types)
        if call.function in {RowFunction.LAG, RowFunction.LEAD}:
            frame = offset_frame(call.number * (-1 if call.function == RowFunction.LAG else 1))
        return WindowCall(
            name,
            call.function,
            None if parts.argument is None else self._place(parts.argument),
            kind,
            frame,
            call.number,
            None if parts.default is None else self._place(parts.default),
            call.text,
        )


def _project(parts: OverParts, read: Mapping[ColumnRef, OutputColumn], node: Node) -> Project:
    """Return the select list and QUALIFY over rows with the values of calls."""
    names = {ref: ColumnRef(0, column.name) for ref, column in read.items()}
    values = {
        ref: ColumnRef(0, ref.column)
        for expression in parts.expressions
        for ref in expression.references
        if ref not in names
    }
    names.update(values)
    where = tuple(renamed_predicate(predicate, names) for predicate in parts.qualify)
    outputs = tuple(
        OutputColumn(output.name, renamed(output.expression, names)) for output in parts.outputs
    )
    return Project(node, where, outputs)
