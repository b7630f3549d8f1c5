"""Security cases B, the sender: where name servers, redirects and certificates may lead it, how long, and what it says.

The number of a case is in a test's name or in its id; `N` are neighbours of the written cases. Whatever is tried,
nobody inside receives it, and the next event is sent as always. What endpoints answer is in `test_webhook_answers.py`.
"""

import asyncio
import contextlib
import json
import ssl
from collections.abc import Callable

import pytest
import trustme

from postroad.model.bounces import disposition
from tests import accepted_mail, dns_server, webhook_server
from tests.api.webhook_calls import check_refusal
from tests.contexts import SECOND
from tests.security import bad_certificates
from tests.security.webhook_scenario import (
    HEAD,
    INSIDE,
    PUBLIC,
    RETRY_SECONDS,
    RepeatingResponse,
    WebhookScenario,
    error,
    status,
)
from tests.services import claimed_mail
from tests.webhook_server import NAME, ok

SENT_HEADERS = {"host", "content-type", "user-agent", "service-signature", "content-length"}


# Name servers.


class Rebinding(dict[str, list[str]]):
    """A name that is public when it is asked about for the first times, and inside from then on."""

    def __init__(self, server: dns_server.DnsServer, *, publicly: int) -> None:
        super().__init__()
        self.server = server
        self.publicly = publicly

    def get(self, kind: str, default: object = None) -> object:  # type: ignore[override]
        if kind != "A":
            return default
        return [PUBLIC if self.server.count(NAME, "A") <= self.publicly else INSIDE]


async def test_b1_a_rebound_name_is_connected_where_it_was_checked_and_nowhere_else(scenario: WebhookScenario) -> None:
    # Public for the save and for one attempt; a second look within the attempt would lead inside.
    scenario.dns.zones[NAME] = Rebinding(scenario.dns, publicly=2)
    await scenario.subscribe(scenario.public.url)
    async with scenario.harness.delivering():
        assert status(await scenario.send_event()) == 200
        assert scenario.dns.count(NAME, "A") == 2
        for _ in range(3):
            assert (error(await scenario.send_event()) or "").startswith("blocked_destination: ")
    assert scenario.dialled == [PUBLIC]
    assert (scenario.inside.connections, len(scenario.public.requests)) == (0, 1)


@pytest.mark.parametrize("addresses", [[PUBLIC, INSIDE], [INSIDE, PUBLIC]], ids=["B2 first", "B2 last"])
async def test_one_private_address_among_public_ones_blocks_all(
    scenario: WebhookScenario, addresses: list[str]
) -> None:
    scenario.dns.zones[NAME] = {"A": addresses}
    check_refusal(await scenario.save(scenario.public.url), 400, "invalid_request")
    await scenario.subscribe()
    await scenario.plant(scenario.public.url)
    async with scenario.harness.delivering():
        for delivery in (await scenario.send_event(), await scenario.ping()):
            assert (error(delivery) or "").startswith(f"blocked_destination: {NAME} resolves to a ")
            assert INSIDE not in (error(delivery) or "")
    assert scenario.dialled == []


async def test_n1_many_addresses_are_tried_within_the_time_and_none_twice(scenario: WebhookScenario) -> None:
    """Nobody listens at the first three; a name with a hundred addresses is no way to scan with."""
    scenario.dns.zones[NAME] = {"TC": [], "A": [f"127.2.0.{last}" for last in range(1, 101)]}
    await scenario.subscribe(scenario.public.url)
    async with scenario.harness.delivering():
        assert (error(await scenario.send_event()) or "").startswith("connection_failed: ")
    assert scenario.dialled == ["127.2.0.1", "127.2.0.2", "127.2.0.3"]


async def test_n2_what_dns_does_not_say_is_a_failed_attempt_and_no_reason_to_guess(scenario: WebhookScenario) -> None:
    """All at once, each the name of another account: silence takes three of the five seconds."""
    names = {f"fault-{number}.example.org": fault for number, fault in enumerate(dns_server.Fault)}
    endpoints = {
        name: await scenario.harness.endpoint(scenario.public.at(name)) for name in (*names, "missing.example.org")
    }
    scenario.dns.zones |= names
    written = {name: await scenario.harness.write(endpoint) for name, endpoint in endpoints.items()}
    await scenario.subscribe()
    async with scenario.harness.delivering():
        await scenario.goes_on()
        for name, endpoint in endpoints.items():
            [attempt] = (await scenario.harness.settle(endpoint, written[name])).attempts
            assert (attempt.error or "").startswith(f"dns_failure: {name}")
    assert scenario.dialled == [PUBLIC]


# Redirects, and other ways to send somebody elsewhere.


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308], ids=lambda code: f"B3 {code}")
async def test_a_redirect_is_not_followed(scenario: WebhookScenario, code: int) -> None:
    inside, port = f"https://{INSIDE}:{scenario.inside.port}/", scenario.inside.port
    places = (inside, f"http://{INSIDE}:{port}/", f"//{INSIDE}:{port}/", "/elsewhere", scenario.public.literal_url)
    await scenario.subscribe()
    async with scenario.harness.delivering():
        for number, place in enumerate(places, start=1):
            scenario.public.answer = ok(code, b"moved", f"Location: {place}")
            delivery = await scenario.send_event()
            assert (delivery["status"], status(delivery)) == ("pending", code)
            assert (error(delivery) or "").startswith("redirect_not_followed: ")
            assert len(scenario.public.requests) == number
        await scenario.goes_on()


async def test_n3_no_header_sends_anybody_anywhere_or_is_remembered(scenario: WebhookScenario) -> None:
    inside = f"{INSIDE}:{scenario.inside.port}"
    scenario.public.answer = ok(
        200,
        b"ok",
        f"Location: https://{inside}/",
        f"Content-Location: https://{inside}/",
        f"Refresh: 0; url=https://{inside}/",
        f'Alt-Svc: h2="{inside}"; ma=86400',
        f"Link: <https://{inside}/>; rel=preload",
        "Set-Cookie: session=1; Path=/",
        "Strict-Transport-Security: max-age=31536000",
        f'WWW-Authenticate: Basic realm="{inside}"',
    )
    await scenario.subscribe()
    async with scenario.harness.delivering():
        assert (await scenario.send_event())["status"] == "succeeded"
        await scenario.goes_on()
    assert [request.path for request in scenario.public.requests] == ["/hook", "/hook"]
    assert [set(request.headers) for request in scenario.public.requests] == [SENT_HEADERS] * 2


@pytest.mark.parametrize("code, header", [(401, "WWW-Authenticate: Basic"), (407, "Proxy-Authenticate: Negotiate")])
async def test_n4_a_challenge_is_never_answered(scenario: WebhookScenario, code: int, header: str) -> None:
    scenario.public.answer = ok(code, b"who are you?", header)
    await scenario.subscribe()
    async with scenario.harness.delivering():
        delivery = await scenario.send_event()
        scenario.harness.pass_seconds(RETRY_SECONDS)
        assert len((await scenario.attempted(delivery["id"], attempts=2))["attempts"]) == 2
    assert [set(request.headers) for request in scenario.public.requests] == [SENT_HEADERS] * 2


async def test_n5_no_proxy_of_the_environment_is_asked(
    scenario: WebhookScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://{INSIDE}:{scenario.inside.port}")
    await scenario.subscribe(scenario.public.url)
    async with scenario.harness.delivering():
        await scenario.goes_on()


# Time.


SLOW = {
    "B4 never answers": None,
    "B4 headers, then a byte now and then": RepeatingResponse(HEAD + b"Content-Length: 100\r\n\r\n", b"x", pause=0.4),
    "B4 a byte every four seconds": RepeatingResponse(HEAD + b"Content-Length: 100\r\n\r\n", b"x", pause=4),
    "B4 a head without an end": RepeatingResponse(HEAD, b"X-Slow: yes\r\n", pause=0.4),
    "B4 100 Continue again and again": RepeatingResponse(b"", b"HTTP/1.1 100 Continue\r\n\r\n", pause=0.05),
    "N6 a letter of the status line now and then": RepeatingResponse(b"H", b"T", pause=4.5),
}


async def test_b4_an_attempt_ends_after_five_seconds(scenario: WebhookScenario, authority: trustme.CA) -> None:
    """All at once, each the endpoint of another account; N7 accepts TCP and never shakes hands."""
    async with contextlib.AsyncExitStack() as stack:
        reported = {}
        for case, answer in SLOW.items():
            receiver = await stack.enter_async_context(webhook_server.running(authority=authority, answer=answer))
            reported[case] = receiver, await scenario.harness.endpoint(receiver.literal_url)
        silent = await stack.enter_async_context(webhook_server.running(tls=False))
        reported["N7"] = silent, await scenario.harness.endpoint(f"https://{PUBLIC}:{silent.port}/")
        written = {case: await scenario.harness.write(endpoint) for case, (_, endpoint) in reported.items()}
        await scenario.subscribe()
        async with scenario.harness.delivering():
            await scenario.goes_on()  # nobody waits for them
            for case, (receiver, endpoint) in reported.items():
                [attempt] = (await scenario.harness.settle(endpoint, written[case])).attempts
                assert (attempt.error or "").startswith("timeout: "), case
                # Never early; and late only as far as a busy machine is.
                assert 4.5 <= attempt.duration / SECOND <= 10, case
                await receiver.left_alone()
        assert silent.requests == []


# TLS.


@pytest.mark.parametrize("identity", bad_certificates.ALL, ids=lambda identity: f"B8 {identity.__name__}")
async def test_who_does_not_prove_itself_hears_nothing_now_or_later(
    scenario: WebhookScenario, authority: trustme.CA, identity: Callable[[trustme.CA], ssl.SSLContext]
) -> None:
    """Neither a retry nor a ping nor a replay is more trusting, by name or by address."""
    async with webhook_server.running(authority=authority, tls=identity(authority)) as impostor:
        for url in (impostor.url, impostor.literal_url):
            await scenario.subscribe(url)
            async with scenario.harness.delivering():
                delivery = await scenario.send_event()
                scenario.harness.pass_seconds(RETRY_SECONDS)
                again = await scenario.attempted(delivery["id"], attempts=2)
                for tried in (delivery, again, await scenario.ping(), await scenario.replay(delivery["id"])):
                    assert (error(tried) or "").startswith("tls_failure: "), error(tried)
        assert impostor.requests == []
        assert impostor.connections == sum(len(one["attempts"]) for one in await scenario.log())


async def test_n12_nothing_is_said_in_plain_text_to_an_endpoint_without_tls(scenario: WebhookScenario) -> None:
    """It answers the handshake in plain HTTP, as web servers do, and would like to be asked again."""
    heard = bytearray()

    async def grumble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.extend(await reader.read(65_536))
        writer.write(ok(400, b"speak plain HTTP", "Connection: close"))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(grumble, PUBLIC, 0)
    async with server:
        await scenario.subscribe(f"https://{PUBLIC}:{server.sockets[0].getsockname()[1]}/")
        async with scenario.harness.delivering():
            delivery = await scenario.send_event()
            assert (error(delivery) or "").startswith("tls_failure: ")
    assert heard.startswith(b"\x16\x03")
    assert b"POST" not in heard


# What is said.


async def test_b10_what_customers_and_destinations_write_stays_inside_the_body(scenario: WebhookScenario) -> None:
    evil = "evil\r\nX-Injected: yes\r\n\r\n{}\u2028"
    await scenario.subscribe()
    await accepted_mail.allow_sending(scenario.harness.ctx, scenario.mine.account_id)
    for members in ({"subject": evil}, {"to": "a@example.net\r\nX-Injected: yes"}, {"from": f"shop@example.com{evil}"}):
        mail = {"from": "shop@example.com", "to": "ada@example.net", "subject": "Hello", "text": "Hi", **members}
        headers = {"Idempotency-Key": "key"}
        sent = await scenario.mine.owner.post("/emails", json=mail, headers=headers)
        check_refusal(sent, 400, "invalid_request")
    # The destination's words come from elsewhere, and are not refused.
    _, [claimed] = await claimed_mail.another(
        scenario.harness.ctx, scenario.mine.account_id, "ada@example.net", subject="é ☃"
    )
    await scenario.harness.ctx.outcome_commits.submit(
        [claimed_mail.outcome(scenario.harness.ctx, claimed, disposition.Verdict.DELIVERED, response=evil)]
    )
    scenario.harness.ctx.webhook_wakeup.set()
    async with scenario.harness.delivering():
        [request] = await scenario.public.received(1)
    assert set(request.headers) == SENT_HEADERS
    assert not any("\r" in value or "\n" in value or "evil" in value for value in request.headers.values())
    assert b"\r" not in request.body
    assert b"\n" not in request.body
    data = json.loads(request.body)["data"]
    assert (data["smtp_response"], data["subject"]) == (evil, "é ☃")
