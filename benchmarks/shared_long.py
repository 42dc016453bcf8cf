"""The steady state of [Hammad03, section 5]: 100,000 rows instead of the 6,000 of the other runs.

The paper fills one largest window and then measures 100,000 rows. The runs of
:mod:`benchmarks.shared_runs` fill it too and measure fewer rows, since each is repeated until MQT
differs clearly from the others. Here the two lengths are compared on the clock of the simulation,
on which there is no noise.
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.report import Claim, Figure
from benchmarks.shared_runs import BUCKETS, SEVEN, Scale
from benchmarks.shared_workload import (
    SCHEDULERS,
    WINDOWS,
    Sharing,
    Streams,
    Times,
    run_together,
    service_time,
)

LOAD = 0.8


def compare_lengths(name: str, scale: Scale) -> dict[str, Figure]:
    """Return MQT over the other schedulers in a short and in a long run, over some windows."""
    sharing = Sharing(WINDOWS[name], SEVEN, "hash", BUCKETS["hash"])
    short = Streams(scale.rates["hash"], scale.rows["hash"])
    second = service_time(sharing, replace(short, rows=scale.trial)) * 2 * short.rate / LOAD
    found: dict[str, Figure] = {"experiment": "steady state", "case": name, "load": LOAD}
    for streams in (short, replace(short, rows=scale.steady)):
        times = run_together(sharing, streams, second, SCHEDULERS)
        found |= {
            f"{streams.rows} rows, MQT/{other.upper()}": _ratio(times, other)
            for other in ("lwo", "swf")
        }
    return found


def _ratio(times: dict[str, Times], other: str) -> float:
    return round(times["mqt"].by_query / times[other].by_query, 3)


def claims_of_lengths(found: list[dict[str, Figure]], scale: Scale) -> list[Claim]:
    """Return the claim that MQT is best in long runs too."""
    long = [
        float(one[f"{scale.steady} rows, MQT/{other}"]) for one in found for other in ("LWO", "SWF")
    ]
    text = f"MQT over the better of LWO and SWF, simulated, {scale.steady:,} rows in steady state"
    return [Claim(f"{text}, largest of {len(found)}", max(long), 1.0)]
