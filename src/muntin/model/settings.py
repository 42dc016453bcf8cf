"""Settings: every knob, its values and its meaning, checked when it is set.

Engine-wide settings are given to ``Engine(...)`` or by ``SET``; a query's own ``WITH (...)`` overrides
them for that query.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from difflib import get_close_matches

from muntin.errors import InputError, SettingError
from muntin.model.clock import parse_interval

_CHOICES: dict[str, tuple[str, ...]] = {
    "algorithm": ("auto", "eager", "naive", "lazy", "general_lazy"),
    "join": ("auto", "hash", "nested_loop", "hybrid"),
    "expiry": ("auto", "own", "eager", "lazy", "probe", "probe_insert", "probe_all", "all"),
    "scheduler": ("lwo", "swf", "mqt"),
    "replan": ("on", "off"),
    "sharing": ("on", "off"),
    "pipeline": ("auto", "input", "probing", "negative", "hybrid"),
}
_FACTORS = ("replan_change", "replan_gain")
_SINK_OPTIONS = {"sink", "format", "path"}
_BYTES = ("index_memory", "window_memory")
_INTERVALS = ("expiry_interval", "reevaluation")

DESCRIPTIONS: dict[str, str] = {
    "algorithm": "paper 3's join algorithm; auto is eager, which is the fastest here",
    "join": "hash: an index on every window (an error where no equality allows it); nested_loop: none; "
    "hybrid and auto: an index wherever an equality allows it",
    "order": "join order: 'A, B, C' for all origins, or 'A: B, C; B: C, A; ...' for each origin; under naive and "
    "general_lazy an origin's own list may place the origin itself anywhere",
    "index": "aliases whose windows may have an index, e.g. 'A, C'; empty: all",
    "buckets": "buckets of the hash indexes: a number, or 'A = 5, B = 100'; empty: about two a row",
    "index_memory": "most bytes of buckets of a query's indexes, e.g. '64 kB': buckets go where they are predicted to save most; "
    "empty: no limit",
    "window_memory": "most bytes that the windows of a query may take, e.g. '8 GB': one whose windows surely take more is refused; "
    "empty: the memory of this machine",
    "tree": "whether a join of three or more sources keeps intermediate results in a binary tree: auto (where it is predicted "
    "to pay; never under nested_loop or index_memory), "
    "off, or a tree such as '((A, B), C)'",
    "expiry": "when rows outside their windows are let go: auto (what is predicted to cost least), own (as rows come), "
    "eager (all windows at each arrival), "
    "lazy (at multiples of expiry_interval), or paper 4's probe, probe_insert, probe_all, all",
    "expiry_interval": "interval of lazy expiry, e.g. '5 seconds'; empty: what is predicted to cost least",
    "reevaluation": "interval at which lazy and general_lazy join what has come; empty: EVERY of the query, else each batch",
    "replan": "whether join orders follow measured rates and numbers of keys while a query runs (three streams or more)",
    "replan_change": "search for a better order when a measured statistic has changed by this factor since the last search",
    "replan_gain": "switch when the order in use is predicted to cost this many times the best one",
    "sharing": "whether queries over the same streams with the same join conditions use one join with the largest windows",
    "scheduler": "order of work among queries of different windows that share a join (paper 1): lwo, the largest window only; swf, the "
    "smallest window first; mqt, what serves most queries in the least time",
    "pipeline": "who takes back what leaves time windows, where changes are asked for (paper 2): negative, the join looks a row up again "
    "when it leaves; hybrid, results are kept above the join until they end; probing, every operator lets go of its rows by its own "
    "clock; input, the same only when rows come, so results are late; auto, the fastest: hybrid for joins by equalities, else negative",
}


@dataclass(frozen=True)
class Settings:
    """All settings with their defaults; see ``DESCRIPTIONS`` for what they mean."""

    algorithm: str = "auto"
    join: str = "auto"
    order: str = ""
    index: str = ""
    buckets: str = ""
    index_memory: str = ""
    window_memory: str = ""
    tree: str = "auto"
    expiry: str = "auto"
    expiry_interval: str = ""
    reevaluation: str = ""
    sharing: str = "on"
    scheduler: str = "mqt"
    pipeline: str = "auto"
    replan: str = "on"
    replan_change: str = "1.5"
    replan_gain: str = "1.2"

    def having(self, name: str, value: object) -> Settings:
        """The settings with one changed.

        >>> Settings().having("expiry", "lazy").expiry
        'lazy'
        """
        key = name.strip().lower()
        if key not in NAMES:
            near = get_close_matches(key, NAMES, 1)
            hint = f"Did you mean {near[0]!r}?" if near else f"There are {', '.join(sorted(NAMES))}"
            raise SettingError(f"there is no setting {name!r}", hint=hint)
        text = str(value).strip()
        if key in _CHOICES:
            text = text.lower()
            if text not in _CHOICES[key]:
                raise SettingError(f"setting {key} cannot be {value!r}", hint=f"It is one of {', '.join(_CHOICES[key])}")
        if key in _INTERVALS and text:
            _check_interval(key, text)
        if key == "buckets":
            parse_buckets(text)
        if key in _BYTES and text:
            parse_bytes(text)
        if key in _FACTORS:
            _check_factor(key, text)
        return replace(self, **{key: text})

    def of_query(self, options: tuple[tuple[str, str], ...]) -> Settings:
        """The settings of a query with its own ``WITH (...)`` over these; options of a sink are no settings."""
        settings = self
        for option, value in options:
            if option.lower() not in _SINK_OPTIONS:
                settings = settings.having(option, value)
        return settings

    def interval(self, name: str) -> int | None:
        """An interval setting in microseconds, None when it is empty."""
        text = getattr(self, name)
        return parse_interval(text) if text else None

    def memory(self, name: str) -> int | None:
        """A setting of memory in bytes, None when it is empty."""
        text = getattr(self, name)
        return parse_bytes(text) if text else None

    def factor(self, name: str) -> float:
        """A factor setting as a number."""
        return float(getattr(self, name))


def _check_interval(name: str, text: str) -> None:
    try:
        micros = parse_interval(text)
    except InputError as error:
        raise SettingError(f"setting {name} cannot be {text!r}", hint=error.hint) from error
    if micros <= 0:
        raise SettingError(f"setting {name} cannot be {text!r}", hint="Give an interval longer than nothing")


def _check_factor(name: str, text: str) -> None:
    try:
        factor = float(text)
    except ValueError:
        factor = 0.0
    if not 1.0 <= factor < float("inf"):
        raise SettingError(f"setting {name} cannot be {text!r}", hint="Give a factor of at least 1, for example 1.5")


def parse_buckets(text: str) -> tuple[int | None, dict[str, int]]:
    """The number of buckets for all windows, and those of single aliases.

    >>> parse_buckets("A = 5, B = 10")
    (None, {'a': 5, 'b': 10})
    """
    everywhere: int | None = None
    single: dict[str, int] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        before, equals, after = part.partition("=")
        alias, number = (before.strip(), after) if equals else ("", before)
        nameless = bool(equals) and not alias
        if nameless or not number.strip().isdecimal() or not 0 < int(number) <= 2**31 - 1:
            raise SettingError(f"setting buckets cannot be {text!r}", hint="Write a positive number, or 'A = 5, B = 100'")
        if equals:
            single[alias.casefold()] = int(number)
        else:
            everywhere = int(number)
    return everywhere, single


def parse_bytes(text: str) -> int:
    """A number of bytes, also in kB, MB or GB.

    >>> parse_bytes("64 kB")
    64000
    """
    number, unit = text.strip(), 1
    for name, factor in (("gb", 10**9), ("mb", 10**6), ("kb", 10**3), ("b", 1)):
        if number.lower().endswith(name):
            number, unit = number[: -len(name)].strip(), factor
            break
    if not number.isdecimal() or not 0 < int(number) * unit < 2**62:
        raise SettingError(f"{text!r} is not a number of bytes", hint="Write for example '64 kB' or '10 MB'")
    return int(number) * unit


NAMES = tuple(field.name for field in fields(Settings))
assert set(DESCRIPTIONS) == set(NAMES), "every setting is described"
