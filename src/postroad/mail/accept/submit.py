"""The entry point for all mail, over HTTP and SMTP.

Checks run in a fixed order. Before the transaction: fields, approval, a request with the same key under way, rate, the
limits of the API key on the content, sender domain, room in the queue and on the disk, template, size. In it, under the
account's lock (`transaction.decide`): idempotency key, account state, rate, daily limit, warm-up, the counts of the API
key, credits. A key that was used before gets its stored response, whatever the other checks would say now. Therefore an
error first looks for a replay, and then for a suspension of the account, while a success needs no lookup before its
transaction.
"""

import contextlib
import functools
from collections.abc import Awaitable, Callable

import msgspec

from postroad import context, errors
from postroad.mail import unsubscribe_links
from postroad.mail.accept import (
    approval_limit,
    compose,
    rendering,
    send_limits,
    transaction,
    validation,
)
from postroad.model.mail import send_request, statuses
from postroad.model.people import callers
from postroad.model.units import identifiers
from postroad.storage.engine import store
from postroad.storage.mail import domains, messages
from postroad.storage.mail import templates as stored_templates
from postroad.storage.people import accounts

# Decoding and encoding this much takes about a millisecond; more should not delay other requests.
INLINE_CHARACTERS = 256 * 1024
# No id of a credential or an account ends like this. storage/sql/account_removal.sql knows it.
TEST_SUFFIX = "/test"


class SubmissionInfo(msgspec.Struct, frozen=True):
    """What is known of a submission besides its content. `key` is None when it has no idempotency key."""

    request_id: str
    source: statuses.Source
    key: transaction.Key | None


# Composes a message that was admitted: at once, or after a wait for its template or a thread.
Make = Callable[[compose.MessageIdentity], transaction.Submission | Awaitable[transaction.Submission]]


async def submit(
    ctx: context.Context,
    who: callers.Caller,
    request: send_request.SendRequest,
    *,
    request_id: str,
    source: statuses.Source,
    key: str | None,
) -> transaction.Accepted:
    """Accept a message given by its fields. When this returns, it is on disk.

    `key` is the idempotency key, None where the interface has none. Raises a PostroadError if nothing was stored.
    """
    large = characters(request) > INLINE_CHARACTERS
    try:
        if large:
            work = functools.partial(_check, request, is_keyed=key is not None)
            checked, hashed = await ctx.threads.run(who.account_id, work)
        else:
            checked, hashed = _check(request, is_keyed=key is not None)
        used = None if key is None else transaction.Key(sending_identity(who), key, hashed)
        if who.key is not None and who.key.limits.approval_above is not None:
            await approval_limit.check(ctx, who, request, [checked], key=used, request_id=request_id)
        info = SubmissionInfo(request_id=request_id, source=source, key=used)
        make: Make = functools.partial(compose.compose, checked)
        if large or checked.template is not None:
            make = functools.partial(compose_fields, ctx, checked, is_large=large)
        return await accept(ctx, who, checked, info, make)
    except errors.PostroadError as refusal:
        note_refusal(ctx, who, source, refusal)
        raise


def _check(request: send_request.SendRequest, *, is_keyed: bool) -> tuple[validation.CheckedSend, bytes]:
    checked = validation.check(request)
    return checked, compose.body_hash(checked) if is_keyed else b""


def note_refusal(
    ctx: context.Context, who: callers.Caller, source: statuses.Source, refusal: errors.PostroadError
) -> None:
    """Count it, and add what is left of the caller's rate for the response."""
    ctx.metrics.refused.add(source.value, refusal.code)
    if isinstance(refusal, send_limits.Exceeded):
        ctx.rate_limiter.learn(who.account_id, refusal.full_at)
    refusal.headers = ctx.rate_limiter.headers(who.account_id, now=ctx.clock(), rate=who.request_rate)


def rate_fields(
    ctx: context.Context, who: callers.Caller, accepted: transaction.Accepted
) -> tuple[tuple[str, str], ...]:
    """The header fields of a response that say what is left of the caller's rate, and whether it is a replay."""
    left = ctx.rate_limiter.headers(who.account_id, now=ctx.clock(), rate=who.request_rate)
    return (*left, send_request.REPLAYED) if accepted.replayed else left


def claim_key(ctx: context.Context, key: transaction.Key | None) -> messages.IdempotencyPair | None:
    """Refuse a key that another request of this process is using; account locks separate hosts.

    Returns what the caller takes out of `ctx.in_flight` when it is done.
    """
    if key is None:
        return None
    pair = (key.credential_id, key.text)
    if pair in ctx.in_flight:
        raise transaction.in_progress()
    ctx.in_flight.add(pair)
    return pair


async def accept(
    ctx: context.Context,
    who: callers.Caller,
    checked: validation.CheckedMessage,
    info: SubmissionInfo,
    make: Make,
) -> transaction.Accepted:
    """Admit a single message, compose it with `make`, and commit it; a refused one may be a replay."""
    claimed = claim_key(ctx, info.key)
    try:
        try:
            # Counted towards the rate first.
            now = ctx.clock()
            ctx.rate_limiter.take(who.account_id, now=now, rate=who.request_rate)
            made = make(await admit(ctx, who, checked, info, now=now))
            submission = made if isinstance(made, transaction.Submission) else await made
        except errors.PostroadError as refusal:
            return await replay_or_refuse(ctx, who, info, refusal)
        accepted: transaction.Accepted = await ctx.accept_commits.start(
            submission, party=who.account_id, size=submission.size, count=len(submission.recipients)
        )
    finally:
        ctx.in_flight.discard(claimed)
    ctx.rate_limiter.learn(who.account_id, accepted.full_at)
    (ctx.metrics.replayed if accepted.replayed else ctx.metrics.accepted).add(info.source)
    return accepted


async def admit(
    ctx: context.Context,
    who: callers.Caller,
    checked: validation.CheckedMessage,
    info: SubmissionInfo,
    *,
    now: int,
) -> compose.MessageIdentity:
    """Check what depends on the account, and give the message its ids, of the time `now`."""
    if checked.simulation and not who.is_test:
        raise errors.InvalidRequest(
            "simulate: only allowed with a test key (pr_test_…); with this credential the message would really be sent"
        )
    limited = None if who.key is None or who.key.limits == callers.NO_LIMITS else who.key
    if limited is not None:
        send_limits.check_key_content(limited.limits, checked)
    account_id, name = who.account_id, checked.sender.domain
    facts = ctx.access_cache.fresh_entries(now) or await ctx.access_cache.refresh(now)
    domain: domains.Domain | None = facts.get(("domain", account_id, name))
    if domain is None or domain.verified_at is None:
        domain = await send_limits.sending_domain(ctx, account_id, name)
    size = checked.size + transaction.RECIPIENT_BYTES * len(checked.recipients)
    ctx.queue_limit.check(account_id, size, is_test=who.is_test)
    charged = False if who.is_test or not ctx.settings.credits.enabled else facts.get(("charged", account_id))
    if charged is None:
        charged = await send_limits.is_charged(ctx, account_id)
    counted = limited.id if limited is not None and limited.limits.is_counted else None
    return _identity(ctx, who, info, checked, domain, is_charged=charged, api_key_id=counted, now=now)


async def compose_fields(
    ctx: context.Context, checked: validation.CheckedSend, identity: compose.MessageIdentity, *, is_large: bool
) -> transaction.Submission:
    rendered = checked
    if checked.template is not None:
        template = await find_template(ctx, identity.account_id, checked.template)
        work = functools.partial(render, checked, template)
        is_costly = rendering.is_costly(template) or rendering.has_lists(checked.variables)
        rendered = await ctx.threads.run(identity.account_id, work) if is_costly else work()
    # A template may repeat a value: a small request can become a large message.
    if is_large or len(rendered.text or "") + len(rendered.html or "") > INLINE_CHARACTERS:
        return await ctx.threads.run(identity.account_id, functools.partial(compose.compose, rendered, identity))
    return compose.compose(rendered, identity)


async def replay_or_refuse(
    ctx: context.Context, who: callers.Caller, info: SubmissionInfo, refusal: errors.PostroadError
) -> transaction.Accepted:
    """The response of an earlier request with the key of one that is refused; raises the refusal if there is none."""
    replayed = await find_replay(ctx, who, info.key)
    if replayed is None:
        if is_counted(refusal):
            await count_refused(ctx, who)
        raise refusal
    ctx.metrics.replayed.add(info.source.value)
    return replayed


def sending_identity(who: callers.Caller) -> str:
    """What the caller's idempotency keys belong to: the credential, or the account if it has none.

    Those of test keys are apart: a test never replays live mail.
    """
    identity = who.credential_id or who.account_id
    return identity + TEST_SUFFIX if who.is_test else identity


def characters(request: send_request.SendRequest) -> int:
    """How much text a request has, that of files in base64."""
    files = sum(len(attachment.content) for attachment in request.attachments) if request.attachments else 0
    return len(request.text or "") + len(request.html or "") + files


async def find_template(ctx: context.Context, account_id: str, alias: str) -> stored_templates.Template:
    async with ctx.store.reading() as tx:
        template = await stored_templates.by_alias(tx, account_id, alias)
        if template is None:
            raise errors.InvalidRequest(f"template: {alias!r} does not exist in this account")
        if not template.is_published:
            raise errors.InvalidRequest(f"template: {alias!r} is a draft; publish it first")
        return await rendering.load_parts(tx, template)


def render(checked: validation.CheckedSend, template: stored_templates.Template) -> validation.CheckedSend:
    rendered = rendering.render(template, checked.variables, subject=checked.subject)
    return msgspec.structs.replace(checked, subject=rendered.subject, text=rendered.text, html=rendered.html)


def _identity(
    ctx: context.Context,
    who: callers.Caller,
    info: SubmissionInfo,
    checked: validation.CheckedMessage,
    domain: domains.Domain,
    *,
    is_charged: bool,
    api_key_id: str | None,
    now: int,
) -> compose.MessageIdentity:
    # At once: each call lets go of the interpreter lock, and waits for it while a thread is busy.
    entropy = ctx.entropy(identifiers.ENTROPY_BYTES * (2 + len(checked.recipients)))
    message_id, ledger_id, *recipient_ids = identifiers.make_together(
        (identifiers.MESSAGE, identifiers.LEDGER), series=identifiers.RECIPIENT, now=now, entropy=entropy
    )
    schedule = send_request.UNTIMED
    if checked.send_at is not None or checked.expires_in is not None:
        schedule = send_request.resolve_times(send_at=checked.send_at, expires_in=checked.expires_in, now=now)
    complaint_domain = ""
    if ctx.settings.inbound.listen:
        complaint_domain = ctx.settings.delivery.return_path_domain.lower() or domain.return_path_domain
    unsubscribe: tuple[tuple[str, str], ...] = ()
    if checked.list_name:
        link = unsubscribe_links.Link(
            who.account_id, checked.list_name, checked.recipients[0].key, message_id, checked.sender.domain
        )
        unsubscribe = unsubscribe_links.headers(ctx.settings, ctx.keys.unsubscribe, link, domain.link_host)
    return compose.MessageIdentity(
        message_id=message_id,
        recipient_ids=recipient_ids,
        ledger_id=ledger_id,
        account_id=who.account_id,
        credential_id=sending_identity(who) if info.key is None else info.key.credential_id,
        request_id=info.request_id,
        source=info.source,
        key=info.key,
        now=now,
        warmup_domain=None if domain.warm or who.is_test else domain.name,
        is_charged=is_charged,
        return_path_domain=domain.return_path_domain,
        schedule=schedule,
        is_test=who.is_test,
        api_key_id=api_key_id,
        complaint_domain=complaint_domain,
        return_path_key=ctx.keys.return_path,
        unsubscribe=unsubscribe,
    )


async def find_replay(
    ctx: context.Context, who: callers.Caller, key: transaction.Key | None
) -> transaction.Accepted | None:
    """The response of an earlier request with this key. Raises the errors that come first in the order of checks."""
    async with ctx.store.reading() as tx:
        if key is not None:
            used = (await messages.idempotency_keys(tx, [key.pair], now=ctx.clock())).get(key.pair)
            if used is not None and used.body_hash != key.body_hash:
                raise transaction.different_body()
            if used is not None:
                return await transaction.replay(tx, who.account_id, used)
        await refuse_suspended(tx, who.account_id)
    return None


def is_counted(refusal: errors.PostroadError) -> bool:
    """Whether a send with this error counts towards the rate: not over the limit, nor by a fault of the service."""
    return refusal.status < errors.InternalError.status and not isinstance(refusal, send_limits.Exceeded)


async def count_refused(ctx: context.Context, who: callers.Caller, *, count: int = 1) -> None:
    """Count sends that were refused after the rate check of this process. Raises RateLimited if others used it up.

    What cannot be counted now is still refused.
    """
    refused = transaction.RefusedSend(who.account_id, ctx.clock(), count)
    with contextlib.suppress(errors.ServiceUnavailable, errors.TemporaryFailure):
        counted: transaction.Counted = await ctx.accept_commits.start(
            refused, party=who.account_id, size=refused.size, count=refused.work
        )
        ctx.rate_limiter.learn(who.account_id, counted.full_at)


async def refuse_suspended(tx: store.Transaction, account_id: str) -> None:
    """Raise AccountSuspended if the account is: it comes before the errors of later checks."""
    account = await accounts.by_id(tx, account_id)
    if account is not None and account.status == accounts.SUSPENDED:
        raise transaction.suspended(account.suspended_reason)
