"""The registry selects one tactic for every way to evaluate a join, without isinstance."""

from __future__ import annotations

import pyarrow as pa
import pytest

from muntin.model.catalog import Catalog, Stream
from muntin.model.settings import Algorithm, Settings
from muntin.operators.join.registry import TACTICS, TacticOptions, tactic_name
from muntin.operators.join.schedule import Schedule
from muntin.planner.join_planner import plan_join
from muntin.schedule.levels import Levels
from muntin.sql.script import read_query

SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))])
TWO = "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 1 SECOND"
THREE = "SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 1 SECOND"
IN_TURNS = TacticOptions(Schedule(Levels(((1, 1),), (1,), (1, 0), (1, 1)), "lwo"))


@pytest.mark.parametrize(
    ("sql", "settings", "options", "name"),
    [
        (TWO, {}, TacticOptions(), "equi_join"),
        (TWO, {}, IN_TURNS, "shared"),
        (TWO, {"expiry": "eager"}, TacticOptions(), "eager"),
        (TWO, {"algorithm": "naive"}, TacticOptions(), "naive"),
        (TWO, {"algorithm": "lazy"}, TacticOptions(), "lazy"),
        (THREE, {"algorithm": "general_lazy"}, TacticOptions(), "general_lazy"),
        (THREE, {"tree": "((A, B), C)"}, TacticOptions(), "tree"),
        (THREE, {"tree": "off"}, TacticOptions(), "eager"),
        (TWO, {"overload": "adapt"}, TacticOptions(), "budgeted"),
        (f"{TWO} EMIT CHANGES", {"pipeline": "negative"}, TacticOptions(), "changelog"),
    ],
)
def test_the_plan_names_its_tactic(
    sql: str, settings: dict[str, str], options: TacticOptions, name: str
) -> None:
    catalog = Catalog()
    for stream in "ABC":
        catalog.add(Stream(stream, SCHEMA, "ts"))
    assert (
        tactic_name(plan_join(read_query(sql, "q", catalog), Settings.of(**settings)), options)
        == name
    )


def test_every_algorithm_is_registered() -> None:
    assert {algorithm.value for algorithm in Algorithm} <= set(TACTICS)
