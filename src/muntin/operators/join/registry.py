"""The tactics of a join by name, the one that runs a plan, and the operator around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from muntin.expressions.evaluator import Evaluator
from muntin.operators.join.budgeted import BudgetedTactic
from muntin.operators.join.changelog import ChangelogTactic
from muntin.operators.join.driver import JoinOperator, JoinTactic
from muntin.operators.join.lazy import LazyTactic
from muntin.operators.join.probe_limiter import ProbeControl
from muntin.operators.join.program import is_equi_join
from muntin.operators.join.schedule import Schedule
from muntin.operators.join.shared import SharedTactic
from muntin.operators.join.tree import JoinTree, TreeTactic
from muntin.operators.join.windows import JoinWindows
from muntin.operators.workspace import ResultBuffer, Workspace
from muntin.plan.join import JoinPlan


@dataclass(frozen=True)
class TacticOptions:
    """What a tactic is given besides the plan: how its work is ordered, who decides on budgets."""

    schedule: Schedule | None = None
    control: ProbeControl | None = None


@dataclass(frozen=True)
class Tools:
    """What the operators of an engine share."""

    evaluator: Evaluator
    workspace: Workspace


_AT_ONCE = TacticOptions()


def make_join(
    plan: JoinPlan,
    streams: Sequence[str],
    tables: Mapping[str, pa.Table],
    tools: Tools,
    options: TacticOptions = _AT_ONCE,
) -> JoinOperator:
    """Return an operator for a plan over ``streams``, numbered in the order of declaration."""
    windows = JoinWindows(plan, streams)
    buffer = ResultBuffer(tools.workspace, len(plan.sources))
    return JoinOperator(make_tactic(windows, buffer, options), tools.evaluator, tables)


def tactic_name(plan: JoinPlan, options: TacticOptions) -> str:
    """Return the name of the tactic that runs a plan."""
    if plan.retracting:
        return "changelog"
    if plan.limiting is not None:
        return "budgeted"
    if options.schedule is not None:
        return "shared"
    if plan.tree is not None:
        return "tree"
    return "equi_join" if is_equi_join(plan) else plan.algorithm.value


def make_tactic(windows: JoinWindows, buffer: ResultBuffer, options: TacticOptions) -> JoinTactic:
    """Return the tactic that runs the plan of some windows."""
    return TACTICS[tactic_name(windows.plan, options)](windows, buffer, options)


def _plain(tactic: Callable[[JoinWindows, ResultBuffer], JoinTactic]) -> Factory:
    return lambda windows, buffer, _: tactic(windows, buffer)


def _tree(windows: JoinWindows, buffer: ResultBuffer, _: TacticOptions) -> JoinTactic:
    assert windows.plan.tree is not None, "the plan has a tree"
    return TreeTactic(windows, buffer, JoinTree(windows.plan.tree, windows.state))


def _shared(windows: JoinWindows, buffer: ResultBuffer, options: TacticOptions) -> JoinTactic:
    assert options.schedule is not None, "a shared join is scheduled"
    eager = make_tactic(windows, buffer, _AT_ONCE)
    return SharedTactic(windows, buffer, eager, options.schedule)


def _budgeted(windows: JoinWindows, buffer: ResultBuffer, options: TacticOptions) -> JoinTactic:
    tactic = BudgetedTactic(windows, buffer)
    if options.control is not None:
        options.control.attach(tactic.limiter)
    return tactic


Factory = Callable[[JoinWindows, ResultBuffer, TacticOptions], JoinTactic]
TACTICS: Mapping[str, Factory] = {
    "eager": _plain(JoinTactic),
    "equi_join": _plain(partial(JoinTactic, is_pair=True)),
    "naive": _plain(JoinTactic),
    "lazy": _plain(LazyTactic),
    "general_lazy": _plain(LazyTactic),
    "tree": _tree,
    "changelog": _plain(ChangelogTactic),
    "budgeted": _budgeted,
    "shared": _shared,
}
