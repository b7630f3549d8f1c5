"""The inbox keeps the newest messages within two bounds, finds them by recipient, and shows their subjects."""

import itertools
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies

from postroad import errors
from postroad.protocol.smtp import values
from postroad.services.messages import dev_inbox


def new_inbox(**bounds: Any) -> dev_inbox.Inbox:
    ticks = itertools.count(1_800_000_000_000_000)
    return dev_inbox.Inbox(clock=lambda: next(ticks), entropy=bytes, **bounds)


def transaction(*recipients: str, content: bytes = b"Subject: x\r\n\r\nHello\r\n") -> values.MailTransaction:
    return values.MailTransaction("a@example.org", recipients or ("jo@example.net",), (content,))


def test_the_oldest_go_when_there_are_too_many_messages() -> None:
    mail = new_inbox(max_messages=3)
    added = [mail.add(transaction()) for _ in range(5)]
    assert mail.newest_first() == added[:1:-1]


def test_the_oldest_go_when_there_are_too_many_octets() -> None:
    mail = new_inbox(max_octets=100)
    added = [mail.add(transaction(content=b"x" * size)) for size in (60, 40, 30, 70)]
    assert mail.newest_first() == [added[3], added[2]]
    mail.add(transaction(content=b"x" * 101))
    assert mail.newest_first() == []
    assert mail.newest_first() == []
    mail.add(transaction(content=b"x" * 100))
    assert len(mail.newest_first()) == 1


def test_clearing_makes_room_again() -> None:
    mail = new_inbox(max_octets=100)
    gone = mail.add(transaction(content=b"x" * 100))
    mail.clear()
    assert mail.newest_first() == []
    with pytest.raises(errors.NotFound):
        mail.find(gone.id)
    mail.add(transaction(content=b"x" * 60))
    mail.add(transaction(content=b"x" * 40))
    assert len(mail.newest_first()) == 2


@pytest.mark.parametrize("wanted", ["Jo@example.net", "jo@EXAMPLE.net", "jo@example.net"])
def test_a_recipient_is_found_in_whatever_case_and_by_either_spelling_of_its_domain(wanted: str) -> None:
    mail = new_inbox()
    found = mail.add(transaction("jane@example.net", "jO@Example.net"))
    mail.add(transaction("joe@example.net"))
    assert mail.newest_first(to=wanted) == [found]
    found = mail.add(transaction("jo@xn--bcher-kva.example"))
    assert mail.newest_first(to="jo@bücher.example") == [found]
    assert mail.newest_first(to="no address") == []


@pytest.mark.parametrize(
    "head, subject",
    [
        (b"Subject: Hello there", "Hello there"),
        (b"From: a@example.org\r\nSUBJECT:Hello\r\nTo: x", "Hello"),
        (b"Subject: a long\r\n one\r\n\tand more", "a long one\tand more"),
        (b"Subject: =?utf-8?b?R3LDvMOfZQ==?= you", "Grüße you"),
        (b"Subject: =?utf-8?q?Gr=C3=BC?=\r\n =?utf-8?q?=C3=9Fe?=", "Grüße"),
        ("Subject: Grüße".encode(), "Grüße"),
        (b"Subject: \xff", "\ufffd"),
        (b"Subject: =?no-such-charset?q?x?=", "=?no-such-charset?q?x?="),
        (b"Subject: =?utf-7?q?+2AA-?=", "?"),
        (b"Subject: =?utf-8?b?x?=", "=?utf-8?b?x?="),
        (b"From: x\r\n\r\nSubject: in the body", ""),
        (b"X-Subject: other", ""),
        (b"", ""),
    ],
)
def test_a_subject_is_shown_as_people_read_it(head: bytes, subject: str) -> None:
    assert dev_inbox.subject(head + b"\r\n\r\nBody\r\n") == subject


@hypothesis.given(strategies.binary(max_size=200))
def test_any_bytes_have_a_subject_that_can_be_written_as_json(content: bytes) -> None:
    dev_inbox.subject(b"Subject: =?utf-7?q?" + content).encode()
    dev_inbox.subject(content).encode()
