"""The application of `postroad webhook listen`, behind a real listener: what it accepts, refuses and shows."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

import httpx
import pytest

from postroad.cli.dev import webhook_endpoint
from postroad.model.events import events
from postroad.network.http import http_server
from postroad.protocol.signatures import webhook_signature

NOW = 1_700_000_000
SECRET = "whsec_one"
BODY = events.body(
    "evt_1",
    events.EventType.BOUNCED,
    created_at=NOW * 1_000_000,
    data=events.recipient(
        email_id="em_1",
        recipient_id="rcp_1",
        to="ada@example.net",
        sender="shop@example.com",
        subject="Hello",
        smtp_code=550,
        response="550 5.1.1 no such user",
    ),
)
PING = events.ping("evt_2", created_at=NOW * 1_000_000)


@dataclass(frozen=True, slots=True)
class Listening:
    """A listener, and what it has printed."""

    port: int
    shown_requests: list[webhook_endpoint.ReceivedWebhook]

    async def post(self, body: bytes, *, secrets: Sequence[str] = (SECRET,), timestamp: int = NOW) -> httpx.Response:
        """A request as Postroad sends it."""
        signature = webhook_signature.header(secrets, body, timestamp=timestamp)
        return await self.request("POST", content=body, headers={"Service-Signature": signature})

    async def request(self, method: str, **more: object) -> httpx.Response:
        async with httpx.AsyncClient() as client:
            return await client.request(method, f"http://127.0.0.1:{self.port}/", **more)  # type: ignore[arg-type]

    @property
    def line(self) -> str:
        """The last line for people, without its time, which is local."""
        return webhook_endpoint.line(self.shown_requests[-1]).split("  ", 1)[1]


@contextlib.asynccontextmanager
async def listening(*secrets: str, status: int = 200) -> AsyncIterator[Listening]:
    shown_requests: list[webhook_endpoint.ReceivedWebhook] = []

    async def known() -> Sequence[str]:
        return secrets

    endpoint = webhook_endpoint.WebhookListener(
        secrets=known, status=status, clock=lambda: NOW * 1_000_000, report=shown_requests.append
    )
    listener = http_server.HttpListener(endpoint, refuse=webhook_endpoint.refusal)
    await listener.start("127.0.0.1", 0)
    try:
        yield Listening(listener.address[1], shown_requests)
    finally:
        await listener.stop(grace_seconds=5)


async def test_a_good_event_is_answered_and_shown_in_one_line() -> None:
    async with listening(SECRET) as endpoint:
        answer = await endpoint.post(BODY)
        assert (answer.status_code, answer.text) == (200, "ok\n")
        assert endpoint.line == "email.bounced    ada@example.net  550  evt_1  verified"
        await endpoint.post(PING)
        assert endpoint.line == "webhook.test     -  -    evt_2  verified"


async def test_an_event_that_comes_again_is_noted() -> None:
    async with listening(SECRET) as endpoint:
        await endpoint.post(BODY)
        await endpoint.post(PING)
        await endpoint.post(BODY, timestamp=NOW + 5)
        assert [one.is_duplicate for one in endpoint.shown_requests] == [False, False, True]
        assert endpoint.line.endswith("  evt_1  verified  duplicate")


async def test_only_so_many_events_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook_endpoint, "MAX_REMEMBERED", 2)
    async with listening() as endpoint:
        for number in (1, 2, 3, 3, 2, 1):
            await endpoint.post(events.ping(f"evt_{number}", created_at=0))
        assert [one.is_duplicate for one in endpoint.shown_requests] == [False, False, False, True, True, False]


async def test_another_status_can_be_answered_to_watch_the_retries() -> None:
    async with listening(SECRET, status=503) as endpoint:
        assert (await endpoint.post(BODY)).status_code == 503
        assert endpoint.line.endswith("  verified  responded 503")
        assert (await endpoint.post(BODY, secrets=["whsec_other"])).status_code == 400


async def test_a_status_without_content_is_answered_without() -> None:
    async with listening(SECRET, status=204) as endpoint:
        answer = await endpoint.post(BODY)
        assert (answer.status_code, answer.content) == (204, b"")


async def test_a_wrong_signature_is_refused_with_the_reason_and_its_content_not_shown() -> None:
    async with listening(SECRET) as endpoint:
        answer = await endpoint.post(BODY, secrets=["whsec_other"])
        reason = "the signature does not match the secret and the body"
        assert (answer.status_code, answer.text) == (400, f"{reason}\n")
        assert endpoint.line == f"rejected with 400: {reason}"
        assert json.loads(webhook_endpoint.json_line(endpoint.shown_requests[0])) == {
            "received_at": "2023-11-14T22:13:20.000Z",
            "status": 400,
            "error": reason,
            "verified": False,
            "duplicate": False,
            "event": None,
        }
        assert (await endpoint.post(BODY)).status_code == 200
        assert not endpoint.shown_requests[-1].is_duplicate


async def test_an_old_request_is_refused_and_one_without_a_signature_too() -> None:
    async with listening(SECRET) as endpoint:
        assert "301 seconds" in (await endpoint.post(BODY, timestamp=NOW - 301)).text
        assert "not of the form" in (await endpoint.request("POST", content=BODY)).text
        assert [one.status for one in endpoint.shown_requests] == [400, 400]


async def test_two_signature_headers_are_refused() -> None:
    good = ("Service-Signature", webhook_signature.header([SECRET], BODY, timestamp=NOW))
    async with listening(SECRET) as endpoint:
        assert (await endpoint.request("POST", content=BODY, headers=[good])).status_code == 200
        assert (await endpoint.request("POST", content=BODY, headers=[good, good])).status_code == 400


async def test_without_a_secret_events_are_shown_as_not_verified() -> None:
    async with listening() as endpoint:
        assert (await endpoint.post(BODY, secrets=["whsec_other"])).status_code == 200
        assert endpoint.line == "email.bounced    ada@example.net  550  evt_1  not verified"


async def test_other_methods_are_refused_with_the_right_one() -> None:
    async with listening(SECRET) as endpoint:
        answer = await endpoint.request("GET")
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
        assert endpoint.line == "rejected with 405: webhooks are sent with POST"


async def test_a_body_may_have_2_mib_and_not_a_byte_more() -> None:
    async with listening(SECRET) as endpoint:
        fitting = BODY + b" " * (2 * 1024 * 1024 - len(BODY))
        assert (await endpoint.post(fitting)).status_code == 200
        assert (await endpoint.post(fitting + b" ")).status_code == 413
        assert endpoint.line == "rejected with 413: the body is larger than 2048 KiB"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b"{",
        b'{"id":"evt_1","type":"x"}',
        b'{"id":1,"type":"x","data":{}}',
        b'{"id":"evt_1","type":"x","data":{"smtp_code":"550"}}',
        b'{"id":"evt_1","type":"x","data":{"to":"\\ud800"}}',
        b"\xff\xfe",
        b"[" * 60_000,
    ],
)
async def test_a_body_that_is_no_event_is_refused_even_if_it_is_signed(body: bytes) -> None:
    async with listening(SECRET) as endpoint:
        answer = await endpoint.post(body)
        assert (answer.status_code, answer.text[:26]) == (400, "the body is not an event: ")


async def test_what_a_terminal_would_obey_is_written_out() -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\r\n\x7f\x9b31m\u202e\u2028\x00"
    body = json.dumps({"id": f"evt{evil}", "type": evil, "data": {"to": evil, "subject": evil}}).encode()
    async with listening(SECRET) as endpoint:
        assert (await endpoint.post(body)).status_code == 200
        for shown in (
            webhook_endpoint.line(endpoint.shown_requests[0]),
            webhook_endpoint.json_line(endpoint.shown_requests[0]),
        ):
            assert shown.isprintable()
        assert json.loads(webhook_endpoint.json_line(endpoint.shown_requests[0]))["event"]["data"]["to"] == evil
        assert r"\x1b[2J" in webhook_endpoint.line(endpoint.shown_requests[0])


async def test_a_refusal_that_quotes_the_body_is_written_out_too() -> None:
    async with listening() as endpoint:
        await endpoint.post(b'{"\x1b[2J\xc2\x9b":1,"\x1b[2J\xc2\x9b":2}')
        assert endpoint.line.isprintable()


async def test_a_long_text_is_cut() -> None:
    body = json.dumps({"id": "x" * 5000, "type": "y", "data": {}}).encode()
    async with listening() as endpoint:
        await endpoint.post(body)
        assert len(endpoint.line) < 400


async def test_a_caller_that_hangs_up_in_the_body_is_reported() -> None:
    async with listening(SECRET) as endpoint:
        _, writer = await asyncio.open_connection("127.0.0.1", endpoint.port)
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        writer.close()
        await writer.wait_closed()
        async with asyncio.timeout(30):
            while not endpoint.shown_requests:
                await asyncio.sleep(0)
        assert endpoint.line == "rejected with 400: the connection was closed before the end of the body"
