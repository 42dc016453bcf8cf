"""The benchmark of schedulers on little data: streams, clocks and report; times are not checked."""

from __future__ import annotations

import json
from itertools import islice
from unittest.mock import patch

import numpy as np
import pytest

from benchmarks import shared, shared_engine
from benchmarks.report import Figure
from benchmarks.shared import bench_shared
from benchmarks.shared_long import claims_of_lengths, compare_lengths
from benchmarks.shared_runs import FULL, QUICK, Case, Scale, cases, compare_alone, measure
from benchmarks.shared_workload import (
    SCHEDULERS,
    WINDOWS,
    Metronome,
    Sharing,
    Streams,
    Times,
    run,
    run_together,
    service_time,
)
from muntin.testing.simulated_join import Timing

SEVEN = (1,) * 7


def silent(_: str) -> None:
    """Ignore progress messages."""


# -- streams ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("burst", [1, 3])
def test_streams_have_a_largest_window_of_history_and_keep_their_rate(burst: float) -> None:
    streams = Streams(20, 4_000, burst=burst)
    for part in streams.rows_of(new=False):
        assert len(part.batch) == 20 * 600
        assert part.batch.times[0] >= 0
        assert part.batch.times[-1] < 600_000_000
    for part in streams.rows_of(new=True):
        assert (part.before, len(part.batch)) == (12_000, 2_000)
        assert 600_000_000 <= part.batch.times[0] <= part.batch.times[-1] < 700_000_000
        assert part.batch.times[-1] > 690_000_000


@pytest.mark.parametrize("burst", [1.0, 2.0, 5.0])
def test_bursts_are_as_large_as_expected(burst: float) -> None:
    times = Streams(100, 2, burst=burst).rows_of(new=False)[0].batch.times
    # Pareto with a mean of 5 has no variance: a few large bursts make much of the mean.
    assert len(times) / len(np.unique(times)) == pytest.approx(
        burst, rel=0.01 if burst == 1 else 0.3
    )


def test_arrivals_are_the_times_of_the_rows_at_the_length_of_a_second() -> None:
    streams = Streams(10, 200)
    times = (
        np.sort(np.concatenate([part.batch.times for part in streams.rows_of(new=True)]))
        - 600_000_000
    )
    assert streams.arrivals(5_000.0) == pytest.approx(times * 0.005, abs=1)
    together = Streams(10, 200, at_once=30).arrivals(1_000_000.0)
    assert [len(np.unique(together[start : start + 30])) for start in range(0, 200, 30)] == [1] * 7
    assert together[0] == times[29]
    assert together[-1] == times[-1]


# -- clocks ----------------------------------------------------------------------------------------


def test_response_times_are_averaged_over_queries_or_over_results() -> None:
    times = Times((3, 1))
    times.results[:], times.total[:] = (10, 30), (100, 3_000)
    assert times.means.tolist() == [10, 100]
    assert times.by_query == (3 * 10 + 100) / 4
    assert times.by_result == (3 * 100 + 3_000) / (3 * 10 + 30)


def test_the_simulation_has_the_requested_load_and_is_reproducible() -> None:
    sharing, streams = Sharing(WINDOWS["Uniform"], SEVEN), Streams(10, 4_000)
    second = service_time(sharing, streams) * 20 / 0.8
    once, again = (run_together(sharing, streams, second, SCHEDULERS) for _ in range(2))
    for name in SCHEDULERS:
        assert once[name].busy / once[name].span == pytest.approx(0.8, abs=0.01)
        assert once[name].means.tolist() == again[name].means.tolist()
    assert once["lwo"].results_held == 0 < once["mqt"].results_held
    assert once["lwo"].rows_stored == once["mqt"].rows_stored == pytest.approx(12_000, rel=0.05)


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("join", ["hash", "nested_loop"])
def test_without_overheads_mqt_is_best_for_all_windows_of_the_paper(name: str, join: str) -> None:
    sharing, streams = Sharing(WINDOWS[name], SEVEN, join), Streams(5, 3_000)
    second = service_time(sharing, streams) * 10 / 0.8
    times = run_together(sharing, streams, second, SCHEDULERS)
    assert times["mqt"].by_query < min(times["lwo"].by_query, times["swf"].by_query)
    assert times["mqt"].means[0] < 0.5 * times["lwo"].means[0]


def test_every_scheduler_gives_each_window_the_results_it_gets_alone() -> None:
    windows, streams = WINDOWS["Small-Large"], Streams(10, 2_000)
    metronome = Metronome(Sharing(windows, SEVEN), streams)
    found = run_together(Sharing(windows, SEVEN), streams, 1e6, SCHEDULERS, metronome)
    alone = [
        run_together(Sharing((window,), (1,)), streams, 1e6, ["lwo"], metronome)["lwo"]
        for window in windows
    ]
    assert all(
        found[name].results.tolist() == [int(times.results[0]) for times in alone]
        for name in SCHEDULERS
    )
    assert alone[0].results[0] > 0


def test_on_the_machines_clock_no_result_comes_before_its_row() -> None:
    sharing, streams = Sharing(WINDOWS["Uniform"], SEVEN), Streams(5, 1_000)
    for times in run_together(
        sharing, streams, 2e6, SCHEDULERS, Metronome(sharing, streams)
    ).values():
        assert (times.means > 0).all()
        assert (times.most >= times.means).all()
        assert 0 < times.busy < times.span


def test_a_clock_at_half_speed_makes_work_half_as_long() -> None:
    sharing, streams = Sharing(WINDOWS["Uniform"], SEVEN, "nested_loop"), Streams(10, 1_000)

    def busy(speed: float) -> int:
        timing = Timing(turn=500_000, speed=speed)
        *_, times = run(sharing.operator("mqt", streams), streams, 0.0, timing)
        return times.busy

    assert min(busy(0.1) for _ in range(3)) < 0.5 * min(busy(1.0) for _ in range(3))


def test_a_metronome_reports_plausible_speeds_for_any_number_of_beats() -> None:
    metronome = Metronome(Sharing(WINDOWS["Uniform"], SEVEN, "nested_loop"), Streams(5, 500))
    # These beats process the rows many times over.
    speeds = [metronome.speed() for _ in range(100)]
    assert min(speeds) > 0
    assert 0.3 < float(np.median(speeds)) < 3


# -- the report ------------------------------------------------------------------------------------


def test_the_experiments_are_the_papers() -> None:
    all_of_them = list(cases(FULL))
    assert len(all_of_them) == 4 + 4 + 4 + 5 + 7
    assert {sum(case.sharing.queries) for case in all_of_them if "30" in case.experiment} == {30}
    assert [case.streams.rate * 600 for case in all_of_them[3:5]] == [60_000, 18_000]
    assert [case.streams.burst for case in all_of_them if case.experiment == "bursts"] == [
        1,
        2,
        3,
        4,
        5,
    ]


def alone(name: str, scale: Scale) -> dict[str, Figure]:
    del scale
    return {
        "case": name,
        "w1 over alone, lwo": 9.0,
        "w1 over alone, swf": 1.5,
        "w1 over alone, mqt": 2.5 if name == "Uniform" else 1.0,
    }


def test_the_smallest_window_is_compared_with_its_query_alone() -> None:
    reported = compare_alone("Mostly-Small", QUICK)
    assert (reported["case"], reported["burst"]) == ("Mostly-Small", 50)
    assert 0 < float(reported["w1 over alone, swf"]) < float(reported["w1 over alone, lwo"])


def test_runs_as_long_as_the_papers_are_compared_with_short_ones() -> None:
    assert FULL.steady == 100_000
    found = compare_lengths("Uniform", QUICK)
    ratios = [
        found[f"{rows} rows, MQT/{other}"]
        for rows in (QUICK.rows["hash"], QUICK.steady)
        for other in ("LWO", "SWF")
    ]
    assert all(0 < float(ratio) <= 1 for ratio in ratios)
    (claim,) = claims_of_lengths([found], QUICK)
    assert claim.measured == max(ratios[2:])


def test_the_report_has_measured_beside_simulated_and_details_in_the_json_only() -> None:
    def few(scale: Scale) -> list[Case]:
        return list(islice(cases(scale), 3, 5))

    with patch.object(shared, "cases", few), patch.object(shared, "compare_alone", alone):
        report = bench_shared(silent, quick=True)
    assert [(row["experiment"], row["case"], row["load"]) for row in report.rows[:3]] == [
        ("windows, hash", "Small-Large", 0.5),
        ("windows, hash", "Small-Large", 0.8),
        ("windows, nested loop", "Uniform", 0.5),
    ]
    largest = max(max(float(row["MQT/LWO"]), float(row["MQT/SWF"])) for row in report.rows)
    assert report.claims[0].measured == pytest.approx(largest, abs=0.001)
    assert report.claims[1].holds
    reported = json.loads(report.to_json())
    assert len(reported["details"]) == len(report.rows) * 2 * len(SCHEDULERS) + 2 * len(WINDOWS) + 1
    assert [(claim.measured, claim.holds) for claim in report.claims[-6:-4]] == [
        (1.5, True),
        (2.5, False),
    ]
    assert len(reported["details"][0]["mean by window"]) == 7
    assert {"shared-windows", "shared-bursts", "shared-queries"} <= {
        plot.file for plot in report.plots
    }


def test_a_case_is_measured_at_every_load_under_every_scheduler() -> None:
    found = measure(next(cases(QUICK)), QUICK)
    assert [one.load for one in found] == list(QUICK.loads)
    assert found[0].second == pytest.approx(found[1].second * QUICK.loads[1] / QUICK.loads[0])
    for one in found:
        assert set(one.simulated) == set(SCHEDULERS) == set(one.runs[0])
        assert one.ratio("mqt", "lwo") == pytest.approx(one.by_query("mqt") / one.by_query("lwo"))


def test_an_engine_in_the_background_is_measured_end_to_end() -> None:
    reported = shared_engine.compare(QUICK.engine)
    assert reported["rows of a burst"] == 400
    assert len(str(reported["mqt by window, ms"]).split(", ")) == 7
    assert float(reported["by query, MQT/LWO"]) > 0
    assert 1 <= int(reported["single rows while working"]) <= 200
    expected = [
        reported["smallest window, MQT/LWO"],
        reported["by query, MQT/LWO"],
        reported["99 of 100 wait for a turn less than, ms"],
    ]
    assert [claim.measured for claim in shared.claims_of_engine(reported)] == expected
