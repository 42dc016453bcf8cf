from __future__ import annotations

from muntin.console.access import Access, GuessLimit


def test_guesses_are_limited_and_allowed_again_after_a_while() -> None:
    now = [0.0]
    limit = GuessLimit(burst=3, per_second=0.5, clock=lambda: now[0])
    access = Access("127.0.0.1", 1, limit)
    for _ in range(3):
        assert limit.is_open()
        assert not access.is_token("x")
    assert not limit.is_open()
    assert limit.wait() == 2
    now[0] += 2.0
    assert limit.is_open()
    assert access.is_token(access.token)


def test_tokens_differ_and_are_long() -> None:
    tokens = {Access("127.0.0.1", 1).token for _ in range(100)}
    assert len(tokens) == 100
    assert min(map(len, tokens)) >= 43, "256 bits"


def test_consoles_of_one_machine_do_not_share_a_cookie() -> None:
    assert Access("127.0.0.1", 1).cookie != Access("127.0.0.1", 2).cookie


def test_a_token_of_any_characters_is_only_wrong() -> None:
    access = Access("127.0.0.1", 1)
    assert not access.is_token("\udc80é\x00")
