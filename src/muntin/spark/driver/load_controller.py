"""Control the load of limited queries on Spark [Mukherji11].

Partitions count arrivals, probes and matches. After every batch the driver adds them up for one
adapter per limited join, which divides the probes of the next batches among the half joins. The
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
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from muntin.adapt import Adapter, AnalysisRequest, Sample, analyze
from muntin.errors import SettingError
from muntin.model.clock import BEFORE_ALL
from muntin.model.settings import Settings
from muntin.plan.join import JoinPlan
from muntin.spark.driver.batch_costs import MeasuredBatch
from muntin.spark.driver.batch_pacer import BatchPacer
from muntin.spark.driver.limited_join import LimitedJoin, report_of
from muntin.spark.exchange.controls import NEVER, ControlRow, ProbeLimits

_log = logging.getLogger("muntin")

_LATE = 2.0
"""The trigger intervals of event time above which a batch is late, even without limits."""
_ENOUGH = 1.25
"""Resources over those needed when everything fits, so that overload ends."""
_SLACK = 1.5
"""Work that a partition may have over its share of the last arrivals, without overload."""
_ALIKE = 0.1
"""A limit on work is sent again when it differs by this share."""
_COUNTED = ("arrivals", "probes", "matches", "states")


class LoadController:
    """Limits queries of an engine; ``send`` takes control rows. A separate thread runs analyses."""

    def __init__(
        self, partitions: int, interval: float, send: Callable[[ControlRow], None]
    ) -> None:
        self._partitions = partitions
        self._send = send
        self._pace = BatchPacer(interval)
        self._joins: dict[str, LimitedJoin] = {}
        self._analysts = ThreadPoolExecutor(1, thread_name_prefix="muntin-load")
        self._lock = threading.Lock()
        self._live = self._first = False
        self._batch = -1
        self._began = 0.0
        self._newest = BEFORE_ALL

    def add(self, owner: str, plans: Sequence[JoinPlan], settings: Settings) -> None:
        """Limit the joins of one more query."""
        first = not self._joins
        for plan in plans:
            self._joins[plan.query.name] = LimitedJoin.of(owner, plan, settings)
        if self._live and first and plans:
            self._announce()

    def begin(self) -> None:
        """Begin a live run: freshness and the limit on work hold from its first batch on."""
        self.check_pace()
        self._live = self._first = True
        self._began = 0.0
        if self._joins:
            self._announce()
        with self._lock:
            self._divide({})
            for join in self._joins.values():
                self._send_limits(join)

    def _announce(self) -> None:
        """Send how much event time makes a batch late."""
        micros = round(_LATE * self._pace.interval * 1e6) if self._live else NEVER
        self._send(ControlRow(uuid.uuid4().hex, late_after=micros))

    def release(self) -> None:
        """Remove all limits, even those of an earlier run, for a run over the available input."""
        self._live = False
        if self._joins:
            self._announce()
        for join in self._joins.values():
            shape = join.adapter.shape
            join.adapter, join.rates, join.sent = (
                Adapter(shape, join.adapter.config),
                (None,) * shape.count,
                ((), None, None),
            )
            join.work = None
            limits = ProbeLimits(
                join.plan.query.name,
                ((None,) * shape.count,) * self._partitions,
                (None,) * self._partitions,
            )
            self._send(ControlRow(uuid.uuid4().hex, limits=(limits,)))

    def check_pace(self) -> None:
        """Raise if limits cannot be derived from anything."""
        for join in self._joins.values():
            if join.given is None and not self._pace.interval:
                raise SettingError(
                    f"query {join.owner} cannot adapt to overload: batches begin as soon as the "
                    "last one is done, so none takes too long",
                    hint="Give the engine a trigger, for example trigger='2 seconds', or set "
                    "resources to a number of rows per second",
                )

    def drop(self, name: str) -> None:
        """Stop limiting the joins of a query."""
        self._joins = {of: join for of, join in self._joins.items() if join.owner != name}

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
        taken = [(name, self._sample(name, join, reports)) for name, join in self._joins.items()]
        samples = {name: sample for name, sample in taken if sample is not None}
        fits = self._divide(samples)
        for name, sample in samples.items():
            join = self._joins[name]
            self._follow(join, sample, join.given or self._resources(join, fits=fits))
        for name, join in self._joins.items():
            if name not in samples:
                self._send_limits(join)

    def _divide(self, samples: Mapping[str, Sample]) -> bool:
        """Divide the work of the next batch among queries; return whether it is enough for all.

        A query gets work in proportion to what it would have without limits, as far as that is
        known.
        """
        limit = self._pace.work()
        derived = {name: join for name, join in self._joins.items() if join.given is None}
        needs = {name: self._need(join, samples.get(name)) for name, join in derived.items()}
        total = sum(needs.values())
        for name, join in derived.items():
            share = needs[name] / total if total > 0 else 1 / len(derived)
            join.work = None if limit is None else limit * share
            join.fits = limit is None or total <= limit
        return limit is None or total <= limit

    @staticmethod
    def _resources(join: LimitedJoin, *, fits: bool) -> float | None:
        """Return the resources for which there is work, by what recent probes found."""
        model = join.adapter.model
        if join.work is None or model is None:
            return None
        needed = model.saturation.resources
        if fits:
            return _ENOUGH * needed
        probes, work = (sum(one) for one in zip(*join.found, strict=True))
        fitting = join.work * probes / work if work else join.work / 2
        return min(fitting * join.adapter.price, 0.99 * needed)

    def _sample(
        self, name: str, join: LimitedJoin, reports: Sequence[Mapping[str, Any]]
    ) -> Sample | None:
        """Return the counts of all partitions together; None if no cycle ended."""
        parts = [stats["overload"][name] for stats in reports if name in stats["overload"]]
        if not parts or not max(part["cycles"] for part in parts):
            return None
        arrivals, probes, matches, states = (
            [sum(numbers) for numbers in zip(*(part[what] for part in parts), strict=True)]
            for what in _COUNTED
        )
        join.spread = [part["arrivals"] for part in parts]
        join.stale = sum(part["stale"] for part in parts)
        join.oldest = [max(ages) for ages in zip(*(part["oldest"] for part in parts), strict=True)]
        join.found.append((sum(probes), sum(probes) + sum(matches)))
        unprobed = sum(arrivals) - sum(probes)
        join.unprobed += unprobed
        seconds = join.seconds * max(part["cycles"] for part in parts)
        if not unprobed:
            leaves = arrivals[: join.adapter.shape.leaves]
            join.complete = sum(leaves) / seconds, (sum(probes) + sum(matches)) / seconds
        elif join.fits:
            join.complete = None  # rows find more than they did then
        return Sample(
            self._batch,
            seconds,
            arrivals,
            probes,
            matches,
            states,
        )

    @staticmethod
    def _need(join: LimitedJoin, sample: Sample | None) -> float:
        """Return the work per second of a query without limits, as far as that is known.

        It is the probes and what they find: partial matches, which probe in their turn, and
        results. The averages of the model follow a load that falls over several batches. The work
        of the last batch in which everything probed, at the rate of now, shows it at once. That it
        is too little if rows find more than they did does no harm: the limit on work remains.
        """
        model = join.adapter.model
        if model is None:
            return 0.0 if sample is None else sum(sample.arrivals) / sample.seconds
        flow, leaves = model.saturation, join.adapter.shape.leaves
        need = 2 * sum(flow.probes) - sum(model.rates) + flow.throughput
        if sample is None or join.complete is None or not join.complete[0]:
            return need
        rows, work = join.complete
        growth = sum(sample.arrivals[:leaves]) / sample.seconds / rows
        return min(need, work * growth**leaves)

    def _follow(self, join: LimitedJoin, sample: Sample, resources: float | None) -> None:
        """Pass a sample to the adapter; the limit holds at once, its division after analysis."""
        request = join.adapter.observe(replace(sample, resources=resources))
        self._send_limits(join)
        if request is not None:
            self._analysts.submit(self._analyzed, join, request)

    def _analyzed(self, join: LimitedJoin, request: AnalysisRequest) -> None:
        """Analyze and apply the result; batches continue meanwhile."""
        try:
            recommendation = analyze(request)
        except Exception:  # noqa: BLE001 (whatever it is, batches continue)
            _log.exception(
                "query %s: the analysis of overload failed, probe budgets stay as they are",
                join.plan.query.name,
            )
            with self._lock:
                join.adapter.abandon()
            return
        with self._lock:
            decided = join.adapter.decide(recommendation)
            if decided is not None:
                join.rates = tuple(None if rate < 0 else rate for rate in decided)
                _log.info("query %s: %s", join.plan.query.name, join.adapter.decisions[-1])
            self._send_limits(join)

    def _send_limits(self, join: LimitedJoin) -> None:
        """Send the current limits, if they differ from those sent last."""
        cap, allowed = join.adapter.cap(join.given), join.rates
        if cap is None and join.fits:
            allowed = (None,) * len(join.rates)
        elif cap is None and join.adapter.overloaded:
            cap = join.adapter.cap(join.adapter.resources)
        rates_sent, cap_sent, work_sent = join.sent
        work = _kept(join.work, work_sent)
        if (allowed, cap) == (rates_sent, cap_sent) and work == work_sent:
            return
        join.sent = (allowed, cap, work)
        spread = join.spread or [[0.0] * len(join.rates)]
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
            divided = join.adapter.overloaded and total > 0
            caps.append(None if cap is None else cap * sum(own) / total if divided else cap)
            share = sum(own) / total if total > 0 else 1 / self._partitions
            # The limits of all partitions add up to that of the batch while there is overload.
            slack = 1.0 if join.adapter.overloaded else _SLACK
            works.append(None if work is None else work * min(slack * share, 1.0))
        self._send(
            ControlRow(
                uuid.uuid4().hex,
                limits=(
                    ProbeLimits(join.plan.query.name, tuple(rates), tuple(caps), tuple(works)),
                ),
            )
        )

    def report(self) -> dict[str, dict[str, Any]]:
        """Return the report on each query with limited joins."""
        joins: dict[str, dict[str, LimitedJoin]] = {}
        for name, join in list(self._joins.items()):
            joins.setdefault(join.owner, {})[name] = join
        return {owner: report_of(own) for owner, own in joins.items()}


def _kept(work: float | None, sent: float | None) -> float | None:
    """Return the limit on work to send: the one sent last, if the new one is about the same."""
    if work is None or sent is None:
        return work
    return sent if abs(work - sent) <= _ALIKE * sent else work
