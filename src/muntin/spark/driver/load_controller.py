"""Control the load of limited queries on Spark [Mukherji11].

Partitions count arrivals, probes and matches. After every batch the driver adds them up for one
adapter per limited query, which divides the probes of the next batches among the half joins. The
decision goes to the partitions as a control row: durable, ordered with the rows and replayed with
them, so a repeated batch makes the same choices. Only live runs are limited; a run over the
available input processes all of it.

Resources are probes per second of event time: given by the setting ``resources``, or derived from
the time that a batch may take (:mod:`muntin.spark.driver.batch_pacer`).
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from muntin.adapt import Adapter, AnalysisRequest, Sample, TreeShape, analyze
from muntin.errors import SettingError
from muntin.model.settings import Settings
from muntin.plan.join import JoinPlan
from muntin.runtime.overload import ages_in_words, control_of, half_join_names
from muntin.spark.driver.batch_pacer import BatchPacer, MeasuredBatch
from muntin.spark.exchange.controls import NEVER, ControlRow, ProbeLimits

_log = logging.getLogger("muntin")

_LATE = 2.0
"""The trigger intervals of event time above which a batch is late, even without limits."""
_COUNTED = ("arrivals", "probes", "matches", "states")


@dataclass
class _LimitedQuery:
    """A limited query: its adapter, the limits sent last, and its arrivals by partition."""

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
    """Limits queries of an engine; ``send`` takes control rows. A separate thread runs analyses."""

    def __init__(
        self, partitions: int, interval: float, send: Callable[[ControlRow], None]
    ) -> None:
        self._partitions = partitions
        self._send = send
        self._pace = BatchPacer(interval)
        self._queries: dict[str, _LimitedQuery] = {}
        self._analysts = ThreadPoolExecutor(1, thread_name_prefix="muntin-load")
        self._lock = threading.Lock()
        self._live = False
        self._batch = -1
        self._began = 0.0

    def add(self, plan: JoinPlan, settings: Settings) -> None:
        """Limit one more query."""
        assert plan.tree is not None, "only trees are limited"
        assert plan.limiting is not None, "the plan has limits"
        shape = TreeShape.of(plan.tree)
        adapter = Adapter(shape, control_of(plan, settings))
        period = plan.limiting.period / 1e6
        self._queries[plan.query.name] = _LimitedQuery(
            plan, adapter, settings.overload.resources, period, (None,) * shape.count
        )
        if self._live and len(self._queries) == 1:
            self._announce()

    def begin(self) -> None:
        """Begin a live run: freshness holds from its first batch on."""
        self.check_pace()
        self._live = True
        if self._queries:
            self._announce()

    def _announce(self) -> None:
        """Send how much event time makes a batch late."""
        micros = round(_LATE * self._pace.interval * 1e6) if self._live else NEVER
        self._send(ControlRow(uuid.uuid4().hex, late_after=micros))

    def release(self) -> None:
        """Remove all limits, even those of an earlier run, for a run over the available input."""
        self._live = False
        if self._queries:
            self._announce()
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
        """Raise if limits cannot be derived from anything."""
        for name, query in self._queries.items():
            if query.given is None and not self._pace.interval:
                raise SettingError(
                    f"query {name} cannot adapt to overload: batches begin as soon as the last one "
                    "is done, so none takes too long",
                    hint="Give the engine a trigger, for example trigger='2 seconds', or set "
                    "resources to a number of rows per second",
                )

    def drop(self, name: str) -> None:
        """Stop limiting a query."""
        self._queries.pop(name, None)

    def close(self) -> None:
        """Stop analyses."""
        self._analysts.shutdown(wait=True, cancel_futures=True)

    def observe(self, batch: int, seconds: float, reports: Sequence[Mapping[str, Any]]) -> None:
        """Add the reports of the partitions on a batch; one that runs again counts once."""
        with self._lock:
            if batch > self._batch:
                # The first batch also starts the workers and state servers; its time says nothing
                # about probes.
                first, self._batch = self._batch < 0, batch
                self._observe(0.0 if first else seconds, reports)

    def _observe(self, seconds: float, reports: Sequence[Mapping[str, Any]]) -> None:
        taken = [
            (name, self._sample(name, query, reports)) for name, query in self._queries.items()
        ]
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
        total = sum(needs.values())
        for name, sample in samples.items():
            query = self._queries[name]
            resources = query.given
            if resources is None and derived is not None:
                resources = derived * (needs[name] / total if total > 0 else 1 / len(needs))
            self._follow(query, sample, resources)
        if self._pace.most is not None and not any(
            query.adapter.overloaded for query in self._queries.values()
        ):
            self._pace.release()

    def _sample(
        self, name: str, query: _LimitedQuery, reports: Sequence[Mapping[str, Any]]
    ) -> Sample | None:
        """Return the counts of all partitions together; None if no cycle ended."""
        parts = [stats["overload"][name] for stats in reports if name in stats["overload"]]
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
    def _need(query: _LimitedQuery, sample: Sample) -> float:
        """Return the probes per second of a query without limits, as far as that is known."""
        model = query.adapter.model
        return (
            model.saturation.resources
            if model is not None
            else sum(sample.arrivals) / sample.seconds
        )

    def _follow(self, query: _LimitedQuery, sample: Sample, resources: float | None) -> None:
        """Pass a sample to the adapter; the limit holds at once, its division after analysis."""
        request = query.adapter.observe(replace(sample, resources=resources))
        self._send_limits(query)
        if request is not None:
            self._analysts.submit(self._analyzed, query, request)

    def _analyzed(self, query: _LimitedQuery, request: AnalysisRequest) -> None:
        """Analyze and apply the result; batches continue meanwhile."""
        try:
            recommendation = analyze(request)
        except Exception:  # noqa: BLE001 (whatever it is, batches continue)
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
            self._send_limits(query)

    def _send_limits(self, query: _LimitedQuery) -> None:
        """Send the current limits, if they differ from those sent last."""
        cap = (
            query.adapter.resources if query.adapter.overloaded or query.given is not None else None
        )
        if (query.rates, cap) == query.sent:
            return
        query.sent = (query.rates, cap)
        arrived = [sum(numbers) for numbers in zip(*query.spread, strict=True)]
        total = sum(arrived)
        rates, caps = [], []
        for partition in range(self._partitions):
            own = query.spread[partition] if partition < len(query.spread) else [0.0] * len(arrived)
            fractions = [
                part / count if count > 0 else 1 / self._partitions
                for part, count in zip(own, arrived, strict=True)
            ]
            rates.append(
                tuple(
                    None if rate is None else rate * fraction
                    for rate, fraction in zip(query.rates, fractions, strict=True)
                )
            )
            # While everything may probe, each partition may use all resources: the fractions are
            # those of the last batch, and they change.
            divided = query.adapter.overloaded and total > 0
            caps.append(None if cap is None else cap * sum(own) / total if divided else cap)
        self._send(
            ControlRow(
                uuid.uuid4().hex,
                limits=(ProbeLimits(query.plan.query.name, tuple(rates), tuple(caps)),),
            )
        )

    def report(self) -> dict[str, dict[str, Any]]:
        """Return the report on each limited query."""
        found = {}
        for name, query in list(self._queries.items()):
            tree = query.plan.tree
            assert tree is not None, "only trees are limited"
            budgets = (
                dict(zip(half_join_names(query.plan, tree), query.rates, strict=True))
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
