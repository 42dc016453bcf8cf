"""Broken SQL: valid text with tokens or characters moved, doubled, left out or replaced."""

from __future__ import annotations

import re

from tests.fuzz.values import Draw

_TOKEN = re.compile(r"\w+|\s+|'[^']*'|\S")
_WORDS = (
    *(
        "SELECT",
        "FROM",
        "WHERE",
        "WINDOW",
        "GROUP BY",
        "HAVING",
        "EVERY",
        "EMIT",
        "SNAPSHOT",
        "ORDER BY",
        "LIMIT",
        "JOIN",
        "ON",
    ),
    *(
        "UNION",
        "EXCEPT",
        "MINUS",
        "ALL",
        "DISTINCT",
        "NULL",
        "CAST",
        "AS",
        "CASE",
        "END",
        "OVER",
        "LEFT",
        "LATERAL",
        "WITH",
        "IN",
    ),
    *(
        "ROWS",
        "RANGE",
        "PARTITION BY",
        "SECONDS",
        "MINUTE",
        "FRESHNESS",
        "CREATE",
        "STREAM",
        "DROP",
        "TABLE",
        "SET",
        "EXISTS",
    ),
    *(
        "(",
        ")",
        "[",
        "]",
        ",",
        ";",
        "'",
        '"',
        "--",
        "/*",
        "*/",
        "$$",
        "::",
        "?",
        "$1",
        "#1",
        "->",
        "{",
        "}",
        ".",
        "*",
        "%",
        "||",
        "`",
    ),
    *(
        "1e999",
        "99999999999999999999",
        "0x1F",
        "-1",
        "1_000",
        "''",
        '""',
        "U&'\\0041'",
        "E'\\n'",
        "X'ff'",
        "interval '1' day",
    ),
    *(
        "random()",
        "now()",
        "current_date",
        "read_csv('x')",
        "nextval('s')",
        "query('SELECT 1')",
        "unnest([1])",
        "sum(1)",
        "k.k.k.k",
    ),
)
_ODD = (
    "\ufeff\u200b\u00a0\u2028\u0000\ud7ff\U0001f600\u0301\u202e"
    "\u0131\u0130\u017f\u212a\ufb01'\"\\\t\r\n\x1b"
)


def broken(draw: Draw, sql: str) -> str:
    """Return the text with a few mutations."""
    for _ in range(draw.choice([1, 1, 1, 2, 3, 6])):
        sql = draw.choice([_tokens, _tokens, _tokens, _characters, _nested])(draw, sql)
    return sql


def _tokens(draw: Draw, sql: str) -> str:
    tokens = _TOKEN.findall(sql) or [""]
    place, other = draw.randrange(len(tokens)), draw.randrange(len(tokens))
    match draw.randrange(6):
        case 0:
            del tokens[place]
        case 1:
            tokens.insert(place, f" {draw.choice(_WORDS)} ")
        case 2:
            tokens[place] = draw.choice(_WORDS)
        case 3:
            tokens[place], tokens[other] = tokens[other], tokens[place]
        case 4:
            tokens.insert(place, tokens[other])
        case _:
            tokens = tokens[:place]
    return "".join(tokens)


def _characters(draw: Draw, sql: str) -> str:
    place = draw.randrange(len(sql) + 1)
    match draw.randrange(4):
        case 0:
            return sql[:place] + draw.choice(_ODD) + sql[place:]
        case 1:
            return sql[:place] + sql[place + 1 :]
        case 2:
            return (
                sql[:place]
                + chr(draw.choice([draw.randrange(128), draw.randrange(0x3000), 0x10FFFF]))
                + sql[place + 1 :]
            )
        case _:
            return sql.swapcase()


def _nested(draw: Draw, sql: str) -> str:
    depth = draw.choice([2, 20, 200])
    kind = draw.choice(["(", "NOT ", "-", "CASE WHEN ", "[", "f("])
    place = draw.randrange(len(sql) + 1)
    return sql[:place] + kind * depth + sql[place:]
