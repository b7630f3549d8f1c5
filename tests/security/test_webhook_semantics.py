"""Security cases C: signatures, the schedule, secrets, replays and the log, as receiver and account see them.

The number of a case is in a test's name or id. Two have more elsewhere: kill -9 in every phase (C9) in
`tests/reliability/test_webhook_kill.py`, and the six examples for receivers (C12) in `tests/test_webhook_examples.py`.
"""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import stripe

from postroad.model import times
from postroad.services import sweeping, webhook_secrets
from postroad.storage import webhooks
from postroad.webhooks import attempting, dispatching
from tests import webhook_rows
from tests.api.management import Office
from tests.api.webhook_calls import DELIVERIES, ROTATE, WEBHOOK, check_refusal, replay_of
from tests.contexts import SECOND
from tests.security.scenes import BROKEN, RETRY_SECONDS, Scene
from tests.storage import samples
from tests.webhook_receivers import OK, Received, ok, receiving

SCHEDULE = (5, 300, 1800, 7200, 18_000, 36_000)
HOUR = 3600
WEEK = 7 * 24 * HOUR
LEASE_SECONDS = 30
# A time that is far from any library's clock; the library need not judge it.
ANY_TIME = None
VECTOR_BODY = b'{"type":"email.delivered","data":{"id":"em_1"}}'
VECTOR = "t=1700000000,v1=fee6dbf2a49f3643de5eaadb7fed315997122b97df1f7095f56114b713239990"
VECTORS = Path(__file__).parents[2] / "clients" / "conformance" / "webhook-signatures.json"


def signature(request: Received) -> str:
    return request.headers["service-signature"]


def signed_at(request: Received) -> int:
    return int(signature(request).split(",")[0].removeprefix("t="))


def is_trusted(body: bytes, header: str, secret: str) -> bool:
    """What a receiver's library says."""
    try:
        return bool(stripe.WebhookSignature.verify_header(body, header, secret, ANY_TIME))
    except (stripe.SignatureVerificationError, ValueError):
        return False


async def test_c1_a_library_trusts_every_delivery_and_nothing_that_was_changed(scene: Scene) -> None:
    secret = await scene.subscribe()
    async with scene.office.telling():
        delivery = await scene.tell()
        await scene.ping()
        await scene.replay(delivery["id"])
    assert len(scene.public.requests) == 3
    for request in scene.public.requests:
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
async def test_the_bytes_that_are_sent_are_those_that_were_written_and_signed(scene: Scene, body: bytes) -> None:
    secret = await scene.subscribe()
    async with scene.office.telling():
        delivery = await scene.tell(body=body)
        await scene.replay(delivery["id"])
    assert [request.body for request in scene.public.requests] == [body, body]
    assert all(is_trusted(body, signature(request), secret) for request in scene.public.requests)


async def test_c2_the_vector(scene: Scene) -> None:
    await scene.subscribe()
    endpoint, ctx = await scene.endpoint(), scene.office.ctx
    sealed = webhook_secrets.seal(ctx, "whsec_test_secret", webhook_id=endpoint.id)
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
    scene.office.clock.now = 1_700_000_000 * SECOND
    await scene.office.write(endpoint, body=VECTOR_BODY)
    async with scene.office.telling():
        await scene.public.received(1)
    assert (signature(scene.public.requests[0]), scene.public.requests[0].body) == (VECTOR, VECTOR_BODY)


async def test_c3_a_failing_receiver_is_told_seven_times_by_the_schedule(scene: Scene) -> None:
    secret = await scene.subscribe()
    scene.public.answer = BROKEN
    began = scene.office.clock.now
    async with scene.office.telling():
        delivery = await scene.tell()
        for made, seconds in enumerate(SCHEDULE, start=1):
            assert (delivery["status"], delivery["attempt_count"]) == ("pending", made)
            waits = (times.parse(delivery["next_attempt_at"]) - scene.office.clock.now) / SECOND
            assert waits == seconds if seconds == SCHEDULE[0] else abs(waits - seconds) <= seconds / 10
            # A moment before its time nothing happens, however often the engine looks. The API tells milliseconds.
            scene.office.pass_seconds(waits - 0.001)
            assert await marker_is_told(scene)
            assert len((await scene.delivery(delivery["id"]))["attempts"]) == made
            scene.office.pass_seconds(0.002)
            delivery = await scene.told(delivery["id"], attempts=made + 1)
        assert (delivery["status"], delivery["attempt_count"]) == ("failed", 7)
        assert delivery["next_attempt_at"] is None
        scene.office.pass_seconds(24 * HOUR)
        assert await marker_is_told(scene)
    told = [request for request in scene.public.requests if request.body.decode() == delivery["request_body"]]
    assert len(told) == 7
    assert {json.loads(request.body)["id"] for request in told} == {delivery["event_id"]}
    assert signed_at(told[0]) == began // SECOND
    assert len({signed_at(request) for request in told}) == 7
    assert all(is_trusted(request.body, signature(request), secret) for request in told)


async def marker_is_told(scene: Scene) -> bool:
    """Another account's event is told, which shows that the engine has looked."""
    # The same certificate is good at the same address.
    async with receiving(tls=scene.public.tls or False) as other:
        endpoint = await scene.office.endpoint(other.literal_url)
        return (await scene.office.settle(endpoint, await scene.office.write(endpoint))).standing == ("succeeded", 1)


@pytest.mark.parametrize("successful", range(1, 8), ids=lambda number: f"C4 at attempt {number}")
async def test_after_a_success_there_are_no_further_attempts(scene: Scene, successful: int) -> None:
    await scene.subscribe()
    scene.public.answer = lambda _: OK if len(scene.public.requests) >= successful else BROKEN
    async with scene.office.telling():
        delivery = await scene.tell()
        for made in range(1, successful):
            scene.office.clock.now = times.parse(delivery["next_attempt_at"])
            scene.office.pass_seconds(1)
            delivery = await scene.told(delivery["id"], attempts=made + 1)
        assert (delivery["status"], delivery["attempt_count"]) == ("succeeded", successful)
        scene.office.pass_seconds(24 * HOUR)
        assert await marker_is_told(scene)
    assert len(scene.public.requests) == successful


async def test_c5_both_secrets_sign_during_the_overlap_and_only_the_new_one_after_it(scene: Scene) -> None:
    old = await scene.subscribe()
    new = (await scene.call("POST", ROTATE, json={"overlap_hours": 1})).json()["secret"]
    async with scene.office.telling():
        await scene.tell()
        scene.office.pass_seconds(HOUR - 1)
        await scene.tell()
        scene.office.pass_seconds(1)
        await scene.tell()
    trusted = [[is_trusted(one.body, signature(one), secret) for secret in (new, old)] for one in scene.public.requests]
    assert trusted == [[True, True], [True, True], [True, False]]
    assert [signature(request).count("v1=") for request in scene.public.requests] == [2, 2, 1]
    shown = (await scene.call("GET", WEBHOOK)).text + (await scene.call("GET", DELIVERIES)).text
    assert old not in shown
    assert new not in shown


async def test_c5_without_an_overlap_the_old_secret_fails_at_once(scene: Scene) -> None:
    secrets = [await scene.subscribe()]
    secrets.append((await scene.call("POST", ROTATE, json={"overlap_hours": 168})).json()["secret"])
    check_refusal(await scene.call("POST", ROTATE, json={"overlap_hours": 0}), 400, "invalid_request")
    secrets.append((await scene.call("POST", ROTATE)).json()["secret"])
    async with scene.office.telling():
        await scene.tell()
    [request] = scene.public.requests
    assert [is_trusted(request.body, signature(request), secret) for secret in secrets] == [False, False, True]
    assert signature(request).count("v1=") == 1


async def test_c5_old_secrets_do_not_pile_up(scene: Scene) -> None:
    await scene.subscribe()
    for _ in range(5):
        assert (await scene.call("POST", ROTATE, json={"overlap_hours": 168})).status_code == 200
    check_refusal(await scene.call("POST", ROTATE, json={"overlap_hours": 168}), 409, "conflict")
    async with scene.office.telling():
        await scene.tell()
    assert signature(scene.public.requests[0]).count("v1=") == 6


@pytest.mark.parametrize("answer, state", [(OK, "succeeded"), (BROKEN, "failed")], ids=["C7 success", "C7 failure"])
async def test_a_replay_is_the_same_bytes_signed_anew_and_logged(scene: Scene, answer: bytes, state: str) -> None:
    secret = await scene.subscribe()
    scene.public.answer = answer
    async with scene.office.telling():
        old = await scene.tell()
        while old["status"] == "pending":
            scene.office.clock.now = times.parse(old["next_attempt_at"])
            scene.office.pass_seconds(1)
            old = await scene.told(old["id"], attempts=len(old["attempts"]) + 1)
        assert old["status"] == state
        scene.office.pass_seconds(60)
        scene.public.answer = OK
        again = await scene.replay(old["id"])
    assert (again["status"], again["replay_of"], again["event_id"]) == ("succeeded", old["id"], old["event_id"])
    assert again["id"] != old["id"]
    assert (await scene.delivery(old["id"])) == old
    first, last = scene.public.requests[0], scene.public.requests[-1]
    assert (last.body, signed_at(last) - signed_at(first) >= 60) == (first.body, True)
    assert is_trusted(last.body, signature(last), secret)


async def test_c7_what_is_expired_or_foreign_looks_like_what_never_was(scene: Scene, theirs: Office) -> None:
    ctx = scene.office.ctx
    await scene.subscribe()
    await theirs.owner.put(WEBHOOK, json={"url": scene.public.literal_url})
    expired = await webhook_rows.put_ended(ctx, scene.mine.account_id)
    scene.office.pass_seconds(WEEK)
    foreign = await webhook_rows.put_ended(ctx, theirs.account_id)
    async with scene.office.telling():
        refused = [
            await scene.call("POST", replay_of(name)) for name in (expired.id, foreign.id, "whd_" + "0" * 28, "x")
        ]
        assert len({check_refusal(one, 404, "not_found") for one in refused}) == 1
        assert await marker_is_told(scene)
    assert scene.public.requests == []


@pytest.mark.parametrize("lost", [1, 6, 7], ids=lambda lost: f"C9 {lost} workers die")
async def test_an_attempt_of_a_dead_worker_counts_and_none_is_lost(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, lost: int
) -> None:
    await scene.subscribe()
    delivery_id = await scene.event()
    with monkeypatch.context() as patched:
        # Each claims the delivery and is never heard of again.
        patched.setattr(attempting.Attempting, "begin", lambda *_: None)
        for _ in range(lost):
            worker = scene.office.parts()
            for _ in range(2):  # it makes ready what the one before has left, and claims it
                await worker.dispatching.step()
            scene.office.pass_seconds(LEASE_SECONDS)
    async with scene.office.telling():
        delivery = await scene.told(delivery_id, attempts=min(lost + 1, 7))
        assert await marker_is_told(scene)
    assert delivery["attempt_count"] == min(lost + 1, 7)
    assert [one["error"] for one in delivery["attempts"]][:lost] == [dispatching.LOST] * lost
    assert delivery["status"] == ("failed" if lost == 7 else "succeeded")
    assert len(scene.public.requests) == (0 if lost == 7 else 1)


async def remove(scene: Scene) -> None:
    assert (await scene.call("DELETE", WEBHOOK)).status_code == 204


async def make_anew(scene: Scene) -> None:
    """What was to be told to the one that was removed is not told to the new one."""
    await remove(scene)
    await scene.subscribe()


async def disable(scene: Scene) -> None:
    assert (await scene.save(scene.public.literal_url, enabled=False)).status_code == 200


async def change_url(scene: Scene) -> None:
    assert (await scene.save(scene.public.at(scene.public.host, "/new"))).status_code == 200


@pytest.mark.parametrize(
    "change, heard",
    [(remove, []), (make_anew, []), (disable, []), (change_url, ["/new", "/new"])],
    ids=lambda value: f"C10 {value.__name__}" if callable(value) else "",
)
async def test_the_old_url_hears_nothing_more(
    scene: Scene, change: Callable[[Scene], Awaitable[None]], heard: list[str]
) -> None:
    """Neither of a retry that waits nor of a first attempt that is due but not yet begun."""
    await scene.subscribe()
    scene.public.answer = BROKEN
    async with scene.office.telling():
        await scene.tell()
    scene.office.pass_seconds(RETRY_SECONDS)
    await scene.event()
    await change(scene)
    async with scene.office.telling():
        if heard:
            await scene.public.received(1 + len(heard))
        assert await marker_is_told(scene)
    assert [request.path for request in scene.public.requests] == ["/hook", *heard]


async def test_c11_after_seven_days_and_a_sweep_the_log_is_gone(scene: Scene) -> None:
    secret = await scene.subscribe()
    scene.public.answer = ok(200, b"x" * 10_000)
    ctx = scene.office.ctx
    async with scene.office.telling():
        delivery = await scene.tell(body=b'{"subject":"%s"}' % (b"y" * 10_000))
        await scene.ping()
    shown = await scene.call("GET", DELIVERIES)
    assert len(delivery["request_body"].encode()) <= 2048
    assert len(delivery["attempts"][0]["response_body"].encode()) <= 2048
    written = shown.text + repr(scene.office.log)
    assert secret not in written
    assert not any(word in written.lower() for word in ("whsec_", "authorization", "bearer", "v1="))
    scene.office.pass_seconds(WEEK)
    assert await scene.log() == []
    assert (await sweeping.sweep(ctx)).webhook_deliveries == 2
    assert [await samples.count(ctx.store, f"webhook_{what}") for what in ("deliveries", "attempts")] == [0, 0]


def test_c12_the_examples_are_tried_with_short_and_empty_signatures() -> None:
    """The vectors, with which `tests/test_webhook_examples.py` runs all six, hold them; and they are refused."""
    vectors = json.loads(VECTORS.read_text())["vectors"]
    good = VECTOR.partition("v1=")[2]
    short = {"", good[0], good[:-1], f"{good}0"}
    headers = {f"t=1700000000,v1={value}" for value in short} | {"t=1700000000,v1", "t=1700000000"}
    assert {vector["header"]: vector["valid"] for vector in vectors if vector["header"] in headers} == dict.fromkeys(
        headers, False
    )
