from __future__ import annotations

import pytest

from muntin.testing.golden import (
    Advance,
    DeclareStream,
    DeclareTable,
    Execute,
    Explain,
    GoldenScriptError,
    Late,
    Out,
    Register,
    Restart,
    ScriptAnswer,
    ScriptDrop,
    ScriptFeed,
    ScriptRow,
    ScriptSetting,
    ScriptState,
    StreamDeclaration,
    read_script,
)

SCRIPT = """\
# about: everything a script can say

stream A (k int, "my v" decimal(4, 1)) slack 1.5
stream "odd one" (at timestamp, k int) time at
table T (k int, n varchar)
1 'set'
2 NULL
set expiry = 'lazy'
query q: SELECT k
  FROM A WINDOW 10 SECONDS
# a remark
feed A
1.5  7 2.5
NULL 7 2.5
error: first
error: second
advance -5
out q
+ 1.5 7
out q
(empty)
answer q
7
state A=1 odd=2
late A
(empty)
explain q
  hash join
  on k
drop q
restart
sql DROP STREAM A;
  SET x = 1
"""


def test_every_command_is_read() -> None:
    script = read_script(SCRIPT)
    assert script.about == "everything a script can say"
    assert [step.action for step in script.steps] == [
        DeclareStream(
            StreamDeclaration(
                "A", (("k", "int"), ("my v", "decimal(4, 1)"), ("ts", "TIMESTAMP")), "ts", 1_500_000
            )
        ),
        DeclareStream(StreamDeclaration("odd one", (("at", "timestamp"), ("k", "int")), "at", 0)),
        DeclareTable(
            "T",
            (("k", "int"), ("n", "varchar")),
            (ScriptRow(6, ("1", "set")), ScriptRow(7, ("2", None))),
        ),
        ScriptSetting("expiry", "'lazy'"),
        Register("q", "SELECT k\n  FROM A WINDOW 10 SECONDS"),
        ScriptFeed("A", (ScriptRow(13, ("1.5", "7", "2.5")), ScriptRow(14, (None, "7", "2.5")))),
        Advance(-5_000_000),
        Out("q", (ScriptRow(19, ("+", "1.5", "7")),)),
        Out("q", ()),
        ScriptAnswer("q", (ScriptRow(23, ("7",)),)),
        ScriptState((("A", 1), ("odd", 2))),
        Late("A", ()),
        Explain("q", ("hash join", "on k")),
        ScriptDrop("q"),
        Restart(),
        Execute("DROP STREAM A;\n  SET x = 1"),
    ]
    feed = script.steps[5]
    assert (feed.line, feed.last_line, feed.errors) == (12, 14, ("first", "second"))


def test_a_stream_declares_itself_in_sql() -> None:
    declared = [
        step.action.declaration
        for step in read_script(SCRIPT).steps
        if isinstance(step.action, DeclareStream)
    ]
    assert [stream.sql for stream in declared] == [
        """CREATE STREAM "A" (k int, "my v" decimal(4, 1), ts TIMESTAMP) WITH (\
time = 'ts', slack = '1500 milliseconds')""",
        """CREATE STREAM "odd one" (at timestamp, k int) WITH (time = 'at')""",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("frobnicate A", "line 1: 'frobnicate' is no command"),
        ("\nstream A", "line 2: write NAME"),
        ("stream A (k)", "line 1: 'k' is not a column"),
        ("query q SELECT", "line 1: write query NAME"),
        ("advance soon", "line 1: 'soon' is not a time"),
        ("set x", "line 1: write set"),
        ("error: x", "line 1: error: stands before"),
        ("feed A\n1 'x", "line 2: a quote is not closed"),
        ("answer q\nadvance 1", "line 1: nothing is written below it"),
        ("state A", "line 1"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(GoldenScriptError, match=message):
        read_script(text)
