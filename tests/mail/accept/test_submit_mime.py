"""The way in for finished messages, on both engines: the checks of every send, and those of the envelope."""

import asyncio
import dataclasses
import threading
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from postroad import context, errors
from postroad.mail.accept import mime_validation, submit, submit_mime, transaction
from postroad.mail.signing import domain_keys, signer_pool
from postroad.model.mail import send_request, statuses
from postroad.model.people import callers
from postroad.services.accounts import account_registry as accounts
from postroad.services.accounts import credits
from postroad.services.domains import domain_registry as domains
from postroad.services.messages import lookup as messages
from postroad.services.operations import operator_jobs
from postroad.services.templates import templates
from postroad.storage.mail import messages as recipients
from postroad.storage.people import accounts as stored_accounts
from tests import dkim_verifiers
from tests.contexts import SECOND, Clock
from tests.services.mime_messages import FROM, TO, parsed, plain, raw

KEY = "Idempotency-Key: order-1"
ASKING = (FROM, TO, "X-Service-Template: welcome", 'X-Service-Variables: {"name": "Ada"}')


@dataclasses.dataclass(slots=True)
class Shop:
    """An account that may send, and the caller that sends for it."""

    ctx: context.Context
    clock: Clock
    account: stored_accounts.Account
    who: callers.Caller
    domain_id: str
    sent: int = 0

    async def send(self, message: statuses.RawMessage, *, who: callers.Caller | None = None) -> transaction.Accepted:
        self.sent += 1
        return await submit_mime.submit_mime(self.ctx, who or self.who, message, request_id=f"req_{self.sent}")

    async def refusal(self, message: statuses.RawMessage) -> errors.PostroadError:
        """Why the message is refused; nothing of it is left then."""
        before = await self.balance()
        with pytest.raises(errors.PostroadError) as refused:
            await self.send(message)
        assert await self.balance() == before
        assert self.ctx.in_flight == set()
        assert (await operator_jobs.check_consistency(self.ctx)).findings == []
        return refused.value

    async def balance(self) -> tuple[int, int]:
        account = await accounts.find(self.ctx, self.account.id)
        return account.available, account.reserved

    async def mime(self, accepted: transaction.Accepted) -> bytes:
        return await messages.raw(self.ctx, self.account.id, accepted.message_id)


@pytest_asyncio.fixture
async def shop(ctx: context.Context, clock: Clock, account: stored_accounts.Account) -> Shop:
    await credits.add(ctx, account.id, 100, None)
    domain = await domains.add(ctx, account.id, "example.com", verified=True)
    await templates.put(ctx, account.id, "welcome", subject="Welcome {{name}}", text="Hi {{name}}", html="<p>{{name}}")
    who = callers.Caller(account.id, "cred_" + 28 * "a", callers.Scheme.PASSWORD, callers.PASSWORD_PERMISSIONS)
    return Shop(ctx, clock, account, who, domain.id)


# Accepting


async def test_a_finished_message_is_stored_like_any_other(shop: Shop) -> None:
    message = plain(
        "Cc: cc@example.org",
        "Bcc: eve@example.org",
        "X-Service-Tag: welcome",
        to=("ada@example.org", "eve@example.org", "ADA@example.org"),
    )
    accepted = await shop.send(message)
    assert not accepted.replayed
    found = await messages.details(shop.ctx, shop.account.id, accepted.message_id)
    assert [one.email for one in found.recipients] == ["ada@example.org", "eve@example.org"]
    assert (found.message.source, found.message.sender) == ("smtp", "Shop <shop@example.com>")
    assert (found.message.subject, found.message.request_id) == ("Hello", "req_1")
    assert (found.receipt.id, found.receipt.source, found.receipt.tags) == (accepted.message_id, "smtp", ("welcome",))
    assert (found.receipt.cc, found.receipt.bcc) == (("cc@example.org",), ("eve@example.org",))
    assert b"eve@" not in await shop.mime(accepted)
    assert await shop.balance() == (98, 2)
    assert (await operator_jobs.check_consistency(shop.ctx)).findings == []
    tagged = await messages.page(shop.ctx, shop.account.id, messages.Filters(tag="welcome"), limit=9, cursor=None)
    assert [one.id for one in tagged.messages] == [accepted.message_id]


# Whose message it is


@pytest.mark.parametrize("sender", ["", "bounces@example.com", "x@EXAMPLE.com"])
async def test_the_null_sender_and_the_senders_own_domain_are_fine(shop: Shop, sender: str) -> None:
    await shop.send(raw(FROM, TO, sender=sender))


async def test_the_envelope_sender_may_be_of_another_domain_of_the_account(shop: Shop) -> None:
    message = raw(FROM, TO, sender="bounces@example.net")
    refused = await shop.refusal(message)
    assert (refused.code, refused.smtp_reply) == ("forbidden", "550 5.7.1")
    assert refused.message == (
        "MAIL FROM: this account cannot send from example.net; set the envelope sender to an address at example.com"
    )
    await domains.add(shop.ctx, shop.account.id, "example.net", verified=True)
    await shop.send(message)


@pytest.mark.parametrize("fields, sender", [(("From: eve@example.net", TO), ""), ((FROM, TO), "eve@example.net")])
async def test_the_domain_of_another_account_is_forbidden_in_the_field_and_on_the_envelope(
    shop: Shop, fields: tuple[str, ...], sender: str
) -> None:
    other = await accounts.create(shop.ctx, "Other")
    await domains.add(shop.ctx, other.id, "example.net", verified=True)
    refused = await shop.refusal(raw(*fields, sender=sender))
    assert refused.smtp_reply == "550 5.7.1"
    assert "example.net" in refused.message


async def test_a_domain_that_is_not_verified_is_forbidden(shop: Shop) -> None:
    await domains.add(shop.ctx, shop.account.id, "example.net", verified=False)
    assert (await shop.refusal(raw("From: a@example.net", TO))).code == "forbidden"
    assert (await shop.refusal(raw(FROM, TO, sender="a@example.net"))).code == "forbidden"


async def test_the_envelope_sender_is_checked_for_templates_too(shop: Shop) -> None:
    assert (await shop.refusal(raw(*ASKING, body="", sender="eve@example.net"))).code == "forbidden"


# Signing


async def test_what_is_stored_can_be_signed_however_its_header_is_written(shop: Shop) -> None:
    shop.clock.now = 1_700_000_000 * SECOND  # verifiers refuse signatures from the future
    odd = (
        "FROM:shop@example.com",
        "to:x\r\n\t@example.org,\r\n  ada@example.org",
        "Subject:",
        "DKIM-Signature: v=1; a=rsa-sha256; d=example.net; s=x; h=from; bh=x; b=x",
        "X-Folded: a\r\n \tb\t \r\n c ",
    )
    accepted = await shop.send(raw(*odd, body="süß  \t\r\n\r\n.\r\n \r\n\r\n"))
    content = await shop.mime(accepted)
    signer = signer_pool.DkimSigner(shop.ctx)
    field = await signer.signature(shop.account.id, "example.com", accepted.message_id, content)
    await signer.close()
    listed = await domains.of_account(shop.ctx, shop.account.id)
    records = {record.name: record.value for record in (await domain_keys.existing_records(shop.ctx, listed)).values()}
    assert dkim_verifiers.dkimpy_accepts(field + content, records)
    assert not dkim_verifiers.dkimpy_accepts(b"Subject: More\r\n" + field + content, records)


# Refusals


@pytest.mark.parametrize(
    "message",
    [
        plain(to=("bob@",)),
        raw(FROM, TO, "X-Service-Template: unknown", body=""),
        raw(FROM, TO, "X-Service-Template: welcome", body=""),
    ],
    ids=["recipient", "alias", "variable"],
)
async def test_a_malformed_message_is_refused_for_good(shop: Shop, message: statuses.RawMessage) -> None:
    refused = await shop.refusal(message)
    assert (refused.code, refused.smtp_reply) == ("invalid_request", "550 5.6.0")


# Idempotency


async def test_a_client_that_renders_the_same_mail_again_gets_the_first_id(shop: Shop) -> None:
    def rendered(boundary: str, number: int) -> statuses.RawMessage:
        body = f"--{boundary}\r\n\r\nHi\r\n--{boundary}--\r\n"
        return plain(
            KEY,
            f"Date: Fri, 15 Jan 2027 08:00:0{number} +0000",
            f"Message-ID: <{number}@client.example>",
            f'Content-Type: multipart/mixed; boundary="{boundary}"',
            body=body,
            to=("ada@example.org", "bob@example.org") if number else ("bob@example.org", "ADA@example.org"),
        )

    first = await shop.send(rendered("aaa", 0))
    second = await shop.send(rendered("bbb", 1))
    assert (second.message_id, second.replayed) == (first.message_id, True)
    assert await shop.balance() == (98, 2)
    assert b"order-1" not in await shop.mime(first)


@pytest.mark.parametrize(
    "other",
    [
        plain(KEY, body="Other\r\n"),
        plain(KEY, to=("bob@example.org",)),
        plain(KEY, to=("ada@example.org", "bob@example.org")),
        plain(KEY, "X-Campaign: spring"),
        raw(FROM, TO, "Subject: Other", KEY),
    ],
)
async def test_the_same_key_with_another_message_is_a_conflict(shop: Shop, other: statuses.RawMessage) -> None:
    await shop.send(plain(KEY))
    refused = await shop.refusal(other)
    assert (refused.code, refused.smtp_reply) == ("idempotency_conflict", "550 5.7.1")


async def test_a_key_in_flight_asks_to_wait_and_is_then_answered_whatever_happened_since(shop: Shop) -> None:
    results = await asyncio.gather(*(shop.send(plain(KEY)) for _ in range(3)), return_exceptions=True)
    (first,) = [result for result in results if isinstance(result, transaction.Accepted)]
    refused = [result for result in results if isinstance(result, errors.IdempotencyInProgress)]
    assert [refusal.smtp_reply for refusal in refused] == ["451 4.7.1"] * 2
    assert await shop.balance() == (99, 1)
    await domains.remove(shop.ctx, shop.account.id, shop.domain_id)
    again = await shop.send(plain(KEY))
    assert (again.replayed, again.request_id, again.response) == (True, first.request_id, first.response)
    assert (await shop.refusal(plain())).code == "forbidden"


async def test_keys_are_shared_with_http_and_belong_to_the_credential(shop: Shop) -> None:
    request = send_request.SendRequest(sender="shop@example.com", to=("ada@example.org",), subject="Hello", text="Hi")
    await submit.submit(shop.ctx, shop.who, request, request_id="req_http", source=statuses.Source.API, key="order-1")
    assert (await shop.refusal(plain(KEY))).code == "idempotency_conflict"
    other = dataclasses.replace(shop.who, credential_id="cred_" + 28 * "b")
    assert not (await shop.send(plain(KEY), who=other)).replayed


# Templates


async def test_a_template_is_filled_in_and_sent_to_the_envelope(shop: Shop) -> None:
    message = raw(
        *ASKING,
        KEY,
        "Bcc: eve@example.org",
        "X-Service-Tag: welcome",
        "X-Campaign: spring",
        "Message-ID: <1@client.example>",
        body="\r\n",
        to=("ada@example.org", "eve@example.org"),
    )
    accepted = await shop.send(message)
    content = await shop.mime(accepted)
    assert b"eve@" not in content
    built = parsed(content)
    assert built["Subject"] == "Welcome Ada"
    assert (built["To"], built["X-Campaign"], built["X-Service-Tag"]) == ("Ada <ada@example.org>", "spring", "welcome")
    assert built["Message-ID"] == f"<{accepted.message_id}@example.com>"
    assert [name for name in built if name.lower().startswith("x-service-")] == ["X-Service-Tag"]
    html = built.get_body(("html",))
    assert html is not None
    assert html.get_content().strip() == "<p>Ada"
    async with shop.ctx.store.reading() as tx:
        reached = await recipients.recipients(tx, shop.account.id, accepted.message_id)
    assert [one.email for one in reached] == ["ada@example.org", "eve@example.org"]
    reported: dict[str, Any] = msgspec.json.decode(accepted.response)
    assert (reported["source"], reported["subject"], reported["bcc"]) == ("smtp", "Welcome Ada", ["eve@example.org"])
    assert (await shop.send(message)).replayed


async def test_other_variables_are_another_message(shop: Shop) -> None:
    await shop.send(raw(*ASKING, KEY, body=""))
    other = raw(FROM, TO, "X-Service-Template: welcome", 'X-Service-Variables: {"name": "Bob"}', KEY, body="")
    assert (await shop.refusal(other)).code == "idempotency_conflict"


# Large messages


def noting_threads(work: Callable[..., object], inline: list[bool]) -> Callable[..., object]:
    """The same work, noting whether it is done in the event loop's thread."""

    def noted(*arguments: object) -> object:
        inline.append(threading.current_thread() is threading.main_thread())
        return work(*arguments)

    return noted


MULTIPART = (FROM, TO, 'Content-Type: multipart/mixed; boundary="b"')


@pytest.mark.parametrize(
    "message, is_inline",
    [
        (plain(), True),
        (plain(body=("x" * 62 + "\r\n") * 5_000), False),
        (plain("Cc: " + ",\r\n ".join(["a@example.org"] * 90)), True),
        (plain("Cc: " + ",\r\n ".join(["a@é.example"] * 90)), False),
        (plain("Cc: " + ",\r\n ".join(["a@XN--9ca.example"] * 90)), False),
        (plain("X-Note: " + "\r\n ".join(["ü" * 30] * 20)), False),
        (plain("X-Note: " + "\r\n ".join(["=?utf-8?q?a?="] * 2_000)), False),
        (raw(FROM, TO, "Subject: Grüße"), True),
        (raw(*MULTIPART, body="--b\r\n\r\nx\r\n" * 10), True),
        (raw(*MULTIPART, body="--b\r\n\r\nx\r\n" + "--\r\n" * 100), False),
        (raw(*MULTIPART, body="Grüße\r\n" * 100), True),
        (raw(*MULTIPART, body="Grüße\r\n" * 1_000), False),
    ],
)
async def test_what_is_large_or_has_to_be_converted_leaves_the_event_loop(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, message: statuses.RawMessage, *, is_inline: bool
) -> None:
    inline: list[bool] = []
    for module, name in ((mime_validation, "check"), (submit_mime, "compose_mime")):
        monkeypatch.setattr(module, name, noting_threads(getattr(module, name), inline))
    await shop.send(message)
    assert inline == [is_inline, is_inline]
