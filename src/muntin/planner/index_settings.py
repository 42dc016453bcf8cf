"""What the settings say about indexes: which sources may have one, and with how many buckets."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from muntin.errors import SettingError
from muntin.model.settings import JoinMethod, Settings
from muntin.plan.query import Query


def given_buckets(query: Query, settings: Settings) -> list[int | None]:
    """Return the buckets of each source's indexes that the settings give, else None."""
    given = settings.join.buckets
    if given is None:
        return [None] * len(query.sources)
    _check_aliases(query, "buckets", {alias for alias, _ in given.by_alias})
    return [given.of(source.alias) for source in query.sources]


def indexed_sources(query: Query, settings: Settings) -> set[int]:
    """Return the sources whose windows may have an index."""
    if settings.join.method is JoinMethod.NESTED_LOOP:
        return set()
    named = settings.join.index
    _check_aliases(query, "index", named)
    return {
        place
        for place, source in enumerate(query.sources)
        if not named or source.alias.casefold() in named
    }


def _check_aliases(query: Query, setting: str, named: AbstractSet[str]) -> None:
    unknown = named - {source.alias.casefold() for source in query.sources}
    if unknown:
        aliases = ", ".join(source.alias for source in query.sources)
        names = ", ".join(sorted(unknown))
        raise SettingError(
            f"setting {setting} names {names}, not in FROM of query {query.name}",
            hint=f"Use {aliases}",
        )
