"""LEFT, RIGHT, FULL, SEMI, ANTI and ASOF JOIN: from the entries of FROM to nodes.

Joins are taken from left to right. Inner joins between two others stay one *block*, which becomes a
window join where it can. An outer join is the union of the inner join and of the rows without a
match (:class:`muntin.plan.semi_join.SemiJoin`), which have NULLs for the other side. So matches
come from the same window join as those of an inner join, and only keys are looked at for the rest.

With EMIT INSERTS, a row without a match is emitted when it leaves its window
(:class:`muntin.plan.outer_inserts.OuterInserts`).

ON and WHERE stay apart: a condition of ON that reads one side only is checked in the side that gets
NULLs, and decides on the preserved side only which rows match. A condition of WHERE moves below
joins that preserve all that it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from muntin.model.catalog import Catalog
from muntin.model.window import TimeWindow, Unbounded
from muntin.plan.column_rename import renamed, renamed_predicate
from muntin.plan.expression import (
    POSITION,
    ColumnRef,
    Expression,
    OutputColumn,
    Predicate,
    column_expression,
)
from muntin.plan.node import Node
from muntin.plan.nodes import Project, Scan, SetOperation, SetOperator
from muntin.plan.outer_inserts import Kept, OuterInserts
from muntin.plan.semi_join import KeyPair, SemiJoin
from muntin.sql.asof_joins import AsofForm, AsofSide, asof_join, asof_terms, tie_columns
from muntin.sql.from_joins import Entries, MakeJoin, combine_entries
from muntin.sql.join_conditions import is_within, key_of, references_of, without

OUTER = ("LEFT", "RIGHT", "FULL", "SEMI", "ANTI")
_TRUE = Expression("TRUE", (), pa.bool_())


def kind_of(join: str) -> str:
    """Return which rows without a match a join keeps; nothing for inner joins."""
    if "ASOF" in join.split():
        return "ASOF LEFT" if "LEFT" in join.split() else "ASOF"
    return next((kind for kind in OUTER if kind in join.split()), "")


@dataclass(frozen=True)
class FromJoins:
    """The joins of FROM: for each entry the words before it, and its conditions of ON.

    Entries from ``nested`` on are joined with all before them, commas or not.
    """

    words: Sequence[str]
    on: Sequence[tuple[Predicate, ...]]
    nested: int | None = None

    @property
    def is_outer(self) -> bool:
        """Return whether any join is an outer one."""
        return any(kind_of(words) for words in self.words)


@dataclass(frozen=True, eq=False)
class _Part:
    """Entries of FROM joined into one node; ``columns`` has the names of what is used above.

    ``block`` are the parts and entries that an inner join with others can take in place of the
    node, with their conditions.
    """

    node: Node
    places: frozenset[int]
    columns: dict[ColumnRef, str]
    block: _Block


@dataclass
class _Block:
    """Entries, by place, and parts that are joined by inner joins under conditions."""

    items: list[int | _Part] = field(default_factory=list)
    conditions: list[Predicate] = field(default_factory=list)

    @property
    def places(self) -> frozenset[int]:
        return frozenset().union(
            *(item.places if isinstance(item, _Part) else {item} for item in self.items)
        )

    def with_(self, other: _Block, conditions: Sequence[Predicate]) -> _Block:
        return _Block(
            [*self.items, *other.items], [*self.conditions, *other.conditions, *conditions]
        )


@dataclass
class OuterJoins:
    """Makes the nodes of one FROM; ``fresh`` gives the window joins of a tree other names.

    ``inserts``: an outer join that is the last one emits inserts only.
    """

    entries: Entries
    joins: FromJoins
    make_join: MakeJoin
    fresh: Callable[[Node], Node]
    inserts: bool = False
    catalog: Catalog = field(default_factory=Catalog)
    _waiting: list[Predicate] = field(default_factory=list)
    _shown: frozenset[ColumnRef] = frozenset()

    def bind(self, where: tuple[Predicate, ...], select: tuple[OutputColumn, ...]) -> Node:
        """Return the select over all entries."""
        self._waiting = [*where, *(one for some in self.joins.on for one in some)]
        self._shown = references_of([column.expression for column in select])
        rest = list(where)
        top, block = _Block(), _Block()
        for place, words in enumerate(self.joins.words):
            if place == self.joins.nested:
                top, block = _Block(), top.with_(block, ())
            if words in {"", ","}:
                top = top.with_(block, ())
                block = _Block([place])
            elif kind := kind_of(words):
                movable = [] if self._is_extended(place) else rest
                part = self._outer(kind, block, place, movable)
                self._done(block.conditions)
                block = _Block([part])
            else:
                block = block.with_(_Block([place]), self.joins.on[place])
        top = top.with_(block, rest)
        return self._combine(top, select)

    def _is_extended(self, place: int) -> bool:
        """Return whether a later join adds rows with NULLs in place of what is joined so far."""
        for words in self.joins.words[place + 1 :]:
            if words in {"", ","}:
                return False
            if kind_of(words) in {"RIGHT", "FULL"}:
                return True
        return False

    def _outer(self, kind: str, block: _Block, place: int, rest: list[Predicate]) -> _Part:
        """Return a block joined with the next entry; conditions of WHERE that move leave rest."""
        on = list(self.joins.on[place])
        other = _Block([place])
        if kind not in {"RIGHT", "FULL"}:
            moved = [one for one in rest if is_within(one, block.places)]
            rest[:] = without(rest, moved)
            block = block.with_(_Block(), moved)
            self._done(moved)
        if kind == "RIGHT":
            block, other, kind = other, block, "LEFT"
        if kind != "FULL":
            alone = [one for one in on if is_within(one, other.places)]
            on = without(on, alone)
            other = other.with_(_Block(), alone)
            self._done(alone)
        last = place == len(self.joins.words) - 1
        if kind in {"ASOF", "ASOF LEFT"}:
            final = last and "," not in self.joins.words
            form = AsofForm(outer=kind == "ASOF LEFT", inserts=self.inserts and final)
            return self._nearest(block, other, on, form)
        if self.inserts and last and (part := self._inserted(kind, block, other, on)) is not None:
            return part
        if kind in {"SEMI", "ANTI"}:
            return self._matching(block, other, on, anti=kind == "ANTI")
        return self._extended(block, other, on, full=kind == "FULL")

    def _extended(self, left: _Block, right: _Block, on: list[Predicate], *, full: bool) -> _Part:
        """Return a left or full outer join: matches, and rows without one beside NULLs."""
        sides = [(left, right), (right, left)] if full else [(left, right)]
        alone = [self._matching(one, other, on, anti=True) for one, other in sides]
        self._done(on)
        inner = self._close(left.with_(right, on))
        node = inner.node
        for part in alone:
            node = SetOperation(SetOperator.UNION_ALL, node, _beside_nulls(part, inner))
        return _new_part(node, inner.places, inner.columns)

    def _nearest(self, left: _Block, right: _Block, on: list[Predicate], form: AsofForm) -> _Part:
        """Return an as-of join: left rows with the nearest right row."""
        terms = asof_terms(on, left.places, right.places)
        rows = self._close(left, self._wanted(left) | self._positions(left))
        places = self._positions(right)
        (place,) = right.places
        ties = tie_columns(place, self.entries.sources[place], self.catalog, places)
        others = self._close(right, self._wanted(right) | ties)
        self._done(on)
        shown = self._wanted(left), self._wanted(right)
        sides = (
            AsofSide(rows.node, rows.columns, shown[0].values(), self._positions(left).values()),
            AsofSide(others.node, others.columns, shown[1].values(), places.values()),
        )
        node = asof_join(sides, terms, form, list(ties.values()))
        return _new_part(node, rows.places | others.places, shown[0] | shown[1])

    def _inserted(
        self, kind: str, left: _Block, right: _Block, on: list[Predicate]
    ) -> _Part | None:
        """Return a join that emits inserts; None where rows have no place in their streams."""
        kept = Kept(kind.lower()) if kind in {"SEMI", "ANTI"} else Kept.OUTER
        sides = [left, right] if kind == "FULL" else [left]
        if not all(self._has_ends(side) for side in (left, right)):
            return None
        if kept is Kept.OUTER:  # the rows of stored tables never leave
            sides = [side for side in sides if not self._is_stored(side)]
        elif self._is_stored(left):
            return None
        self._done(on)
        matches = left.with_(right, on)
        shown = self._wanted(matches if kept is Kept.OUTER else left)
        identity = [
            {ColumnRef(place, POSITION): f"#p{place}" for place in sorted(side.places)}
            for side in sides
        ]
        rows = [
            self._close(
                side, {one: name for one, name in shown.items() if one.source in side.places} | own
            )
            for side, own in zip(sides, identity, strict=True)
        ]
        every = {one: name for own in identity for one, name in own.items()}
        found = self._close(matches, shown | every)
        others = [(left, right), (right, left)] if kind == "FULL" else [(left, right)]
        history = [join for side, other in others for join in self._history(side, other)]
        node = OuterInserts(
            found.node, tuple(one.node for one in rows), tuple(history), kept, len(shown)
        )
        return _new_part(node, found.places, shown)

    def _history(self, side: _Block, other: _Block) -> Iterator[Node]:
        """Yield what keeps rows of the other side as long as those they may have matched."""
        longest = max(map(_micros, self._streams(side)), default=0)
        for scan in self._streams(other):
            longer = replace(scan, window=TimeWindow(_micros(scan) + longest))
            first = scan.schema.field(0)
            column = column_expression(ColumnRef(0, first.name), first.type)
            yield self.make_join((longer,), ((), ()), (OutputColumn(first.name, column),))

    def _streams(self, block: _Block) -> list[Scan]:
        return [scan for place in block.places if not (scan := self.entries.sources[place]).stored]

    def _has_ends(self, block: _Block) -> bool:
        """Return whether a block is one of streams and tables whose rows leave after some time."""
        if any(isinstance(item, _Part) for item in block.items):
            return False
        windows = [scan.window for scan in self._streams(block)]
        return all(
            isinstance(one, TimeWindow) and not one.is_landmark and one.until is None
            for one in windows
        )

    def _is_stored(self, block: _Block) -> bool:
        return all(self.entries.sources[place].stored for place in block.places)

    def _matching(self, left: _Block, right: _Block, on: list[Predicate], *, anti: bool) -> _Part:
        """Return the rows of the left side that have a match, or with ``anti`` those without."""
        rows, others = self._close(left), self._close(right)
        keys, conditions, residual = [], [], []
        for one in on:
            if is_within(one, left.places) or not one.expression.sources:
                conditions.append(one.expression)
            elif (key := key_of(one, left.places, right.places)) is not None:
                keys.append(key)
            else:
                residual.append(one)
        if residual:
            node = self._matching_any(rows, left.with_(right, on), anti=anti)
        else:
            mine, theirs = _names(rows, 0), _names(others, 1)
            pairs = [
                KeyPair(renamed(one, mine), renamed(other, theirs)) for one, other in keys
            ] or [KeyPair(_TRUE, _TRUE)]
            tests = tuple(renamed(condition, mine) for condition in conditions)
            node = SemiJoin(
                self.fresh(rows.node), self.fresh(others.node), tuple(pairs), tests, anti=anti
            )
        return _new_part(node, rows.places, rows.columns)

    def _matching_any(self, rows: _Part, matches: _Block, *, anti: bool) -> SemiJoin:
        """Return the same where keys do not decide: rows that are among those that match."""
        found = self._close(matches, rows.columns)
        pairs = tuple(
            KeyPair(
                column_expression(ColumnRef(0, name.name), name.type),
                column_expression(ColumnRef(1, name.name), name.type),
            )
            for name in rows.node.schema
        )
        left, right = self.fresh(rows.node), self.fresh(found.node)
        return SemiJoin(left, right, pairs, anti=anti, nulls_match=True)

    # -- blocks ------------------------------------------------------------------------------------

    def _done(self, conditions: Sequence[Predicate]) -> None:
        """Note that conditions are checked, so that columns only they read are not passed on."""
        self._waiting = without(self._waiting, conditions)

    def _close(self, block: _Block, wanted: dict[ColumnRef, str] | None = None) -> _Part:
        """Return a block as one node with the columns that are used above it."""
        wanted = self._wanted(block) if wanted is None else wanted
        select = tuple(
            OutputColumn(name, column_expression(one, self._type(one)))
            for one, name in wanted.items()
        )
        return _Part(self._combine(block, select), block.places, wanted, block)

    def _wanted(self, block: _Block) -> dict[ColumnRef, str]:
        """Return the columns of a block that are used above it, with their names there."""
        waiting = without(self._waiting, block.conditions)
        used = self._shown | references_of([one.expression for one in waiting])
        own = sorted(one for one in used if one.source in block.places) or [self._any(block)]
        return {one: f"{self.entries.sources[one.source].alias}.{one.column}" for one in own}

    def _positions(self, block: _Block) -> dict[ColumnRef, str]:
        """Return the columns that identify the rows of a join of streams; others have none."""
        places = [item for item in block.items if not isinstance(item, _Part)]
        plain = len(places) == len(block.items)
        if not plain or self._is_stored(block) or any(self.entries.nodes[at] for at in places):
            return {}
        return {ColumnRef(place, POSITION): f"#p{place}" for place in sorted(places)}

    def _any(self, block: _Block) -> ColumnRef:
        """Return any column of a block."""
        first = block.items[0]
        if isinstance(first, _Part):
            return next(iter(first.columns))
        return ColumnRef(first, self.entries.sources[first].schema.names[0])

    def _type(self, reference: ColumnRef) -> pa.DataType:
        if reference.column == POSITION:
            return pa.int64()
        return self.entries.sources[reference.source].schema.field(reference.column).type

    def _combine(self, block: _Block, select: tuple[OutputColumn, ...]) -> Node:
        """Return the inner join of a block under a select list."""
        names: dict[ColumnRef, ColumnRef] = {}
        sources: list[Scan] = []
        nodes: list[Node | None] = []
        for number, item in enumerate(block.items):
            if isinstance(item, _Part):
                names |= _names(item, number)
                schema = item.node.schema
                sources.append(
                    Scan(f"#{number}", "", stored=True, window=Unbounded(), schema=schema)
                )
                nodes.append(self.fresh(item.node))
            else:
                scan = self.entries.sources[item]
                names |= {
                    ColumnRef(item, one): ColumnRef(number, one)
                    for one in (*scan.schema.names, POSITION)
                }
                sources.append(scan)
                node = self.entries.nodes[item]
                nodes.append(None if node is None else self.fresh(node))
        where = tuple(renamed_predicate(one, names) for one in block.conditions)
        shown = tuple(replace(one, expression=renamed(one.expression, names)) for one in select)
        if any(nodes) or all(source.stored for source in sources):
            entries = Entries(tuple(sources), nodes)
            return combine_entries(entries, ((), where), shown, self.make_join)
        return self.make_join(tuple(sources), ((), where), shown)


def _micros(scan: Scan) -> int:
    assert isinstance(scan.window, TimeWindow), "the rows of the stream leave after some time"
    return scan.window.micros


def _new_part(node: Node, places: frozenset[int], columns: dict[ColumnRef, str]) -> _Part:
    """Return a part that inner joins take as it is."""
    part = _Part(node, places, columns, _Block())
    part.block.items.append(part)
    return part


def _beside_nulls(part: _Part, inner: _Part) -> Project:
    """Return rows with NULLs for the columns of the other side, in the order of the inner join."""
    columns = []
    for (reference, name), kind in zip(inner.columns.items(), inner.node.schema.types, strict=True):
        own = part.columns.get(reference)
        value = (
            Expression("NULL", (), kind)
            if own is None
            else column_expression(ColumnRef(0, own), kind)
        )
        columns.append(OutputColumn(name, value))
    return Project(part.node, (), tuple(columns))


def _names(part: _Part, number: int) -> dict[ColumnRef, ColumnRef]:
    return {one: ColumnRef(number, name) for one, name in part.columns.items()}
