"""What there is to tell of a join that is limited under overload."""

from __future__ import annotations

from muntin.engine.overload import Overload
from muntin.engine.plan_tree import Fact, Node
from muntin.model.clock import format_interval


def describe_overload(overload: Overload) -> Node:
    """Whether a join is overloaded, who may probe then, and what was decided last."""
    found = overload.stats()
    limiting = overload.operator.limiting
    resources = found["resources"]
    limit = f"{resources:,.4g} probes a second" if isinstance(resources, float) else "no limit"
    facts = [
        Fact("overloaded", found["overloaded"]),
        Fact("resources", resources, limit),
        Fact("policy", found["policy"], f"policy {found['policy']}"),
        Fact("cycle_seconds", limiting.period / 1e6, f"cycles of {format_interval(limiting.period)}"),
        Fact("share_of_results", found["share_of_results"], f"about {found['share_of_results']:.0%} of the results made"),
        Fact("stale_results", found["stale_results"], f"{found['stale_results']} stale results"),
    ]
    if found["freshness_infeasible"]:
        facts.append(Fact("freshness_infeasible", found["freshness_infeasible"], str(found["freshness_infeasible"])))
    return Node(
        "overload",
        "overload adapt: limited now" if found["overloaded"] else "overload adapt: not limited now",
        tuple(facts),
        (*_allowances(found["allowances"]), *_decisions(found["decisions"])),
        ("allowances", "decisions"),
    )


def _allowances(rates: object) -> list[Node]:
    assert isinstance(rates, dict), "by half-way join"
    nodes = []
    for name, rate in rates.items():
        text = "all" if rate is None else f"{rate:,.4g} a second"
        nodes.append(Node("allowances[]", f"{name}: {text}", (Fact("half_way_join", name), Fact("rate", rate))))
    return nodes


def _decisions(decisions: object) -> list[Node]:
    """The last decision."""
    assert isinstance(decisions, list), "a log"
    nodes = []
    for last in decisions[-1:]:
        facts = tuple(Fact(name, last[name]) for name in ("cycle", "decision", "reason", "predicted", "predicted_before"))
        nodes.append(Node("decisions[]", f"decided after cycle {last['cycle']}: {last['decision']}, since {last['reason']}", facts))
    return nodes
