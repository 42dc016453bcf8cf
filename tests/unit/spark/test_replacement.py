"""Which queries a start replaces, and what it tells the user to type."""

from __future__ import annotations

import pytest

from muntin.errors import CatalogError, SettingError
from muntin.spark.replacement import NOTHING, Replacement


def test_names_are_given_in_any_form_and_case() -> None:
    for given in ("q", ["q"], ("Q",), {"q"}):
        found = Replacement.of(given)
        assert found.allows("Q")
        assert found.restarts("q")
        assert not found.allows("other")
        assert not found.restarts("other")
        assert Replacement.of(found) is found
    assert Replacement.of([]) == Replacement.of(False) == NOTHING


def test_true_is_for_all_queries_and_names_none() -> None:
    found = Replacement.of(True)
    assert found.allows("q")
    assert not found.restarts("q")


@pytest.mark.parametrize("given", [None, 1, [1], ["q", None], {"q": True}, b"q"])
def test_anything_else_is_refused(given: object) -> None:
    with pytest.raises(SettingError, match=r"replace cannot be .*replace=\[\"q\"\], or True"):
        Replacement.of(given)


def test_a_name_that_is_not_declared_is_an_error_with_the_declared_names() -> None:
    named = Replacement(names=("pairs", "Nosuch"))
    with pytest.raises(
        CatalogError, match=r"there is no query 'Nosuch' to replace\. There are Pairs, totals$"
    ):
        named.check(["Pairs", "totals"])
    named.check(["Pairs", "totals", "nosuch"])
    named.finished().check(["totals"])
    Replacement(everything=True).check([])


def test_an_option_in_the_place_of_a_name_is_explained() -> None:
    bare = Replacement(names=("--once",), command="muntin run app.sql --replace --once")
    with pytest.raises(CatalogError, match=r"no query '--once'.*There are q; --replace-all"):
        bare.check(["q"])


def test_remedies_are_what_the_user_has_to_type() -> None:
    assert NOTHING.remedy(["a", "b", "a"]) == 'SparkEngine(..., replace=["a", "b"])'
    assert NOTHING.remedy_for_all() == "SparkEngine(..., replace=True)"
    typed = Replacement(names=("a",), command="muntin run x.sql --replace a")
    assert typed.remedy(["b", "it's"]) == (
        "muntin run x.sql --replace a --replace b --replace 'it'\"'\"'s'"
    )
    assert typed.remedy_for_all() == "muntin run x.sql --replace a --replace-all"
