"""A demo account that looks lived in, for pictures and for tests of pages.

It has domains in every state, users, templates, keys, a webhook with its log, suppressed addresses, an audit log, and
thirty days of mail (tests/browser/demo_mail.py). All is written by services
and storage, as if it had happened when it says so; the same every time.
"""

import dataclasses
from dataclasses import dataclass
from typing import Final

from postroad.model import actors, caller, domain_records, events, identifiers, times, warmup
from postroad.services import context, templates
from postroad.services.auth import api_keys, credentials
from postroad.services.auth import users as account_users
from postroad.services.domains import registry as domains
from postroad.services.suppressions import registry as suppressions
from postroad.services.webhooks import signing_secrets
from postroad.storage import domain_checks, users, warmups, webhook_attempts, webhook_deliveries, webhooks
from postroad.storage import domains as stored_domains
from postroad.storage import suppressions as stored_suppressions
from tests.browser import demo_mail

PASSWORD: Final = "correct horse battery"
URL: Final = "https://shop.example/hooks/postroad"
WORKER: Final = "web-1:4212:77aa01cd"
Purpose = domain_records.RecordPurpose
State = domain_records.RecordState

PURPOSES: Final = (Purpose.DKIM, Purpose.SPF, Purpose.RETURN_PATH, Purpose.DMARC)
# What DNS says of each domain: dkim, spf, return path, dmarc; and how far its warm-up is, by step and use.
DOMAINS: Final = (
    ("shop.example", (State.OK, State.OK, State.OK, State.OK), None),
    ("news.shop.example", (State.OK, State.OK, State.OK, State.MISSING), (4, 1204)),
    ("bakery.example", (State.MISSING, State.WRONG, State.MISSING, State.UNKNOWN), None),
)
DETAILS: Final = {
    State.OK: "",
    State.MISSING: "there is no such record",
    State.WRONG: "there are two SPF records, and there may be only one",
    State.UNKNOWN: "the name servers did not answer",
}
TEMPLATES: Final = (
    (
        "receipt",
        "Your receipt, {{number}}",
        "Hello {{name}},\n\nthank you. You have paid {{amount}}.\n",
        '<h1 style="color: #1f5fbf">Thank you, {{name}}</h1><p>You have paid <b>{{amount}}</b> for {{number}}.</p>',
    ),
    (
        "password-reset",
        "Choose a new password",
        "Hello {{name}},\n\nopen this within an hour: {{link}}\n",
        "<p>Hello {{name}},</p><p><a href='{{link}}'>Choose a new password</a>, within an hour.</p>",
    ),
    ("delivery-note", "Order {{number}} is on its way", "It should be with you on {{day}}.\n", None),
)
SUPPRESSED: Final = (
    ("no-more-mail@gmail.com", "asked us by telephone", stored_suppressions.Source.ACCOUNT),
    ("complained@yahoo.com", "marked a newsletter as spam", stored_suppressions.Source.COMPLAINT),
    ("old.list@bakery.example", "from the old system", stored_suppressions.Source.IMPORT),
)


@dataclass(frozen=True, slots=True)
class DemoIds:
    """What pages of single things are opened with."""

    message: str
    waiting: str
    domain: str
    template: str
    delivery: str


async def fill(ctx: context.Context, account_id: str, *, count: int, now: int) -> DemoIds:
    """Write everything; so many messages have ended."""
    owner = (await account_users.of_account(ctx, account_id))[0]
    began = _at(ctx, now - 31 * times.DAY, owner)
    domain = await _domains(began, account_id, now=now)
    for alias, subject, text, html in TEMPLATES:
        await templates.put(began, account_id, alias, subject=subject, text=text, html=html)
    credential_id = await _keys(_at(ctx, now - 30 * times.DAY, owner), account_id)
    webhook = await _webhook(began, account_id)
    who = caller.Caller(account_id, credential_id, caller.Scheme.PASSWORD, caller.PASSWORD_PERMISSIONS)
    messages = await demo_mail.write(ctx, who, count=count, waiting=6, now=now)
    delivery = await _deliver_webhooks(ctx, webhook)
    await _people(_at(ctx, now - 12 * times.DAY, owner), account_id)
    for email, reason, source in SUPPRESSED:
        await suppressions.add(_at(ctx, now - 9 * times.DAY, owner), account_id, email, reason=reason, source=source)
    return DemoIds(message=messages[-7], waiting=messages[-1], domain=domain, template="receipt", delivery=delivery)


def _at(ctx: context.Context, now: int, person: users.User) -> context.Context:
    """The context as it would have been then, acting for a user at a browser."""
    request_id = identifiers.make(identifiers.REQUEST, now=now, entropy=bytes(identifiers.ENTROPY_BYTES))
    actor = actors.Actor(actors.Kind.PERSON, person.id, request_id, "203.0.113.7")
    return dataclasses.replace(ctx, clock=lambda: now, actor=actor)


async def _domains(ctx: context.Context, account_id: str, *, now: int) -> str:
    """The domains with what DNS says of them; returns the id of the one that is not proven."""
    last = ""
    for name, states, warming in DOMAINS:
        domain = await domains.add(ctx, account_id, name, verified=False)
        last = domain.id
        if states[0] is State.OK:
            await domains.verify(ctx, account_id, domain.id, by=stored_domains.DNS)
        checks = [
            domain_checks.Check(account_id, domain.id, purpose, state, DETAILS[state], "", now - 20 * times.SECOND)
            for purpose, state in zip(PURPOSES, states, strict=True)
        ]
        async with ctx.store.transaction() as tx:
            await domain_checks.put(tx, checks)
            if warming:
                step, used = warming
                await warmups.put(tx, {(account_id, name): warmup.State(times.day_of(now), step, used)})
    return last


async def _keys(ctx: context.Context, account_id: str) -> str:
    """SMTP credentials with API keys under them, one of them revoked; returns the id of the first."""
    shop, _ = await credentials.create(ctx, account_id, "Shop, production")
    old, _ = await credentials.create(ctx, account_id, "Old server")
    for name in ("Checkout", "Reports"):
        scopes = frozenset({caller.Permission.SEND} | ({caller.Permission.READ} if name == "Reports" else set()))
        await api_keys.create(ctx, account_id, credential_id=shop.id, name=name, scopes=scopes)
    await credentials.revoke(ctx, account_id, old.id)
    return shop.id


async def _people(ctx: context.Context, account_id: str) -> None:
    for email, role in (("grace@shop.example", caller.Role.MEMBER), ("alan@shop.example", caller.Role.READ_ONLY)):
        await account_users.create(ctx, account_id, email=email, password=PASSWORD, role=role)
    await account_users.invite(ctx, account_id, email="margaret@shop.example", role=caller.Role.MEMBER)


async def _webhook(ctx: context.Context, account_id: str) -> webhooks.Webhook:
    """An endpoint, written as it stands: to save one asks DNS, and nothing here should."""
    now, secret = ctx.clock(), signing_secrets.new()
    hint = signing_secrets.hint(secret)
    webhook = webhooks.Webhook(
        id=ctx.new_id(identifiers.WEBHOOK, now=now),
        account_id=account_id,
        url=URL,
        events=" ".join(events.DEFAULT),
        enabled=1,
        secret_hint=hint,
        created_at=now,
        updated_at=now,
    )
    sealed = webhooks.Secret(
        account_id=account_id,
        webhook_id=webhook.id,
        version=1,
        secret=signing_secrets.encrypt(ctx, secret, webhook_id=webhook.id),
        created_at=now,
        expires_at=None,
    )
    async with ctx.store.transaction() as tx:
        await webhooks.insert(tx, webhook)
        await webhooks.add_secret(tx, sealed, hint=hint)
    return webhook


async def _deliver_webhooks(ctx: context.Context, webhook: webhooks.Webhook) -> str:
    """All events of the mail were delivered, with few failures; returns the id of the last that failed."""
    async with ctx.store.transaction() as tx:
        claimed = await webhook_deliveries.claim(tx, [(webhook.id, 10_000)], lease_until=ctx.clock(), worker=WORKER)
        failed = {one.id for place, one in enumerate(claimed) if place % 17 == 16 or place == len(claimed) - 3}
        await webhook_attempts.insert(tx, [_attempt(one, has_failed=one.id in failed) for one in claimed])
        await webhook_deliveries.record(tx, [_result(one, has_failed=one.id in failed) for one in claimed])
    return max(failed)


def _delivered_at(delivery: webhook_deliveries.Claimed) -> int:
    """A second after it was written, which its id says."""
    return int(delivery.id.removeprefix(identifiers.WEBHOOK_DELIVERY)[:14], 16) + times.SECOND


def _attempt(delivery: webhook_deliveries.Claimed, *, has_failed: bool) -> webhook_attempts.Attempt:
    return webhook_attempts.Attempt(
        account_id=delivery.account_id,
        webhook_id=delivery.webhook_id,
        delivery_id=delivery.id,
        number=1,
        started_at=_delivered_at(delivery),
        duration=84_000 if not has_failed else 2_310_000,
        status_code=500 if has_failed else 200,
        response_body='{"error": "the database is locked"}' if has_failed else '{"ok": true}',
        error=None,
    )


def _result(delivery: webhook_deliveries.Claimed, *, has_failed: bool) -> webhook_deliveries.DeliveryUpdate:
    ended_at = _delivered_at(delivery) + 2 * times.SECOND
    return webhook_deliveries.DeliveryUpdate(
        key=delivery.key,
        worker=WORKER,
        attempt_count=delivery.attempt_count,
        url=URL,
        state=webhook_deliveries.State.FAILED if has_failed else webhook_deliveries.State.SUCCEEDED,
        due_at=ended_at,
        ended_at=ended_at,
    )
