"""Overload: the output of a tree of joins under limited resources, and how to divide them.

Implements JAQPOT [Mukherji11]: cost models, allocation policies, freshness, and the controller that
follows measured statistics. A state machine: samples in, decisions out; no I/O, clock or threads.
May import ``plan``, ``model`` and ``kernels``.
"""

from __future__ import annotations

from muntin.adapt.adapter import Adapter
from muntin.adapt.analysis import AnalysisRequest, Recommendation, analyze
from muntin.adapt.config import AdapterConfig
from muntin.adapt.monitor import Sample
from muntin.adapt.probe_costs import ProbeCosts
from muntin.adapt.sample_period import LONGEST
from muntin.adapt.shape import TreeShape

__all__ = [
    "LONGEST",
    "Adapter",
    "AdapterConfig",
    "AnalysisRequest",
    "ProbeCosts",
    "Recommendation",
    "Sample",
    "TreeShape",
    "analyze",
]
