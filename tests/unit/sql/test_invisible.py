from __future__ import annotations

import pytest

from muntin.errors import SqlError
from muntin.sql.lexer import tokenize

INVISIBLE = [
    "\ufeff", "\u200b", "\u200d", "\u2060", "\u00a0", "\u00ad", "\u1680", "\u2009", "\u202e",
    "\u2028", "\u2029", "\u3000",
    "\u3164", "\ufe0f", "\x01", "\x0b", "\x0c", "\x1f", "\x7f", "\x85", "\U000e0061",
]  # fmt: skip


@pytest.mark.parametrize("mark", INVISIBLE, ids=lambda mark: f"U+{ord(mark):04X}")
@pytest.mark.parametrize("text", ["SELECT\n  random{}()", "SELECT\n a {} b", "SELECT\n1{}"])
def test_invisible_characters_outside_quotes_are_refused_with_their_place(
    text: str, mark: str
) -> None:
    line = text.split("\n")[1]
    with pytest.raises(
        SqlError,
        match=(
            r"^line 2, column "
            rf"{line.index('{') + 1}: an invisible character \(U\+{ord(mark):04X}"
        ),
    ):
        tokenize(text.format(mark))


@pytest.mark.parametrize("mark", INVISIBLE, ids=lambda mark: f"U+{ord(mark):04X}")
@pytest.mark.parametrize("text", ["'a{}b'", '"a{}b"', "$$a{}b$$", "x -- a{}b\n", "x /* a{}b */"])
def test_quotes_and_comments_may_contain_any_character(text: str, mark: str) -> None:
    assert len(tokenize(text.format(mark))) == 1


def test_letters_of_all_scripts_and_a_byte_order_mark_at_the_start_are_fine() -> None:
    assert [token.text for token in tokenize("\ufeffGröße 温度 Темп")] == ["Größe", "温度", "Темп"]
