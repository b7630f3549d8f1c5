"""Security cases B and C4 that need the whole engine of webhooks: what it says, keeps and does next.

Where a name may lead, redirects, time, certificates and what is no response are shown where they are decided, in
`tests/network/http/`; `cases.py` says where each case is. `N` are neighbours of the written cases.
"""

import json

import pytest

from postroad.model.bounces import disposition
from postroad.model.units import times
from postroad.services.webhooks import endpoints
from tests import accepted_mail
from tests.api.webhook_calls import DELIVERIES, check_refusal
from tests.contexts import SECOND
from tests.security.webhook_scenario import BROKEN, INSIDE, RETRY_SECONDS, WebhookScenario, error, status
from tests.services import claimed_mail
from tests.webhook_server import NAME, OK, ok

KEPT_BYTES = 2048
SENT_HEADERS = {"host", "content-type", "user-agent", "service-signature", "content-length"}


async def test_n1_many_addresses_are_tried_within_the_time_and_none_twice(scenario: WebhookScenario) -> None:
    """Nobody listens at the first three; a name with a hundred addresses is no way to scan with."""
    scenario.dns.zones[NAME] = {"TC": [], "A": [f"127.2.0.{last}" for last in range(1, 101)]}
    await scenario.subscribe(scenario.public.url)
    async with scenario.harness.delivering():
        assert (error(await scenario.send_event()) or "").startswith("connection_failed: ")
    assert scenario.dialled == ["127.2.0.1", "127.2.0.2", "127.2.0.3"]


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


@pytest.mark.parametrize("database_url", ["sqlite", "postgres"], indirect=True)
async def test_b11_a_body_is_kept_as_text_and_shown_as_json(scenario: WebhookScenario) -> None:
    scenario.public.answer = ok(
        200, b"<script>\x1b[31m\x07\x00\xff</script>" + "☃".encode() * 1000, "Content-Type: text/html"
    )
    await scenario.subscribe()
    async with scenario.harness.delivering():
        kept = (await scenario.send_event())["attempts"][0]["response_body"]
    assert kept.startswith("<script>\x1b[31m\x07\ufffd\ufffd</script>☃")
    assert KEPT_BYTES - 3 < len(kept.encode()) <= KEPT_BYTES
    shown = await scenario.call("GET", DELIVERIES)
    assert shown.headers["content-type"] == "application/json"
    assert shown.headers["x-content-type-options"] == "nosniff"
    assert not set(shown.content) & set(range(0x20))


@pytest.mark.parametrize(
    "code, state",
    [(204, "succeeded"), (299, "succeeded"), (300, "pending"), (304, "pending"), (410, "pending"), (429, "pending")],
)
async def test_b13_any_2xx_is_success_and_nothing_stretches_the_schedule(
    scenario: WebhookScenario, code: int, state: str
) -> None:
    scenario.public.answer = ok(code, b"", "Retry-After: 999999")
    await scenario.subscribe()
    async with scenario.harness.delivering():
        delivery = await scenario.send_event()
        assert (delivery["status"], status(delivery)) == (state, code)
        due = times.to_wire(scenario.harness.clock.now + RETRY_SECONDS * SECOND)
        assert delivery["next_attempt_at"] == (None if state == "succeeded" else due)
        assert (await scenario.ping())["status"] == ("succeeded" if state == "succeeded" else "failed")
    assert (await endpoints.find(scenario.harness.ctx, scenario.mine.account_id)) is not None  # 410 removes nothing


@pytest.mark.parametrize("successful", [1, 4, 7])
async def test_c4_after_a_success_there_are_no_further_attempts(scenario: WebhookScenario, successful: int) -> None:
    await scenario.subscribe()
    scenario.public.answer = lambda _: OK if len(scenario.public.requests) >= successful else BROKEN
    async with scenario.harness.delivering():
        delivery = await scenario.send_event()
        for made in range(1, successful):
            scenario.harness.clock.now = times.parse(delivery["next_attempt_at"])
            scenario.harness.pass_seconds(1)
            delivery = await scenario.attempted(delivery["id"], attempts=made + 1)
        assert (delivery["status"], delivery["attempt_count"]) == ("succeeded", successful)
        scenario.harness.pass_seconds(24 * 3600)
        await scenario.goes_on()
    assert len(scenario.public.requests) == successful + 1
