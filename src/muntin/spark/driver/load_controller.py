"""Control the load of limited queries on Spark [Mukherji11].

Partitions count arrivals, probes and matches. After every batch the driver adds them up for one
adapter per limited query, which divides the probes of the next batches among the half joins. The
decision goes to the partitions as a control row: durable, ordered with the rows and replayed with
them, so a repeated batch makes the same choices. Only live runs are limited; a run over the
available input processes all of it.

Resources are probes per second of event time: given by the setting ``resources``, or derived from
the work that fits into a batch (:mod:`muntin.spark.driver.batch_pacer`), which is itself a limit
that partitions keep.
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

from muntin.adapt import Adapter, AnalysisRequest, Sample, TreeShape, analyze
from muntin.errors import SettingError
from muntin.model.clock import BEFORE_ALL
from muntin.model.settings import Settings
from muntin.plan.join import JoinPlan
from muntin.runtime.overload import ages_in_words, control_of, half_join_names
from muntin.spark.driver.batch_costs import MeasuredBatch
from muntin.spark.driver.batch_pacer import BatchPacer
from muntin.spark.exchange.controls import NEVER, ControlRow, ProbeLimits

_log = logging.getLogger("muntin")

_LATE = 2.0
"""The trigger intervals of event time above which a batch is late, even without limits."""
_RECENT = 4
"""Batches over which the matches of a probe are averaged."""
_ENOUGH = 1.25
"""Resources over those needed when everything fits, so that overload ends."""
_SLACK = 1.5
"""Work that a partition may have over its share of the last arrivals, without overload."""
_ALIKE = 0.1
"""A limit on work is sent again when it differs by this share."""
_COUNTED = ("arrivals", "probes", "matches", "states")


@dataclass
class _LimitedQuery:
    """A limited query: its adapter, the limits sent last, and its arrivals by partition."""

    plan: JoinPlan
    adapter: Adapter
    given: float | None
    seconds: float
    rates: tuple[float | None, ...]
    work: float | None = None
    """Probes and matches per second that its part of a batch may have; None: any."""
    sent: tuple[tuple[float | None, ...], float | None, float | None] = ((), None, None)
    spread: Sequence[Sequence[float]] = ()
    found: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=_RECENT))
    """The probes, and the probes and matches, of the last batches."""
    complete: tuple[float, float] | None = None
    """The rows and the work per second when everything probed last."""
    fits: bool = True
    """Whether everything is predicted to fit, so that only the limit on work remains."""
    unprobed: int = 0
    """Rows and partial matches that could not probe, so far."""
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
        self._live = self._first = False
        self._batch = -1
        self._began = 0.0
        self._newest = BEFORE_ALL

    def add(self, plan: JoinPlan, settings: Settings) -> None:
        """Limit one more query."""
        assert plan.tree is not None, "only trees are limited"
        assert plan.limiting is not None, "the plan has limits"
        shape = TreeShape.of(plan.tree)
        # Each partition has other keys, so a slice of them would not be the same part everywhere.
        adapter = Adapter(shape, replace(control_of(plan, settings), by_key=False))
        period = plan.limiting.period / 1e6
        self._queries[plan.query.name] = _LimitedQuery(
            plan, adapter, settings.overload.resources, period, (None,) * shape.count
        )
        if self._live and len(self._queries) == 1:
            self._announce()

    def begin(self) -> None:
        """Begin a live run: freshness and the limit on work hold from its first batch on."""
        self.check_pace()
        self._live = self._first = True
        self._began = 0.0
        if self._queries:
            self._announce()
        with self._lock:
            self._divide({})
            for query in self._queries.values():
                self._send_limits(query)

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
                ((), None, None),
            )
            query.work = None
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
                self._batch = batch
                self._learn(seconds, reports)
                self._observe(reports)

    def _learn(self, seconds: float, reports: Sequence[Mapping[str, Any]]) -> None:
        """Measure a batch.

        The first one of a run also starts the workers and state servers; its time says nothing
        about probes.
        """
        counts = [part for stats in reports for part in stats["overload"].values()]
        began = time.monotonic() - seconds
        since, self._began = began - self._began if self._began else 0.0, began
        newest = max((stats["newest"] for stats in reports), default=BEFORE_ALL)
        passed = (newest - self._newest) / 1e6 if self._newest > BEFORE_ALL else 0.0
        self._newest = newest
        if self._first:
            self._first = False
            return
        rows = sum(sum(stats["rows_in"].values()) for stats in reports)
        work = sum(part["work"] for part in counts)
        self._pace.learn(MeasuredBatch(seconds, rows, work, passed, since))

    def _observe(self, reports: Sequence[Mapping[str, Any]]) -> None:
        taken = [
            (name, self._sample(name, query, reports)) for name, query in self._queries.items()
        ]
        samples = {name: sample for name, sample in taken if sample is not None}
        fits = self._divide(samples)
        for name, sample in samples.items():
            query = self._queries[name]
            self._follow(query, sample, query.given or self._resources(query, fits=fits))
        for name, query in self._queries.items():
            if name not in samples:
                self._send_limits(query)

    def _divide(self, samples: Mapping[str, Sample]) -> bool:
        """Divide the work of the next batch among queries; return whether it is enough for all.

        A query gets work in proportion to what it would have without limits, as far as that is
        known.
        """
        limit = self._pace.work()
        derived = {name: query for name, query in self._queries.items() if query.given is None}
        needs = {name: self._need(query, samples.get(name)) for name, query in derived.items()}
        total = sum(needs.values())
        for name, query in derived.items():
            share = needs[name] / total if total > 0 else 1 / len(derived)
            query.work = None if limit is None else limit * share
            query.fits = limit is None or total <= limit
        return limit is None or total <= limit

    @staticmethod
    def _resources(query: _LimitedQuery, *, fits: bool) -> float | None:
        """Return the resources for which there is work, by what recent probes found."""
        model = query.adapter.model
        if query.work is None or model is None:
            return None
        needed = model.saturation.resources
        if fits:
            return _ENOUGH * needed
        probes, work = (sum(one) for one in zip(*query.found, strict=True))
        fitting = query.work * probes / work if work else query.work / 2
        return min(fitting * query.adapter.price, 0.99 * needed)

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
        query.found.append((sum(probes), sum(probes) + sum(matches)))
        unprobed = sum(arrivals) - sum(probes)
        query.unprobed += unprobed
        seconds = query.seconds * max(part["cycles"] for part in parts)
        if not unprobed:
            leaves = arrivals[: query.adapter.shape.leaves]
            query.complete = sum(leaves) / seconds, (sum(probes) + sum(matches)) / seconds
        elif query.fits:
            query.complete = None  # rows find more than they did then
        return Sample(
            self._batch,
            seconds,
            arrivals,
            probes,
            matches,
            states,
        )

    @staticmethod
    def _need(query: _LimitedQuery, sample: Sample | None) -> float:
        """Return the work per second of a query without limits, as far as that is known.

        It is the probes and what they find: partial matches, which probe in their turn, and
        results. The averages of the model follow a load that falls over several batches. The work
        of the last batch in which everything probed, at the rate of now, shows it at once. That it
        is too little if rows find more than they did does no harm: the limit on work remains.
        """
        model = query.adapter.model
        if model is None:
            return 0.0 if sample is None else sum(sample.arrivals) / sample.seconds
        flow, leaves = model.saturation, query.adapter.shape.leaves
        need = 2 * sum(flow.probes) - sum(model.rates) + flow.throughput
        if sample is None or query.complete is None or not query.complete[0]:
            return need
        rows, work = query.complete
        growth = sum(sample.arrivals[:leaves]) / sample.seconds / rows
        return min(need, work * growth**leaves)

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
        cap, allowed = query.adapter.cap(query.given), query.rates
        if cap is None and query.fits:
            allowed = (None,) * len(query.rates)
        elif cap is None and query.adapter.overloaded:
            cap = query.adapter.cap(query.adapter.resources)
        rates_sent, cap_sent, work_sent = query.sent
        work = _kept(query.work, work_sent)
        if (allowed, cap) == (rates_sent, cap_sent) and work == work_sent:
            return
        query.sent = (allowed, cap, work)
        spread = query.spread or [[0.0] * len(query.rates)]
        arrived = [sum(numbers) for numbers in zip(*spread, strict=True)]
        total = sum(arrived)
        rates, caps, works = [], [], []
        for partition in range(self._partitions):
            own = spread[partition] if partition < len(spread) else [0.0] * len(arrived)
            fractions = [
                part / count if count > 0 else 1 / self._partitions
                for part, count in zip(own, arrived, strict=True)
            ]
            rates.append(
                tuple(
                    None if rate is None else rate * fraction
                    for rate, fraction in zip(allowed, fractions, strict=True)
                )
            )
            # While everything may probe, each partition may use all resources: the fractions are
            # those of the last batch, and they change.
            divided = query.adapter.overloaded and total > 0
            caps.append(None if cap is None else cap * sum(own) / total if divided else cap)
            share = sum(own) / total if total > 0 else 1 / self._partitions
            # The limits of all partitions add up to that of the batch while there is overload.
            slack = 1.0 if query.adapter.overloaded else _SLACK
            works.append(None if work is None else work * min(slack * share, 1.0))
        self._send(
            ControlRow(
                uuid.uuid4().hex,
                limits=(
                    ProbeLimits(query.plan.query.name, tuple(rates), tuple(caps), tuple(works)),
                ),
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
                "work_limit": query.work,
                "unprobed": query.unprobed,
                "stale_results": query.stale,
                "oldest_rows": ages_in_words(query.plan, query.oldest),
            }
        return found


def _kept(work: float | None, sent: float | None) -> float | None:
    """Return the limit on work to send: the one sent last, if the new one is about the same."""
    if work is None or sent is None:
        return work
    return sent if abs(work - sent) <= _ALIKE * sent else work
