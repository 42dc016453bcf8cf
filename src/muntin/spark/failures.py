"""Extract the cause of a failed run from Spark's report.

The report is pages of Java and Python traces, of which one to three lines matter.
"""

from __future__ import annotations

import re

_JAVA = re.compile(r"^(?:: |Caused by: )[\w.$]+(?:Exception|Error)\b(?:: (?P<text>.*))?$")
_PYTHON = re.compile(r"^(?P<kind>[\w.]+(?:Error|Exception)): (?P<text>.+)$")
_CODE = re.compile(r"^\[[A-Z0-9_.]+\]\s*|\s*SQLSTATE: \w+\s*$")
_EMPTY = re.compile(r"^Job aborted due to stage failure|^An error occurred while calling")
_SOCKET = re.compile(r"TextSocketV2\[host: (\S+), port: (\d+)\]")
_TOO_SLOW = "Python worker failed to connect back"
_MOST = 3


def fact_of(report: str) -> str:
    r"""Return the relevant error: ours, else Python's last, else Java's with its causes.

    >>> fact_of("Traceback\nmuntin.errors.InputError: file 'x' has no column v.\n")
    "file 'x' has no column v"
    """
    lines = [line.strip() for line in report.splitlines() if line.strip()]
    python = [
        found
        for line in lines
        if (found := _PYTHON.match(line))
        and not found["kind"].startswith(("org.", "java.", "py4j."))
    ]
    ours = [found["text"] for found in python if found["kind"].startswith("muntin.")]
    if ours:
        return plain(ours[-1])
    if python:
        return plain(f"{python[-1]['kind'].rpartition('.')[2]}: {python[-1]['text']}")
    java = [
        plain(found["text"]) for line in lines if (found := _JAVA.match(line)) and found["text"]
    ]
    causes = list(dict.fromkeys(text for text in java if text and not _EMPTY.match(text)))
    if any(_TOO_SLOW in line for line in lines):
        return (
            f"{_TOO_SLOW} within ten seconds: the machine is too busy, or its Python does not start"
        )
    chosen = causes if len(causes) <= _MOST else [*causes[: _MOST - 1], causes[-1]]
    if chosen:
        return ": ".join(chosen)
    first = plain(
        lines[0].partition(" terminated with exception: ")[2] or lines[0]
        if lines
        else "no reason was given"
    )
    sockets = dict.fromkeys(f"{host}:{port}" for host, port in _SOCKET.findall(report))
    return f"{first}. Sockets that it reads: {', '.join(sockets)}" if sockets else first


def plain(text: str) -> str:
    """Return a text without Spark's codes and the period."""
    return _CODE.sub("", _CODE.sub("", text)).strip().rstrip(".")
