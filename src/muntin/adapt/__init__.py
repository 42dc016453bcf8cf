"""Overload: what a tree of joins produces under limited resources, and how to divide them (paper 5, JAQPOT).

Models, allocation policies, freshness, and the controller that follows measured statistics. A state machine: samples in, decisions
out; no I/O, no clock, no threads, nothing compiled. May import ``plan`` and ``model``.
"""

from __future__ import annotations

from muntin.adapt.adapter import Adapter, AnalysisRequest, Recommendation, analyse
from muntin.adapt.allocation import Allocation, Infeasible
from muntin.adapt.control import Control
from muntin.adapt.model import PlanModel
from muntin.adapt.monitor import Sample
from muntin.adapt.policies import POLICIES, allocate
from muntin.adapt.shape import TreeShape

__all__ = [
    "POLICIES",
    "Adapter",
    "Allocation",
    "AnalysisRequest",
    "Control",
    "Infeasible",
    "PlanModel",
    "Recommendation",
    "Sample",
    "TreeShape",
    "allocate",
    "analyse",
]
