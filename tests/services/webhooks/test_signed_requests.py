"""One attempt: what an endpoint gets, that its library trusts it, and what the log keeps of it."""

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
import pytest_asyncio
import resend
import stripe

from postroad import config, context, errors
from postroad.keys import encryption
from postroad.network.http import guarded_client as webhook_client
from postroad.protocol.signatures import webhook_signature
from postroad.roles import composition
from postroad.services.webhooks import signed_requests as webhook_attempt
from postroad.storage.mail import webhooks
from tests import contexts, webhook_server
from tests.storage import webhook_samples

BODY = '{"id":"evt_1","data":{"subject":"é☃ \u2028 \\r\\nX-Evil: 1","n":123456789012345678901234567890}}'.encode()
# The signatures of stopped clocks are years away from the clock of a library.
ANY_TIME = None


@dataclass(frozen=True, slots=True)
class AttemptHarness:
    """A context whose attempts reach an endpoint."""

    ctx: context.Context
    endpoint: webhook_server.WebhookServer

    async def attempt(self, *secrets: str, url: str = "", **fields: Any) -> webhook_attempt.AttemptResult:
        webhook = webhook_samples.webhook(url=url or self.endpoint.literal_url, **fields)
        return await webhook_attempt.attempt(self.ctx, webhook, event_id="evt_1", secrets=secrets, body=BODY)

    @property
    def header(self) -> str:
        """The last signature."""
        return self.endpoint.requests[-1].headers["service-signature"]


@pytest_asyncio.fixture
async def harness(tmp_path_factory: pytest.TempPathFactory, clock: contexts.Clock) -> AsyncIterator[AttemptHarness]:
    async with webhook_server.running() as endpoint:
        settings = config.load(
            environment={},
            overrides={
                "database": {"url": f"sqlite:///{tmp_path_factory.mktemp('reported')}/postroad.db"},
                "security": {"installation_key": contexts.SECRET_KEY},
                "webhooks": {"allow_private": ["127.0.0.2/32"], "ca_file": endpoint.ca_file},
            },
        )
        async with composition.open_context(settings, clock=clock) as ctx:
            yield AttemptHarness(ctx, endpoint)


def verify(body: bytes, header: str, secret: str) -> bool:
    """What an endpoint does that uses a library."""
    return bool(stripe.WebhookSignature.verify_header(body, header, secret, ANY_TIME))


async def test_an_endpoint_gets_the_bytes_and_three_headers(harness: AttemptHarness) -> None:
    secret = webhook_attempt.new_secret()
    attempted = await harness.attempt(secret)
    assert attempted.response == webhook_client.WebhookResponse(200, "ok", None)
    [request] = harness.endpoint.requests
    assert request.body == BODY
    assert request.headers == {
        "host": f"127.0.0.2:{harness.endpoint.port}",
        "content-type": "application/json",
        "user-agent": "Service-Webhook/1.0",
        "service-signature": webhook_signature.header([secret], BODY, timestamp=1_800_000_000),
        "content-length": str(len(BODY)),
    }


async def test_the_duration_is_in_microseconds(harness: AttemptHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter([7_000_000_000, 7_042_000_999])
    monkeypatch.setattr("postroad.services.webhooks.signed_requests.time.monotonic_ns", lambda: next(readings))
    assert (await harness.attempt(webhook_attempt.new_secret())).duration == 42_000


async def test_a_library_trusts_the_request_signed_with_either_secret_and_no_other(harness: AttemptHarness) -> None:
    secret, old = webhook_attempt.new_secret(), webhook_attempt.new_secret()
    await harness.attempt(secret, old)
    assert harness.header.count("v1=") == 2
    for key in (secret, old):
        assert verify(harness.endpoint.requests[0].body, harness.header, key)
    flipped = bytes([BODY[0] ^ 1]) + BODY[1:]
    for body, header, key in (
        (flipped, harness.header, secret),
        (BODY, harness.header.replace("t=18", "t=19"), secret),
        (BODY, harness.header, webhook_attempt.new_secret()),
        (BODY, harness.header, secret.removeprefix("whsec_")),
    ):
        with pytest.raises(stripe.SignatureVerificationError):
            verify(body, header, key)


async def test_an_endpoint_that_wants_it_gets_a_standard_signature_that_a_library_trusts(
    harness: AttemptHarness, clock: contexts.Clock
) -> None:
    standardwebhooks = pytest.importorskip("standardwebhooks", reason="standardwebhooks: make setup")
    clock.now = time.time_ns() // 1_000  # the library has no other clock
    new, old = webhook_attempt.new_secret(), webhook_attempt.new_secret()
    await harness.attempt(new, old, standard_signature=1)
    [request] = harness.endpoint.requests
    assert request.headers["webhook-id"] == "evt_1"
    assert verify(BODY, harness.header, new)
    for secret in (new, old):
        assert standardwebhooks.Webhook(secret).verify(BODY, request.headers)["id"] == "evt_1"
    for body, headers, secret in (
        (BODY.replace(b"evt_1", b"evt_2"), request.headers, new),
        (BODY, {**request.headers, "webhook-id": "evt_2"}, new),
        (BODY, request.headers, webhook_attempt.new_secret()),
    ):
        with pytest.raises(standardwebhooks.WebhookVerificationError):
            standardwebhooks.Webhook(secret).verify(body, headers)


async def test_the_format_of_resend_is_signed_as_its_package_verifies_it(
    harness: AttemptHarness, clock: contexts.Clock
) -> None:
    clock.now = time.time_ns() // 1_000  # the package has no other clock
    new, old = webhook_attempt.new_secret(), webhook_attempt.new_secret()
    await harness.attempt(new, old, format="resend", is_first=0)
    [request] = harness.endpoint.requests
    assert verify(BODY, harness.header, new)
    signed: Any = {name: request.headers[f"svix-{name}"] for name in ("id", "timestamp", "signature")}
    payload = BODY.decode()
    for secret in (new, old):
        resend.Webhooks.verify({"payload": payload, "headers": signed, "webhook_secret": secret})
    with pytest.raises(ValueError, match="signature"):
        resend.Webhooks.verify({"payload": payload + " ", "headers": signed, "webhook_secret": new})


async def test_requests_have_the_header_fields_of_their_endpoint(harness: AttemptHarness) -> None:
    fields = [webhook_attempt.basic_authentication("shop", "s3cret"), ("X-Shop", "1")]
    webhook_attempt.check_headers(fields)
    sealed = webhook_attempt.encrypt_headers(harness.ctx, fields, webhook_id="whk_1")
    assert sealed is not None
    assert b"X-Shop" not in sealed
    await harness.attempt(webhook_attempt.new_secret(), format="postmark", is_first=0, request_headers=sealed)
    [request] = harness.endpoint.requests
    assert request.headers["authorization"] == "Basic c2hvcDpzM2NyZXQ="
    assert request.headers["x-shop"] == "1"
    assert "svix-id" not in request.headers


@pytest.mark.parametrize(
    "fields",
    [
        [("Host", "a.example")],
        [("content-length", "1")],
        [("Svix-Id", "evt_1")],
        [("service-signature", "t=1")],
        [("X Y", "1")],
        [("", "1")],
        [("X", "")],
        [("X", "a\r\nY: 2")],
        [("X", "é")],
        [("X", "a" * 1025)],
        [("X", "1"), ("x", "2")],
        [(f"X-{number}", "secret value") for number in range(21)],
    ],
)
def test_header_fields_that_cannot_be_sent_are_refused_without_their_values(fields: list[tuple[str, str]]) -> None:
    with pytest.raises(errors.InvalidRequest) as refused:
        webhook_attempt.check_headers(fields)
    assert "secret value" not in refused.value.message


async def test_every_attempt_is_signed_at_its_own_time(harness: AttemptHarness, clock: contexts.Clock) -> None:
    first = await harness.attempt("whsec_test_secret")
    clock.pass_seconds(300.999)
    second = await harness.attempt("whsec_test_secret")
    assert [attempted.started_at for attempted in (first, second)] == [
        1_800_000_000 * contexts.SECOND,
        1_800_000_000 * contexts.SECOND + 300_999_000,
    ]
    signed_at = [request.headers["service-signature"].partition(",")[0] for request in harness.endpoint.requests]
    assert signed_at == ["t=1800000000", "t=1800000300"]
    assert first.duration > 0


async def test_the_log_keeps_what_the_endpoint_said_or_why_there_was_no_answer(harness: AttemptHarness) -> None:
    harness.endpoint.answer = webhook_server.ok(500, b"no\x00")
    attempted = await harness.attempt("whsec_test_secret")
    entry = webhook_attempt.attempt_row(("acc_1", "whk_1", "whd_1"), 3, attempted)
    assert (entry.account_id, entry.webhook_id, entry.delivery_id, entry.number) == ("acc_1", "whk_1", "whd_1", 3)
    assert (entry.started_at, entry.duration) == (attempted.started_at, attempted.duration)
    assert (entry.status_code, entry.response_body, entry.error) == (500, "no\ufffd", None)
    attempted = await harness.attempt("whsec_test_secret", url="https://127.0.0.1/")
    entry = webhook_attempt.attempt_row(("acc_1", "whk_1", "whd_1"), 1, attempted)
    assert (entry.status_code, entry.response_body) == (None, None)
    assert (entry.error or "").startswith("blocked_destination: ")


# Signing secrets of webhooks: unguessable, shown once, and of no use to who has the database.


def stored(secret: bytes, *, webhook_id: str = "whk_1") -> webhooks.Secret:
    return webhooks.Secret("acc_1", webhook_id, 1, secret, 0, None)


def test_a_secret_is_new_every_time_and_says_what_it_is() -> None:
    made = {webhook_attempt.new_secret() for _ in range(100)}
    assert len(made) == 100
    assert {(secret[:6], len(secret), secret[6:].isalnum()) for secret in made} == {("whsec_", 50, True)}
    assert webhook_attempt.secret_hint("whsec_abcdefghijkl") == "whsec_…ijkl"


async def test_a_sealed_secret_opens_for_its_endpoint_alone(ctx: context.Context) -> None:
    secret = webhook_attempt.new_secret()
    sealed = webhook_attempt.encrypt_secret(ctx, secret, webhook_id="whk_1")
    assert secret[6:].encode() not in sealed
    assert webhook_attempt.decrypt_secret(ctx, stored(sealed)) == secret
    assert webhook_attempt.encrypt_secret(ctx, secret, webhook_id="whk_1") != sealed
    with pytest.raises(encryption.DecryptionError):
        webhook_attempt.decrypt_secret(ctx, stored(sealed, webhook_id="whk_2"))
    changed = msgspec.structs.replace(stored(sealed), secret=sealed[:-1] + bytes([sealed[-1] ^ 1]))
    with pytest.raises(encryption.DecryptionError):
        webhook_attempt.decrypt_secret(ctx, changed)
