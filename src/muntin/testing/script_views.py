"""The views that the statements of a golden script declare and drop."""

from __future__ import annotations

from muntin.model.catalog import Catalog
from muntin.plan.statement import CreateView, DropStatement, Statement
from muntin.sql.script import read_script


def declare_views(sql: str, catalog: Catalog) -> list[Statement]:
    """Add and remove the views of some statements; return the statements about anything else."""
    others: list[Statement] = []
    for statement in read_script(sql, catalog):
        match statement:
            case CreateView(view):
                catalog.add_view(view)
            case DropStatement("view", name):
                catalog.remove_view(name)
            case _:
                others.append(statement)
    return others
