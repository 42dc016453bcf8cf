"""Which column a name means, given the entries of FROM that can be seen from where it stands."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from muntin.errors import SqlError
from muntin.model.formats import did_you_mean
from muntin.plan.expression import ColumnRef, quote
from muntin.plan.nodes import Scan
from muntin.sql.lexer import Tokens
from muntin.sql.syntax import ColumnUse

_SHOWN = 30


class MergedColumn(NamedTuple):
    """A column that USING or NATURAL merges into one to its left, and what that one then is."""

    left: ColumnRef
    right: ColumnRef
    value: tuple[ColumnRef, ...]


@dataclass(frozen=True)
class NameScope:
    """The sources of a query as seen from one of its expressions.

    WHERE and the select list see them all. ON sees those up to its own entry of FROM (``end``), and
    prefers for names without alias those since the last comma (``start``). The right column of a
    USING is ``merged`` into the left one and is found only under its alias. ``outputs`` are the
    names of the select list. ``using`` says what merged columns are: a RIGHT JOIN has those of its
    right side, a FULL JOIN the first that is not NULL. The columns of ``hidden`` entries, of which
    a SEMI or ANTI JOIN keeps none, are found only in its own ON.

    ``around`` is the scope of the query that a sub-select stands in. If it is ``correlated``, the
    last sources are those of that scope.
    """

    sources: tuple[Scan, ...]
    end: int
    start: int = 0
    merged: frozenset[ColumnRef] = frozenset()
    outputs: frozenset[str] = frozenset()
    hidden: frozenset[int] = frozenset()
    around: NameScope | None = None
    correlated: bool = False
    using: tuple[MergedColumn, ...] = ()

    @cached_property
    def _columns(self) -> list[dict[str, str]]:
        """Return the columns of each source by their folded names; of two, the first."""
        schemas = [source.schema.names for source in self.sources]
        return [{name.casefold(): name for name in reversed(names)} for names in schemas]

    def resolve(self, use: ColumnUse, tokens: Tokens) -> tuple[ColumnRef, int]:
        """Return the column that is meant, and how many of the names it took to say so.

        The rest are fields inside it.
        """
        first = use.names[0]
        source = self.find(first) if len(use.names) > 1 else None
        if source is not None:
            column = self._columns[source].get(use.names[1].casefold())
            if column is not None:
                return ColumnRef(source, column), 2
        found = self._bare(first, range(self.start, self.end)) or self._bare(
            first, range(self.start)
        )
        if len(found) == 1:
            return found[0], 1
        if found:
            candidates = " or ".join(self.show(reference) for reference in found)
            raise tokens.error(
                use.offsets[0], f"the column {first!r} is ambiguous", f"Write {candidates}"
            )
        if source is not None:
            raise self._no_column(source, use, tokens)
        if self.around is not None and self.around.knows(use):
            return self._resolve_around(self.around, use, tokens)
        raise self._unknown(use, tokens)

    def knows(self, use: ColumnUse) -> bool:
        """Return whether a name is that of a column or of an entry, here or further around."""
        bare = self._bare(use.names[0], range(self.end))
        known = bool(bare) or (len(use.names) > 1 and self.find(use.names[0]) is not None)
        return known or (self.around is not None and self.around.knows(use))

    def _resolve_around(
        self, around: NameScope, use: ColumnUse, tokens: Tokens
    ) -> tuple[ColumnRef, int]:
        """Return a column of the query around a sub-select."""
        reference, consumed = around.resolve(use, tokens)
        if not self.correlated:
            fact = f"{'.'.join(use.names)} is a column of the query around this select"
            hint = "It can stand only in the WHERE of a sub-select of that query's expressions"
            raise tokens.error(use.offsets[0], fact, hint)
        _, columns = around.value_of(reference, consumed)
        if len(columns) > 1:
            fact = f"{use.names[0]} is a column that a FULL JOIN around this select merges"
            hint = f"Write {' or '.join(around.show(one) for one in columns)}"
            raise tokens.error(use.offsets[0], fact, hint)
        reference = columns[0]
        first = len(self.sources) - len(around.sources)
        return ColumnRef(first + reference.source, reference.column), consumed

    def find(self, alias: str) -> int | None:
        """Return the place in FROM of the source that goes by that name."""
        wanted = alias.casefold()
        return next(
            (
                place
                for place in range(self.end)
                if self.sources[place].alias.casefold() == wanted and place not in self.hidden
            ),
            None,
        )

    def columns(self) -> list[ColumnRef]:
        """Return the columns that ``*`` stands for."""
        every = (
            ColumnRef(place, name)
            for place, source in enumerate(self.sources)
            if place not in self.hidden
            for name in source.schema.names
        )
        return [reference for reference in every if reference not in self.merged]

    def value_of(
        self, reference: ColumnRef, consumed: int = 1
    ) -> tuple[str, tuple[ColumnRef, ...]]:
        """Return the text of a column and the columns in it, given how many names it took.

        One that USING merged is named without an alias.
        """
        merged = [
            one.value
            for one in self.using
            if consumed == 1 and one.left == reference and one.right.source < self.end
        ]
        columns = merged[-1] if merged else (reference,)
        texts = ", ".join(quote(one.flat) for one in columns)
        return (texts if len(columns) == 1 else f"COALESCE({texts})"), columns

    def show(self, reference: ColumnRef) -> str:
        """Return the column as users write it."""
        return f"{self.sources[reference.source].alias}.{reference.column}"

    def _bare(self, name: str, places: Iterable[int]) -> list[ColumnRef]:
        folded = name.casefold()
        places = (place for place in places if place not in self.hidden)
        columns = ((place, self._columns[place].get(folded)) for place in places)
        references = [ColumnRef(place, column) for place, column in columns if column is not None]
        return [reference for reference in references if reference not in self.merged]

    def _no_column(self, source: int, use: ColumnUse, tokens: Tokens) -> SqlError:
        names = self.sources[source].schema.names
        fact = f"{describe(self.sources[source])} has no column {use.names[1]!r}"
        return tokens.error(
            use.offsets[1], fact, f"{guess_name(use.names[1], names)}It has {list_names(names)}"
        )

    def _unknown(self, use: ColumnUse, tokens: Tokens) -> SqlError:
        name, offset = use.names[0], use.offsets[0]
        aliases = [source.alias for source in self.sources]
        if len(use.names) == 1:
            return self._unknown_column(name, offset, tokens)
        if name.casefold() in {alias.casefold() for alias in aliases[self.end :]}:
            return tokens.error(
                offset,
                f"{name} comes only later in FROM",
                f"Move the condition to WHERE or to the ON of {name}",
            )
        if name.casefold() in {self.sources[place].alias.casefold() for place in self.hidden}:
            return tokens.error(
                offset,
                f"{name} cannot be seen here: SEMI and ANTI JOIN keep no columns of it",
                f"Use {name} in the ON of its join, or write LEFT JOIN",
            )
        hidden = next(
            (source for source in self.sources if source.relation.casefold() == name.casefold()),
            None,
        )
        if hidden is not None:
            return tokens.error(
                offset,
                f"{name} goes by the name {hidden.alias} here",
                f"Write {hidden.alias}.{use.names[1]}",
            )
        return tokens.error(
            offset,
            f"there is no {name!r} in FROM",
            f"{guess_name(name, aliases)}FROM has {list_names(aliases)}",
        )

    def _unknown_column(self, name: str, offset: int, tokens: Tokens) -> SqlError:
        if name.casefold() in self.outputs:
            hint = f"{name} is a name of the select list; write the expression itself"
            return tokens.error(offset, f"there is no column {name!r} in FROM", hint)
        near = self.sources[: self.end]
        names = list(dict.fromkeys(column for source in near for column in source.schema.names))
        relations = ", ".join(describe(source) for source in near)
        return tokens.error(
            offset,
            f"{relations} has no column {name!r}",
            f"{guess_name(name, names)}The columns are {list_names(names)}",
        )


def describe(source: Scan) -> str:
    """Return the source with its kind and its alias, ``stream Temperature A``."""
    alias = "" if source.alias.casefold() == source.relation.casefold() else f" {source.alias}"
    return f"{'table' if source.stored else 'stream'} {source.relation}{alias}"


def guess_name(name: str, known: Iterable[str]) -> str:
    """Return the question whether the nearest known name was meant, if there is one near."""
    question = did_you_mean(name, known)
    return question and f"{question} "


def list_names(names: list[str]) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
