"""What a start would do with a checkpoint, found out without changing anything.

The same checks and comparisons as those of a start (:mod:`muntin.spark.driver.resume`), made
without a claim: a checkpoint that an engine is using can be looked at, as it is at this moment.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from muntin.errors import MuntinError
from muntin.spark.driver.engine_parts import EngineParts
from muntin.spark.driver.resume import check_sinks, claims_of, deletes_output
from muntin.spark.driver.resume_plan import Action, Decision, decide, refusal
from muntin.spark.exchange.deployment import DeployedQuery

Result = TypeVar("Result")

_REMAINS = "what its sink has received remains there"
_WORDS = {
    Action.KEEP: "continues",
    Action.START: "starts",
    Action.RESTART: f"starts again; {_REMAINS}",
    Action.REPLACE: f"starts again; {_REMAINS}",
    Action.DROP: f"is not declared any more; {_REMAINS}",
    Action.REFUSE: "cannot continue",
}
_DELETED = "starts again; its earlier results are deleted"


@dataclass(frozen=True)
class QueryOutlook:
    """What a start would do with a query, and why; ``reason`` may be empty."""

    name: str
    action: str
    reason: str


@dataclass(frozen=True)
class StartPlan:
    """What a start would do.

    Parameters
    ----------
    checkpoint : str
        The folder or URL.
    batch : int
        The last complete batch, or -1.
    partitions : tuple of int
        The number of partitions of the state in the checkpoint, 0 if it has none, and of the start.
    queries : tuple of QueryOutlook
        The declared queries, then those that would be dropped. Empty if the checkpoint cannot be
        compared with what is declared.
    errors : tuple of MuntinError
        Why the start would be refused; it would succeed if there are none.
    """

    checkpoint: str
    batch: int
    partitions: tuple[int, int]
    queries: tuple[QueryOutlook, ...]
    errors: tuple[MuntinError, ...]

    def lines(self) -> list[str]:
        """Return the plan as text."""
        held, wanted = self.partitions
        state = f"batch {self.batch} is complete" if self.batch >= 0 else "no batch is complete"
        lines = [f"{self.checkpoint}: {state}"]
        if held and held != wanted:
            lines.append(f"state: redistributed from {held} to {wanted} partitions")
        width = max((len(one.name) for one in self.queries), default=0)
        lines += [f"{one.action:7}  {one.name:{width}}  {one.reason}" for one in self.queries]
        return lines

    def to_dict(self) -> dict[str, object]:
        """Return the plan for machines."""
        return {
            "checkpoint": self.checkpoint,
            "batch": self.batch,
            "partitions": {"before": self.partitions[0] or None, "after": self.partitions[1]},
            "starts": not self.errors,
            "queries": [vars(one) for one in self.queries],
            "errors": [str(error) for error in self.errors],
        }


def plan_start(parts: EngineParts, partitions: int) -> StartPlan:
    """Return what a start with a number of partitions would do; nothing is written."""
    checkpoint, state = parts.checkpoint, parts.state
    declared = parts.registry.deployment(partitions)
    errors = _Errors()
    errors.check(lambda: state.replacement.check(query.name for query in declared.queries))
    stored = errors.check(lambda: checkpoint.stored(declared, state.replacement))
    if errors.found:
        decisions: dict[str, Decision] = {}
    elif stored is None:
        decisions = {query.name: Decision(Action.START, query) for query in declared.queries}
    else:
        errors.check(checkpoint.logs.check_intact)
        errors.check(checkpoint.logs.check_inputs)
        decisions = decide(stored.deployment, declared, frozenset(state.dropped), state.replacement)
    refused = {name: one for name, one in decisions.items() if one.action is Action.REFUSE}
    if refused:
        errors.found.append(refusal(refused, state.replacement))
    ends = {Action.DROP, Action.REFUSE}
    written = [one.query for one in decisions.values() if one.action not in ends]
    run = uuid.uuid4().hex if stored is None else stored.run
    errors.check(lambda: check_sinks(parts, claims_of(parts, run, written)))
    running = {} if stored is None else {one.name: one for one in stored.deployment.in_force()}
    held = checkpoint.manifests.state
    return StartPlan(
        checkpoint.name,
        held.batch,
        (len(held.partitions), partitions),
        tuple(_outlook(parts, one, running.get(name)) for name, one in decisions.items()),
        tuple(errors.found),
    )


@dataclass
class _Errors:
    """The errors of checks that are all made, although a start would end with the first."""

    found: list[MuntinError] = field(default_factory=list)

    def check(self, check: Callable[[], Result]) -> Result | None:
        """Return the result of a check, None if it has found an error."""
        try:
            return check()
        except MuntinError as error:
            self.found.append(error)
            return None


def _outlook(parts: EngineParts, decision: Decision, was: DeployedQuery | None) -> QueryOutlook:
    query, words = decision.query, _WORDS[decision.action]
    if decision.action is Action.REPLACE and deletes_output(parts, query.name):
        words = _DELETED
    reason = decision.reason
    if decision.action is Action.REPLACE and not reason:
        reason = "it has not changed, but was named"
    if decision.action is Action.KEEP and was is not None:
        reason = ", ".join(_differences(was, query))
    return QueryOutlook(query.name, decision.action, f"{words}: {reason}" if reason else words)


def _differences(was: DeployedQuery, now: DeployedQuery) -> list[str]:
    """Return what differs in a query that continues nevertheless."""
    found = [
        f"{name} is {now.settings.get(name, 'the default')}, "
        f"was {was.settings.get(name, 'the default')}"
        for name in sorted({*was.settings, *now.settings})
        if was.settings.get(name) != now.settings.get(name)
    ]
    if was.sink != now.sink:
        found.append(f"results go to {now.sink or 'no sink'}, not to {was.sink or 'none'}")
    return found
