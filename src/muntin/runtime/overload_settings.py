"""Settings of overload that have no effect on a join, and why."""

from __future__ import annotations

from muntin.model.settings import AllocationPolicy, OverloadMode, ProbeCost, Settings

_BY_HALF_JOINS = frozenset({
    AllocationPolicy.EQUAL_HJ, AllocationPolicy.GLOBAL_HJPR, AllocationPolicy.EBEST_HJP,
    AllocationPolicy.SBEST_HJP, AllocationPolicy.BEST_HJP,
})  # fmt: skip


def overload_without_effect(
    settings: Settings, *, limited: bool, has_resources: bool = True
) -> dict[str, str]:
    """Return the settings of the controller that were given and have no effect, with reasons.

    ``limited``: the join has probe budgets. ``has_resources``: they are given or derived.
    """
    given, usual = settings.overload, Settings().overload
    changed = {
        "monitoring": given.monitoring != usual.monitoring,
        "adapt_change": given.change != usual.change,
        "adapt_gain": given.gain != usual.gain,
        "probe_cost": given.probe_cost is not ProbeCost.UNIT,
    }
    reason = ""
    if given.mode is not OverloadMode.ADAPT:
        reason = "overload = 'queue' leaves nothing out"
    elif not limited:
        reason = "the join is not limited"
    elif not has_resources:
        reason = "without resources there is no limit"
    if reason:
        return {name: reason for name, is_given in changed.items() if is_given}
    if changed["adapt_gain"] and given.policy in _BY_HALF_JOINS:
        return {"adapt_gain": f"budgets of the policy {given.policy} are always applied"}
    return {}
