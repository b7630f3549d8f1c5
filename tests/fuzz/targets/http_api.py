"""`POST /emails` with any octets as its body: JSON, rules, MIME, store; and whole connections with any octets on them.

Holds for a body: the answer is 202, or a refusal that is the caller's fault, in the form of docs/errors.md, with its
request id; what was accepted is on disk, and the standard library reads it as a message without a bare CR or LF or a
line over 998 octets. Holds for a connection (`KEY` stands for an API key): what comes back is whole responses, no
more than were asked for, none of them says that we are at fault, and nothing went wrong in the log.
"""

import asyncio
import itertools
import json
import re
from typing import Final

from postroad.network import listener
from postroad.network.http import http_messages, http_server
from tests import local_requests
from tests.fuzz import target
from tests.fuzz.targets import service as services
from tests.protocol import stdlib_parser

OUR_FAULT: Final = 500
_STATUS: Final = re.compile(rb"HTTP/1\.1 ([1-5][0-9]{2}) [ -~]+\r\n")
_FIELD: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+): ([ -~\t\x80-\xff]*)\r\n")
# Keys are never used again, also not by the next input.
_numbers: Final = itertools.count()


async def check_body(service: services.WholeService, data: bytes) -> None:
    headers = [
        (b"authorization", b"Bearer " + service.api_key.encode()),
        (b"content-type", b"application/json"),
        (b"idempotency-key", b"%d" % next(_numbers)),
    ]
    status, fields, answer = await _post(service, headers, data)
    assert fields[b"x-request-id"].startswith(b"req_")
    reported = json.loads(answer)
    if status != 202:
        assert status in {400, 403, 413}, f"{status}: {answer[:200]!r}"
        assert reported["error"].isprintable()
        assert reported["request_id"] == fields[b"x-request-id"].decode()
        assert len(answer) < 4_000
        return
    stored = await service.body(reported["id"])
    parsed = stdlib_parser.parse(stored)
    assert parsed["Message-ID"].startswith(f"<{reported['id']}@")
    assert parsed["From"]
    assert "Bcc" not in parsed


async def _post(
    service: services.WholeService, headers: list[tuple[bytes, bytes]], body: bytes
) -> tuple[int, dict[bytes, bytes], bytes]:
    request = local_requests.Request("POST", b"/emails", headers, body, client_address="192.0.2.1")
    await service.served(request)
    return request.status, {name.lower(): value for name, value in request.fields}, request.content


class Wire(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__({"peername": ("192.0.2.1", 1), "sockname": ("192.0.2.2", 80)})
        self.written = bytearray()
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self.closed:
            self.written += data

    def close(self) -> None:
        self.closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.closed

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        return

    def pause_reading(self) -> None:
        return

    def resume_reading(self) -> None:
        return


async def check_connection(service: services.WholeService, data: bytes) -> None:
    data = data.replace(b"KEY", service.api_key.encode())
    shared = http_server.HttpListenerState(service.served, service.served.refuse)
    shared.date = b"date: Fri, 15 Jan 2027 08:00:00 GMT"
    shared.changed = asyncio.Event()
    protocol = http_server.HttpProtocol(
        shared, limits=http_messages.Limits(), connections=listener.OpenConnections(total=1, per_address=1)
    )
    wire = Wire()
    protocol.connection_made(wire)
    # Each request is answered before the next one is there: pipelining has tests of its own.
    for piece in re.split(rb"(?<=\r\n\r\n)", data):
        if wire.closed:
            break
        protocol.data_received(piece)
        for _ in range(3):
            await asyncio.sleep(0)
    protocol.shutdown()
    if shared.in_flight and protocol._reader.stage != "between":
        protocol.connection_lost(None)
    while shared.in_flight:
        shared.changed.clear()
        await shared.changed.wait()
    if not wire.closed:
        protocol.connection_lost(None)
    count = _count_responses(bytes(wire.written), data)
    assert count <= data.count(b"\n") + 2


def _count_responses(written: bytes, asked: bytes) -> int:
    """How many whole responses there are; what is none is a finding."""
    count = 0
    while written:
        status = _STATUS.match(written)
        assert status is not None, f"no response: {written[:80]!r}"
        at, fields = status.end(), {}
        while not written.startswith(b"\r\n", at):
            found = _FIELD.match(written, at)
            assert found is not None, f"no field: {written[at : at + 80]!r}"
            fields[found[1].lower()] = found[2]
            at = found.end()
        assert int(status[1]) < OUR_FAULT, f"we are at fault: {written[:400]!r}"
        size = int(fields.get(b"content-length", b"0"))
        # The answer to HEAD says how long its content would be.
        if b"HEAD" in asked and written[at + 2 : at + 11] in {b"", b"HTTP/1.1 "}:
            size = 0
        if b"transfer-encoding" in fields:
            end = written.find(b"0\r\n\r\n", at)
            assert end >= 0
            size = end + 5 - at - 2
        written = written[at + 2 + size :]
        count += int(status[1]) >= 200
    return count


def _request(path: str, *, method: str = "GET", more: str = "", body: str = "") -> bytes:
    size = f"Content-Length: {len(body)}\r\nContent-Type: application/json\r\n" if body else ""
    return f"{method} {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer KEY\r\n{size}{more}\r\n{body}".encode()


PLAIN: Final = {"from": "shop@example.com", "to": "ada@example.net", "subject": "Hi", "text": "Hello"}
FULL: Final = {
    "from": "Shop <shop@example.com>",
    "to": ["ada@example.net", "Bo <bo@example.net>"],
    "cc": [],
    "bcc": "c@example.net",
    "reply_to": "r@example.com",
    "subject": "Grüße 漢",
    "text": "a\r\nb",
    "html": "<p>ü</p>",
    "headers": {"X-A": "b"},
    "tags": ["one", "two"],
    "attachments": [{"filename": "a.txt", "content": "aGk=", "content_type": "text/plain", "content_id": "x"}],
}

BODY: Final = target.Target(
    name="api_body",
    open=services.with_service(check_body),
    watches=(
        "web/",
        "api/emails.py",
        "model/mail/send_request.py",
        "mail/accept/submit.py",
        "mail/accept/validation.py",
        "mail/accept/compose.py",
        "mail/accept/transaction.py",
        "services/templates/templates.py",
        "protocol/",
    ),
    seeds=(
        json.dumps(PLAIN).encode(),
        json.dumps(FULL, ensure_ascii=False).encode(),
        json.dumps({**PLAIN, "from": "shop@elsewhere.example"}).encode(),
        json.dumps(
            {
                "from": "shop@example.com",
                "to": ["a@b.cd"],
                "template": "welcome",
                "variables": {"name": "<Ada>", "order": 12.5},
            }
        ).encode(),
        json.dumps({**PLAIN, "unknown": 1}).encode(),
        json.dumps({**PLAIN, "attachments": [{"filename": "x.exe", "content": "%%"}]}).encode(),
        json.dumps({**PLAIN, "headers": {"From": "x", "X-\r\n": "y\r\nz"}}).encode(),
        b"[]",
        b"",
    ),
    max_octets=3_000,
    steps=(40_000, 400),
)

CONNECTION: Final = target.Target(
    name="api_connection",
    open=services.with_service(check_connection),
    watches=("web/", "api/", "network/http/"),
    seeds=(
        _request("/emails", method="POST", more="Idempotency-Key: k\r\n", body=json.dumps(PLAIN)),
        _request("/emails/em_" + "0" * 28) + _request("/v1/messages?limit=5&query=to%3Aada%40example.net"),
        _request("/v1/statistics?hours=24") + _request("/openapi.json"),
        _request("/v1/suppressions", method="POST", body='{"email":"a@b.cd"}'),
        _request("/v1/templates/welcome", method="PUT", body='{"subject":"s","text":"{{x}}"}'),
        _request("/emails", method="HEAD") + _request("/health", method="OPTIONS"),
        b"POST /emails HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        b"POST /v1/auth/login HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
        b"GET /%00%ff/../x HTTP/1.1\r\nHost: a\r\nAuthorization: Basic x\r\n\r\n",
    ),
    steps=(60_000, 600),
)
