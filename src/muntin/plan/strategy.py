"""The four ways to drive a pipeline (paper 2, section 3)."""

from __future__ import annotations

from enum import StrEnum


class Strategy(StrEnum):
    """Who works off what expires, and when; values are those of the setting ``pipeline``."""

    INPUT = "input"
    PROBING = "probing"
    NEGATIVE = "negative"
    HYBRID = "hybrid"
