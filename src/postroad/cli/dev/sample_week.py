"""The sample week of `postroad dev --sample-week`: an account that looks lived in.

It has domains in every state, users, templates, keys, a webhook with its log, suppressed addresses, an audit log, and
seven days of mail (sample_mail.py). All is written by services and storage, as if it had happened when it says so, so
credits, counts and statuses agree (`postroad verify`). It is written once, into the store of a data folder only, and
what a person has made there stays as it is.
"""

import dataclasses
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from postroad import context
from postroad.cli.dev import sample_data, sample_mail
from postroad.cli.framework import data_folder
from postroad.mail.signing import domain_keys
from postroad.model.domains import domain_records, warmup
from postroad.model.events import webhook_schedule
from postroad.model.mail import statuses
from postroad.model.people import callers
from postroad.model.units import identifiers, times
from postroad.services import audit_log
from postroad.services.accounts import credits
from postroad.services.domains import dns_checks as services_checks
from postroad.services.domains import domain_registry as domains
from postroad.services.people import api_keys, credentials, last_used
from postroad.services.people import users as account_users
from postroad.services.suppressions import suppression_list as suppressions
from postroad.services.templates import starters, templates
from postroad.services.webhooks import endpoint_settings, endpoints
from postroad.storage.engine import store
from postroad.storage.mail import domains as domain_checks
from postroad.storage.mail import messages as recipients
from postroad.storage.mail import suppressions as stored_suppressions
from postroad.storage.mail import webhooks
from postroad.storage.people import accounts, users
from postroad.storage.people import credentials as stored_credentials

MESSAGES: Final = 1_400
WAITING: Final = 6
# More than the week has.
MAX_DELIVERIES: Final = 10_000
CREDITS: Final = 25_000
PASSWORD: Final = "correct horse battery"  # noqa: S105 - of users that nobody has invited
# Where the webhooks of the week went. An endpoint of this machine has not replied before today.
URL: Final = "https://shop.example/hooks/postroad"
WORKER: Final = "web-1:4212:77aa01cd"
# Of so many webhook deliveries, one fails.
FAILS_EVERY: Final = 60
# The SMTP credential of the mail. Its use is written last, and tells that the week is complete.
MARK: Final = "Shop, production"
OLD: Final = "Old server"
SOURCES: Final = frozenset(kind.source for kind in sample_data.WEEK.kinds)
MAX_TEMPLATES: Final = 1_000
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
    webhook: str
    delivery: str
    recipient: str
    request: str
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
    known = {credential.name: credential for credential in await credentials.of_account(ctx, account_id)}
    if MARK in known and known[MARK].last_used_at is not None:
        return None
    now = ctx.clock()
    owner = (await account_users.of_account(ctx, account_id))[0]
    began, yesterday = _at(ctx, now - 8 * times.DAY, owner), _at(ctx, now - times.DAY, owner)
    ready_before = await _ready_webhooks(ctx, account_id)
    if ctx.settings.credits.enabled:
        await credits.add(_at(ctx, now - 8 * times.DAY, None), account_id, CREDITS, "Monthly plan")
    shop = known.get(MARK) or (await credentials.create(began, account_id, MARK))[0]
    domain = await _domains(began, account_id, now=now)
    await _templates(began, yesterday, account_id)
    webhook = await _webhook(began, account_id)
    who = callers.Caller(account_id, shop.id, callers.Scheme.PASSWORD, callers.PASSWORD_PERMISSIONS)
    messages = await sample_mail.write(ctx, who, count=count, waiting=WAITING, now=now)
    delivery = await _deliver_webhooks(ctx, webhook)
    await _forget_webhooks(ctx, account_id, ready_before)
    if endpoint != URL:
        change = endpoint_settings.Changes(url=endpoint)
        await endpoints.change(_at(ctx, now, owner), account_id, webhook.id, change)
    user = await _people(_at(ctx, now - 5 * times.DAY, owner), yesterday, account_id)
    for email, reason, source in SUPPRESSED:
        await suppressions.add(_at(ctx, now - 3 * times.DAY, owner), account_id, email, reason=reason, source=source)
    await _keys(began, _at(ctx, now - 4 * times.DAY, owner), shop, newest=await _newest_mail(ctx, account_id, messages))
    newest_ended = messages[-WAITING - 1]
    async with ctx.store.reading() as tx:
        (reached,) = await recipients.recipients(tx, account_id, newest_ended)
    return SampleIds(
        message=newest_ended,
        waiting=messages[-1],
        domain=domain,
        template="receipt",
        webhook=webhook.id,
        delivery=delivery,
        recipient=reached.email,
        request=await _requests(ctx, account_id, now=now),
        user=user,
    )


def _at(ctx: context.Context, now: int, person: users.User | None) -> context.Context:
    """The context as it would have been then, acting for a user at a browser, or for the operator."""
    actor = callers.OPERATOR
    if person is not None:
        request_id = ctx.new_id(identifiers.REQUEST, now=now)
        permissions = callers.ROLE_PERMISSIONS[callers.Role(person.role)]
        who = callers.Caller(person.account_id, None, callers.Scheme.TOKEN, permissions, user_id=person.id)
        actor = callers.Actor(callers.ActorKind.PERSON, person.id, request_id, "203.0.113.7", who)
    return dataclasses.replace(ctx, clock=lambda: now, actor=actor)


async def _domains(ctx: context.Context, account_id: str, *, now: int) -> str:
    """The domains with what DNS says of them; returns the id of the one that is not verified."""
    unverified = ""
    service = await ctx.dns.service()
    known = {domain.name: domain for domain in await domains.of_account(ctx, account_id)}
    for place, (name, states, warming) in enumerate(sample_data.DOMAINS):
        # Their ids are in the order of the table.
        then = dataclasses.replace(ctx, clock=functools.partial(int, ctx.clock() + place * times.SECOND))
        if name in known:
            unverified = unverified or known[name].id
            continue
        domain = await domains.add(then, account_id, name, verified=False)
        await domain_keys.keys(then, domain)
        if states[0] is sample_data.State.OK:
            await domains.verify(then, account_id, domain.id, by=domain_checks.DNS)
        else:
            unverified = domain.id
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
            await domain_checks.put_checks(tx, checks)
            if warming:
                step, used = warming
                await domain_checks.put_warmups(tx, {(account_id, name): warmup.State(times.day_of(now), step, used)})
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


async def _templates(began: context.Context, yesterday: context.Context, account_id: str) -> None:
    """Templates, one of them with a second version; those that a person has are theirs."""
    known = {summary.alias for summary in await templates.summaries(began, account_id, "", MAX_TEMPLATES)}
    saved = [(began, template) for template in sample_data.WEEK.templates] + [(yesterday, sample_data.WEEK.new_version)]
    for then, template in saved:
        if template.alias not in known:
            content = starters.content(starters.find(template.starter))
            if template.subject is not None:
                content = dataclasses.replace(content, subject=template.subject)
            await templates.save(then, account_id, template.alias, content)


async def _newest_mail(ctx: context.Context, account_id: str, messages: Sequence[str]) -> dict[str, int]:
    """When the newest message of each source was accepted; the messages are the oldest first."""
    found: dict[str, int] = {}
    async with ctx.store.reading() as tx:
        for message_id in reversed(messages):
            message = await recipients.by_id(tx, account_id, message_id)
            if message is not None:
                found.setdefault(message.source, message.created_at)
            if len(found) == len(SOURCES):
                break
    return found


async def _keys(
    began: context.Context,
    later: context.Context,
    shop: stored_credentials.Credential,
    *,
    newest: dict[str, int],
) -> None:
    """API keys, an SMTP credential that was revoked later, and when all of them were last used."""
    account_id = shop.account_id
    known = {api_key.name for api_key in await api_keys.of_account(began, account_id)}
    used: list[tuple[last_used.UsedSecret, int]] = []
    for name, scopes in sample_data.KEYS.items():
        if name not in known:
            key, _ = await api_keys.create(began, account_id, credential_id=shop.id, name=name, scopes=scopes)
            used.append(((last_used.API_KEY, key.id), newest[statuses.Source.API]))
    if OLD not in {credential.name for credential in await credentials.of_account(began, account_id)}:
        old, _ = await credentials.create(began, account_id, OLD)
        await credentials.revoke(later, account_id, old.id)
        used.append(((last_used.CREDENTIAL, old.id), later.clock() - times.HOUR))
    used.append(((last_used.CREDENTIAL, shop.id), newest[statuses.Source.SMTP]))
    for secret, at in used:
        began.access_cache.last_used.note(secret, now=at)
    await began.access_cache.last_used.flush()


async def _requests(ctx: context.Context, account_id: str, *, now: int) -> str:
    """Requests of a key that were refused, and one of another that created a key; returns the id of the newest."""
    known = {key.name: key for key in await api_keys.of_account(ctx, account_id)}
    checkout, deployment = (_caller(known[name]) for name in (sample_data.CHECKOUT, sample_data.DEPLOYMENT))
    if sample_data.STAGING not in known:
        at = now - (len(sample_data.REQUESTS) + 1) * times.HOUR
        created = _request(ctx, deployment, "POST", "/v1/api-keys", sample_data.STAGING_BODY, at=at, status=201)
        acting = context.acting_as(
            _at(ctx, at, None), deployment, request_id=created.id, client_address=created.client_address
        )
        scopes = frozenset({callers.Scope.SEND})
        await api_keys.create(
            acting, account_id, credential_id=None, name=sample_data.STAGING, scopes=scopes, mode=statuses.Mode.TEST
        )
        ctx.request_log.note(created)
    newest = ""
    for place, (method, path, error, body) in enumerate(sample_data.REQUESTS):
        at = now - (len(sample_data.REQUESTS) - place) * times.HOUR
        refused = _request(ctx, checkout, method, path, body, at=at, status=error.status)
        ctx.request_log.note(msgspec.structs.replace(refused, code=error.code, error=error.message))
        newest = refused.id
    await ctx.request_log.flush()
    return newest


def _caller(key: stored_credentials.ApiKey) -> callers.Caller:
    named = callers.ApiKey(key.id, key.name, callers.scopes_of(key.scopes))
    return callers.Caller(key.account_id, key.credential_id, callers.Scheme.API_KEY, frozenset(), key=named)


def _request(
    ctx: context.Context, who: callers.Caller, method: str, path: str, body: bytes, *, at: int, status: int
) -> callers.FinishedRequest:
    return callers.FinishedRequest(
        id=ctx.new_id(identifiers.REQUEST, now=at),
        caller=who,
        method=method,
        path=path.encode(),
        status=status,
        code="",
        error="",
        client_address="203.0.113.7",
        body_size=len(body),
        body=body,
    )


async def _people(ctx: context.Context, later: context.Context, account_id: str) -> str:
    """Two users, who have logged in since, and an invitation; returns the id of the first."""
    known = {member.email: member.id for member in await account_users.of_account(ctx, account_id)}
    for email, role in sample_data.USERS.items():
        if email not in known:
            user, _ = await account_users.create(ctx, account_id, email=email, password=PASSWORD, role=role)
            known[email] = user.id
            async with ctx.store.transaction() as tx:
                await users.note_login(tx, user, now=later.clock())
                await audit_log.write(
                    _at(later, later.clock(), user), tx, account_id, "user.logged_in", email, "by password"
                )
    if sample_data.INVITED not in known:
        await account_users.invite(ctx, account_id, email=sample_data.INVITED, role=callers.Role.DEVELOPER)
    return known[next(iter(sample_data.USERS))]


async def _webhook(ctx: context.Context, account_id: str) -> webhooks.Webhook:
    """An endpoint beside those of a person, created without a check: that would ask DNS, and nothing here should."""
    async with ctx.store.transaction() as tx:
        await accounts.lock(tx, [account_id])
        known = await webhooks.of_account(tx, account_id)
        if found := next((webhook for webhook in known if webhook.url == URL), None):
            return found
        return (await endpoints.create_in(ctx, tx, account_id, endpoint_settings.Changes(url=URL))).webhook


async def _ready_webhooks(ctx: context.Context, account_id: str) -> set[webhooks.Key]:
    """The deliveries that would be sent now."""
    async with ctx.store.reading() as tx:
        known = await webhooks.of_account(tx, account_id)
        return {delivery.key for webhook in known for delivery in await _ready(tx, webhook)}


async def _forget_webhooks(ctx: context.Context, account_id: str, before: set[webhooks.Key]) -> None:
    """Delete what the sample mail has made ready for the endpoints of a person, who did not send it."""
    async with ctx.store.transaction() as tx:
        for webhook in await webhooks.of_account(tx, account_id):
            ids = [delivery.id for delivery in await _ready(tx, webhook) if delivery.key not in before]
            await webhooks.acknowledge(tx, account_id, webhook.id, ids)


async def _ready(tx: store.Transaction, webhook: webhooks.Webhook) -> list[webhooks.Delivery]:
    return await webhooks.ready(tx, webhook.account_id, webhook.id, limit=MAX_DELIVERIES)


async def _deliver_webhooks(ctx: context.Context, webhook: webhooks.Webhook) -> str:
    """Deliver all events of the mail, with few failures; returns the id of the last that failed."""
    now, schedule = ctx.clock(), ctx.settings.webhooks.retry_seconds
    # Those of a day ago: the last attempt is over, and the endpoint works now.
    ended_before = now - times.DAY - sum(schedule) * times.SECOND
    failed: set[str] = set()
    due: dict[str, int] = {}
    while True:
        async with ctx.store.transaction() as tx:
            await webhooks.promote(tx, now=now, attempts=len(schedule) + 1, limit=MAX_DELIVERIES)
            wanted = [(webhook.id, MAX_DELIVERIES)]
            claimed = await webhooks.claim(tx, wanted, lease_until=now + times.DAY, worker=WORKER)
            if not claimed:
                return max(failed)
            if not failed:
                # A second after each was written, which its id says.
                due = {
                    delivery.id: (int(delivery.id.removeprefix(identifiers.WEBHOOK_DELIVERY)[:14], 16) + times.SECOND)
                    for delivery in claimed
                }
                failed = set([delivery.id for delivery in claimed if due[delivery.id] < ended_before][::FAILS_EVERY])
            attempts = [_attempt(delivery, due[delivery.id], has_failed=delivery.id in failed) for delivery in claimed]
            results = [_result(made, delivery, schedule) for made, delivery in zip(attempts, claimed, strict=True)]
            await webhooks.insert_attempts(tx, attempts)
            await webhooks.record(tx, results)
            due = {result.key[2]: result.due_at for result in results}


def _attempt(delivery: webhooks.Claimed, at: int, *, has_failed: bool) -> webhooks.Attempt:
    return webhooks.Attempt(
        account_id=delivery.account_id,
        webhook_id=delivery.webhook_id,
        delivery_id=delivery.id,
        number=delivery.attempt_count,
        started_at=at,
        duration=2_310_000 if has_failed else 84_000,
        status_code=sample_data.SERVER_ERROR if has_failed else sample_data.OK,
        response_body='{"error": "no such order"}' if has_failed else '{"ok": true}',
        error=None,
    )


def _result(attempt: webhooks.Attempt, delivery: webhooks.Claimed, schedule: Sequence[int]) -> webhooks.DeliveryUpdate:
    """The state after an attempt, as the schedule has it."""
    ended_at = attempt.started_at + attempt.duration
    wait = webhook_schedule.delay(schedule, attempt.number, random_fraction=0.5)
    state = webhooks.State.SUCCEEDED
    if attempt.status_code == sample_data.SERVER_ERROR:
        state = webhooks.State.FAILED if wait is None else webhooks.State.WAITING
    is_waiting = state is webhooks.State.WAITING
    return webhooks.DeliveryUpdate(
        key=delivery.key,
        worker=WORKER,
        attempt_count=delivery.attempt_count,
        url=URL,
        state=state,
        due_at=ended_at + (wait or 0) if is_waiting else ended_at,
        ended_at=None if is_waiting else ended_at,
    )
