"""The sample week of `postroad dev --sample-week`: an account that looks lived in.

It has domains in every state, users, templates, keys, a webhook with its log, suppressed addresses, an audit log, and
seven days of mail (sample_mail.py). All is written by services and storage, as if it had happened when it says so, so
credits, counts and statuses agree (`postroad verify`). It is written once, into the store of a data folder only.
"""

import dataclasses
import functools
from dataclasses import dataclass
from typing import Final

from postroad.cli import data_folder, sample_data, sample_mail
from postroad.model import actors, caller, domain_records, events, identifiers, times, warmup
from postroad.services import context, templates
from postroad.services.accounts import credits
from postroad.services.auth import api_keys, credentials
from postroad.services.auth import users as account_users
from postroad.services.dkim import domain_keys
from postroad.services.domains import checks as services_checks
from postroad.services.domains import registry as domains
from postroad.services.suppressions import registry as suppressions
from postroad.services.webhooks import signing_secrets
from postroad.storage import domain_checks, recipients, users, warmups, webhook_attempts, webhook_deliveries, webhooks
from postroad.storage import domains as stored_domains
from postroad.storage import suppressions as stored_suppressions

MESSAGES: Final = 1_400
WAITING: Final = 6
CREDITS: Final = 25_000
PASSWORD: Final = "correct horse battery"  # noqa: S105 - of users that nobody has invited
URL: Final = "https://shop.example/hooks/postroad"
WORKER: Final = "web-1:4212:77aa01cd"
# Of so many webhook deliveries, one fails.
FAILS_EVERY: Final = 17
# Its presence tells that the week has been written.
MARK: Final = "Shop, production"
SUPPRESSED: Final = (
    ("no-more-mail@gmail.com", "asked us by telephone", stored_suppressions.Source.ACCOUNT),
    ("old.list@bakery.example", "from the old system", stored_suppressions.Source.IMPORT),
)


@dataclass(frozen=True, slots=True)
class SampleIds:
    """What pages of single things are opened with."""

    message: str
    waiting: str
    domain: str
    template: str
    delivery: str
    recipient: str
    user: str


async def write(
    ctx: context.Context, folder: data_folder.DataFolder, account_id: str, *, count: int = MESSAGES, endpoint: str = URL
) -> SampleIds | None:
    """Write everything, with so many messages that have ended; None if it has been written before.

    The endpoint of the webhook gets the events of the mail that still waits.
    Raises FolderError for a store that does not belong to the folder: nothing is ever written into another one.
    """
    if not folder.owns(ctx.settings):
        raise data_folder.FolderError("a sample week can only be written into the database of 'postroad dev'")
    if any(one.name == MARK for one in await credentials.of_account(ctx, account_id)):
        return None
    now = ctx.clock()
    owner = (await account_users.of_account(ctx, account_id))[0]
    began = _at(ctx, now - 8 * times.DAY, owner)
    credential_id = await _keys(began, account_id)
    if ctx.settings.credits.enabled:
        await credits.add(_at(ctx, now - 8 * times.DAY, None), account_id, CREDITS, "Monthly plan")
    domain = await _domains(began, account_id, now=now)
    yesterday = _at(ctx, now - times.DAY, owner)
    saved = [(began, one) for one in sample_data.TEMPLATES] + [(yesterday, sample_data.NEW_VERSION)]
    for then, (alias, subject, text, html) in saved:
        await templates.put(then, account_id, alias, subject=subject, text=text, html=html)
    webhook = await _webhook(began, account_id, endpoint)
    who = caller.Caller(account_id, credential_id, caller.Scheme.PASSWORD, caller.PASSWORD_PERMISSIONS)
    messages = await sample_mail.write(ctx, who, count=count, waiting=WAITING, now=now)
    delivery = await _deliver_webhooks(ctx, webhook)
    user = await _people(_at(ctx, now - 5 * times.DAY, owner), account_id)
    for email, reason, source in SUPPRESSED:
        await suppressions.add(_at(ctx, now - 3 * times.DAY, owner), account_id, email, reason=reason, source=source)
    newest_ended = messages[-WAITING - 1]
    async with ctx.store.reading() as tx:
        (reached,) = await recipients.of_message(tx, account_id, newest_ended)
    return SampleIds(
        message=newest_ended,
        waiting=messages[-1],
        domain=domain,
        template="receipt",
        delivery=delivery,
        recipient=reached.email,
        user=user,
    )


def _at(ctx: context.Context, now: int, person: users.User | None) -> context.Context:
    """The context as it would have been then, acting for a user at a browser, or for the operator."""
    actor = actors.OPERATOR
    if person is not None:
        request_id = ctx.new_id(identifiers.REQUEST, now=now)
        actor = actors.Actor(actors.Kind.PERSON, person.id, request_id, "203.0.113.7")
    return dataclasses.replace(ctx, clock=lambda: now, actor=actor)


async def _domains(ctx: context.Context, account_id: str, *, now: int) -> str:
    """The domains with what DNS says of them; returns the id of the one that is not verified."""
    unverified = ""
    service = await ctx.dns.service()
    known = {domain.name: domain for domain in await domains.of_account(ctx, account_id)}
    for place, (name, states, warming) in enumerate(sample_data.DOMAINS):
        # Their ids are in the order of the table.
        then = dataclasses.replace(ctx, clock=functools.partial(int, ctx.clock() + place * times.SECOND))
        domain = known.get(name) or await domains.add(then, account_id, name, verified=False)
        await domain_keys.keys(then, domain)
        if states[0] is not sample_data.State.OK:
            unverified = domain.id
        elif domain.verified_at is None:
            await domains.verify(then, account_id, domain.id, by=stored_domains.DNS)
        checks = [
            domain_checks.Check(
                account_id,
                domain.id,
                shown.record.purpose,
                finding.state,
                finding.detail,
                "\n".join(finding.found),
                now - 20 * times.SECOND,
            )
            for shown, state in zip(await services_checks.records(then, domain), states, strict=True)
            for finding in [_finding(shown.record, state, service)]
        ]
        async with ctx.store.transaction() as tx:
            await domain_checks.put(tx, checks)
            if warming:
                step, used = warming
                await warmups.put(tx, {(account_id, name): warmup.State(times.day_of(now), step, used)})
    return unverified


def _finding(
    record: domain_records.Record, state: domain_records.RecordState, service: domain_records.Service
) -> domain_records.Finding:
    """What a check finds that ends so: the record as it should be, none, or two of them."""
    published = [record.value or ""] if state is sample_data.State.OK else []
    match record.purpose:
        case _ if state is sample_data.State.UNKNOWN:
            return domain_records.no_answer(record, "no answer in time")
        case domain_records.RecordPurpose.SPF:
            return sample_data.spf_finding(state, record.value or "")
        case domain_records.RecordPurpose.RETURN_PATH:
            hosts = [(domain_records.MX_PREFERENCE, service.host)] if published else []
            return domain_records.check_return_path(record, hosts, service=service)
        case domain_records.RecordPurpose.DMARC:
            return domain_records.check_dmarc(record.name, published) or domain_records.no_dmarc()
        case _:
            return domain_records.check_dkim(record, published)


async def _keys(ctx: context.Context, account_id: str) -> str:
    """SMTP credentials with API keys under them, one of them revoked; returns the id of the first."""
    shop, _ = await credentials.create(ctx, account_id, MARK)
    old, _ = await credentials.create(ctx, account_id, "Old server")
    for name in ("Checkout", "Reports"):
        scopes = frozenset({caller.Permission.SEND} | ({caller.Permission.READ} if name == "Reports" else set()))
        await api_keys.create(ctx, account_id, credential_id=shop.id, name=name, scopes=scopes)
    await credentials.revoke(ctx, account_id, old.id)
    return shop.id


async def _people(ctx: context.Context, account_id: str) -> str:
    """Two users and an invitation; returns the id of the first."""
    made = [
        await account_users.create(ctx, account_id, email=email, password=PASSWORD, role=role)
        for email, role in (("grace@shop.example", caller.Role.DEVELOPER), ("alan@shop.example", caller.Role.READ_ONLY))
    ]
    await account_users.invite(ctx, account_id, email="margaret@shop.example", role=caller.Role.DEVELOPER)
    return made[0][0].id


async def _webhook(ctx: context.Context, account_id: str, url: str) -> webhooks.Webhook:
    """An endpoint, written as it stands: to save one asks DNS, and nothing here should."""
    now, secret = ctx.clock(), signing_secrets.new()
    hint = signing_secrets.hint(secret)
    webhook = webhooks.Webhook(
        id=ctx.new_id(identifiers.WEBHOOK, now=now),
        account_id=account_id,
        url=url,
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
        # Not one of the newest: the endpoint works now.
        older = sorted(one.id for one in claimed)[:-FAILS_EVERY]
        failed = set(older[::FAILS_EVERY])
        await webhook_attempts.insert(tx, [_attempt(one, has_failed=one.id in failed) for one in claimed])
        await webhook_deliveries.record(tx, [_result(one, webhook.url, has_failed=one.id in failed) for one in claimed])
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


def _result(delivery: webhook_deliveries.Claimed, url: str, *, has_failed: bool) -> webhook_deliveries.DeliveryUpdate:
    ended_at = _delivered_at(delivery) + 2 * times.SECOND
    return webhook_deliveries.DeliveryUpdate(
        key=delivery.key,
        worker=WORKER,
        attempt_count=delivery.attempt_count,
        url=url,
        state=webhook_deliveries.State.FAILED if has_failed else webhook_deliveries.State.SUCCEEDED,
        due_at=ended_at,
        ended_at=ended_at,
    )
