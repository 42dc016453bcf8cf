"""Reading a script without running it: what ``check`` and ``explain`` do, and ``run`` before it starts Spark."""

from __future__ import annotations

from pathlib import Path

from muntin.engine.declarations import Actions, Declarations, run_script
from muntin.errors import InputError
from muntin.plan.join import JoinPlan
from muntin.plan.pipeline import Pipeline, PipelinePlan
from muntin.plan.query import Query
from muntin.plan.statement import Drop


def read_text(path: Path) -> str:
    """The text of a script."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise InputError(f"there is no file {str(path)!r}", hint="Check the path") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {str(path)!r}: {error}", hint="It must be a text file in UTF-8") from error


def read_app(path: Path) -> list[JoinPlan | PipelinePlan]:
    """The plans of the queries that a script leaves registered, in order."""
    declared = Declarations()
    plans: dict[str, JoinPlan | PipelinePlan] = {}

    def add_query(query: Query) -> None:
        _, plans[query.name] = declared.planned_pipeline(query) if isinstance(query, Pipeline) else declared.planned(query)
        declared.add_query(query)

    def drop(statement: Drop) -> None:
        if statement.kind != "query":
            declared.drop_relation(statement.kind, statement.name, if_exists=statement.if_exists)
            return
        dropped = declared.drop_query(statement.name, if_exists=statement.if_exists)
        if dropped is not None:
            del plans[dropped.name]

    run_script(read_text(path), declared, Actions(declared.add_stream, declared.add_table, add_query, drop))
    return list(plans.values())
