"""The reasons: each has a fault and an explanation, and docs/bounces.md lists all of them."""

import pathlib
import re

import pytest

from postroad.model.bounces import disposition, reasons, rules
from postroad.protocol.smtp import values

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "bounces.md"
ROW = re.compile(r"^\| `(\w+)` \| (\w+)(, slows down)? \| (.+) \|$", re.MULTILINE)


def test_every_reason_but_delivery_has_a_fault_and_sentences() -> None:
    for name, reason in reasons.REASONS.items():
        assert re.fullmatch(r"[a-z_]+", name)
        assert (reason.fault is None) is (name == "delivered")
        assert re.fullmatch(r"[A-Z].+\.", reason.explanation)


def test_an_explanation_is_found_by_name_and_a_name_of_the_past_is_no_error() -> None:
    assert disposition.explain("mailbox_full") == reasons.REASONS["mailbox_full"].explanation
    assert "Unrecognized reason" in disposition.explain("a_reason_of_an_older_version")


def test_no_explanation_promises_another_attempt_because_the_last_one_has_a_reason_too() -> None:
    promise = re.compile(r"\b(tried|sent) again\b|\bretr|\bschedule\b|\bnext one\b", re.IGNORECASE)
    assert [name for name in reasons.REASONS if promise.search(disposition.explain(name))] == []


def test_every_fault_has_words_for_people() -> None:
    assert disposition.FAULT_LABELS == {
        "address": "address",
        "content": "message content",
        "policy": "mailbox or receiver policy",
        "reputation": "sender reputation",
        "rate": "rate limit",
        "network": "network",
        "ours": "configuration of this service",
    }
    assert set(disposition.FAULT_LABELS) == set(disposition.Fault)


def test_only_addresses_that_cannot_get_mail_have_the_fault_that_suppresses() -> None:
    suppressing = {name for name, reason in reasons.REASONS.items() if reason.fault is reasons.Fault.ADDRESS}
    assert suppressing == {
        "unknown_address",
        "disabled_address",
        "moved_address",
        "bad_address",
        "domain_not_found",
        "null_mx",
    }


def test_only_what_is_about_this_host_as_a_whole_slows_a_provider_queue_down() -> None:
    slowing = {name for name, reason in reasons.REASONS.items() if reason.slow_down}
    assert slowing == {"ip_blocked", "rate_limited", "too_many_connections", "destination_busy", "configuration"}


def test_the_page_documents_every_reason_as_it_is() -> None:
    reported = {name: (fault, bool(slows), text) for name, fault, slows, text in ROW.findall(PAGE.read_text())}
    known = {
        name: (reason.fault.value, reason.slow_down, reason.explanation)
        for name, reason in reasons.REASONS.items()
        if reason.fault is not None
    }
    assert reported == known


def test_the_page_explains_every_fault() -> None:
    page = PAGE.read_text()
    assert all(f"\n| {fault.value} | " in page for fault in reasons.Fault)


def test_every_cause_has_a_reason() -> None:
    assert disposition._CAUSE_REASONS.keys() == set(values.Cause)


def test_every_reason_is_given_by_some_rule() -> None:
    given = {
        *rules.PHRASES,
        *rules.VAGUE_PHRASES,
        *rules.SURE_CODES.values(),
        *rules.LIKELY_CODES.values(),
        *rules.SUBJECTS.values(),
        *rules.BASIC_CODES.values(),
        *disposition._CAUSE_REASONS.values(),
        # Given without a table.
        *("delivered", "refused", "deferred", "lost_after_content"),
    }
    assert given == set(reasons.REASONS)


# The tables of rules.


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
