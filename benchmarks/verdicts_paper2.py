"""[HammadTR, section 6], sliding-window queries, against ``python -m benchmarks pipelines``."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from benchmarks.verdicts import (
    Document,
    Experiment,
    Outcome,
    between,
    claimed,
    counted,
    graded,
    in_cases,
    percent,
    rows_with,
    short,
)

_INPUT, _PROBING, _NEGATIVE, _HYBRID = "Input Triggered", "Time Probing", "Negative Tuple", "Hybrid"
_OTHERS = (_PROBING, _NEGATIVE, _HYBRID)
_CHEAP = (
    "There a negative tuple costs each operator as much as a row. Here it is one more row of a "
    "batch for a compiled look-up, while Time Probing "
    "has every operator keep its rows sorted by their ends."
)
_TIE = 0.95
"""Up to here a ratio of CPU times is below 1 by more than the usual noise."""
_TICK = (
    "Most of every delay is the wait for the next tick, 5 ms for an expiry, so the two differ by "
    "less than the noise."
)


def _figures(document: Document, experiment: str, figure: str) -> dict[str, Mapping[str, float]]:
    """Return a figure of an experiment, by case and strategy."""
    rows = rows_with(document["rows"], experiment=experiment)
    cases = dict.fromkeys(str(row["case"]) for row in rows)
    return {
        case: {row["strategy"]: float(row[figure]) for row in rows if str(row["case"]) == case}
        for case in cases
    }


def _late(document: Document) -> Outcome:
    ratios = [
        delays[_INPUT] / max(delays[name] for name in _OTHERS)
        for figure in ("average ms", "longest ms")
        for delays in _figures(document, "queries", figure).values()
    ]
    text = (
        f"average and longest delay {between(ratios)} times that of the latest of the three others"
    )
    return graded(text, holds=min(ratios) >= 10, direction=min(ratios) > 1)


def _alike(document: Document) -> Outcome:
    spreads = [
        max(delays[name] for name in _OTHERS) / min(delays[name] for name in _OTHERS)
        for delays in _figures(document, "queries", "average ms").values()
    ]
    return graded(
        f"the latest over the earliest of them {between(spreads)}",
        holds=max(spreads) <= 1.5,
        direction=max(spreads) <= 2,
    )


def _ranked(document: Document) -> Outcome:
    delays = _figures(document, "queries", "average ms").values()
    kept = [one[_PROBING] <= one[_HYBRID] <= one[_NEGATIVE] for one in delays]
    first = [one[_PROBING] <= min(one[_HYBRID], one[_NEGATIVE]) for one in delays]
    over = [one[_PROBING] / min(one[_HYBRID], one[_NEGATIVE]) for one in delays]
    return in_cases(
        kept,
        f"Time Probing is earliest for {counted(first)} queries; {between(over)} of the better of "
        "the two others",
    )


def _rates(document: Document) -> Outcome:
    kept, gains = [], []
    for query in ("Q3", "Q4"):
        delays = _figures(document, f"rates, {query}", "average ms")
        slow, fast = delays[min(delays, key=float)], delays[max(delays, key=float)]
        gains.append(slow[_INPUT] / fast[_INPUT])
        kept += [
            gains[-1] > 1,
            *(one[_INPUT] > max(one[name] for name in _OTHERS) for one in delays.values()),
        ]
    text = (
        f"from 5 to 40 rows per second its delay falls by factors of {short(gains[0])} (Q3) and "
        f"{short(gains[1])} (Q4), above all others"
    )
    return in_cases(kept, text)


def _by_stores(document: Document) -> dict[str, float]:
    """Return the same gain of Q3 for other numbers of stores, as far as the run has them."""
    experiments = dict.fromkeys(str(row["experiment"]) for row in document["rows"])
    found = {}
    for experiment in experiments:
        if experiment.startswith("rates, Q3, "):
            delays = _figures(document, experiment, "average ms")
            known = {rate: late[_INPUT] for rate, late in delays.items() if _INPUT in late}
            if len(known) > 1:
                gain = known[min(known, key=float)] / known[max(known, key=float)]
                found[experiment.removeprefix("rates, Q3, ")] = gain
    return found


def _distinct(document: Document) -> Outcome:
    gains = {}
    for query in ("Q3", "Q4"):
        delays = _figures(document, f"rates, {query}", "average ms")
        gains[query] = (
            delays[min(delays, key=float)][_INPUT] / delays[max(delays, key=float)][_INPUT]
        )
    text = f"gain by eight times the rate: {short(gains['Q3'])} for Q3, {short(gains['Q4'])} for Q4"
    varied = _by_stores(document)
    beside = ", ".join(f"{short(gain)} with {number}" for number, gain in varied.items())
    text += f"; Q3 by stores: {beside}" if varied else "; other numbers of stores: in the next run"
    return graded(text, holds=gains["Q3"] < gains["Q4"] / 2, direction=gains["Q3"] < gains["Q4"])


def _depth(document: Document) -> Outcome:
    delays = _figures(document, "depth, Q2", "average ms")
    line = [delays[case][_INPUT] for case in sorted(delays, key=float)]
    kept = [one < other for one, other in pairwise(line)]
    kept += [one[_INPUT] > max(one[name] for name in _OTHERS) for one in delays.values()]
    return in_cases(
        kept,
        f"Input Triggered from {short(line[0])} ms with two streams to {short(line[-1])} ms with "
        "five",
    )


def _depth_hybrid(document: Document) -> Outcome:
    delays = _figures(document, "depth, Q2", "average ms").values()
    kept = [one[_HYBRID] <= one[_NEGATIVE] for one in delays]
    over = [one[_HYBRID] / one[_NEGATIVE] for one in delays]
    return in_cases(
        kept,
        f"Hybrid is earlier in {counted(kept)} depths; {between(over)} of Negative Tuple's delay",
    )


def _selectivity(document: Document) -> Outcome:
    delays = _figures(document, "selectivity, Q1", "average ms")
    line = [delays[case] for case in sorted(delays, key=float)]
    falls = all(one[_INPUT] > other[_INPUT] for one, other in pairwise(line))
    last = line[-1][_INPUT] / max(line[-1][name] for name in _OTHERS)
    text = (
        f"Input Triggered from {short(line[0][_INPUT])} ms to {short(line[-1][_INPUT])} ms; "
        f"without a filter {short(last)} times the others"
    )
    return graded(text, holds=falls and last <= 1.5, direction=falls)


def _load_q1(document: Document) -> Outcome:
    times = _figures(document, "full load", "CPU ms")["Q1"]
    text = (
        ", ".join(f"{name} {short(times[name] / times[_INPUT])}" for name in (_PROBING, _NEGATIVE))
        + " of Input Triggered's time"
    )
    return graded(
        text,
        holds=times[_INPUT] <= times[_PROBING] <= times[_NEGATIVE],
        direction=times[_INPUT] <= times[_NEGATIVE],
    )


def _load_q4(document: Document) -> Outcome:
    times = _figures(document, "full load", "CPU ms")["Q4"]
    rest = [times[name] for name in (_INPUT, _PROBING, _HYBRID)]
    text = (
        f"Negative Tuple {short(times[_NEGATIVE] / max(rest))} of the slowest other one's time; "
        "the "
        f"others differ by {percent(max(rest) / min(rest) - 1)}"
    )
    return graded(
        text, holds=times[_NEGATIVE] > 2 * max(rest), direction=times[_NEGATIVE] > max(rest)
    )


def _hybrid(document: Document) -> Outcome:
    over = claimed(document, "CPU time of Hybrid over that of Negative Tuple")
    times = _figures(document, "full load", "CPU ms")
    single = [times[query][_HYBRID] / times[query][_NEGATIVE] for query in ("Q2", "Q3", "Q4")]
    noise = {
        row["case"]: row["hybrid over negative, by run"] for row in document.get("details", ())
    }
    ranges = [noise[query] for query in ("Q2", "Q3", "Q4")] if noise else []
    told = f"by run {', '.join(map(between, ranges))}" if noise else "their noise: in the next run"
    text = (
        f"Q2, Q3, Q4, which join: {', '.join(short(ratio) for ratio in single)} of Negative "
        f"Tuple's time ({told}); all five together {short(over)}"
    )
    clear = max(max(some) for some in ranges) < 1 if noise else max(single) < _TIE
    return graded(text, holds=clear, direction=over < 1)


def _clock(document: Document) -> Outcome:
    rows = [row for row in document["rows"] if row["strategy"] == "Clock Triggered"]
    wrong = [int(row["wrong"]) for row in rows]
    if not wrong:
        raise LookupError("there is no Clock Triggered")
    return graded(
        f"{sum(wrong)} wrong results in {sum(row['results'] for row in rows):,}",
        holds=sum(wrong) > 0,
    )


EXPERIMENTS = (
    Experiment(
        2, "6.1, Figure 8", "Driven by input alone, results come very late", "pipelines", _late
    ),
    Experiment(
        2,
        "6.1, Figure 8",
        "Time Probing, Negative Tuple and Hybrid are about equally late",
        "pipelines",
        _alike,
    ),
    Experiment(
        2,
        "6.1, Figure 8",
        "Among them Time Probing is always earliest, Hybrid next, Negative Tuple last",
        "pipelines",
        _ranked,
        _CHEAP,
    ),
    Experiment(
        2,
        "6.1, Figure 9",
        "Higher rates bring Input Triggered nearer to the others, but it stays the latest",
        "pipelines",
        _rates,
    ),
    Experiment(
        2,
        "6.1, Figure 9",
        "Q3, in which DISTINCT lets few rows through, gains far less by higher rates than Q4",
        "pipelines",
        _distinct,
        "DISTINCT does hold rows back here too, but fewer of them. The paper does not say "
        "how many stores it has.",
    ),
    Experiment(
        2,
        "6.2, Figure 10",
        "The deeper the pipeline, the later Input Triggered",
        "pipelines",
        _depth,
    ),
    Experiment(
        2,
        "6.2, Figure 10",
        "Hybrid is earlier than Negative Tuple at every depth",
        "pipelines",
        _depth_hybrid,
        _TICK,
    ),
    Experiment(
        2,
        "6.3, Figure 11",
        "Delays fall when more rows pass a predicate; without a filter all strategies are alike",
        "pipelines",
        _selectivity,
        "What an expiry changes waits for a row under Input Triggered, half of a tenth of a second "
        "on average; the others take 3 ms.",
    ),
    Experiment(
        2,
        "6.4, Figure 12",
        "Q1 at full load: Input Triggered takes least time, Negative Tuple most",
        "pipelines",
        _load_q1,
        _CHEAP,
    ),
    Experiment(
        2,
        "6.4, Figure 12",
        "Q4 at full load: Negative Tuple takes far longer than the others, which are alike",
        "pipelines",
        _load_q4,
        _CHEAP,
    ),
    Experiment(
        2,
        "6, all",
        "Hybrid costs less than Negative Tuple where there are joins",
        "pipelines",
        _hybrid,
        "In small batches most time goes into what both do, so some ratios are within the noise.",
    ),
    Experiment(
        2,
        "2.3, Figure 1",
        "Driven by a clock that does not wait for rows, answers are wrong",
        "pipelines",
        _clock,
    ),
)
