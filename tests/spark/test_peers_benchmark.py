"""The comparison with other systems runs with those that need no environment of their own; all results are the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from muntin.bench.peers_bench import PEERS, bench_peers
from muntin.bench.peers_workloads import quick_workloads

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def test_the_comparison_runs_with_what_is_installed(tmp_path: Path) -> None:
    report = bench_peers(lambda _: None, quick=True, environments=tmp_path)
    rows = {(row["workload"], row["system"]): row for row in report.rows}
    for workload in quick_workloads():
        for peer in PEERS:
            if workload.systems and peer.name not in workload.systems:
                assert (workload.name, peer.name) not in rows
                continue
            row = rows[workload.name, peer.name]
            if peer.own:
                assert "a quick run makes none" in str(row["remark"])
            elif workload.kind == "rows" and peer.script == "spark":
                assert "cannot: " in str(row["remark"])
            else:
                assert float(row["seconds"]) > 0, row
    assert report.claims[0].holds
