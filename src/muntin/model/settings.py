"""Settings: every knob, its values and its meaning, checked when it is set.

Engine-wide settings are given to ``Engine(...)`` or by ``SET``; a query's own ``WITH (...)`` overrides
them for that query.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from functools import cache

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
    "overload": ("queue", "adapt"),
    "policy": (
        "jaqpot",
        "grepp",
        "greedy",
        "knapsack",
        "equal_hj",
        "global_hjpr",
        "ebest_hjp",
        "sbest_hjp",
        "best_hjp",
    ),
    "probe_choice": ("oldest", "newest", "random"),
    "freshness": ("enforce", "measure"),
}
_FACTORS = ("replan_change", "replan_gain")
_SHARES = ("adapt_change", "adapt_gain")
_SINK_OPTIONS = ("sink", "format", "path")
_BYTES = ("index_memory", "window_memory")
_INTERVALS = ("expiry_interval", "reevaluation", "monitoring")
_ENGINE_ONLY = {"max_advance"}
"""Settings of the engine, which a query cannot have of its own."""
_YEARS = re.compile(r"(\d+(?:\.\d+)?)\s*years?\b", re.IGNORECASE)
_MOST_ROWS = 2**31 - 1
_MOST_SEED = 2**62
_LEAST_RESOURCES = 1e-9

DESCRIPTIONS: dict[str, str] = {
    "max_advance": "how far a row may move the time of its stream ahead, e.g. '1 hour'; rows further ahead are set aside like late ones; "
    "off: any distance. A setting of the engine, not of single queries",
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
    "overload": "what happens when streams outrun the machine (paper 5): queue, nothing is left out and results come later; adapt, every "
    "row is stored, but only as many look for partners as there are resources for, so some results are not made",
    "resources": "under adapt, how many rows and intermediate results may look for partners in a second of event time, e.g. '300'; empty: "
    "no limit, or in an engine that runs by itself as many as this machine is measured to manage",
    "monitoring": "under adapt, the length of a cycle of event time: budgets hold for a cycle, and what was counted in it may change them",
    "policy": "under adapt, who may probe: jaqpot, first what keeps results fresh, then the most productive paths; grepp, the most "
    "productive paths only; greedy and knapsack, whole paths; equal_hj, global_hjpr, ebest_hjp, sbest_hjp, best_hjp, by half joins",
    "adapt_change": "under adapt, work out probe budgets anew when a statistic has changed by this share (the paper's epsilon)",
    "adapt_gain": "under adapt, use new probe budgets when they are predicted to give this share of results more (the paper's p)",
    "probe_choice": "under adapt, which rows of a cycle probe when not all may: the oldest, the newest, or random ones",
    "probe_seed": "under adapt, the seed of probe_choice = 'random': the same seed and rows give the same results",
    "state_rows": "under adapt, partial matches that each intermediate state keeps, the last so many however old, as in paper 5; results may "
    "then hold rows that have left their windows, though none older than FRESHNESS; empty: as long as all their rows are inside",
    "freshness": "under adapt, what becomes of results with a row older than FRESHNESS: enforce, they are not made; measure, they are made "
    "and counted",
}


@dataclass(frozen=True)
class Settings:
    """All settings with their defaults; see ``DESCRIPTIONS`` for what they mean."""

    max_advance: str = "1 year"
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
    overload: str = "queue"
    resources: str = ""
    monitoring: str = "1 second"
    policy: str = "jaqpot"
    adapt_change: str = "0.05"
    adapt_gain: str = "0.05"
    probe_choice: str = "oldest"
    probe_seed: str = "0"
    state_rows: str = ""
    freshness: str = "enforce"

    def having(self, name: str, value: object, *, in_query: bool = False) -> Settings:
        """The settings with one changed; ``in_query``: by the WITH of a query, which has options of its sink as well.

        >>> Settings().having("expiry", "lazy").expiry
        'lazy'
        """
        key = name.strip().lower()
        if key not in NAMES:
            if key == "allowed_paths":
                raise SettingError(
                    "a script cannot change allowed_paths",
                    hint="Whoever runs it gives them: Engine(allowed_paths=[...]), or --allow-path on the command line",
                )
            near = get_close_matches(key, (*NAMES, *_SINK_OPTIONS) if in_query else NAMES, 1)
            hint = f"Did you mean {near[0]!r}?" if near else f"There are {', '.join(sorted(NAMES))}"
            raise SettingError(f"there is no setting {name!r}", hint=hint)
        text = str(value).strip()
        if key in _CHOICES:
            text = text.lower()
            if text not in _CHOICES[key]:
                raise SettingError(
                    f"setting {key} cannot be {value!r}",
                    hint=f"It is one of {', '.join(_CHOICES[key])}",
                )
        if key in _INTERVALS and (text or key == "monitoring"):
            _check_interval(key, text)
        if key == "max_advance":
            text = text.lower()
            parse_advance(text)
        if key == "buckets":
            parse_buckets(text)
        if key in _BYTES and text:
            parse_bytes(text)
        if key in _FACTORS:
            _check_factor(key, text)
        if key in _SHARES:
            _check_number(key, text, "a share of at least 0, for example 0.05", least=0.0)
        if key == "resources" and text:
            _check_number(
                key, text, "rows per second, more than 0, for example 300", least=_LEAST_RESOURCES
            )
        if key == "probe_seed" or (key == "state_rows" and text):
            _check_whole(key, text)
        return replace(self, **{key: text})

    def of_query(self, options: tuple[tuple[str, str], ...]) -> Settings:
        """The settings of a query with its own ``WITH (...)`` over these; options of a sink are no settings."""
        settings = self
        for option, value in options:
            if option.strip().lower() in _ENGINE_ONLY:
                hint = f"Give it to the engine, or SET {option.strip().lower()} = {value!r}"
                raise SettingError(f"{option} is not a setting of single queries", hint=hint)
            if option.lower() not in _SINK_OPTIONS:
                try:
                    settings = settings.having(option, value, in_query=True)
                except SettingError as error:
                    raise SettingError(error.fact, hint=error.hint, option=option) from error
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
        """A factor or share setting as a number."""
        return float(getattr(self, name))

    def number(self, name: str) -> float | None:
        """A setting that is a number, None when it is empty."""
        text = getattr(self, name)
        return float(text) if text else None


@cache
def parse_advance(text: str) -> int | None:
    """Return max_advance in microseconds, or None for ``off``; a year has 365 days.

    >>> parse_advance("1 year") == 365 * 86_400_000_000
    True
    """
    if text == "off":
        return None
    days = _YEARS.sub(lambda found: f"{float(found.group(1)) * 365} days", text)
    try:
        _check_interval("max_advance", days)
    except SettingError as error:
        raise SettingError(
            f"setting max_advance cannot be {text!r}", hint=f"{error.hint}; or 'off'"
        ) from error
    return parse_interval(days)


def _check_interval(name: str, text: str) -> None:
    try:
        micros = parse_interval(text)
    except InputError as error:
        raise SettingError(f"setting {name} cannot be {text!r}", hint=error.hint) from error
    if micros <= 0:
        raise SettingError(
            f"setting {name} cannot be {text!r}", hint="Give an interval longer than nothing"
        )


def _check_factor(name: str, text: str) -> None:
    try:
        factor = float(text)
    except ValueError:
        factor = 0.0
    if not 1.0 <= factor < float("inf"):
        raise SettingError(
            f"setting {name} cannot be {text!r}",
            hint="Give a factor of at least 1, for example 1.5",
        )


def _check_number(name: str, text: str, wanted: str, *, least: float) -> None:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not least <= number < float("inf"):
        raise SettingError(f"setting {name} cannot be {text!r}", hint=f"Give {wanted}")


def _check_whole(name: str, text: str) -> None:
    least, most = (1, _MOST_ROWS) if name == "state_rows" else (0, _MOST_SEED)
    if not text.isdecimal() or not least <= int(text) <= most:
        raise SettingError(
            f"setting {name} cannot be {text!r}", hint=f"Give a whole number of at least {least}"
        )


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
            raise SettingError(
                f"setting buckets cannot be {text!r}",
                hint="Write a positive number, or 'A = 5, B = 100'",
            )
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
        raise SettingError(
            f"{text!r} is not a number of bytes", hint="Write for example '64 kB' or '10 MB'"
        )
    return int(number) * unit


NAMES = tuple(field.name for field in fields(Settings))
assert set(DESCRIPTIONS) == set(NAMES), "every setting is described"
