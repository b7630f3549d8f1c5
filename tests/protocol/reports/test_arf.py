"""Feedback reports of common shapes are understood, and no input makes the reader fail."""

import base64
import email
import email.policy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.protocol.reports import arf
from tests.protocol.reports import bounces, complaints

TOKEN = "bounces+0123@return.example.com"


def read(sample: str) -> arf.FeedbackReport:
    found = arf.read(complaints.report(sample, TOKEN))
    assert found is not None
    return found


def test_a_full_report_is_understood() -> None:
    assert read(complaints.FULL) == arf.FeedbackReport("abuse", (TOKEN, "bounces+somebody-else@example.org"))


def test_the_return_path_of_returned_headers_is_found() -> None:
    assert read(complaints.REDACTED) == arf.FeedbackReport("abuse", (TOKEN,))


@pytest.mark.parametrize("encoding", ["7bit", "base64", "quoted-printable"])
def test_fields_are_read_however_they_are_written(encoding: str) -> None:
    fields = complaints.SEVERAL.replace("TOKEN", TOKEN)
    if encoding == "base64":
        fields = base64.b64encode(fields.replace("\n", "\r\n").encode()).decode()
    found = arf.read(complaints.with_fields(fields, encoding=encoding).encode())
    assert found == arf.FeedbackReport("fraud", (TOKEN,))


@pytest.mark.parametrize("kind", ["not-spam", "auth-failure", "virus", "other", ""])
def test_the_type_is_returned_as_it_is(kind: str) -> None:
    assert read(complaints.FULL.replace("abuse\n", f"{kind}\n")).kind == kind


def test_words_are_cleaned_and_cut() -> None:
    fields = "Feedback-Type: a\x1b\u202eb" + "c" * 1000 + "\nOriginal-Mail-From: " + "x" * 1000 + "\n"
    found = arf.read(complaints.with_fields(fields).encode())
    assert found is not None
    assert found.kind.startswith("a b")
    assert len(found.kind) == 40
    assert [len(sender) for sender in found.senders] == [400]


def test_other_mail_is_no_report() -> None:
    assert arf.read(b"") is None
    assert arf.read(b"Subject: Out of office\n\nFeedback-Type: abuse\n") is None
    samples = [bounce.content for bounce in vars(bounces).values() if isinstance(bounce, bounces.Bounce)]
    assert samples
    assert [arf.read(content.encode()) for content in samples] == [None] * len(samples)


@pytest.mark.parametrize("sample", [complaints.FULL, complaints.REDACTED])
def test_the_standard_library_finds_the_same_part(sample: str) -> None:
    message = email.message_from_string(sample, policy=email.policy.compat32)
    (part,) = [part for part in message.walk() if part.get_content_type() == arf.REPORT_TYPE]
    fields: Any = part.get_payload()
    assert fields[0]["Feedback-Type"].lower() == read(sample).kind


@given(st.binary(max_size=500), st.integers(0, len(complaints.FULL)))
def test_nothing_makes_the_reader_fail(junk: bytes, place: int) -> None:
    whole = complaints.FULL.encode()
    for content in (junk, whole[:place] + junk + whole[place:], whole[:place]):
        found = arf.read(content)
        assert found is None or len(found.kind) <= 40


def test_a_large_hostile_report_is_read_in_no_time() -> None:
    """Not measured: a quadratic parser would not finish before the test's time is over."""
    for filler in ("Original-Rcpt-To:\n", "Original-Rcpt-To: a\n x\n", "Original-Rcpt-To:" + " \n" * 9, "\n "):
        fields = filler * (300_000 // len(filler))
        assert arf.read(complaints.with_fields(fields).encode()) is not None
