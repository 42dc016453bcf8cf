"""The comparison with other systems: environments, all ways a process can end, the table.

No other system is needed.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from benchmarks import peers_bench, peers_environments, peers_runs
from benchmarks.pages import page_of
from benchmarks.peers import duckdb as duckdb_peer
from benchmarks.peers import muntin_process
from benchmarks.peers_bench import (
    FLOOR,
    OURS,
    OURS_ON_SPARK,
    PEERS,
    Measured,
    Place,
    report,
    run_peer,
)
from benchmarks.peers_data import Streams, Workload, write_data
from benchmarks.peers_environments import (
    Finished,
    InstallError,
    is_ready,
    make_environment,
    python_of,
    requirements,
    run_command,
)
from benchmarks.peers_runs import Limits, Outcome, Peer, run_jobs
from benchmarks.peers_workloads import all_workloads, quick_workloads

JOIN = Workload("one", "join", Streams(10, 2, 5), (1_000,))
QUIET = Limits(2.0, 2, 100.0)


class Runner:
    """A command runner that records commands, creates a folder as venv would, and can fail."""

    def __init__(
        self,
        failing: str = "",
        ending: Finished = Finished(0, "", ""),  # noqa: B008
    ) -> None:
        self.commands: list[Sequence[str]] = []
        self._failing, self._ending = failing, ending

    def __call__(self, arguments: Sequence[str], seconds: float) -> Finished:
        assert seconds > 0
        self.commands.append(arguments)
        if self._failing in arguments:
            return self._ending
        if "venv" in arguments:
            python = Path(arguments[-1]) / "bin" / "python"
            python.parent.mkdir(parents=True, exist_ok=True)
            python.touch()
        return Finished(0, "", "")


def test_an_environment_is_created_once_and_again_when_its_packages_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers_environments, "SCRIPTS", tmp_path / "scripts")
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "made_up.txt").write_text("made-up==1\n", encoding="utf-8")
    runner = Runner()
    python = make_environment("made_up", tmp_path / "cache", runner)
    assert python == python_of("made_up", tmp_path / "cache")
    assert [("venv" in command, "pip" in command) for command in runner.commands] == [
        (True, False),
        (False, True),
    ]
    assert runner.commands[1][-1] == str(requirements("made_up"))
    make_environment("made_up", tmp_path / "cache", runner)
    assert len(runner.commands) == 2
    (tmp_path / "scripts" / "made_up.txt").write_text("made-up==2\n", encoding="utf-8")
    assert not is_ready("made_up", tmp_path / "cache")
    make_environment("made_up", tmp_path / "cache", runner)
    assert len(runner.commands) == 4


@pytest.mark.parametrize(
    ("failing", "ending", "reason"),
    [
        (
            "pip",
            Finished(1, "", "WARNING: x\nERROR: No matching distribution found for flink\n"),
            "No matching distribution found",
        ),
        ("pip", Finished(None, "", ""), "within 1,200 s"),
        ("venv", Finished(1, "no ensurepip", ""), "cannot be made: no ensurepip"),
    ],
)
def test_an_environment_that_cannot_be_created_reports_why_and_is_not_ready(
    tmp_path: Path, failing: str, ending: Finished, reason: str
) -> None:
    with pytest.raises(InstallError, match=reason):
        make_environment("flink", tmp_path, Runner(failing, ending))
    assert not is_ready("flink", tmp_path)


def test_a_system_that_cannot_be_installed_is_in_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> Path:
        raise InstallError("its packages cannot be installed: no such package")

    monkeypatch.setattr(peers_bench, "make_environment", refuse)
    flink = Peer("Flink SQL", "flink", own=True)
    jobs: dict[str, Any] = {"one": {}}
    done = run_peer(lambda _: None, flink, jobs, QUIET, Place(tmp_path, install=True))
    assert done["one"].reason == "cannot: its packages cannot be installed: no such package"
    assert (
        "a quick run makes none"
        in run_peer(lambda _: None, flink, jobs, QUIET, Place(tmp_path, install=False))[
            "one"
        ].reason
    )
    found = {
        OURS: {"one": Outcome([1.0, 3.0], {"1000": [5, 9]})},
        "Flink SQL": done,
        FLOOR: {"one": Outcome([0.5], {"1000": [5, 9]})},
    }
    rows = {row["system"]: row for row in report([JOIN], found).rows}
    assert rows["Flink SQL"]["remark"] == done["one"].reason
    assert rows["Flink SQL"]["seconds"] == ""
    assert [
        rows[OURS][name]
        for name in ("seconds", "least", "most", "rows per second", "time / Muntin")
    ] == [2.0, 1.0, 3.0, 20, 1.0]
    assert (rows[FLOOR]["time / Muntin"], rows[FLOOR]["time / on Spark"]) == (0.25, "")
    assert len({tuple(row) for row in rows.values()}) == 1, "all rows have the same columns"


def test_a_system_with_other_results_gets_no_ratio_and_breaks_the_claim() -> None:
    right, wrong = Outcome([1.0], {"1000": [5, 9]}), Outcome([0.1], {"1000": [5, 8]})
    made = report([JOIN], {OURS: {"one": right}, "Pathway": {"one": wrong}, FLOOR: {"one": right}})
    row = next(row for row in made.rows if row["system"] == "Pathway")
    assert row["time / Muntin"] == ""
    assert "gives other results: 5 instead of 5 for the window of 1 s" in str(row["remark"])
    assert [claim.holds for claim in made.claims] == [False]


def test_the_fastest_other_streaming_system_is_what_muntin_is_measured_against() -> None:
    results = {"1000": [5, 9]}
    seconds = {OURS: 1.0, "Spark": 8.0, "Flink SQL": 4.0, FLOOR: 0.1}
    made = report(
        [JOIN], {system: {"one": Outcome([took], results)} for system, took in seconds.items()}
    )
    assert [(claim.measured, claim.holds) for claim in made.claims] == [(0, True), (4.0, True)]


def test_a_system_that_timed_out_gets_a_lower_bound_as_its_ratio() -> None:
    right = Outcome([2.0], {"1000": [5, 9]})
    late = Outcome(reason="did not finish in 60 s", broken=True, over=60.0)
    made = report([JOIN], {OURS: {"one": right}, "Bytewax": {"one": late}, FLOOR: {"one": right}})
    row = next(row for row in made.rows if row["system"] == "Bytewax")
    assert (row["time / Muntin"], row["time / on Spark"]) == ("more than 30", "")
    assert str(row["remark"]).startswith(
        "did not finish in 60 s; a join written by hand in Python"
    ), "and why"


def test_ratios_are_in_a_table_with_one_line_per_workload() -> None:
    right = Outcome([2.0], {"1000": [5, 9]})
    others = {
        "Spark": Outcome([9.0], {"1000": [5, 9]}),
        "Spark, RocksDB": Outcome([9.0], {"1000": [5, 8]}),
        "Flink SQL": Outcome(reason="cannot: there are no such windows"),
        "Bytewax": Outcome(reason="did not finish in 60 s", broken=True, over=60.0),
    }
    made = report(
        [JOIN],
        {
            OURS: {"one": right},
            **{name: {"one": outcome} for name, outcome in others.items()},
            FLOOR: {"one": right},
        },
    )
    best = made.tables["The same, each system with its best size of batches"]
    assert best == made.tables["Seconds over those of Muntin on Spark"], "none tried other sizes"
    assert {title: rows for title, rows in made.tables.items() if rows is not best} == {
        "Seconds over those of Muntin in one process": [
            {
                "workload": "one",
                OURS: 1.0,
                "Spark": 4.5,
                "Spark, RocksDB": "gives other results",
                "Flink SQL": "cannot",
                "Bytewax": "more than 30",
                FLOOR: 1.0,
            }
        ],
        "Seconds over those of Muntin on Spark": [
            {
                "workload": "one",
                OURS: "",
                "Spark": "",
                "Spark, RocksDB": "gives other results",
                "Flink SQL": "cannot",
                "Bytewax": "did not finish in 60 s",
                FLOOR: "",
            }
        ],
    }
    page = page_of("peers", json.loads(made.to_json()))
    assert "### The same, each system with its best size of batches\n\n" in page
    assert "### Seconds over those of Muntin in one process\n\n| workload | Muntin |" in page
    assert "| one | 1 | 4.5 | gives other results | cannot | more than 30 | 1 |" in page


def test_the_best_size_of_batches_counts_in_a_table_of_its_own() -> None:
    results = {"1000": [5, 9]}

    def took(*seconds: float) -> dict[str, Outcome]:
        names = ("one", "one, batches times 4", "one, batches times 1000")
        return {name: Outcome([each], results) for name, each in zip(names, seconds, strict=False)}

    made = report(
        [JOIN],
        {
            OURS_ON_SPARK: took(4.0, 2.0, 8.0),
            "Spark": took(6.0, 9.0, 10.0),
            "Flink SQL": took(3.0),
            FLOOR: took(1.0),
        },
    )
    (given,) = made.tables["Seconds over those of Muntin on Spark"]
    (best,) = made.tables["The same, each system with its best size of batches"]
    assert (given["Spark"], given["Flink SQL"]) == (1.5, 0.75)
    assert (best["Spark"], best["Flink SQL"]) == (3.0, 1.5)
    counted = {claim.text: (claim.measured, claim.bound) for claim in made.claims[1:]}
    start = "workloads (of 1) in which Muntin on Spark is faster than"
    assert counted == {f"{start} Spark": (1, 1), f"{start} Flink SQL": (0, 1)}


PEER = """
import os, sys, time
CANNOT = {"rows": "it has no rows"}
def begin(job):
    print("noise on the standard output")
    return job.get("mood")
def run(mood, job):
    print("more noise")
    if job["place"] == "warm": return {}
    if job["place"] == "slow": time.sleep(60)
    if job["place"] == "broken": raise SystemExit("it broke")
    if job["place"] == "fickle": return {"1": [time.perf_counter_ns(), 0]}
    return {"1": [2, 3]}
"""


def entry(place: str, kind: str = "join") -> dict[str, dict[str, object]]:
    return {
        "job": {"kind": kind, "windows": [1], "place": place},
        "warm": {"kind": kind, "windows": [1], "place": "warm"},
    }


@pytest.fixture
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    real = peers_environments.SCRIPTS
    monkeypatch.setattr(peers_runs, "SCRIPTS", tmp_path)
    (tmp_path / "main.py").write_text(
        (real / "main.py").read_text(encoding="utf-8"), encoding="utf-8"
    )
    (tmp_path / "made_up.py").write_text(PEER, encoding="utf-8")
    return tmp_path


@pytest.mark.usefixtures("scripts")
def test_a_system_continues_after_a_workload_that_fails_or_does_not_finish() -> None:
    places = {
        "first": "good",
        "slow": "slow",
        "between": "good",
        "broken": "broken",
        "fickle": "fickle",
        "last": "good",
    }
    jobs = {name: entry(place) for name, place in places.items()} | {"rows": entry("good", "rows")}
    reported: list[str] = []
    done = run_jobs(
        reported.append,
        Path(sys.executable),
        Peer("Made up", "made_up", options={"mood": "fine"}),
        jobs,
        QUIET,
    )
    assert set(done) == set(jobs)
    for name in ("first", "between", "last"):
        assert (len(done[name].seconds), done[name].results, done[name].reason) == (
            2,
            {"1": [2, 3]},
            "",
        )
    assert (done["slow"].reason, done["slow"].over) == ("did not finish in 2 s", 2.0)
    assert done["broken"].reason == "failed: it broke"
    assert done["fickle"].reason.startswith("gives other results in every run")
    assert done["rows"].reason == "cannot: it has no rows"
    assert "Made up, slow: did not finish in 2 s" in reported


def test_before_anything_is_timed_the_first_workload_is_run_over_all_its_data(
    scripts: Path,
) -> None:
    calls = scripts / "calls"
    note = f"    with open({str(calls)!r}, 'a') as file: file.write(job['place'] + ' ')\n"
    (scripts / "made_up.py").write_text(
        PEER.replace("def run(mood, job):\n", f"def run(mood, job):\n{note}"), encoding="utf-8"
    )
    jobs = {name: entry(name) for name in ("one", "other", "slow", "last")}
    done = run_jobs(lambda _: None, Path(sys.executable), Peer("Made up", "made_up"), jobs, QUIET)
    assert calls.read_text(encoding="utf-8").split() == [
        "warm",
        *["one"] * 3,
        *["other"] * 2,
        "slow",
        "warm",
        *["last"] * 3,
    ]
    assert [len(outcome.seconds) for outcome in done.values()] == [2, 2, 0, 2], (
        "what is run before does not count"
    )


def test_a_system_ends_when_its_parent_process_is_gone(scripts: Path) -> None:
    (scripts / "jobs.json").write_text(
        json.dumps([{"repeats": 1, "enough": 1, **entry("slow")}]), encoding="utf-8"
    )
    command = [
        sys.executable,
        "-P",
        str(scripts / "main.py"),
        str(scripts / "made_up.py"),
        str(scripts / "jobs.json"),
    ]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert json.loads(process.stdout.readline()) == {"event": "begun"}
    process.stdin.close()
    assert process.wait(20) == -signal.SIGKILL
    process.stdout.close()


def test_a_system_that_does_not_start_reports_why_once_for_all_workloads(scripts: Path) -> None:
    (scripts / "made_up.py").write_text("import no_such_module_at_all", encoding="utf-8")
    done = run_jobs(
        lambda _: None,
        Path(sys.executable),
        Peer("Made up", "made_up"),
        {"a": entry("good"), "b": entry("good")},
        QUIET,
    )
    assert {outcome.reason for outcome in done.values()} == {
        "does not start: ModuleNotFoundError: No module named 'no_such_module_at_all'"
    }


def test_a_command_is_ended_with_its_children_when_its_time_is_over() -> None:
    code = (
        "import subprocess, sys; p = subprocess.Popen(['sleep', '600']); print(p.pid, flush=True); "
        "p.wait()"
    )
    done = run_command([sys.executable, "-c", code], 5.0)
    assert done.code is None
    status = Path(f"/proc/{done.out.strip()}/stat")
    until = time.monotonic() + 20
    while status.exists() and status.read_text(encoding="utf-8").split()[2] not in {"Z", "X"}:
        assert time.monotonic() < until, "the child still runs"
        time.sleep(0.05)
    assert run_command([sys.executable, "-c", "print(1)"], 60.0) == Finished(0, "1\n", "")


@pytest.mark.parametrize("workload", quick_workloads(), ids=lambda workload: workload.name)
def test_muntin_and_duckdb_agree_on_every_workload(workload: Workload, tmp_path: Path) -> None:
    write_data(tmp_path, workload.streams)
    job = json.loads(json.dumps(workload.job(tmp_path)))
    connection = duckdb_peer.begin(job)
    expected = duckdb_peer.run(connection, job)
    connection.close()
    assert muntin_process.run(None, job) == expected
    assert all(count > 0 for count, _ in expected.values())


def test_an_extra_or_different_result_changes_the_checksum() -> None:
    job: Mapping[str, Any] = {"kind": "join", "end": 0}

    def of(*pairs: tuple[int, int]) -> tuple[int, int]:
        columns = {name: [pair[place] for pair in pairs] for place, name in enumerate(("av", "bv"))}
        return muntin_process.summary(pa.table(columns), job)

    assert of((1, 2), (3, 4)) == of((3, 4), (1, 2))
    assert of((1, 2), (3, 4)) != of((1, 4), (3, 2))
    assert of((1, 2)) != of((2, 1))


def test_every_system_has_a_script_and_those_with_an_environment_their_packages() -> None:
    for peer in PEERS:
        assert (peers_environments.SCRIPTS / f"{peer.script}.py").exists()
        assert requirements(peer.script).exists() is peer.own
        if peer.own:
            text = requirements(peer.script).read_text(encoding="utf-8")
            assert all("==" in line for line in text.splitlines()), "versions are pinned"
            assert "://" not in text
    workloads = all_workloads()
    assert len({workload.name for workload in workloads}) == len(workloads)
    assert not any(workload.systems for workload in workloads), "everybody takes part in everything"
    grown = [list(workload.places) for workload in workloads if workload.places]
    assert {
        name: sum(name in each for each in grown) for each in grown for name in each
    } == dict.fromkeys(("seconds of the window", "keys", "partners of a row", "queries"), 3)


def test_growth_is_plotted_for_each_growing_quantity() -> None:
    workloads = quick_workloads()
    results = {workload.name: Outcome([1.0], {"2000": [1, 1]}) for workload in workloads}
    plots = report(workloads, {OURS: results, FLOOR: results}).plots
    assert [plot.file for plot in plots] == ["peers", "peers-queries"]
    assert set(plots[1].series) == {OURS, FLOOR}
    assert Measured(workloads[0], {}, {}).rows() == []
