"""Why a system is as fast as it is, in a sentence: what was seen when time was looked for."""

from __future__ import annotations

from collections.abc import Mapping

from muntin.bench.peers_data import Kind, Workload

_OF_A_KIND: Mapping[tuple[str, Kind], str] = {}
_OF_ALL: Mapping[str, str] = {}


def remark(system: str, workload: Workload) -> str:
    """The sentence for a workload, or else for its kind."""
    return _OF_A_KIND.get((system, workload.kind)) or _OF_ALL.get(system, "")
