"""Overload on Spark (paper 5): after every batch the driver divides what the next ones may do among the half joins.

Partitions count what arrives, probes and matches. The driver adds it up, and has one adapter for each limited query. What it decides goes to
the partitions as a control row: durable, ordered with the rows, and repeated with them, so that a replay makes the same choices. Only runs
that go on until they are stopped are governed; where all there is is processed, nobody waits, and nothing is left out.

Resources are probes per second of event time: given by the setting ``resources``, or derived from the time that a batch may take. A batch
that takes longer than its share of the trigger interval has its work cut in proportion, one that has time left gets more. Work is probes
and what they find: when more rows are in the windows, a probe finds more and takes longer. How long a batch takes besides its work, and
how much event time comes in a second, is learned from the last batches.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from muntin.adapt import Adapter, AnalysisRequest, Sample, TreeShape, analyze
from muntin.errors import SettingError
from muntin.model.settings import Settings
from muntin.plan.join import JoinPlan
from muntin.runtime.overload import ages_in_words, control_of, half_way_names
from muntin.spark.exchange.controls import ControlRow, ProbeLimits

_log = logging.getLogger("muntin")

_TARGET, _AIM = 0.75, 0.6
"""The share of the trigger interval from which on a batch takes too long, and the one that batches with limits are to take."""
_LEAST_CUT, _MOST_RAISE = 0.2, 1.4
_USED = 0.8
"""A limit of which less than this was used says nothing about what is possible."""
_COUNTED = ("arrivals", "probes", "matches", "states")
_REMEMBERED = 8
_ALIKE = 0.1
"""Batches whose work differs by less than this share does not tell what work takes."""


@dataclass(frozen=True)
class MeasuredBatch:
    """A batch: how long it took, its probes and what they found, seconds of event time it covered, seconds since the one before began."""

    seconds: float
    probes: float
    found: float = 0.0
    passed: float = 0.0
    since: float = 0.0

    @property
    def work(self) -> float:
        """Probes and matches."""
        return self.probes + self.found


@dataclass
class BatchPacer:
    """How much work a batch may have, learned from how long batches take; ``most`` is None as long as they take no longer than they may.

    Parameters
    ----------
    interval : float
        Seconds from one batch to the next, by the trigger; 0: a batch may take as long as it takes.
    """

    interval: float
    most: float | None = None
    _batches: deque[MeasuredBatch] = field(
        default_factory=lambda: deque(maxlen=_REMEMBERED), repr=False
    )
    _given: float | None = field(default=None, repr=False)

    def learn(self, batch: MeasuredBatch) -> None:
        """Take a batch."""
        if not self.interval or batch.seconds <= 0:
            return
        self._batches.append(batch)
        target = _TARGET * self.interval
        if batch.probes <= 0 or (
            batch.seconds <= target and (self.most is None or batch.work < _USED * self.most)
        ):
            return
        aim = _AIM * self.interval
        besides = min(self._besides(), 0.9 * aim)
        right = batch.work * (aim - besides) / max(batch.seconds - besides, 1e-3)
        self.most = min(max(right, _LEAST_CUT * batch.work), _MOST_RAISE * batch.work)

    def _besides(self) -> float:
        """Seconds that a batch takes whatever it does: where the line through the last batches meets no work."""
        work, seconds = np.array([(batch.work, batch.seconds) for batch in self._batches]).T
        if np.ptp(work) <= _ALIKE * work.max():
            return 0.0
        slope, start = np.polyfit(work / work.max(), seconds, 1)
        return float(min(max(start, 0.0), seconds.min())) if slope > 0 else 0.0

    def resources(self) -> float | None:
        """Probes a second of event time for the next batch, which has all that came while the last one was worked on. Ask once a batch."""
        if self.most is None:
            return None
        last = self._batches[-1]
        # A batch covers what came since the one before began; that is much after a long one, so how fast time passes shows over several.
        waited = sum(batch.since for batch in self._batches)
        speed = (
            sum(batch.passed for batch in self._batches if batch.since) / waited
            if waited > 0
            else 1.0
        )
        span = speed * max(self.interval, last.seconds)
        # What a probe finds depends on which ones are allowed, which changes with the resources: the most of the last batches counts.
        finding = max(
            batch.work / batch.probes
            for batch in list(self._batches)[-_REMEMBERED // 2 :]
            if batch.probes > 0
        )
        found = self.most / finding / max(span, 1e-3)
        self._given = found if self._given is None else min(found, _MOST_RAISE * self._given)
        return self._given

    def release(self) -> None:
        """Forget the limit: everything fits again."""
        self.most = self._given = None


@dataclass
class _Governed:
    """A limited query: its adapter, what was sent last, and how its arrivals were spread over the partitions."""

    plan: JoinPlan
    adapter: Adapter
    given: float | None
    seconds: float
    rates: tuple[float | None, ...]
    sent: tuple[tuple[float | None, ...], float | None] = ((), None)
    spread: Sequence[Sequence[float]] = ()
    stale: int = 0
    oldest: Sequence[int] = ()


class LoadController:
    """Governs the limited queries of an engine; ``send`` takes control rows. Analyses have a thread of their own."""

    def __init__(
        self, partitions: int, interval: float, send: Callable[[ControlRow], None]
    ) -> None:
        self._partitions = partitions
        self._send = send
        self._pace = BatchPacer(interval)
        self._queries: dict[str, _Governed] = {}
        self._analysts = ThreadPoolExecutor(1, thread_name_prefix="muntin-governor")
        self._lock = threading.Lock()
        self._batch = -1
        self._began = 0.0

    def add(self, plan: JoinPlan, settings: Settings) -> None:
        """Govern one more query."""
        assert plan.tree is not None, "only trees are limited"
        assert plan.limiting is not None, "the plan says how it is limited"
        shape = TreeShape.of(plan.tree)
        adapter = Adapter(shape, control_of(plan, settings))
        period = plan.limiting.period / 1e6
        self._queries[plan.query.name] = _Governed(
            plan, adapter, settings.overload.resources, period, (None,) * shape.count
        )

    def release(self) -> None:
        """Take all limits back, also those of an earlier run: for runs in which nobody waits for results."""
        for query in self._queries.values():
            shape = query.adapter.shape
            query.adapter, query.rates, query.sent = (
                Adapter(shape, query.adapter.config),
                (None,) * shape.count,
                ((), None),
            )
            limits = ProbeLimits(
                query.plan.query.name,
                ((None,) * shape.count,) * self._partitions,
                (None,) * self._partitions,
            )
            self._send(ControlRow(uuid.uuid4().hex, limits=(limits,)))

    def check_pace(self) -> None:
        """Raise when there is nothing from which limits could follow."""
        for name, query in self._queries.items():
            if query.given is None and not self._pace.interval:
                raise SettingError(
                    f"query {name} cannot adapt to overload: batches begin as soon as the last one is done, so none takes too long",
                    hint="Give the engine a trigger, for example trigger='2 seconds', or set resources to a number of rows per second",
                )

    def drop(self, name: str) -> None:
        """Govern a query no more."""
        self._queries.pop(name, None)

    def close(self) -> None:
        """Make no more analyses."""
        self._analysts.shutdown(wait=True, cancel_futures=True)

    def observe(self, batch: int, seconds: float, told: Sequence[Mapping[str, Any]]) -> None:
        """Take what partitions told of a batch that took so long; a batch that is done again counts once."""
        with self._lock:
            if batch > self._batch:
                # The first batch of a run also starts workers and residents: how long that takes tells nothing about probes.
                first, self._batch = self._batch < 0, batch
                self._observe(0.0 if first else seconds, told)

    def _observe(self, seconds: float, told: Sequence[Mapping[str, Any]]) -> None:
        taken = [(name, self._sample(name, query, told)) for name, query in self._queries.items()]
        samples = {name: sample for name, sample in taken if sample is not None}
        if not samples:
            return
        probes, found = (
            float(sum(sum(getattr(sample, what)) for sample in samples.values()))
            for what in ("probes", "matches")
        )
        began = time.monotonic() - seconds
        since, self._began = began - self._began if self._began else 0.0, began
        self._pace.learn(
            MeasuredBatch(
                seconds, probes, found, max(sample.seconds for sample in samples.values()), since
            )
        )
        derived = self._pace.resources()
        needs = {name: self._need(self._queries[name], sample) for name, sample in samples.items()}
        whole = sum(needs.values())
        for name, sample in samples.items():
            query = self._queries[name]
            resources = query.given
            if resources is None and derived is not None:
                resources = derived * (needs[name] / whole if whole > 0 else 1 / len(needs))
            self._follow(query, sample, resources)
        if self._pace.most is not None and not any(
            query.adapter.overloaded for query in self._queries.values()
        ):
            self._pace.release()

    def _sample(
        self, name: str, query: _Governed, told: Sequence[Mapping[str, Any]]
    ) -> Sample | None:
        """What all partitions counted together."""
        parts = [stats["overload"][name] for stats in told if name in stats["overload"]]
        if not parts or not max(part["cycles"] for part in parts):
            return None
        arrivals, probes, matches, states = (
            [sum(numbers) for numbers in zip(*(part[what] for part in parts), strict=True)]
            for what in _COUNTED
        )
        query.spread = [part["arrivals"] for part in parts]
        query.stale = sum(part["stale"] for part in parts)
        query.oldest = [max(ages) for ages in zip(*(part["oldest"] for part in parts), strict=True)]
        return Sample(
            self._batch,
            query.seconds * max(part["cycles"] for part in parts),
            arrivals,
            probes,
            matches,
            states,
        )

    @staticmethod
    def _need(query: _Governed, sample: Sample) -> float:
        """Probes a second that a query would have without limits, as far as that is known."""
        model = query.adapter.model
        return (
            model.saturation.resources
            if model is not None
            else sum(sample.arrivals) / sample.seconds
        )

    def _follow(self, query: _Governed, sample: Sample, resources: float | None) -> None:
        """Let the adapter see the sample; what is limited holds at once, how it is divided once that is analysed."""
        request = query.adapter.observe(replace(sample, resources=resources))
        if request is None:
            self._tell(query)
        else:
            self._analysts.submit(self._analyzed, query, request)

    def _analyzed(self, query: _Governed, request: AnalysisRequest) -> None:
        """Analyse, and act upon it; batches go on meanwhile."""
        try:
            recommendation = analyze(request)
        except Exception:  # noqa: BLE001 (whatever it is, batches go on)
            _log.exception(
                "query %s: the analysis of overload failed, probe budgets stay as they are",
                query.plan.query.name,
            )
            with self._lock:
                query.adapter.abandon()
            return
        with self._lock:
            decided = query.adapter.decide(recommendation)
            if decided is not None:
                query.rates = tuple(None if rate < 0 else rate for rate in decided)
                _log.info("query %s: %s", query.plan.query.name, query.adapter.decisions[-1])
            self._tell(query)

    def _tell(self, query: _Governed) -> None:
        """Send what is in force now, if that is not what was sent last."""
        cap = (
            query.adapter.resources if query.adapter.overloaded or query.given is not None else None
        )
        if (query.rates, cap) == query.sent:
            return
        query.sent = (query.rates, cap)
        arrived = [sum(numbers) for numbers in zip(*query.spread, strict=True)]
        whole = sum(arrived)
        rates, caps = [], []
        for partition in range(self._partitions):
            own = query.spread[partition] if partition < len(query.spread) else [0.0] * len(arrived)
            shares = [
                mine / all_of_it if all_of_it > 0 else 1 / self._partitions
                for mine, all_of_it in zip(own, arrived, strict=True)
            ]
            rates.append(
                tuple(
                    None if rate is None else rate * share
                    for rate, share in zip(query.rates, shares, strict=True)
                )
            )
            # As long as everything may probe, a partition may have all there is: shares are those of the last batch, and change.
            divided = query.adapter.overloaded and whole > 0
            caps.append(None if cap is None else cap * sum(own) / whole if divided else cap)
        self._send(
            ControlRow(
                uuid.uuid4().hex,
                limits=(ProbeLimits(query.plan.query.name, tuple(rates), tuple(caps)),),
            )
        )

    def told(self) -> dict[str, dict[str, Any]]:
        """What is reported of each limited query."""
        found = {}
        for name, query in list(self._queries.items()):
            tree = query.plan.tree
            assert tree is not None, "only trees are limited"
            budgets = (
                dict(zip(half_way_names(query.plan, tree), query.rates, strict=True))
                if query.adapter.overloaded
                else {}
            )
            found[name] = {
                "mode": "adapt",
                **query.adapter.report(),
                "budgets": budgets,
                "stale_results": query.stale,
                "oldest_rows": ages_in_words(query.plan, query.oldest),
            }
        return found
