"""Text from outside is marked, bounded, and shows what a reader would not see."""

import pytest

from postroad.agents import outside_text


@pytest.mark.parametrize(
    "text, shown",
    [
        ("Your order", "Your order"),
        ("Grüße, 世界", "Grüße, 世界"),
        ("a\r\nb\x1b[31m", "a\\u{d}\\u{a}b\\u{1b}[31m"),
        ("abc\u202edef\u200b", "abc\\u{202e}def\\u{200b}"),
        ("\U000e0041hidden", "\\u{e0041}hidden"),
        ("\ud800", "\\u{d800}"),
    ],
)
def test_what_cannot_be_seen_is_escaped(text: str, shown: str) -> None:
    assert outside_text.mark(text) == outside_text.OutsideText(shown)


def test_a_body_keeps_its_lines() -> None:
    assert outside_text.mark_body("a\r\n\tb\x00") == outside_text.OutsideText("a\n\tb\\u{0}")
    assert outside_text.mark_body(None) is None


def test_long_text_is_cut_and_says_so() -> None:
    assert outside_text.mark("x" * 1_001) == outside_text.OutsideText("x" * 1_000, truncated=True)
    assert outside_text.mark_body("x" * 20_001) == outside_text.OutsideText("x" * 20_000, truncated=True)
