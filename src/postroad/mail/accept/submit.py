"""The entry point for all mail, over HTTP and SMTP.

Checks run in a fixed order: fields, idempotency key, account state, rate, sender domain, warm-up, credits. A key that
was used before gets its stored response, whatever the later checks would say now. Therefore an error first looks for a
replay, while a success needs no lookup before its transaction.
"""

import contextlib
import functools
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec

from postroad import context, errors
from postroad.mail.accept import (
    approval_limit,
    batch,
    compose,
    refusals,
    rendering,
    send_limits,
    sending_rights,
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

T = TypeVar("T")
# Makes of a validated message, once its account and domain are checked, everything that is stored.
Composer = Callable[[compose.MessageIdentity], Awaitable[transaction.Submission]]
# Decoding and encoding this much takes about a millisecond; more should not delay other requests.
INLINE_CHARACTERS = 256 * 1024
# No id of a credential or an account ends like this. storage/sql/account_removal.sql knows it.
TEST_SUFFIX = "/test"


class SubmissionInfo(msgspec.Struct, frozen=True):
    """What is known of a submission besides its content. `key` is None when it has no idempotency key."""

    request_id: str
    source: statuses.Source
    key: transaction.Key | None


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
    with RefusalCounter(ctx, source):
        checked, hashed = await run(
            ctx, who.account_id, lambda: _check(request, is_keyed=key is not None), threaded=large
        )
        used = None if key is None else transaction.Key(sending_identity(who), key, hashed)
        if approval_limit.applies_to(who):
            await approval_limit.check(ctx, who, request, [checked], key=used, request_id=request_id)
        info = SubmissionInfo(request_id=request_id, source=source, key=used)
        return await submit_checked(
            ctx, who, checked, info, lambda identity: compose_fields(ctx, checked, identity, is_large=large)
        )


def _check(request: send_request.SendRequest, *, is_keyed: bool) -> tuple[validation.CheckedSend, bytes]:
    """The validated request, and its hash if it has a key."""
    checked = validation.check(request)
    return checked, compose.body_hash(checked) if is_keyed else b""


def _check_mode(checked: validation.CheckedMessage, who: callers.Caller) -> None:
    if checked.simulation and not who.is_test:
        raise errors.InvalidRequest(
            "simulate: only allowed with a test key (pr_test_…); with this credential the message would really be sent"
        )


class RefusalCounter:
    """Counts every error of the block by its code."""

    __slots__ = ("_ctx", "_source")

    def __init__(self, ctx: context.Context, source: statuses.Source) -> None:
        self._ctx = ctx
        self._source = source

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: type[BaseException] | None, refusal: BaseException | None, _traceback: object) -> None:
        if isinstance(refusal, errors.PostroadError):
            self._ctx.metrics.refused.add(self._source.value, refusal.code)


async def submit_checked(
    ctx: context.Context,
    who: callers.Caller,
    checked: validation.CheckedMessage,
    info: SubmissionInfo,
    composer: Composer,
) -> transaction.Accepted:
    """Accept a validated message; called within a `RefusalCounter`."""
    with InFlight(ctx.in_flight, info.key):
        try:
            ctx.rate_limiter.take(who.account_id, now=ctx.clock(), rate=who.request_rate)
            submission = await composer(await admit(ctx, who, checked, info))
        except errors.PostroadError as refusal:
            replayed = await find_replay(ctx, who, info.key)
            if replayed is None:
                if is_counted(refusal):
                    await count_refused(ctx, who)
                raise
            accepted = replayed
        else:
            accepted = await accept(ctx, submission)
    counter = ctx.metrics.replayed if accepted.replayed else ctx.metrics.accepted
    counter.add(info.source.value)
    return accepted


async def admit(
    ctx: context.Context,
    who: callers.Caller,
    checked: validation.CheckedMessage,
    info: SubmissionInfo,
    *,
    index: int = 0,
) -> compose.MessageIdentity:
    """Check what depends on the account, and give the message its ids; `index` is its index in a batch."""
    _check_mode(checked, who)
    if who.key is not None:
        send_limits.check_key_content(who.key.limits, checked)
    domain = await sending_rights.sending_domain(ctx, who.account_id, checked.sender.domain)
    size = checked.size + batch.RECIPIENT_BYTES * len(checked.recipients)
    ctx.queue_limit.check(who.account_id, size, is_test=who.is_test)
    is_charged = not who.is_test and await sending_rights.is_charged(ctx, who.account_id)
    return _identity(ctx, who, info, checked, domain, is_charged=is_charged, index=index)


async def accept(ctx: context.Context, entry: batch.Entry) -> transaction.Accepted:
    """Run the transaction, and update this process's rate bucket from its result."""
    account_id = batch.account_of(entry)
    try:
        accepted: transaction.Accepted = await ctx.accept_commits.submit(
            entry, party=account_id, size=batch.size_of(entry), count=batch.count_of(entry)
        )
    except send_limits.Exceeded as refusal:
        ctx.rate_limiter.learn(account_id, refusal.full_at)
        raise
    if accepted.full_at is not None:
        ctx.rate_limiter.learn(account_id, accepted.full_at)
    return accepted


async def with_rate_fields(
    ctx: context.Context, who: callers.Caller, accepting: Awaitable[transaction.Accepted]
) -> tuple[transaction.Accepted, tuple[tuple[str, str], ...]]:
    """What was accepted, and the header fields of its response: what is left of the rate. An error has them too."""
    try:
        accepted = await accepting
    except errors.PostroadError as refusal:
        refusal.headers = ctx.rate_limiter.headers(who.account_id, now=ctx.clock(), rate=who.request_rate)
        raise
    fields = ctx.rate_limiter.headers(who.account_id, now=ctx.clock(), rate=who.request_rate)
    return accepted, (*fields, ("Idempotent-Replayed", "true")) if accepted.replayed else fields


async def compose_fields(
    ctx: context.Context, checked: validation.CheckedSend, identity: compose.MessageIdentity, *, is_large: bool
) -> transaction.Submission:
    """Render the template, if there is one, and compose the message."""
    template = await find_template(ctx, identity.account_id, checked)
    rendered = checked
    if template is not None:
        work = functools.partial(render, checked, template)
        is_costly = rendering.is_costly(template) or rendering.has_lists(checked.variables)
        rendered = await run(ctx, identity.account_id, work, threaded=is_costly)
    # A template may repeat a value: a small request can become a large message.
    large = is_large or len(rendered.text or "") + len(rendered.html or "") > INLINE_CHARACTERS
    return await run(ctx, identity.account_id, lambda: compose.compose(rendered, identity), threaded=large)


def sending_identity(who: callers.Caller) -> str:
    """What the caller's idempotency keys belong to: the credential, or the account if it has none.

    Those of test keys are apart: a test never replays live mail.
    """
    identity = who.credential_id or who.account_id
    return identity + TEST_SUFFIX if who.is_test else identity


def characters(request: send_request.SendRequest) -> int:
    """How much text a request has, that of files in base64."""
    bodies = len(request.text or "") + len(request.html or "")
    return bodies + sum(len(attachment.content) for attachment in request.attachments or ())


async def run(ctx: context.Context, account_id: str, work: Callable[[], T], *, threaded: bool) -> T:
    """Run long work in a thread, so that other requests do not wait for it."""
    return await ctx.threads.run(account_id, work) if threaded else work()


class InFlight:
    """One request per key at a time in this process; account locks separate hosts."""

    __slots__ = ("_keys", "_pair")

    def __init__(self, keys: set[messages.IdempotencyPair], key: transaction.Key | None) -> None:
        self._keys = keys
        self._pair = None if key is None else key.pair

    def __enter__(self) -> None:
        if self._pair is not None:
            if self._pair in self._keys:
                raise refusals.in_progress()
            self._keys.add(self._pair)

    def __exit__(self, *_: object) -> None:
        if self._pair is not None:
            self._keys.discard(self._pair)


async def find_template(
    ctx: context.Context, account_id: str, checked: validation.CheckedSend
) -> stored_templates.Template | None:
    """The template of a message, None if it has none."""
    if checked.template is None:
        return None
    async with ctx.store.reading() as tx:
        template = await stored_templates.by_alias(tx, account_id, checked.template)
        if template is None:
            raise errors.InvalidRequest(f"template: {checked.template!r} does not exist in this account")
        return await rendering.load_parts(tx, template)


def render(checked: validation.CheckedSend, template: stored_templates.Template) -> validation.CheckedSend:
    """The message with subject and bodies from its template."""
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
    index: int,
) -> compose.MessageIdentity:
    # One microsecond apart: the messages of a batch sort in the order of the request.
    now = ctx.clock() + index
    # At once: each call lets go of the interpreter lock, and waits for it while a thread is busy.
    size = identifiers.ENTROPY_BYTES
    entropy = ctx.entropy(size * (2 + len(checked.recipients)))
    return compose.MessageIdentity(
        message_id=identifiers.make(identifiers.MESSAGE, now=now, entropy=entropy[:size]),
        recipient_ids=identifiers.make_series(identifiers.RECIPIENT, now=now, entropy=entropy[2 * size :]),
        ledger_id=identifiers.make(identifiers.LEDGER, now=now, entropy=entropy[size : 2 * size]),
        account_id=who.account_id,
        credential_id=sending_identity(who),
        request_id=info.request_id,
        source=info.source,
        key=info.key,
        now=now,
        warmup_domain=None if domain.warm or who.is_test else domain.name,
        is_charged=is_charged,
        return_path_domain=domain.return_path_domain,
        schedule=send_request.resolve_times(send_at=checked.send_at, expires_in=checked.expires_in, now=now)
        if checked.has_options
        else send_request.UNTIMED,
        is_test=who.is_test,
        api_key_id=who.key.id if who.key is not None and who.key.limits.is_counted else None,
    )


async def find_replay(
    ctx: context.Context, who: callers.Caller, key: transaction.Key | None
) -> transaction.Accepted | None:
    """The response of an earlier request with this key. Raises the errors that come first in the order of checks."""
    async with ctx.store.reading() as tx:
        if key is not None:
            used = (await messages.idempotency_keys(tx, [key.pair], now=ctx.clock())).get(key.pair)
            if used is not None and used.body_hash != key.body_hash:
                raise refusals.different_body()
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
    refused = batch.RefusedSend(who.account_id, ctx.clock(), count)
    with contextlib.suppress(errors.ServiceUnavailable, errors.TemporaryFailure):
        await accept(ctx, refused)


async def refuse_suspended(tx: store.Transaction, account_id: str) -> None:
    """Raise AccountSuspended if the account is: it comes before the errors of later checks."""
    account = await accounts.by_id(tx, account_id)
    if account is not None and account.status == accounts.SUSPENDED:
        raise refusals.suspended(account.suspended_reason)
