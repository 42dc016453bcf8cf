"""The events of NEXMark: persons, auctions and bids of an online auction, as Arrow tables.

Of every 50 events one is a new person, three are new auctions and 46 are bids. Half of the bids go
to a *hot* auction, the first of the newest hundred; three quarters come from a hot bidder, the
second of the newest hundred persons; and the first of these sells three quarters of the auctions.
The others refer to one of the newest auctions or persons, or to one of the next few, which is why
a join must wait in both directions.

What an event contains depends on its number and the seed alone, through a hash of both. So the
same events come however they are cut into chunks, and any part can be generated without the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.nexmark.texts import Texts

PERSONS, AUCTIONS, BIDS = 1, 3, 46
EPOCH = PERSONS + AUCTIONS + BIDS
"""Events after which the kinds repeat: the persons first, then the auctions, then the bids."""
FIRST_ID = 1_000
FIRST_CATEGORY, CATEGORIES = 10, 5
HOT = 100
"""Every so many persons and auctions others become hot."""
IN_FLIGHT = 100
"""Auctions that bids refer to, and that are open on average."""
ACTIVE = 1_000
"""Persons that bid and sell."""
LEAD = 10
"""References go to persons and auctions up to this many ahead."""
START = 1_767_225_600_000_000
"""The time of the first event: the beginning of 2026."""
CITIES = (
    "Phoenix",
    "Los Angeles",
    "San Francisco",
    "Boise",
    "Portland",
    "Bend",
    "Redmond",
    "Seattle",
    "Kent",
    "Cheyenne",
)
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
_FIRST_NAMES = ("Ada", "Ben", "Cleo", "Dora", "Emil", "Fay", "Gus", "Hana", "Ivo", "June", "Karl")
_LAST_NAMES = ("Adler", "Brook", "Clay", "Dunn", "Ernst", "Frost", "Grant", "Holm", "Irving")
_PERSON_BYTES, _AUCTION_BYTES, _BID_BYTES = 200, 500, 100
_TIMES = pa.timestamp("us")

Numbers: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Load:
    """Which events there are.

    Parameters
    ----------
    rate
        Events per second of event time.
    start
        The time of the first event, in microseconds.
    step
        Times are multiples of this many microseconds; several events can have the same.
    seed
        Of everything that is drawn.
    """

    rate: int = 10_000
    start: int = START
    step: int = 1_000
    seed: int = 1

    def times(self, numbers: Numbers) -> Numbers:
        """Return the times of events, in microseconds."""
        return self.start + numbers * 1_000_000 // self.rate // self.step * self.step


class Events(NamedTuple):
    """A chunk of events, each kind in order of time."""

    person: pa.Table
    auction: pa.Table
    bid: pa.Table


def chunks(load: Load, count: int, size: int = 100_000) -> Iterator[Events]:
    """Return the first ``count`` events in chunks of ``size``."""
    for first in range(0, count, size):
        yield events(load, first, min(first + size, count))


def events(load: Load, first: int, end: int) -> Events:
    """Return the events from number ``first`` up to, but not including, ``end``."""
    numbers = np.arange(first, end, dtype=np.int64)
    places = numbers % EPOCH
    is_person = places < PERSONS
    is_bid = places >= PERSONS + AUCTIONS
    return Events(
        _persons(load, numbers[is_person]),
        _auctions(load, numbers[~is_person & ~is_bid]),
        _bids(load, numbers[is_bid]),
    )


def last_person(numbers: Numbers) -> Numbers:
    """Return the newest person at each event, counted from 0."""
    return numbers // EPOCH * PERSONS + np.minimum(numbers % EPOCH, PERSONS - 1)


def last_auction(numbers: Numbers) -> Numbers:
    """Return the newest auction at each event that is no person, counted from 0."""
    places = np.minimum(numbers % EPOCH - PERSONS, AUCTIONS - 1)
    return numbers // EPOCH * AUCTIONS + places


class _Draws:
    """Random numbers of some events: a new column at each call."""

    def __init__(self, load: Load, numbers: Numbers) -> None:
        self._load, self._numbers, self._column = load, numbers, 0

    def below(self, limit: int | Numbers) -> Numbers:
        """Return whole numbers from 0 up to, but not including, the limit."""
        return (self.fractions() * limit).astype(np.int64)

    def fractions(self) -> npt.NDArray[np.float64]:
        """Return numbers from 0 up to, but not including, 1."""
        self._column += 1
        salt = np.uint64((self._load.seed * 1_000 + self._column) * 0x9E3779B97F4A7C15 % 2**64)
        bits = _mixed(self._numbers.astype(np.uint64) ^ _mixed(salt)) >> np.uint64(11)
        return bits.astype(np.float64) * 2.0**-53

    def prices(self) -> Numbers:
        """Return prices in cents, from 100 to 100,000,000, their logarithms uniform."""
        return np.rint(10.0 ** (self.fractions() * 6) * 100).astype(np.int64)

    def persons(self) -> Numbers:
        """Return active persons, or some that come next, counted from 0."""
        newest = last_person(self._numbers) + 1
        active = np.minimum(newest, ACTIVE)
        return newest - active + self.below(active + LEAD)


def _mixed(values: npt.NDArray[np.uint64] | np.uint64) -> npt.NDArray[np.uint64]:
    """Return 64 bits, each of which depends on all bits of the value: the end of SplitMix64."""
    mixed = np.atleast_1d(values) + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _persons(load: Load, numbers: Numbers) -> pa.Table:
    draw = _Draws(load, numbers)
    texts = Texts(len(numbers), draw.below)
    name = texts.joined([texts.one_of(_FIRST_NAMES), texts.one_of(_LAST_NAMES)], " ")
    email = texts.joined([texts.word(3, 7), texts.word(3, 5)], "@")
    columns = {
        "name": name,
        "email_address": pc.binary_join_element_wise(email, ".example", ""),
        "credit_card": texts.joined([texts.digits(4) for _ in range(4)], " "),
        "city": texts.one_of(CITIES),
        "state": texts.one_of(STATES),
    }
    return pa.table(
        {
            "id": FIRST_ID + last_person(numbers),
            **columns,
            "date_time": pa.array(load.times(numbers)).cast(_TIMES),
            "extra": texts.filler(_PERSON_BYTES, columns.values(), 8),
        }
    )


def _auctions(load: Load, numbers: Numbers) -> pa.Table:
    draw = _Draws(load, numbers)
    texts = Texts(len(numbers), draw.below)
    newest = last_person(numbers)
    seller = np.where(draw.below(4) > 0, newest // HOT * HOT, draw.persons())
    initial = draw.prices()
    times = load.times(numbers)
    open_events = IN_FLIGHT * EPOCH // AUCTIONS
    longest = 2 * open_events * 1_000_000 // load.rate // load.step
    columns = {"item_name": texts.sentence(3, 20), "description": texts.sentence(3, 100)}
    return pa.table(
        {
            "id": FIRST_ID + last_auction(numbers),
            **columns,
            "initial_bid": initial,
            "reserve": initial + draw.prices(),
            "date_time": pa.array(times).cast(_TIMES),
            "expires": pa.array(times + (1 + draw.below(max(longest, 1))) * load.step).cast(_TIMES),
            "seller": FIRST_ID + seller,
            "category": FIRST_CATEGORY + draw.below(CATEGORIES),
            "extra": texts.filler(_AUCTION_BYTES, columns.values(), 48),
        }
    )


def _bids(load: Load, numbers: Numbers) -> pa.Table:
    draw = _Draws(load, numbers)
    texts = Texts(len(numbers), draw.below)
    newest = last_auction(numbers)
    oldest = np.maximum(newest - IN_FLIGHT, 0)
    auction = np.where(
        draw.below(2) > 0, newest // HOT * HOT, oldest + draw.below(newest - oldest + 1 + LEAD)
    )
    bidder = np.where(draw.below(4) > 0, last_person(numbers) // HOT * HOT + 1, draw.persons())
    channel, url = texts.channels()
    return pa.table(
        {
            "auction": FIRST_ID + auction,
            "bidder": FIRST_ID + bidder,
            "price": draw.prices(),
            "channel": channel,
            "url": url,
            "date_time": pa.array(load.times(numbers)).cast(_TIMES),
            "extra": texts.filler(_BID_BYTES, (), 32),
        }
    )
