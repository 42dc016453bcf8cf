"""Text from users and data, made safe for terminals and logs.

Names, SQL and values may hold newlines, terminal escapes and characters that reorder text. Printed
unescaped, they forge log lines, repaint the screen or change how a message reads. All text for
people passes through :func:`printable`; JSON and results have their own escapes.
"""

from __future__ import annotations

import logging
import traceback
import unicodedata

_UNSAFE = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Control characters, invisible and reordering ones, surrogates, line and paragraph separators."""
_JOINERS = "\u200c\u200d"
"""Part of ordinary words in several scripts and of emoji; they do not reorder text."""
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_BYTE, _PLANE = 0x100, 0x10000
_INDENT = "    "


def printable(text: object) -> str:
    r"""Return the text on one line, with every unsafe character as a backslash escape.

    >>> printable("a\nb \x1b[31mred\u202e")
    'a\\nb \\x1b[31mred\\u202e'
    """
    plain = str(text)
    if plain.isprintable():  # the usual case, decided in C
        return plain
    return "".join(map(_escaped, plain))


def printable_lines(text: object) -> str:
    r"""Return text with every line made printable; newlines stay.

    >>> printable_lines("a\x07\nb")
    'a\\x07\nb'
    """
    return "\n".join(printable(line) for line in str(text).split("\n"))


def _escaped(char: str) -> str:
    if unicodedata.category(char) not in _UNSAFE or char in _JOINERS:
        return char
    code = ord(char)
    wide = f"\\u{code:04x}" if code < _PLANE else f"\\U{code:08x}"
    return _SHORT.get(char) or (f"\\x{code:02x}" if code < _BYTE else wide)


class PrintableRecords(logging.Filter):
    """Make the messages of a logger printable, whichever handlers write them.

    A traceback keeps its lines but is indented, so none of them can pass for a record.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Escape the message and the traceback of a record, and keep the record."""
        message = record.getMessage()
        safe = printable(message)
        if safe != message:
            record.msg, record.args = safe, ()
        if record.exc_info and record.exc_info[1] is not None and not record.exc_text:
            lines = "".join(traceback.format_exception(record.exc_info[1])).rstrip("\n").split("\n")
            record.exc_text = "\n".join(_INDENT + printable(line) for line in lines)
        return True


LOGGERS = ("muntin", "muntin.spark", "uvicorn", "uvicorn.error")
"""The loggers of the package and of the web console's server; each needs a filter, because filters
are not inherited."""


def make_logs_printable() -> None:
    """Add the filter to the loggers of the package, once."""
    for name in LOGGERS:
        logger = logging.getLogger(name)
        if not any(isinstance(known, PrintableRecords) for known in logger.filters):
            logger.addFilter(PrintableRecords())
