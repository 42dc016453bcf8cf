"""A parser of Prometheus' text format 0.0.4, which refuses what Prometheus would."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from math import inf
from typing import TypeAlias

Series: TypeAlias = tuple[str, tuple[tuple[str, str], ...]]
"""The name of a sample, and its labels with their values."""

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_PAIR = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
_SAMPLE = re.compile(rf"({_NAME})(?:\{{({_PAIR}(?:,{_PAIR})*)\}})? (\S+)")
_ESCAPES = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}


@dataclass
class Exposition:
    """What a scrape found."""

    types: dict[str, str] = field(default_factory=dict)
    samples: dict[Series, float] = field(default_factory=dict)

    def value(self, name: str, **labels: str) -> float:
        """Return the value of one series."""
        return self.samples[name, tuple(labels.items())]

    def counters(self) -> dict[Series, float]:
        """Return the series that may not fall: counters, and all parts of histograms."""
        return {
            series: value
            for series, value in self.samples.items()
            if self.types[self.family(series[0])] != "gauge"
        }

    def family(self, name: str) -> str:
        """Return the family of a sample."""
        parts = (name.removesuffix(end) for end in ("_bucket", "_sum", "_count"))
        histograms = (part for part in parts if self.types.get(part) == "histogram")
        return next(histograms, name)


def parsed(text: str) -> Exposition:
    """Return what a text says; every sample follows the HELP and TYPE of its family."""
    found = Exposition()
    assert text.endswith("\n")
    family = ""
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            family = line.split(" ")[2]
            assert family not in found.types, f"{family} comes twice"
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name == family, "HELP comes first"
            found.types[name] = kind
        else:
            sample = _SAMPLE.fullmatch(line)
            assert sample, line
            name, pairs, value = sample.groups()
            labels = tuple(
                (label, re.sub(r"\\.", lambda escape: _ESCAPES[escape.group()], text))
                for label, text in re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', pairs or "")
            )
            assert found.family(name) == family, f"{name} is not in {family}"
            assert (name, labels) not in found.samples, f"{line} comes twice"
            found.samples[name, labels] = float(value)
    _check_histograms(found)
    return found


def _check_histograms(found: Exposition) -> None:
    """Buckets are cumulative, and the last one has all observations."""
    before: dict[Series, tuple[float, float]] = {}
    for (name, labels), count in found.samples.items():
        if not name.endswith("_bucket"):
            continue
        (*others, (label, text)) = labels
        assert label == "le"
        series = name.removesuffix("_bucket"), tuple(others)
        last_bound, last = before.get(series, (-inf, 0.0))
        assert float(text) > last_bound
        assert count >= last
        before[series] = float(text), count
    for (name, labels), (bound, count) in before.items():
        assert bound == inf
        assert found.samples[f"{name}_count", labels] == count
