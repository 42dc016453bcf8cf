"""The state of an engine's current run, shared by the parts of the driver."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from muntin.spark.exchange.deployment import Deployment
from muntin.spark.replacement import NOTHING, Replacement


@dataclass
class RunState:
    """The run: its name, its streaming query and the deployment in force after the last batch.

    ``live`` distinguishes a run that continues until it is stopped from one over the available
    input. ``stopping`` is set before the streaming query is interrupted.
    """

    run: str = ""
    streaming: StreamingQuery | None = None
    deployment: Deployment | None = None
    live: bool = False
    stopping: bool = False
    controls_progress: dict[str, Any] | None = None
    """The progress of the last batch without rows, of which Spark knows nothing."""
    dropped: set[str] = field(default_factory=set)
    """Queries dropped since the last run: declared again under their name, they start again."""
    replacement: Replacement = NOTHING
    """The queries that the next start replaces."""

    @property
    def is_active(self) -> bool:
        """True while the streaming query runs."""
        return self.streaming is not None and bool(self.streaming.isActive)

    @property
    def takes_changes(self) -> bool:
        """True if changes of queries travel as control rows; otherwise a start applies them."""
        return self.live and self.is_active

    def current(self) -> Deployment:
        """Return the deployment of a run that has started."""
        assert self.deployment is not None, "the engine runs"
        return self.deployment
