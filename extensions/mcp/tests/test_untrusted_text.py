"""Text from outside is marked, bounded, and shows what a reader would not see."""

import pytest

from postroad_mcp import untrusted_text


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
    assert untrusted_text.mark(text) == untrusted_text.UntrustedText(shown)


def test_a_body_keeps_its_lines() -> None:
    assert untrusted_text.mark_body("a\r\n\tb\x00") == untrusted_text.UntrustedText("a\n\tb\\u{0}")
    assert untrusted_text.mark_body(None) is None


def test_long_text_is_cut_and_says_so() -> None:
    assert untrusted_text.mark("x" * 1_001) == untrusted_text.UntrustedText("x" * 1_000, truncated=True)
    assert untrusted_text.mark_body("x" * 20_001) == untrusted_text.UntrustedText("x" * 20_000, truncated=True)
