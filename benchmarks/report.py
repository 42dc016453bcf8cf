"""The form of all benchmark results: rows of figures, claims, machine and versions."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Literal

from benchmarks.plots import Plot
from benchmarks.run import Run

Figure = float | int | str
Progress = Callable[[str], None]


def this_machine() -> dict[str, Figure]:
    """Machine and versions."""
    packages = {
        name: version(name) for name in ("muntin", "numpy", "numba", "duckdb", "pyarrow", "pyspark")
    }
    return {
        "python": platform.python_version(),
        "processor": _processor(),
        "cores": os.cpu_count() or 0,
        **packages,
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    names = (
        [
            line.partition(":")[2].strip()
            for line in info.read_text().splitlines()
            if line.startswith("model name")
        ]
        if info.exists()
        else []
    )
    return names[0] if names else platform.processor()


@dataclass(frozen=True)
class Claim:
    """Something a benchmark is to show: a measured figure against its bound."""

    text: str
    measured: float
    bound: float
    side: Literal["at most", "at least"] = "at most"

    @property
    def holds(self) -> bool:
        """Whether the figure keeps the bound."""
        return (
            self.measured <= self.bound if self.side == "at most" else self.measured >= self.bound
        )

    def to_dict(self) -> dict[str, Figure]:
        """For JSON."""
        return {
            "claim": self.text,
            "measured": self.measured,
            "side": self.side,
            "bound": self.bound,
            "holds": self.holds,
        }


@dataclass(frozen=True)
class Report:
    """The outcome of one benchmark.

    Tables are shown on its page by title; details are in the JSON only.
    """

    name: str
    question: str
    rows: Sequence[Mapping[str, Figure]]
    claims: Sequence[Claim] = ()
    machine: Mapping[str, Figure] = field(default_factory=this_machine)
    plots: Sequence[Plot] = ()
    details: Sequence[Mapping[str, object]] = ()
    tables: Mapping[str, Sequence[Mapping[str, Figure]]] = field(default_factory=dict)

    def to_json(self, run: Run | None = None) -> str:
        """Return the report as JSON, with the run that it is of."""
        claims = [claim.to_dict() for claim in self.claims]
        document: dict[str, object] = {
            "name": self.name,
            "question": self.question,
            "rows": list(self.rows),
            "claims": claims,
            "machine": self.machine,
        }
        if run is not None:
            document["run"] = run.to_dict()
        if self.plots:
            document["plots"] = [plot.to_dict() for plot in self.plots]
        if self.tables:
            document["tables"] = {title: list(rows) for title, rows in self.tables.items()}
        if self.details:
            document["details"] = list(self.details)
        return json.dumps(document, indent=2)


def resident_bytes() -> int:
    """Memory of this process that is in use, in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def spread(seconds: Sequence[float]) -> dict[str, float]:
    """Median, least and most of repeated timings."""
    return {
        "seconds": round(median(seconds), 4),
        "least": round(min(seconds), 4),
        "most": round(max(seconds), 4),
    }
