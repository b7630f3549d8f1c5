"""The interface, "Limits": each row that belongs to sending, at the limit and one beyond it.

The lifetime of a key, 24 hours, needs a clock that can be moved: tests/mail/accept/test_submit.py proves it.
"""

import base64
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests import raw_http
from tests.conformance import live_service
from tests.conformance.live_service import ABSENT

MEBIBYTE = 1024 * 1024
MIME_BYTES = 10 * MEBIBYTE
BODY_BYTES = 32 * MEBIBYTE
TEMPLATE = {"template": "welcome", "text": ABSENT, "subject": ABSENT}
FILE = {"filename": "a.txt", "content": "QQ=="}


def people(count: int, start: int = 0) -> list[str]:
    return [f"person{number}@example.org" for number in range(start, start + count)]


def test_subject_length(service: live_service.Service) -> None:
    """Row "Subject length": 500 characters, not bytes; after rendering, too."""
    for letter in ("x", "ü", "☃"):
        service.accept(subject=letter * 500)
        assert service.refuse(subject=letter * 501).startswith("subject: ")
    name = "x" * (500 - len("Welcome "))
    service.accept(**TEMPLATE, variables={"name": name})
    assert service.refuse(**TEMPLATE, variables={"name": name + "x"}).startswith("subject: ")


def test_unique_recipients(service: live_service.Service) -> None:
    """Row "Unique recipients across to, cc, bcc": 50, and "Credits per message": 1 per unique recipient."""
    before = service.balance()
    accepted = service.accept(to=people(20), cc=people(20, 20) + people(5), bcc=people(10, 40))
    assert (accepted["recipient_count"], accepted["credits_reserved"]) == (50, 50)
    assert service.balance() == (before[0] - 50, before[1] + 50)
    for one_more in (
        {"to": people(51)},
        {"cc": people(50)},
        {"to": people(20), "cc": people(20, 20), "bcc": people(11, 40)},
    ):
        assert "50" in service.refuse(**one_more)


def test_attachments_per_message(service: live_service.Service) -> None:
    """Row "Attachments per message": 20."""
    assert len(service.accept(attachments=[FILE] * 20)["attachments"]) == 20
    assert service.refuse(attachments=[FILE] * 21).startswith("attachments: ")


def test_tags_per_message(service: live_service.Service) -> None:
    """Row "Tags per message": 20."""
    tags = [f"tag{number}" for number in range(21)]
    assert len(service.accept(tags=tags[:20])["tags"]) == 20
    assert service.refuse(tags=tags).startswith("tags: ")


def test_template_variables(service: live_service.Service) -> None:
    """Row "Template variables": 32 keys."""
    variables = {"name": "Ada", **{f"v{number}": "" for number in range(31)}}
    service.accept(**TEMPLATE, variables=variables)
    assert service.refuse(**TEMPLATE, variables=variables | {"more": ""}).startswith("variables: ")


def test_idempotency_key_length(service: live_service.Service) -> None:
    """Row "Idempotency-Key length": 1 to 255 characters."""
    assert service.post(live_service.message(), key="1").status_code == 202
    assert service.post(live_service.message(), key=live_service.new_key().ljust(255, "x")).status_code == 202
    live_service.check_refusal(service.post(live_service.message(), key="x" * 256), 400, "invalid_request")


def test_custom_headers(service: live_service.Service) -> None:
    """Decided beside the table: 50 custom headers, and lines of at most 998 octets."""
    headers = {f"X-{number}": "x" for number in range(50)}
    service.accept(headers=headers)
    assert service.refuse(headers=headers | {"X-More": "x"}).startswith("headers: ")
    service.accept(headers={"X-A": "x" * (998 - len("X-A: "))})
    assert service.refuse(headers={"X-A": "x" * (999 - len("X-A: "))}).startswith("headers")


# MIME size


def refuse_as_too_large(service: live_service.Service, body: dict[str, Any]) -> None:
    before = service.balance()
    live_service.check_refusal(service.post(body), 413, "payload_too_large")
    assert service.balance() == before


def filled_up(service: live_service.Service, body: dict[str, Any]) -> dict[str, Any]:
    """The body with so much text that the assembled message has exactly 10 MiB."""
    small = service.raw(service.post(body | {"text": "x\n"}).json()["id"])
    room = MIME_BYTES - len(small) + len("x\r\n")
    lines = room // 100 - 1
    last = room - lines * 100 - 2
    return body | {"text": ("x" * 98 + "\n") * lines + "x" * last + "\n"}


def test_mime_size(sqlite_service: live_service.Service) -> None:
    """Row "MIME size": 10 MiB of assembled message are accepted, one byte more is not."""
    full = filled_up(sqlite_service, live_service.message())
    accepted = sqlite_service.post(full)
    assert accepted.status_code == 202, accepted.text
    assert len(sqlite_service.raw(accepted.json()["id"])) == MIME_BYTES
    refuse_as_too_large(sqlite_service, full | {"text": "y" + full["text"]})
    refuse_as_too_large(sqlite_service, full | {"subject": full["subject"] + "x"})


def test_mime_size_with_attachments(sqlite_service: live_service.Service) -> None:
    """Rule 3 of the send request: attachment size is counted after base64 encoding, with its line breaks."""
    file = {"filename": "a.bin", "content": base64.b64encode(bytes(7 * MEBIBYTE)).decode()}
    full = filled_up(sqlite_service, live_service.message(attachments=[file, FILE]))
    accepted = sqlite_service.post(full)
    assert accepted.status_code == 202, accepted.text
    assert len(sqlite_service.raw(accepted.json()["id"])) == MIME_BYTES
    refuse_as_too_large(sqlite_service, full | {"text": "y" + full["text"]})
    # Three octets more are four letters more.
    larger = {"filename": "a.bin", "content": base64.b64encode(bytes(7 * MEBIBYTE + 3)).decode()}
    refuse_as_too_large(sqlite_service, full | {"attachments": [larger, FILE]})


def test_ten_mebibytes_of_file_are_too_much(sqlite_service: live_service.Service) -> None:
    """Rule 3: 8 MiB of file are nearly 11 MiB of base64."""
    file = {"filename": "a.bin", "content": base64.b64encode(bytes(8 * MEBIBYTE)).decode()}
    refuse_as_too_large(sqlite_service, live_service.message(attachments=[file]))


def test_a_template_cannot_grow_beyond_it(sqlite_service: live_service.Service) -> None:
    """Row "MIME size": of the message as it is after rendering."""
    body = live_service.message(**TEMPLATE, variables={"name": "x"}) | {"subject": "Own"}
    assert sqlite_service.post(body).status_code == 202
    refuse_as_too_large(sqlite_service, body | {"variables": {"name": "x" * (6 * MEBIBYTE)}})


# The request itself


async def test_a_declared_length_beyond_32_mebibytes_is_refused_unread(sqlite_service: live_service.Service) -> None:
    """Decided beside the table: the request body has at most 32 MiB; a larger `Content-Length` is refused at once."""
    request = raw_http.post(
        "/emails",
        b"",
        f"Authorization: {sqlite_service.mine.basic}",
        f"Idempotency-Key: {live_service.new_key()}",
        length=BODY_BYTES + 1,
    )
    response = await raw_http.exchange(sqlite_service.address, request)
    assert (response.status, response.json()["code"]) == (413, "payload_too_large")


def test_a_stream_beyond_32_mebibytes_is_cut(sqlite_service: live_service.Service) -> None:
    """Decided beside the table: a body without a length is read up to 32 MiB and not further."""

    def stream() -> Iterator[bytes]:
        yield b'{"text": "'
        for _ in range(33):
            yield b"x" * MEBIBYTE

    fields = {
        "Authorization": sqlite_service.mine.basic,
        "Content-Type": "application/json",
        "Idempotency-Key": live_service.new_key(),
    }
    response = sqlite_service.client.post("/emails", content=stream(), headers=fields)
    live_service.check_refusal(response, 413, "payload_too_large")


def test_a_large_request_with_little_in_it_is_fine(sqlite_service: live_service.Service) -> None:
    """Decided beside the table: white space is not mail, so 32 MiB of request may hold a small message."""
    padded = json.dumps(live_service.message()).encode().ljust(BODY_BYTES)
    assert sqlite_service.post(padded).status_code == 202
    live_service.check_refusal(sqlite_service.post(padded + b" "), 413, "payload_too_large")


def test_the_request_rate(tmp_path: Path) -> None:
    """Request-rate limits behind `rate_limited`: 429 with `Retry-After`, the key is not used up, others go on."""
    slow = "[limits]\nrequest_rate = 1\nrequest_burst = 3\n"
    with live_service.running(tmp_path, url=f"sqlite:///{tmp_path}/postroad.db", settings=slow) as service:
        key = live_service.new_key()
        first = service.post(live_service.message(), key=key)
        assert first.headers["ratelimit-policy"] == '"account";q=3;w=3'
        limited_key, accepted = _exceed(service)
        again = service.post(live_service.message(), key=key)
        assert (again.status_code, again.content) == (202, first.content)
        other = live_service.message(from_="shop@example.net")
        assert service.post(other, authorization=service.theirs.basic).status_code == 202
        assert service.counts()["messages"] == accepted + 2
        # The one wait of this suite: the promise of Retry-After is about real time.
        time.sleep(1)
        assert service.post(live_service.message(text="Another body"), key=limited_key).status_code == 202


def test_the_warm_up(tmp_path: Path) -> None:
    """Daily volumes behind `warmup_limited`: 429 with `Retry-After`, nothing is stored, rate headers as usual."""
    young = "[warmup]\nrecipients_per_day = [50, 50, 50]\n"
    with live_service.running(tmp_path, url=f"sqlite:///{tmp_path}/postroad.db", settings=young) as service:
        before = service.counts()["messages"]
        # Three, because midnight may come between two of them.
        answers = [service.post(live_service.message(to=people(30))) for _ in range(3)]
        refused = [answer for answer in answers if answer.status_code != 202]
        assert refused
        for answer in refused:
            error = live_service.check_refusal(answer, 429, "warmup_limited")
            assert error.startswith("from: example.com is new and warms up: 30 of today's 50 recipients are used")
            assert 1 <= int(answer.headers["retry-after"]) <= 24 * 3600
            assert answer.headers["ratelimit"].startswith('"account";r=')
        assert service.counts()["messages"] == before + len(answers) - len(refused)


def _exceed(service: live_service.Service) -> tuple[str, int]:
    """Send, many at once, until one is refused; its key, and how many were accepted before."""
    accepted = 0
    for _ in range(10):
        keys = [live_service.new_key() for _ in range(20)]
        with ThreadPoolExecutor(20) as threads:
            answers = list(threads.map(lambda key: service.post(live_service.message(), key=key), keys))
        accepted += sum(answer.status_code == 202 for answer in answers)
        refused = [(key, answer) for key, answer in zip(keys, answers, strict=True) if answer.status_code != 202]
        for _, answer in refused:
            live_service.check_refusal(answer, 429, "rate_limited")
            assert answer.headers["retry-after"] == "1"
            assert answer.headers["ratelimit"].startswith('"account";r=')
        if refused:
            return refused[0][0], accepted
    raise AssertionError("the rate was never exceeded")


@pytest.mark.parametrize("name", ["x-ratelimit-limit", "server"])
def test_nothing_else_is_told(service: live_service.Service, name: str) -> None:
    """Decided beside the table: the fields of the IETF draft alone, and nothing about the software."""
    assert name not in service.post(live_service.message()).headers
