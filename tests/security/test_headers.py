"""Security cases G1 and G2: no value becomes a header field, over HTTP or SMTP.

At the next host, octet by octet, a message has the fields that it should have and no other. `N` are neighbours of the
written cases.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest

from postroad.services.templates import templates
from tests.security.whole_service import ADA, HEADER, MESSAGE, WholeService

VICTIM = "v@example.net"
EVIL = {
    "CRLF and a field": f"\r\nBcc: {VICTIM}",
    "CRLF, a blank and a field": f"\r\n \r\nBcc: {VICTIM}",
    "LF": f"\nBcc: {VICTIM}",
    "CR": f"\rBcc: {VICTIM}",
    "NUL": f"\0Bcc: {VICTIM}",
    "line separator": f"\u2028Bcc: {VICTIM}",
    "paragraph separator": f"\u2029Bcc: {VICTIM}",
    "next line": f"\x85Bcc: {VICTIM}",
    "vertical tab": f"\x0bBcc: {VICTIM}",
    "form feed": f"\x0cBcc: {VICTIM}",
    "an encoded word, Q": "=?utf-8?q?=0D=0ABcc:?=",
    "an encoded word, B": "=?utf-8?B?DQpCY2M6IHZAZXhhbXBsZS5uZXQ=?=",
}
PLAIN_FIELDS = ["From", "To", "Subject", "Date", "Message-ID", "Feedback-ID", "MIME-Version"]


def attached(**members: Any) -> dict[str, Any]:
    return {"attachments": [{"filename": "a.txt", "content": "", **members}]}


# Every string that could reach a header.
MEMBERS: dict[str, Callable[[str], dict[str, Any]]] = {
    "subject": lambda evil: {"subject": f"Hello{evil}"},
    "from's name": lambda evil: {"from": f'"Shop{evil}" <shop@example.com>'},
    "from's bare name": lambda evil: {"from": f"Shop{evil} <shop@example.com>"},
    "from's local part": lambda evil: {"from": f"shop{evil}@example.com"},
    "to's name": lambda evil: {"to": f'"Ada{evil}" <ada@example.net>'},
    "to's address": lambda evil: {"to": f"ada@example.net{evil}"},
    "cc's name": lambda evil: {"cc": [f'"Ada{evil}" <ada@example.net>']},
    "bcc's name": lambda evil: {"bcc": [f'"Ada{evil}" <ada@example.net>']},
    "reply_to": lambda evil: {"reply_to": f"shop@example.com{evil}"},
    "reply_to's name": lambda evil: {"reply_to": f'"Shop{evil}" <shop@example.com>'},
    "a header's name": lambda evil: {"headers": {f"X-Kind{evil}": "a"}},
    "a header's value": lambda evil: {"headers": {"X-Kind": f"a{evil}"}},
    "the value of a list's header": lambda evil: {"headers": {"List-Unsubscribe": f"<https://example.com/>{evil}"}},
    "a tag": lambda evil: {"tags": [f"a{evil}"]},
    "a file's name": lambda evil: attached(filename=f"a{evil}.txt"),
    "a file's content id": lambda evil: attached(content_id=f"a{evil}"),
    "a file's type": lambda evil: attached(content_type=f"text/plain{evil}"),
    "a parameter of a file's type": lambda evil: attached(content_type=f'text/plain; name="{evil}"'),
    "a template's alias": lambda evil: {"template": f"hello{evil}", "text": None},
    "a variable in a subject": lambda evil: {
        "template": "hello",
        "variables": {"name": f"Ada{evil}"},
        "text": None,
        "subject": None,
    },
}


async def put_template(service: WholeService) -> None:
    """A template with a variable in its subject."""
    subject, text = "Hello {{name}}", "Hello {{name}}!"
    await templates.put(service.ctx, service.account.id, "hello", subject=subject, text=text, html=None)


async def test_g1_no_member_by_http_becomes_a_header(service: WholeService) -> None:
    """G1: CRLF, LF, CR, NUL, U+2028 and encoded words in every member that reaches a header: 400."""
    await put_template(service)
    for member in MEMBERS.values():
        for evil in EVIL.values():
            await service.refuse(**member(evil))
    assert await service.settled() == []


async def test_g1_what_may_stand_in_a_member_stays_in_its_field(service: WholeService) -> None:
    """G1: characters that mean something in a header, in every member at once: at the sink no extra field."""
    odd = 'Ada: "Bcc:" <x@example.net>, \\ ; (c) ?= é☃ \U0001f4ee'
    quoted = odd.replace("\\", "\\\\").replace('"', '\\"')
    answer = await service.post(
        **{"from": f'"{quoted}" <shop@example.com>', "to": f'"{quoted}" <ada@example.net>'},
        reply_to=f'"{quoted}" <shop@example.com>',
        subject=f"Bcc: {odd}",
        headers={"X-Kind": f"Bcc: {odd}"},
        tags=[odd],
        attachments=[{"filename": odd.replace("\\", ""), "content": "aGk=", "content_id": "a"}],
    )
    assert answer.status_code == 202, answer.text
    (arrived,) = await service.settled()
    extra = ["Reply-To", "X-Kind", "X-Service-Tag", "Content-Type"]
    assert sorted(arrived.names) == sorted([*PLAIN_FIELDS, *extra])
    assert (arrived.recipients, arrived.taken.recipients) == ([ADA], ["RCPT TO:<ada@example.net>"])


# Fields of a message that the client has written itself: `{}` is where something evil stands.
WRITTEN = {
    "Subject": "Subject: Hello{}\r\n",
    "From": "From: Shop{} <shop@example.com>\r\n",
    "From, quoted": 'From: "Shop{}" <shop@example.com>\r\n',
    "To": "To: Ada{} <ada@example.net>\r\n",
    "Reply-To": 'Reply-To: "Shop{}" <shop@example.com>\r\n',
    "a field of the client's own": "X-Kind: a{}\r\n",
    "the name of a field": "X-Kind{}: a\r\n",
    "Content-Type": 'Content-Type: text/plain; name="a{}.txt"\r\n',
    "Content-Disposition": 'Content-Disposition: attachment; filename="a{}.txt"\r\n',
    "Content-ID": "Content-ID: <a{}@example.com>\r\n",
    "X-Service-Tag": "X-Service-Tag: a{}\r\n",
    "Idempotency-Key": "Idempotency-Key: a{}\r\n",
    "X-Service-Template": "X-Service-Template: hello{}\r\n",
}
# These cannot stand in a message at all; what remains of EVIL is text like any other, for whoever has written it.
# A line end, CRLF or a bare LF that becomes one, is the end of the field: who writes the message may write another one.
IMPOSSIBLE = ["CR", "NUL", "vertical tab", "form feed"]
LINE_ENDS = {"LF", "CRLF and a field", "CRLF, a blank and a field"}
POSSIBLE = [name for name in EVIL if name not in {*IMPOSSIBLE, *LINE_ENDS}]
OURS = ["X-Service-Tag", "Idempotency-Key", "X-Service-Template"]


def written(field: str, evil: str) -> bytes:
    """A message with that field, in the place of another of its name."""
    text = WRITTEN[field].replace("{}", evil)
    name = WRITTEN[field].partition(":")[0].replace("{}", "")
    kept = [line for line in HEADER.decode().splitlines(keepends=True) if not line.startswith(f"{name}:")]
    return f"{text}{''.join(kept)}\r\nIt is on its way.\r\n".encode()


async def test_g1_what_no_message_may_hold_is_refused_by_smtp(service: WholeService) -> None:
    """G1 over SMTP: bare CR, NUL and control characters in a field: 550, nothing queued."""
    for field in WRITTEN:
        for kind in IMPOSSIBLE:
            reply = await service.hand_in(written(field, EVIL[kind]))
            assert reply.startswith("550 5.6.0 invalid_request: "), (field, kind)
    assert await service.settled() == []


async def test_g1_what_postroad_reads_is_as_strict_by_smtp(service: WholeService) -> None:
    """G1 over SMTP: line breaks of Unicode and encoded words that hide CRLF, in fields that are ours: 550."""
    await put_template(service)
    for field in OURS:
        for kind in POSSIBLE:
            reply = await service.hand_in(written(field, EVIL[kind]))
            assert reply.startswith("550 5.6.0 invalid_request: "), (field, kind, reply)
    assert await service.settled() == []


async def test_g1_no_field_by_smtp_becomes_another(service: WholeService) -> None:
    """G1 over SMTP: what the client's own fields may hold arrives in the same field: at the sink no extra one."""
    expected: dict[str, list[str]] = {}
    for field in WRITTEN.keys() - {*OURS, "the name of a field"}:
        for kind in POSSIBLE:
            content = written(field, EVIL[kind])
            reply = await service.hand_in(content)
            if reply.startswith("250 "):
                names = [line.partition(":")[0] for line in content.decode().partition("\r\n\r\n")[0].split("\r\n")]
                expected[reply.split()[-1]] = ["Received", *names]
            else:
                # A sender whose name cannot be read could be anybody; and an identifier in UTF-8 has no other form.
                is_unreadable = field.startswith("From") or (field == "Content-ID" and not EVIL[kind].isascii())
                assert (is_unreadable, reply[:9]) == (True, "550 5.6.0"), (field, kind, reply)
    arrived = await service.settled()
    assert {each.message.id: each.names for each in arrived} == expected
    for each in arrived:
        assert (each.recipients, each.taken.recipients) == ([ADA], ["RCPT TO:<ada@example.net>"])
        assert not {*each.message.subject} & {*"\r\n\0\u2028\u2029\x85"}


@pytest.mark.parametrize("database_url", ["sqlite", "postgres"], indirect=True)
async def test_n_what_encoded_words_hide_reaches_no_store(service: WholeService) -> None:
    """N of G1: encoded words can hide NUL, halves of surrogate pairs and odd charsets: no store gets to see them."""
    broken = "=?utf-8?b?7aCA?="
    words = [
        "=?utf-8?q?a=00b?=",
        broken,
        "=?utf-7?q?+2AA-?=",
        "=?unicode_escape?q?=5Cud800?=",
        "=?zlib?b?eJw?=",
    ]
    for word in words:
        for field in ("Subject: {}", "To: {} <ada@example.net>", "Cc: {}", "Reply-To: {} <shop@example.com>"):
            name = field.partition(":")[0].encode()
            kept = b"".join(line for line in HEADER.splitlines(keepends=True) if not line.startswith(name))
            content = f"{field.format(word)}\r\n".encode() + kept + b"\r\nIt is on its way.\r\n"
            assert (await service.hand_in(content)).startswith("250 "), (field, word)
        if word == broken:
            continue  # what cannot be read is read as U+FFFD, which may stand in a tag or a key
        for field in (f"X-Service-Tag: {word}", f"Idempotency-Key: {word}", f"X-Service-Template: {word}"):
            reply = await service.hand_in(f"{field}\r\n".encode() + MESSAGE)
            assert reply.startswith("550 5.6.0 invalid_request: "), (field, reply)
    arrived = await service.settled()
    assert len(arrived) == 4 * len(words)
    assert not {*"".join(each.message.subject for each in arrived)} & {"\0", "\ud800"}


def templated(**fields: str) -> bytes:
    """A message over SMTP that asks for the template, with these fields."""
    chosen = {
        "From": "Shop <shop@example.com>",
        "To": "ada@example.net",
        "X-Service-Template": "hello",
        "X-Service-Variables": '{"name": "Ada"}',
        **fields,
    }
    return "".join(f"{name}: {value}\r\n" for name, value in chosen.items()).encode() + b"\r\n"


async def test_g1_no_variable_by_smtp_becomes_a_header(service: WholeService) -> None:
    """G1 over SMTP: a template's variable with each of these, in a subject: 550; the good one arrives alone."""
    await put_template(service)
    for kind, evil in EVIL.items():
        variables = json.dumps({"name": f"Ada{evil}"})
        reply = await service.hand_in(templated(**{"X-Service-Variables": variables}))
        assert reply.startswith("550 5.6.0 invalid_request: "), (kind, reply)
    assert (await service.hand_in(templated())).startswith("250 ")
    (arrived,) = await service.settled()
    assert b"\r\nSubject: Hello Ada\r\n" in arrived.taken.content
    assert not [name for name in arrived.names if name.startswith("X-Service-")]


# G2: fields that are not the caller's to write.
