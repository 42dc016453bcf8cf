"""The declaration of an aggregate function, and the state that its value is computed from.

State is kept per argument and group, and shared by all aggregates over that argument: the number of
values, exact sums, exact sums of squares, values in order. A function names the parts that it needs
(:data:`Need`). Values are computed for two states of each touched group, before and after the
changes of an instant, interleaved in one array.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from muntin.model.arrays import Integers, Mask, Reals


class ByValue:
    """State that depends on the values of a group alone."""

    by_time: ClassVar[bool] = False


class ByTime:
    """State that depends on the order in which rows arrived, which the rows below must carry."""

    by_time: ClassVar[bool] = True


class Keep(ByValue, StrEnum):
    """A sum that is kept per group, besides the number of values."""

    WHOLE_SUM = "whole_sum"
    REAL_SUM = "real_sum"
    REAL_SQUARES = "real_squares"


class RankKind(StrEnum):
    """A position among the ordered values of a group."""

    LEAST = "least"
    GREATEST = "greatest"
    LOWER = "lower"
    """The value at or below a fraction of the way through."""
    UPPER = "upper"
    """The value at or above it."""
    DISCRETE = "discrete"
    """The first value such that at least a fraction of all values is not above it."""


@dataclass(frozen=True)
class Rank(ByValue):
    """One of the ordered values of a group."""

    kind: RankKind
    fraction: Fraction = Fraction(1, 2)


class Edge(ByTime, StrEnum):
    """The value of the oldest or the newest row of a group."""

    OLDEST = "oldest"
    NEWEST = "newest"


@dataclass(frozen=True)
class Keyed(ByTime):
    """The value of the row with the least or greatest key; among equal keys, of the oldest row."""

    kind: RankKind


class Frequency(ByValue, StrEnum):
    """The most frequent value of a group; among equally frequent ones, the least."""

    MOST = "most"


class Listed(ByTime, StrEnum):
    """The values of all rows of a group, NULLs included."""

    BY_TIME = "by_time"


Picked: TypeAlias = Edge | Keyed | Frequency | Listed
"""State whose value the operator computes."""


class Pairs(ByValue, StrEnum):
    """Sums over the pairs of two arguments, rows with a NULL in either aside."""

    SUMS = "sums"


Need: TypeAlias = Keep | Rank | Picked | Pairs


class Arguments(StrEnum):
    """The arguments of a call."""

    ONE = "expression"
    OPTIONAL = "expression or *"
    WITH_FRACTION = "expression, fraction"
    WITH_KEY = "expression, key"
    PAIR = "y, x"
    WITH_SEPARATOR = "expression, 'separator'"


class PairSums(NamedTuple):
    """Exact sums over pairs, each in two parts: the rounded sum and the remainder."""

    y: Reals
    x: Reals
    yx: Reals
    yy: Reals
    xx: Reals


@dataclass(frozen=True)
class ArgumentSummary:
    """The state of an argument for some groups, before and after, interleaved.

    ``whole`` has sums of whole numbers in three words; ``reals`` and ``squares`` have sums in two
    parts, the rounded sum and the remainder. ``ranks`` has codes of values, which ``decode`` turns
    into values; ``picked`` has the values of single rows and lists; ``pairs`` has sums over two
    arguments. ``scale`` is that of a decimal argument.
    """

    counts: Integers
    whole: Integers | None = None
    reals: Reals | None = None
    squares: Reals | None = None
    ranks: Mapping[Rank, Integers] | None = None
    decode: Callable[[Integers], pa.Array] | None = None
    picked: Mapping[Picked, Result] | None = None
    scale: int = 0
    pairs: PairSums | None = None

    def rank(self, rank: Rank) -> Integers:
        """Return the codes of one of the ordered values."""
        assert self.ranks is not None, "the function needs it"
        return self.ranks[rank]

    def values(self, codes: Integers) -> pa.Array:
        """Return the values of codes."""
        assert self.decode is not None, "the function needs ordered values"
        return self.decode(codes)

    def pick(self, need: Picked) -> Result:
        """Return the values that the operator computed."""
        assert self.picked is not None, "the function needs it"
        return self.picked[need]


@dataclass(frozen=True)
class Result:
    """Values of an aggregate before and after, interleaved, and which groups changed."""

    values: pa.Array
    changed: Mask


@dataclass(frozen=True)
class Partial:
    """How an aggregate is computed from the results of disjoint parts of its rows."""

    parts: tuple[tuple[str, pa.DataType | None], ...]
    """The aggregates to compute of each part, as names of functions with their types; None
    stands for the type of this aggregate.
    """
    form: str = "{0}"
    """SQL over the merged parts, ``{0}``, ``{1}``, ..."""


@dataclass(frozen=True)
class AggregateFunction:
    """One aggregate function."""

    name: str
    """The name in DuckDB."""
    example: str
    """A call, for the documentation and the tests."""
    accepts: Callable[[pa.DataType], bool]
    """Whether the function takes an argument of a type."""
    needs: Callable[[pa.DataType, Fraction], tuple[Need, ...]]
    """The state of an argument of a type; the fraction is that of a quantile."""
    result: Callable[[ArgumentSummary, pa.DataType, Fraction], Result]
    """The values, from the state, the result type and the fraction."""
    aliases: tuple[str, ...] = ()
    """Other names."""
    within_group: str = ""
    """The name in the form ``name(fraction) WITHIN GROUP (ORDER BY expression)``."""
    arguments: Arguments = Arguments.ONE
    """The arguments of a call."""
    partial: Callable[[pa.DataType | None], Partial | None] = lambda _kind: None
    """How partial results over an argument of a type are merged; None if they cannot be."""
    merged_by: str = ""
    """The function that merges results over parts."""
    kept_as: str = ""
    """The aggregate to compute instead, of which ``form`` makes the value."""
    form: str = "{0}"
    """SQL over the value of ``kept_as``, and the separator as ``{1}``."""
    takes_distinct: bool = True
    """Whether a call may have DISTINCT; one of a function by time may not."""
    takes_filter: bool = True
    """Whether a call may have FILTER, which replaces the argument with NULL."""
    always_distinct: bool = False
    """Whether a value counts once per group, as with DISTINCT."""
    ignores_duplicates: bool = False
    """Whether DISTINCT makes no difference."""
    adds_up_distinct: bool = False
    """Whether results with DISTINCT add up over parts that share no value."""
    oracle: str = "{name}({distinct}{argument}{fraction})"
    """The call in DuckDB that defines the value; ``{order}`` are the columns that order rows by
    time.
    """

    @property
    def spellings(self) -> tuple[str, ...]:
        """All names under which users may call the function."""
        return (self.name, *self.aliases, *([self.within_group] if self.within_group else []))

    @property
    def by_time(self) -> bool:
        """Return whether the value depends on the order in which rows arrived."""
        return any(need.by_time for need in self.needs(pa.int64(), Fraction(1, 2)))


def differ(*columns: npt.NDArray[np.generic]) -> Mask:
    """Return a mask of the groups in which the value of a column changed."""
    masks = [column[0::2] != column[1::2] for column in columns]
    masks = [mask.any(axis=1) if mask.ndim > 1 else mask for mask in masks]
    changed: Mask = np.logical_or.reduce(masks)
    return changed


def masked(values: pa.Array, valid: Mask) -> pa.Array:
    """Return the values, NULL where they are not valid."""
    if valid.all():
        return values
    return pc.if_else(pa.array(valid), values, pa.scalar(None, values.type))


def real_result(numbers: Reals, valid: Mask) -> Result:
    """Return floating-point results, NULL where they are not valid."""
    numbers = np.where(valid, numbers, 0.0)
    return Result(pa.array(numbers, mask=~valid), differ(numbers.view(np.int64), valid))


def ranked_result(kept: ArgumentSummary, rank: Rank) -> Result:
    """Return one of the ordered values, NULL where there is none."""
    some, codes = kept.counts > 0, kept.rank(rank)
    return Result(masked(kept.values(codes), some), differ(some, codes))
