"""All settings of an engine or a query, parsed, with the rules for changing them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from muntin.errors import SettingError
from muntin.model.formats import did_you_mean
from muntin.model.settings.declaration import Declaration, declarations_of
from muntin.model.settings.overload import OverloadSettings
from muntin.model.settings.topics import (
    ChangesSettings,
    EngineSettings,
    ExpirySettings,
    JoinSettings,
    ReplanSettings,
    SharingSettings,
)


@dataclass(frozen=True)
class Settings:
    """All settings, by topic; without arguments, the defaults.

    Equal values make equal settings, however they were written. ``texts`` holds the texts of those
    that were set, from which the same settings can be made elsewhere.
    """

    engine: EngineSettings = EngineSettings()
    join: JoinSettings = JoinSettings()
    expiry: ExpirySettings = ExpirySettings()
    sharing: SharingSettings = SharingSettings()
    changes: ChangesSettings = ChangesSettings()
    replan: ReplanSettings = ReplanSettings()
    overload: OverloadSettings = OverloadSettings()
    texts: Mapping[str, str] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, **values: object) -> Settings:
        """Return the defaults with some settings changed.

        >>> Settings.of(expiry_interval="2 seconds").expiry.interval
        2000000
        """
        settings = cls()
        for name, value in values.items():
            settings = settings.having(name, value)
        return settings

    def having(self, name: str, value: object) -> Settings:
        """Return the settings with one changed.

        >>> Settings().having("expiry", "lazy").expiry.policy
        <Expiry.LAZY: 'lazy'>
        """
        return self._having(name, value, ())

    def of_query(
        self, options: Iterable[tuple[str, str]], other_options: Collection[str] = ()
    ) -> Settings:
        """Return the settings of a query whose ``WITH (...)`` has these options.

        ``other_options`` are names of options that are not settings, in lower case.
        """
        settings = self
        for option, value in options:
            key = option.strip().lower()
            if key in other_options:
                continue
            if key in DECLARATIONS and not DECLARATIONS[key].per_query:
                hint = f"Give it to the engine, or SET {key} = {value!r}"
                raise SettingError(f"{option} is not a setting of single queries", hint=hint)
            try:
                settings = settings._having(option, value, other_options)
            except SettingError as error:
                raise SettingError(error.fact, hint=error.hint, option=option) from error
        return settings

    def changed(self) -> dict[str, str]:
        """Return the texts of all settings that are written otherwise than their defaults."""
        return {
            name: self.texts[name]
            for name, declared in DECLARATIONS.items()
            if self.texts.get(name, declared.default) != declared.default
        }

    def _having(self, name: str, value: object, other_options: Collection[str]) -> Settings:
        key = name.strip().lower()
        if key not in DECLARATIONS:
            raise _unknown(name, key, other_options)
        text, parsed = DECLARATIONS[key].parse(value)
        topic, attribute = _PLACES[key]
        changed: dict[str, Any] = {
            topic: replace(getattr(self, topic), **{attribute: parsed}),
            "texts": {**self.texts, key: text},
        }
        return replace(self, **changed)


def _unknown(name: str, key: str, other_options: Collection[str]) -> SettingError:
    if key == "allowed_paths":
        return SettingError(
            "a script cannot change allowed_paths",
            hint="Whoever runs it gives them: Engine(allowed_paths=[...]), or --allow-path on the "
            "command line",
        )
    guess = did_you_mean(key, (*DECLARATIONS, *other_options))
    hint = guess or f"There are {', '.join(sorted(DECLARATIONS))}"
    return SettingError(f"there is no setting {name!r}", hint=hint)


def _collected() -> tuple[dict[str, Declaration[Any]], dict[str, tuple[str, str]]]:
    declarations, places = {}, {}
    for topic in fields(Settings):
        if topic.name == "texts":
            continue
        for attribute, declared in declarations_of(type(topic.default)):
            assert declared.name not in declarations, "every setting is declared once"
            declarations[declared.name] = declared
            places[declared.name] = topic.name, attribute
    return declarations, places


DECLARATIONS, _PLACES = _collected()
"""Every setting by name, in the order of its topic."""
