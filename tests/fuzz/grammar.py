"""Random valid queries, from the types of the columns up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.fuzz.values import NUMBERS, Draw

SETS = ("UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL", "MINUS")
WHOLE = (
    *("COUNT(*)", "COUNT({x})", "SUM({x})", "AVG({x})", "MIN({x})", "MAX({x})"),
    *(
        "COUNT(DISTINCT {x})",
        "MEDIAN({x})",
        "QUANTILE_DISC({x}, 0.3)",
        "SUM({x}) FILTER (WHERE {y} > 1)",
    ),
    *("MAX({x}) - MIN({x})", "SUM(DISTINCT {x})", "COUNT({x}) + 1"),
)
BY_TIME = ("FIRST({x})", "LAST({x})", "LAST({x}) FILTER (WHERE {y} > 0)")


@dataclass(frozen=True)
class Relation:
    """A stream or table that queries can read."""

    name: str
    columns: Mapping[str, str]
    stored: bool = False


@dataclass
class Entry:
    """An entry of FROM, with its columns by kind."""

    text: str
    alias: str
    numbers: list[str]
    texts: list[str]
    others: list[str]
    stored: bool = False
    select: bool = False


@dataclass
class Drawn:
    """A query and the parts it was built from."""

    sql: str
    features: set[str] = field(default_factory=set)
    risky: bool = False
    """Whether an expression may fail on some row, so that the oracle cannot be asked."""


class Grammar:
    """Draws queries over some relations."""

    def __init__(self, draw: Draw, relations: Sequence[Relation]) -> None:
        self._draw = draw
        self._relations = relations
        self._streams = [relation for relation in relations if not relation.stored]
        self._features: set[str] = set()
        self._risky = False

    def query(self) -> Drawn:
        """Return a query with all its clauses."""
        draw = self._draw
        self._features, self._risky = set(), False
        if draw.random() < 0.5:
            body = self._join()
            above = False
        else:
            body = self._selects(2, draw.randint(1, 2))
            above = bool(self._features & {"distinct", "group", "global", "set", "sub-select"})
        clauses = [f"WINDOW {self._window()}"]
        every = draw.random() < 0.25
        if every:
            clauses.append(
                f"EVERY {draw.choice(['1 SECOND', '2 SECONDS', '3 SECONDS', '500 MILLISECONDS'])}"
            )
            self._features.add("every")
        emits = ["", "", "EMIT CHANGES", "EMIT INSERTS"] + (
            ["EMIT SNAPSHOT"] if every and above else []
        )
        if emit := draw.choice(emits):
            clauses.append(emit)
            self._features.add(emit.lower())
        if not above and draw.random() < 0.05:
            clauses.append("FRESHNESS 1 MINUTE")
            self._features.add("freshness")
        if draw.random() < 0.12:
            name, value = self.setting()
            clauses.append(f"WITH ({name} = '{value}')")
            self._features.add("with")
        return Drawn(f"{body} {' '.join(clauses)}", self._features, self._risky)

    def setting(self) -> tuple[str, str]:
        """Return a setting that leaves results as they are."""
        return self._draw.choice(SETTINGS)

    # -- joins -------------------------------------------------------------------------------------

    def _join(self) -> str:
        draw = self._draw
        count = draw.choice([1, 1, 2, 2, 2, 3, 3, 4])
        entries = [
            self._entry(0, alias, first=place == 0) for place, alias in enumerate("abcd"[:count])
        ]
        if count > 1 and draw.random() < 0.5:
            entries.reverse()
        self._features.add(f"{count} sources")
        links = [self._link(entries[:place], entries[place]) for place in range(1, count)]
        conditions = [self._condition(entries, 2) for _ in range(draw.choice([0, 0, 0, 1, 1, 2]))]
        if count > 1 and all(links) and draw.random() < 0.3:
            source = entries[0].text + "".join(
                f" JOIN {e.text} ON {link}" for e, link in zip(entries[1:], links, strict=True)
            )
            self._features.add("join on")
        else:
            source = ", ".join(entry.text for entry in entries)
            conditions = [link for link in links if link] + conditions
        if conditions:
            self._features.add("where")
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return f"SELECT {self._items(entries)} FROM {source}{where}"

    def _link(self, earlier: list[Entry], entry: Entry) -> str:
        draw = self._draw
        other = draw.choice(earlier)
        left, right = draw.choice(other.numbers), draw.choice(entry.numbers)
        kind = draw.choice(
            ["key", "key", "key", "any", "text", "expression", "theta", "both", "none"]
        )
        if kind == "key":
            return f"{earlier[0].alias}.k = {entry.alias}.k"
        if kind == "text" and other.texts and entry.texts:
            return f"{other.texts[0]} = {entry.texts[0]}"
        if kind == "expression":
            return f"{left} + 1 = {right}"
        if kind == "theta":
            return f"{left} {draw.choice(['<', '<=', '>', '>=', '<>'])} {right}"
        if kind == "both":
            return f"{other.alias}.k = {entry.alias}.k AND {left} = {right}"
        if kind == "none" and len(earlier) == 1:
            return ""
        return f"{left} = {right}"

    def _entry(self, depth: int, alias: str, *, first: bool) -> Entry:
        draw = self._draw
        if depth and not first and draw.random() < 0.35:
            columns = draw.randint(1, 2)
            body = self._selects(depth - 1, columns)
            self._features.add("sub-select")
            return Entry(
                f"({body}) AS {alias}",
                alias,
                [f"{alias}.c{n}" for n in range(columns)],
                [],
                [],
                select=True,
            )
        relation = draw.choice(self._streams if first else self._relations)
        kinds = relation.columns
        numbers = [f"{alias}.{name}" for name, kind in kinds.items() if kind in NUMBERS]
        texts = [f"{alias}.{name}" for name, kind in kinds.items() if kind == "VARCHAR"]
        others = [
            f"{alias}.{name}" for name in kinds if f"{alias}.{name}" not in (*numbers, *texts)
        ]
        window = ""
        if relation.stored:
            self._features.add("table")
        elif draw.random() < 0.4:
            window = (
                f" [{self._own_window([name for name in kinds if name not in ('o', 'p', 'ts')])}]"
            )
        return Entry(
            f"{relation.name} {alias}{window}", alias, numbers, texts, others, relation.stored
        )

    def _window(self) -> str:
        rows = self._draw.random() < 0.3
        self._features.add("window rows" if rows else "window range")
        return f"{self._draw.randint(1, 4)} ROWS" if rows else f"{self._draw.randint(1, 8)} SECONDS"

    def _own_window(self, names: list[str]) -> str:
        kind = self._draw.choice(["RANGE", "ROWS", "PARTITION BY"])
        self._features.add(f"[{kind.lower()}]")
        if kind == "RANGE":
            return f"RANGE {self._draw.randint(1, 8)} SECONDS"
        rows = f"ROWS {self._draw.randint(1, 4)}"
        return rows if kind == "ROWS" else f"PARTITION BY {self._draw.choice(names)} {rows}"

    def _items(self, entries: list[Entry]) -> str:
        draw = self._draw
        if draw.random() < 0.15 and len(entries) == 1:
            return "*"
        items = [f"{entry.alias}.k AS k{place}" for place, entry in enumerate(entries)]
        if draw.random() < 0.5:
            items = items[:1]
        everything = [
            name for entry in entries for name in (*entry.numbers, *entry.texts, *entry.others)
        ]
        items += [
            f"{name} AS x{place}"
            for place, name in enumerate(draw.sample(everything, min(2, len(everything))))
        ]
        if draw.random() < 0.5:
            items.append(f"{self._number(entries, 2)} AS e")
        texts = [text for entry in entries for text in entry.texts]
        if texts and draw.random() < 0.4:
            items.append(f"{self._text(texts)} AS t")
        return ", ".join(items)

    # -- expressions -------------------------------------------------------------------------------

    def _number(self, entries: list[Entry], depth: int) -> str:
        draw = self._draw
        name = draw.choice([number for entry in entries for number in entry.numbers])
        if not depth or draw.random() < 0.3:
            return name
        self._features.add("expression")
        deeper = self._number(entries, depth - 1)
        forms = [
            f"{name} * 2",
            f"({deeper})::DOUBLE + 1",
            f"CASE WHEN {self._condition(entries, depth - 1)} THEN {name} ELSE {deeper} END",
            f"coalesce({name}, 0)",
            f"abs({name}::DOUBLE)",
            f"greatest({name}, {deeper})",
            f"{name}::BIGINT % 2",
            f"round({deeper}, 1)",
            f"nullif({name}, 1)",
            f"-({name}::DOUBLE)",
        ]
        texts = [text for entry in entries for text in entry.texts]
        if texts:
            forms.append(f"length({draw.choice(texts)})")
        if draw.random() < 0.04:
            self._risky = True
            self._features.add("risky")
            forms = [
                f"{name}::TINYINT + 126::TINYINT",
                *(f"CAST({text} AS INTEGER)" for text in texts),
            ]
        return draw.choice(forms)

    def _text(self, texts: list[str]) -> str:
        name = self._draw.choice(texts)
        forms = (
            f"upper({name})",
            f"{name} || 'x'",
            f"coalesce({name}, '?')",
            f"substr({name}, 1, 1)",
            f"replace({name}, 'a', 'bb')",
        )
        return self._draw.choice(forms)

    def _condition(self, entries: list[Entry], depth: int) -> str:
        draw = self._draw
        names = [number for entry in entries for number in entry.numbers]
        left, right = draw.choice(names), draw.choice(names)
        texts = [text for entry in entries for text in entry.texts]
        forms = [
            f"{left} {draw.choice(['>', '>=', '<', '<=', '=', '<>'])} {draw.randint(0, 3)}",
            f"{left} IS {draw.choice(['', 'NOT '])}NULL",
            f"{left} {draw.choice(['<', '<>', '='])} {right}",
            f"{left} IN (0, 1, 3)",
            f"{left} BETWEEN 1 AND 2",
            f"{left} IS DISTINCT FROM {right}",
        ]
        if texts:
            forms += [
                f"{draw.choice(texts)} LIKE 'a%'",
                f"{draw.choice(texts)} = 'a'",
                f"{draw.choice(texts)} < 'b'",
            ]
        if depth and draw.random() < 0.3:
            other = self._condition(entries, depth - 1)
            return draw.choice(
                [
                    f"({draw.choice(forms)} OR {other})",
                    f"NOT ({other})",
                    f"({other} AND {draw.choice(forms)})",
                ]
            )
        return draw.choice(forms)

    # -- above joins -------------------------------------------------------------------------------

    def _selects(self, depth: int, columns: int) -> str:
        draw = self._draw
        if depth and draw.random() < 0.3:
            self._features.add("set")
            sides = [self._selects(depth - 1, columns) for _ in range(2)]
            sides = [f"({side})" if any(name in side for name in SETS) else side for side in sides]
            return f"{sides[0]} {draw.choice(SETS)} {sides[1]}"
        return self._select(depth, columns)

    def _select(self, depth: int, columns: int) -> str:
        draw = self._draw
        entries = [
            self._entry(depth, alias, first=place == 0)
            for place, alias in enumerate("xyz"[: draw.choice([1, 1, 1, 2, 2, 3])])
        ]
        conditions = [self._condition(entries, 1)] if draw.random() < 0.4 else []
        for place in range(1, len(entries)):
            other = entries[draw.randrange(place)]
            conditions += (
                [f"{draw.choice(other.numbers)} = {draw.choice(entries[place].numbers)}"]
                if draw.random() < 0.85
                else []
            )
        source = f"FROM {', '.join(entry.text for entry in entries)}" + (
            f" WHERE {' AND '.join(conditions)}" if conditions else ""
        )
        kind = draw.choice(["plain", "distinct", "group", "group", "global"])
        self._features.add(kind)
        if kind in {"plain", "distinct"}:
            items = [f"{self._number(entries, 1)} AS c{place}" for place in range(columns)]
            return f"SELECT {'DISTINCT ' if kind == 'distinct' else ''}{', '.join(items)} {source}"
        numbers = [number for entry in entries for number in entry.numbers]
        functions = WHOLE if any(entry.select for entry in entries) else WHOLE + BY_TIME
        calls = [
            draw.choice(functions).format(x=draw.choice(numbers), y=draw.choice(numbers))
            for _ in range(columns)
        ]
        having = draw.choice(
            ["", "", " HAVING COUNT(*) > 1", f" HAVING MAX({draw.choice(numbers)}) > 1"]
        )
        if having:
            self._features.add("having")
        group = ""
        if kind == "group":
            texts = [text for entry in entries for text in entry.texts]
            key = draw.choice([*numbers, *texts, f"{draw.choice(numbers)}::BIGINT % 2"])
            group = f" GROUP BY {key}"
            if key not in texts and draw.random() < 0.5:
                calls[0] = key
        items = [f"{call} AS c{place}" for place, call in enumerate(calls)]
        return f"SELECT {', '.join(items)} {source}{group}{having}"


SETTINGS = (
    ("expiry", "lazy"),
    ("expiry", "eager"),
    ("expiry", "probe"),
    ("expiry", "probe_all"),
    ("expiry_interval", "2 seconds"),
    ("join", "nested_loop"),
    ("join", "hybrid"),
    ("algorithm", "naive"),
    ("algorithm", "eager"),
    ("algorithm", "general_lazy"),
    ("algorithm", "lazy"),
    ("sharing", "off"),
    ("scheduler", "lwo"),
    ("scheduler", "swf"),
    ("pipeline", "negative"),
    ("pipeline", "hybrid"),
    ("pipeline", "probing"),
    ("replan", "off"),
    ("replan_change", "1.01"),
    ("tree", "off"),
    ("buckets", "1"),
    ("index_memory", "1 kB"),
)
