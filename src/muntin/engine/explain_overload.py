"""The description of a join that is limited under overload."""

from __future__ import annotations

from muntin.model.clock import format_interval
from muntin.plan.description import Description, Fact
from muntin.runtime.overload import Overload


def describe_overload(overload: Overload) -> Description:
    """Return whether a join is overloaded, who may probe then, and what was decided last."""
    adapter, limiter = overload.adapter, overload.limiter
    policy, period, stale = (
        adapter.config.policy,
        limiter.limiting.period,
        limiter.stale_results(),
    )
    limit, price = overload.resources, adapter.price
    unit = "probes" if adapter.config.costs is None else "units of work"
    tuned, together = adapter.config, adapter.cycles_observed_together
    change, gain = adapter.thresholds.change, adapter.thresholds.gain
    facts = [
        Fact("overloaded", adapter.overloaded),
        Fact(
            "resources", limit, "no limit" if limit is None else f"{limit:,.4g} {unit} per second"
        ),
        Fact(
            "cost_per_probe",
            price,
            "" if adapter.config.costs is None else f"{price:.3g} units per probe",
        ),
        Fact("policy", policy, f"policy {policy}"),
        Fact("cycle_seconds", period / 1e6, f"cycles of {format_interval(period)}"),
        Fact("cycles_observed_together", together, f"observed every {together}" * (together > 1)),
        Fact(
            "adapt_change", change, f"analyzed above {change:.2%}" if tuned.change is None else ""
        ),
        Fact("adapt_gain", gain, f"changed for {gain:.2%} more" if tuned.gain is None else ""),
        Fact("share_of_results", adapter.share, f"about {adapter.share:.0%} of the results made"),
        Fact("stale_results", stale, f"{stale} stale results"),
        Fact("freshness_infeasible", adapter.infeasible, adapter.infeasible or ""),
    ]
    label = (
        "overload adapt: limited now" if adapter.overloaded else "overload adapt: not limited now"
    )
    return Description(
        "overload",
        label,
        tuple(facts),
        (*_budgets(overload), *_decisions(overload)),
        ("budgets", "decisions"),
    )


def _budgets(overload: Overload) -> list[Description]:
    nodes = []
    for name, rate in overload.budgets().items():
        text = "all" if rate is None else f"{rate:,.4g} a second"
        nodes.append(
            Description(
                "budgets[]",
                f"{name}: {text}",
                (Fact("half_way_join", name), Fact("probes_a_second", rate)),
            )
        )
    return nodes


def _decisions(overload: Overload) -> list[Description]:
    """Return the last decision."""
    nodes = []
    for last in list(overload.adapter.decisions)[-1:]:
        texts = {name: str(last[name]) for name in ("cycle", "decision", "reason")}
        label = (
            f"decided after cycle {texts['cycle']}: {texts['decision']}, since {texts['reason']}"
        )
        nodes.append(
            Description(
                "decisions[]", label, tuple(Fact(name, text) for name, text in texts.items())
            )
        )
    return nodes
