"""Compare the plan that Muntin chooses with other join orders, for random joins.

A case is a join of three to six streams, on one common key or along a chain or star of different
keys, with rates, windows, numbers of values and skew drawn at random. Nothing is declared: the
query starts without statistics, under default settings, and has the time until the windows are
full, and as long again, to measure and to change its order. Then the remaining rows are timed:
200,000, because measuring continues at ever longer intervals, and a search takes as long as joining
some ten thousand rows. In fewer rows mainly these searches would be timed. The same rows go through
the same query with other orders, given by ``SET order``: all of up to four streams, 24 drawn at
random beyond. All are run twice; those that came out fastest, the one with the least work, and the
chosen plan are then run several times in turn, and their fastest runs are compared. Every run must
give the same results, and DuckDB the same number and sums.

An order of all streams is followed as far as the join graph allows: from each origin always to the
first stream in it that some bound stream has a key in common with. On a common key that is the
order itself. Orders that multiply rows for want of a key are not tried.

Cases are drawn until one is within reach of all orders (no partial result of more than
``_MOST_PARTIAL`` rows for a new row, and at most ``_MOST_RESULTS`` results for one), and one in
which the order matters: in expectation the most expensive order tried does at least
``_LEAST_SPREAD`` times the work of the cheapest. What a case is depends on its number and nothing
else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, pairwise, permutations
from statistics import median

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.report import Claim, Figure, Progress, Report
from benchmarks.workload import SECOND, Join, Workload, check_digest, fastest, run_in_turn

SHAPES = ("common", "chain", "star")
CASES = 30
_SEED = 2003
_MOST_ORDERS = 24
_MOST_PARTIAL = 200.0
_MOST_RESULTS = 3.0
_LEAST_RESULTS = 0.01
_LEAST_SPREAD = 2.0
_SCREENING = 2
_FINALISTS = 3
_CHOSEN = "chosen"
_FILLING = 6
_LEAST_FILLING = 12_000
_TIMED = 5
"""Batches that fill the windows, of at least this number of rows, and batches that are timed."""

Random = np.random.Generator
Shares = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Key:
    """A column that streams are joined on, with the distribution of its values in each stream.

    Value ``v`` comes with probability ``shares[v]``.
    """

    name: str
    shares: Mapping[int, Shares]


@dataclass(frozen=True)
class Case:
    """A random join. Streams are numbered; ``listed`` is their order in FROM."""

    shape: str
    rates: Sequence[float]
    windows: Sequence[float]
    keys: Sequence[Key]
    listed: Sequence[int]
    seed: int

    @property
    def size(self) -> int:
        """How many streams."""
        return len(self.rates)

    @property
    def held(self) -> list[float]:
        """Rows in each window."""
        return [rate * window for rate, window in zip(self.rates, self.windows, strict=True)]

    def connected(self, one: int, other: int) -> bool:
        """Return whether two streams have a key in common."""
        return any({one, other} <= key.shares.keys() for key in self.keys)

    def partners(self, origin: int, others: Sequence[int]) -> float:
        """Return the expected combinations of other streams' rows for a new row of the origin."""
        found = float(np.prod([self.held[other] for other in others]))
        for key in self.keys:
            there = [key.shares[stream] for stream in (origin, *others) if stream in key.shares]
            if len(there) > 1:
                shortest = min(map(len, there))
                found *= float(np.prod([shares[:shortest] for shares in there], axis=0).sum())
        return found

    def within_reach(self) -> bool:
        """Return whether every order can be run in reasonable time, and something comes out."""
        total = 0.0
        for origin in range(self.size):
            rest = [stream for stream in range(self.size) if stream != origin]
            for count in range(1, self.size):
                for others in combinations(rest, count):
                    if (
                        self._linked((origin, *others))
                        and self.partners(origin, others) > _MOST_PARTIAL
                    ):
                        return False
            total += self.rates[origin] * self.partners(origin, rest)
        return _LEAST_RESULTS <= total / sum(self.rates) <= _MOST_RESULTS

    def _linked(self, streams: Sequence[int]) -> bool:
        return len(follow(self, streams[0], streams)) == len(streams)


def draw_case(number: int) -> Case:
    """Return the case of a number, drawn until one is within reach."""
    for attempt in range(10_000):
        case = _draw(number, np.random.default_rng([_SEED, number, attempt]))
        if case.within_reach() and _spread(case) >= _LEAST_SPREAD:
            return case
    raise AssertionError(f"case {number} has too narrow limits")


def _draw(number: int, random: Random) -> Case:
    size = 3 + number // len(SHAPES) % 4
    shape = SHAPES[number % len(SHAPES)]
    rates = 10 ** random.uniform(0, 1.7, size)
    windows = 10 ** random.uniform(0, 1, size)
    held = rates * windows
    rates *= 10 ** random.uniform(3, 4) / held.sum()
    held = rates * windows
    keys = [
        Key(f"k{place}", {stream: _shares(random, held[list(streams)].max()) for stream in streams})
        for place, streams in enumerate(_joined(shape, size))
    ]
    return Case(
        shape, rates.tolist(), windows.tolist(), keys, random.permutation(size).tolist(), number
    )


def _joined(shape: str, size: int) -> list[tuple[int, ...]]:
    """For each key the streams that have it."""
    if shape == "common":
        return [tuple(range(size))]
    return [(place - 1 if shape == "chain" else 0, place) for place in range(1, size)]


def _shares(random: Random, rows: float) -> Shares:
    """Return the shares of the values of a key, with or without skew.

    There are as many values as the largest window has rows, up to five times more, or up to fifty
    times fewer.
    """
    values = max(int(rows * 10 ** random.uniform(-1.7, 0.7)), 2)
    weights = np.arange(1, values + 1, dtype=float) ** -random.choice([0.0, 0.0, 0.5, 0.8])
    shares: Shares = weights / weights.sum()
    return shares


def make_workload(case: Case, timed_rows: int) -> Workload:
    """Return the rows of a case; the windows are filled for at least twice the longest of them."""
    random = np.random.default_rng([_SEED, case.seed])
    total = sum(case.rates)
    filled = max(2 * max(case.windows), _LEAST_FILLING / total) * SECOND
    end = filled + timed_rows / total * SECOND
    ends = [*np.linspace(0, filled, _FILLING + 1)[1:], *np.linspace(filled, end, _TIMED + 1)[1:]]
    streams = {}
    for stream in case.listed:
        count = int(end / SECOND * case.rates[stream])
        columns = {
            key.name: random.choice(len(key.shares[stream]), count, p=key.shares[stream])
            for key in case.keys
            if stream in key.shares
        }
        times = np.sort(random.integers(0, int(end), count)).view("datetime64[us]")
        streams[f"S{stream}"] = pa.table({**columns, "ts": times})
    equal = [
        (f"S{one}.{key.name}", f"S{other}.{key.name}")
        for key in case.keys
        for one, other in pairwise(key.shares)
    ]
    windows = {f"S{stream}": int(case.windows[stream] * SECOND) for stream in case.listed}
    join = Join(windows, [f"{name}.ts" for name in windows], equal)
    return Workload(join, streams, [int(moment) for moment in ends], _FILLING)


def follow(case: Case, origin: int, order: Sequence[int]) -> list[int]:
    """Return the streams in walk order, as far as they are connected.

    From the origin, the next stream is always the first one of the order that is connected with an
    earlier one.
    """
    bound = [origin]
    while True:
        rest = (
            stream
            for stream in order
            if stream not in bound and any(case.connected(one, stream) for one in bound)
        )
        chosen = next(rest, None)
        if chosen is None:
            return bound
        bound.append(chosen)


def _orders(case: Case) -> list[tuple[int, ...]]:
    """Return all orders of up to four streams, some drawn at random of more."""
    every = list(permutations(range(case.size)))
    if len(every) <= _MOST_ORDERS:
        return every
    random = np.random.default_rng([_SEED, case.seed, 1])
    return [every[place] for place in random.choice(len(every), _MOST_ORDERS, replace=False)]


def orders_to_try(case: Case) -> list[str]:
    """Values of the setting ``order``, each once."""
    return list(dict.fromkeys(_setting(case, order) for order in _orders(case)))


def _setting(case: Case, order: Sequence[int]) -> str:
    def parts() -> Iterator[str]:
        for origin in range(case.size):
            bound = follow(case, origin, order)
            yield f"S{origin}: {', '.join(f'S{stream}' for stream in bound[1:])}"

    return "; ".join(parts())


def _spread(case: Case) -> float:
    """Return the expected work of the most expensive order over that of the cheapest."""
    partners = cache(lambda origin, others: case.partners(origin, sorted(others)))

    def work(order: Sequence[int]) -> float:
        total = 0.0
        for origin, rate in enumerate(case.rates):
            bound = follow(case, origin, order)[1:]
            found = [partners(origin, frozenset(bound[:count])) for count in range(len(bound) + 1)]
            total += rate * (sum(found[:-1]) + sum(found[1:]))
        return total

    costs = [work(order) for order in _orders(case)]
    return max(costs) / min(costs)


def measure(case: Case, timed_rows: int, repeats: int) -> dict[str, Figure]:
    """One line of the report."""
    workload = make_workload(case, timed_rows)
    settings = {_CHOSEN: {}, **{order: {"order": order} for order in orders_to_try(case)}}
    tried = run_in_turn(workload, settings, _SCREENING)
    chosen = tried[_CHOSEN][0]
    check_digest(workload, chosen.results)
    others = {order: fastest(done) for order, done in tried.items() if order != _CHOSEN}
    least = min(others, key=lambda order: others[order].work)
    finalists = [
        _CHOSEN,
        least,
        *sorted(others, key=lambda order: others[order].seconds)[:_FINALISTS],
    ]
    again = run_in_turn(workload, {name: settings[name] for name in finalists}, repeats)
    seconds = {name: fastest([*tried[name], *done]).seconds for name, done in again.items()}
    ours, best = seconds.pop(_CHOSEN), min(seconds.values())
    return {
        "case": f"{case.size} streams, {case.shape}",
        "rows": sum(map(len, workload.streams.values())),
        "results": len(chosen.results),
        "orders": len(others),
        "best ms": round(best * 1e3, 1),
        "chosen ms": round(ours * 1e3, 1),
        "ratio": round(ours / best, 2),
        "slowest over best": round(max(done.seconds for done in others.values()) / best, 2),
        "ratio of work": round(chosen.work / others[least].work, 2),
        "changes": len(chosen.switches),
        "late": chosen.late_switches,
    }


def bench_choice(progress: Progress, *, quick: bool = False) -> Report:
    """Measure all cases, or four of them."""
    numbers, timed_rows, repeats = (
        ([0, 4, 8, 9], 10_000, 3) if quick else (list(range(CASES)), 200_000, 3)
    )
    rows = []
    for number in numbers:
        case = draw_case(number)
        progress(f"case {number + 1} of {len(numbers)}: {case.size} streams, {case.shape}")
        rows.append(measure(case, timed_rows, repeats))
    ratios = [float(row["ratio"]) for row in rows]
    return Report(
        "choice",
        "How near to the best join order is the plan that is chosen by default?",
        rows,
        [
            Claim(
                "time of the chosen plan over the best of all orders tried, largest of all cases",
                max(ratios),
                1.3,
            ),
            Claim("the same, median of all cases", round(median(ratios), 3), 1.3),
        ],
    )
