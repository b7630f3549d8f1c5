"""The tables of rules: every entry is well-formed, names a reason that exists, and can be reached."""

import re

import pytest

from postroad.model.bounces import reasons, rules

PHRASES = [(phrase.strip(), reason) for reason, phrases in rules.PHRASES.items() for phrase in phrases.split(",")]
VAGUE_PHRASES = [
    (phrase.strip(), reason) for reason, phrases in rules.VAGUE_PHRASES.items() for phrase in phrases.split(",")
]
# RFC 3463 section 2 without its first part.
DETAIL = re.compile(r"[1-7]\.[0-9]{1,3}")


def test_phrases_are_words_that_a_reply_can_have_and_name_reasons() -> None:
    for phrase, reason in PHRASES + VAGUE_PHRASES:
        assert phrase
        assert phrase == " ".join(re.findall(r"[^\W_]+", phrase.lower()))
        assert reason in reasons.REASONS


@pytest.mark.parametrize("phrases", [PHRASES, VAGUE_PHRASES])
def test_no_phrase_stands_in_the_shadow_of_one_before_it(phrases: list[tuple[str, str]]) -> None:
    for number, (phrase, _) in enumerate(phrases):
        assert [before for before, _ in phrases[:number] if f" {before}" in f" {phrase}"] == [], phrase


def test_codes_are_well_formed_and_name_reasons() -> None:
    for table in (rules.SURE_CODES, rules.LIKELY_CODES):
        assert all(DETAIL.fullmatch(detail) for detail in table)
        assert set(table.values()) <= set(reasons.REASONS)
    assert set(rules.SUBJECTS.values()) <= set(reasons.REASONS)
    assert set(rules.BASIC_CODES.values()) <= set(reasons.REASONS)
    assert not set(rules.SURE_CODES) & set(rules.LIKELY_CODES)


def test_no_code_gives_an_address_up_before_the_words_of_the_reply_were_read() -> None:
    sure = {reasons.REASONS[reason].fault for reason in rules.SURE_CODES.values()}
    assert reasons.Fault.ADDRESS not in sure
