"""The declaration of one setting, from which its field, checks, messages and reference come."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, Generic, TypeVar

from muntin.errors import SettingError
from muntin.model.settings.values import Choices, Parse, RefusedValueError

T = TypeVar("T")
_KEY = "setting"


@dataclass(frozen=True)
class Declaration(Generic[T]):
    """One setting: its name, how its text is parsed, its default and its description.

    Settings are text until they are parsed: users write them in SQL, and they travel to Spark
    partitions and into checkpoints as text.
    """

    name: str
    parser: Parse[T]
    default: str
    description: str
    per_query: bool = True
    compared: bool = True
    """Whether queries need equal values to share a join."""

    def parse(self, value: object) -> tuple[str, T]:
        """Return the text of a value, as it travels, and the parsed value."""
        written = str(value).strip()
        text = written.lower() if isinstance(self.parser, Choices) else written
        try:
            return text, self.parser(text)
        except RefusedValueError as refusal:
            fact = refusal.fact or f"setting {self.name} cannot be {written!r}"
            raise SettingError(fact, hint=refusal.hint) from refusal


def setting(  # noqa: PLR0913 (a declaration is a row of a table)
    name: str,
    parser: Parse[T],
    default: str,
    description: str,
    *,
    per_query: bool = True,
    compared: bool = True,
) -> T:
    """Declare a setting as a field of the dataclass of its topic."""
    declaration = Declaration(name, parser, default, description, per_query, compared)
    value = declaration.parse(default)[1]
    return field(default=value, compare=compared, metadata={_KEY: declaration})


def declarations_of(topic: type) -> Iterator[tuple[str, Declaration[Any]]]:
    """Yield the settings of a topic, each after the name of its field."""
    for found in fields(topic):
        yield found.name, found.metadata[_KEY]
