"""Security cases C: signatures, the schedule, secrets, replays and the log, as endpoint and account see them.

The number of a case is in a test's name or id. Two have more elsewhere: kill -9 in every phase (C9) in
`tests/reliability/test_webhook_kill.py`, and the six examples for endpoints (C12) in
`tests/docs/test_webhook_examples.py`.
"""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import stripe

from postroad.model.units import times
from postroad.services.operations import cleanup
from postroad.services.webhooks import signed_requests
from postroad.storage.mail import webhooks
from postroad.webhooks import engine
from tests import webhook_rows
from tests.api.management import AccountClients
from tests.api.webhook_calls import DELIVERIES, ROTATE, WEBHOOK, check_refusal, replay_of
from tests.contexts import SECOND
from tests.security.webhook_scenario import BROKEN, RETRY_SECONDS, WebhookScenario
from tests.storage import samples
from tests.webhook_server import OK, ReceivedRequest, ok, running

SCHEDULE = (5, 300, 1800, 7200, 18_000, 36_000)
HOUR = 3600
WEEK = 7 * 24 * HOUR
LEASE_SECONDS = 30
# A time that is far from any library's clock; the library need not check it.
ANY_TIME = None
VECTOR_BODY = b'{"type":"email.delivered","data":{"id":"em_1"}}'
VECTOR = "t=1700000000,v1=fee6dbf2a49f3643de5eaadb7fed315997122b97df1f7095f56114b713239990"
VECTORS = Path(__file__).parents[2] / "clients" / "conformance" / "webhook-signatures.json"


def signature(request: ReceivedRequest) -> str:
    return request.headers["service-signature"]


def signed_at(request: ReceivedRequest) -> int:
    return int(signature(request).split(",")[0].removeprefix("t="))


def is_trusted(body: bytes, header: str, secret: str) -> bool:
    """What an endpoint's library says."""
    try:
        return bool(stripe.WebhookSignature.verify_header(body, header, secret, ANY_TIME))
    except (stripe.SignatureVerificationError, ValueError):
        return False


async def test_c1_a_library_trusts_every_delivery_and_nothing_that_was_changed(scenario: WebhookScenario) -> None:
    secret = await scenario.subscribe()
    async with scenario.harness.delivering():
        delivery = await scenario.send_event()
        await scenario.ping()
        await scenario.replay(delivery["id"])
    assert len(scenario.public.requests) == 3
    for request in scenario.public.requests:
        body, header = request.body, signature(request)
        assert is_trusted(body, header, secret)
        changed = bytes([body[0] ^ 1]) + body[1:]
        later = header.replace(f"t={signed_at(request)}", f"t={signed_at(request) + 1}")
        assert not is_trusted(changed, header, secret)
        assert not is_trusted(body, later, secret)
        assert not is_trusted(body, header, secret[:-1] + ("a" if secret[-1] != "a" else "b"))


@pytest.mark.parametrize(
    "body",
    [
        '{"subject":"é☃"}'.encode(),
        '{"subject":"a\u2028b"}'.encode(),
        b'{"n":123456789012345678901234567890,"f":1e400,"z":1.0}',
        b'{"b":1,"a":{"d":2,"c":3}, "b" : 4}\n',
    ],
    ids=["C2 letters", "C2 line separator", "C2 numbers", "C2 order"],
)
async def test_the_bytes_that_are_sent_are_those_that_were_written_and_signed(
    scenario: WebhookScenario, body: bytes
) -> None:
    secret = await scenario.subscribe()
    async with scenario.harness.delivering():
        delivery = await scenario.send_event(body=body)
        await scenario.replay(delivery["id"])
    assert [request.body for request in scenario.public.requests] == [body, body]
    assert all(is_trusted(body, signature(request), secret) for request in scenario.public.requests)


async def test_c2_the_vector(scenario: WebhookScenario) -> None:
    await scenario.subscribe()
    endpoint, ctx = await scenario.endpoint(), scenario.harness.ctx
    sealed = signed_requests.encrypt_secret(ctx, "whsec_test_secret", webhook_id=endpoint.id)
    async with ctx.store.transaction() as tx:
        await webhooks.remove_secrets(tx, endpoint.id)
        secret = webhooks.Secret(
            account_id=endpoint.account_id,
            webhook_id=endpoint.id,
            version=2,
            secret=sealed,
            created_at=0,
            expires_at=None,
        )
        await webhooks.add_secret(tx, secret, hint="cret")
    scenario.harness.clock.now = 1_700_000_000 * SECOND
    await scenario.harness.write(endpoint, body=VECTOR_BODY)
    async with scenario.harness.delivering():
        await scenario.public.received(1)
    assert (signature(scenario.public.requests[0]), scenario.public.requests[0].body) == (VECTOR, VECTOR_BODY)


async def test_c3_a_failing_endpoint_is_tried_seven_times_by_the_schedule(scenario: WebhookScenario) -> None:
    secret = await scenario.subscribe()
    scenario.public.answer = BROKEN
    began = scenario.harness.clock.now
    async with scenario.harness.delivering():
        delivery = await scenario.send_event()
        for made, seconds in enumerate(SCHEDULE, start=1):
            assert (delivery["status"], delivery["attempt_count"]) == ("pending", made)
            waits = (times.parse(delivery["next_attempt_at"]) - scenario.harness.clock.now) / SECOND
            assert waits == seconds if seconds == SCHEDULE[0] else abs(waits - seconds) <= seconds / 10
            # A moment before its time nothing happens, however often the engine looks. The API shows milliseconds.
            scenario.harness.pass_seconds(waits - 0.001)
            assert await marker_is_delivered(scenario)
            assert len((await scenario.delivery(delivery["id"]))["attempts"]) == made
            scenario.harness.pass_seconds(0.002)
            delivery = await scenario.attempted(delivery["id"], attempts=made + 1)
        assert (delivery["status"], delivery["attempt_count"]) == ("failed", 7)
        assert delivery["next_attempt_at"] is None
        scenario.harness.pass_seconds(24 * HOUR)
        assert await marker_is_delivered(scenario)
    sent = [request for request in scenario.public.requests if request.body.decode() == delivery["request_body"]]
    assert len(sent) == 7
    assert {json.loads(request.body)["id"] for request in sent} == {delivery["event_id"]}
    assert signed_at(sent[0]) == began // SECOND
    assert len({signed_at(request) for request in sent}) == 7
    assert all(is_trusted(request.body, signature(request), secret) for request in sent)


async def marker_is_delivered(scenario: WebhookScenario) -> bool:
    """Another account's event is delivered, which shows that the engine has polled."""
    # The same certificate is good at the same address.
    async with running(tls=scenario.public.tls or False) as other:
        endpoint = await scenario.harness.endpoint(other.literal_url)
        return (await scenario.harness.settle(endpoint, await scenario.harness.write(endpoint))).standing == (
            "succeeded",
            1,
        )


@pytest.mark.parametrize("successful", range(1, 8), ids=lambda number: f"C4 at attempt {number}")
async def test_after_a_success_there_are_no_further_attempts(scenario: WebhookScenario, successful: int) -> None:
    await scenario.subscribe()
    scenario.public.answer = lambda _: OK if len(scenario.public.requests) >= successful else BROKEN
    async with scenario.harness.delivering():
        delivery = await scenario.send_event()
        for made in range(1, successful):
            scenario.harness.clock.now = times.parse(delivery["next_attempt_at"])
            scenario.harness.pass_seconds(1)
            delivery = await scenario.attempted(delivery["id"], attempts=made + 1)
        assert (delivery["status"], delivery["attempt_count"]) == ("succeeded", successful)
        scenario.harness.pass_seconds(24 * HOUR)
        assert await marker_is_delivered(scenario)
    assert len(scenario.public.requests) == successful


async def test_c5_both_secrets_sign_during_the_overlap_and_only_the_new_one_after_it(scenario: WebhookScenario) -> None:
    old = await scenario.subscribe()
    new = (await scenario.call("POST", ROTATE, json={"overlap_hours": 1})).json()["secret"]
    async with scenario.harness.delivering():
        await scenario.send_event()
        scenario.harness.pass_seconds(HOUR - 1)
        await scenario.send_event()
        scenario.harness.pass_seconds(1)
        await scenario.send_event()
    trusted = [
        [is_trusted(one.body, signature(one), secret) for secret in (new, old)] for one in scenario.public.requests
    ]
    assert trusted == [[True, True], [True, True], [True, False]]
    assert [signature(request).count("v1=") for request in scenario.public.requests] == [2, 2, 1]
    shown = (await scenario.call("GET", WEBHOOK)).text + (await scenario.call("GET", DELIVERIES)).text
    assert old not in shown
    assert new not in shown


async def test_c5_without_an_overlap_the_old_secret_fails_at_once(scenario: WebhookScenario) -> None:
    secrets = [await scenario.subscribe()]
    secrets.append((await scenario.call("POST", ROTATE, json={"overlap_hours": 168})).json()["secret"])
    check_refusal(await scenario.call("POST", ROTATE, json={"overlap_hours": 0}), 400, "invalid_request")
    secrets.append((await scenario.call("POST", ROTATE)).json()["secret"])
    async with scenario.harness.delivering():
        await scenario.send_event()
    [request] = scenario.public.requests
    assert [is_trusted(request.body, signature(request), secret) for secret in secrets] == [False, False, True]
    assert signature(request).count("v1=") == 1


async def test_c5_old_secrets_do_not_pile_up(scenario: WebhookScenario) -> None:
    await scenario.subscribe()
    for _ in range(5):
        assert (await scenario.call("POST", ROTATE, json={"overlap_hours": 168})).status_code == 200
    check_refusal(await scenario.call("POST", ROTATE, json={"overlap_hours": 168}), 409, "conflict")
    async with scenario.harness.delivering():
        await scenario.send_event()
    assert signature(scenario.public.requests[0]).count("v1=") == 6


@pytest.mark.parametrize("answer, state", [(OK, "succeeded"), (BROKEN, "failed")], ids=["C7 success", "C7 failure"])
async def test_a_replay_is_the_same_bytes_signed_anew_and_logged(
    scenario: WebhookScenario, answer: bytes, state: str
) -> None:
    secret = await scenario.subscribe()
    scenario.public.answer = answer
    async with scenario.harness.delivering():
        old = await scenario.send_event()
        while old["status"] == "pending":
            scenario.harness.clock.now = times.parse(old["next_attempt_at"])
            scenario.harness.pass_seconds(1)
            old = await scenario.attempted(old["id"], attempts=len(old["attempts"]) + 1)
        assert old["status"] == state
        scenario.harness.pass_seconds(60)
        scenario.public.answer = OK
        again = await scenario.replay(old["id"])
    assert (again["status"], again["replay_of"], again["event_id"]) == ("succeeded", old["id"], old["event_id"])
    assert again["id"] != old["id"]
    assert (await scenario.delivery(old["id"])) == old
    first, last = scenario.public.requests[0], scenario.public.requests[-1]
    assert (last.body, signed_at(last) - signed_at(first) >= 60) == (first.body, True)
    assert is_trusted(last.body, signature(last), secret)


async def test_c7_what_is_expired_or_foreign_looks_like_what_never_was(
    scenario: WebhookScenario, theirs: AccountClients
) -> None:
    ctx = scenario.harness.ctx
    await scenario.subscribe()
    await theirs.owner.put(WEBHOOK, json={"url": scenario.public.literal_url})
    expired = await webhook_rows.put_ended(ctx, scenario.mine.account_id)
    scenario.harness.pass_seconds(WEEK)
    foreign = await webhook_rows.put_ended(ctx, theirs.account_id)
    async with scenario.harness.delivering():
        refused = [
            await scenario.call("POST", replay_of(name)) for name in (expired.id, foreign.id, "whd_" + "0" * 28, "x")
        ]
        assert len({check_refusal(one, 404, "not_found") for one in refused}) == 1
        assert await marker_is_delivered(scenario)
    assert scenario.public.requests == []


@pytest.mark.parametrize("lost", [1, 6, 7], ids=lambda lost: f"C9 {lost} workers die")
async def test_an_attempt_of_a_dead_worker_counts_and_none_is_lost(
    scenario: WebhookScenario, monkeypatch: pytest.MonkeyPatch, lost: int
) -> None:
    await scenario.subscribe()
    delivery_id = await scenario.event()
    with monkeypatch.context() as patched:
        # Each claims the delivery and is never heard of again.
        patched.setattr(engine.Attempter, "begin", lambda *_: None)
        for _ in range(lost):
            worker = scenario.harness.parts()
            for _ in range(2):  # it makes ready what the one before has left, and claims it
                await worker.dispatching.step()
            scenario.harness.pass_seconds(LEASE_SECONDS)
    async with scenario.harness.delivering():
        delivery = await scenario.attempted(delivery_id, attempts=min(lost + 1, 7))
        assert await marker_is_delivered(scenario)
    assert delivery["attempt_count"] == min(lost + 1, 7)
    assert [one["error"] for one in delivery["attempts"]][:lost] == [engine.WORKER_LOST] * lost
    assert delivery["status"] == ("failed" if lost == 7 else "succeeded")
    assert len(scenario.public.requests) == (0 if lost == 7 else 1)


async def remove(scenario: WebhookScenario) -> None:
    assert (await scenario.call("DELETE", WEBHOOK)).status_code == 204


async def make_anew(scenario: WebhookScenario) -> None:
    """What was due to the removed endpoint is not sent to the new one."""
    await remove(scenario)
    await scenario.subscribe()


async def disable(scenario: WebhookScenario) -> None:
    assert (await scenario.save(scenario.public.literal_url, enabled=False)).status_code == 200


async def change_url(scenario: WebhookScenario) -> None:
    assert (await scenario.save(scenario.public.at(scenario.public.host, "/new"))).status_code == 200


@pytest.mark.parametrize(
    "change, heard",
    [(remove, []), (make_anew, []), (disable, []), (change_url, ["/new", "/new"])],
    ids=lambda value: f"C10 {value.__name__}" if callable(value) else "",
)
async def test_the_old_url_hears_nothing_more(
    scenario: WebhookScenario, change: Callable[[WebhookScenario], Awaitable[None]], heard: list[str]
) -> None:
    """Neither of a retry that waits nor of a first attempt that is due but not yet begun."""
    await scenario.subscribe()
    scenario.public.answer = BROKEN
    async with scenario.harness.delivering():
        await scenario.send_event()
    scenario.harness.pass_seconds(RETRY_SECONDS)
    await scenario.event()
    await change(scenario)
    async with scenario.harness.delivering():
        if heard:
            await scenario.public.received(1 + len(heard))
        assert await marker_is_delivered(scenario)
    assert [request.path for request in scenario.public.requests] == ["/hook", *heard]


async def test_c11_after_seven_days_and_a_sweep_the_log_is_gone(scenario: WebhookScenario) -> None:
    secret = await scenario.subscribe()
    scenario.public.answer = ok(200, b"x" * 10_000)
    ctx = scenario.harness.ctx
    async with scenario.harness.delivering():
        delivery = await scenario.send_event(body=b'{"subject":"%s"}' % (b"y" * 10_000))
        await scenario.ping()
    shown = await scenario.call("GET", DELIVERIES)
    assert len(delivery["request_body"].encode()) <= 2048
    assert len(delivery["attempts"][0]["response_body"].encode()) <= 2048
    written = shown.text + repr(scenario.harness.log)
    assert secret not in written
    assert not any(word in written.lower() for word in ("whsec_", "authorization", "bearer", "v1="))
    scenario.harness.pass_seconds(WEEK)
    assert await scenario.log() == []
    assert (await cleanup.sweep(ctx)).webhook_deliveries == 2
    assert [await samples.count(ctx.store, f"webhook_{what}") for what in ("deliveries", "attempts")] == [0, 0]


def test_c12_the_examples_are_tried_with_short_and_empty_signatures() -> None:
    """The vectors, with which `tests/docs/test_webhook_examples.py` runs all six, hold them; and they are refused."""
    vectors = json.loads(VECTORS.read_text())["vectors"]
    good = VECTOR.partition("v1=")[2]
    short = {"", good[0], good[:-1], f"{good}0"}
    headers = {f"t=1700000000,v1={value}" for value in short} | {"t=1700000000,v1", "t=1700000000"}
    assert {vector["header"]: vector["valid"] for vector in vectors if vector["header"] in headers} == dict.fromkeys(
        headers, False
    )
