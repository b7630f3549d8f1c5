"""The only way in for mail.

Every door hands its message here. The order of checks is fixed: the rules of the fields, the idempotency key, the
account's state, rate, sender domain, warm-up, credits. A key that was used before is answered as it was then, whatever
the later checks would say today; that is why a refusal first looks for a replay, while a success needs no look-up
before its transaction.
"""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

import msgspec

from postroad import errors
from postroad.model import caller, identifiers, mail
from postroad.protocol import address
from postroad.services import context, templates
from postroad.services.acceptance import compose, rate_limit, transaction, validation
from postroad.services.domains import warmup_status
from postroad.storage import accounts, domains, idempotency
from postroad.storage import templates as stored_templates

T = TypeVar("T")
# Decoding and encoding this much takes about a millisecond: beyond it, other requests should not wait for it.
INLINE_CHARACTERS = 256 * 1024


class SubmissionInfo(msgspec.Struct, frozen=True):
    """What a door knows of a send beside its content. `key` is None only where a door has no key."""

    request_id: str
    source: mail.Source
    key: transaction.Key | None


class Draft(Protocol):
    """A message that keeps the rules of its door, before anything is asked about its account."""

    @property
    def sender(self) -> address.Mailbox:
        """Whose domain decides whether the account may send it."""

    @property
    def recipient_count(self) -> int:
        """How many unique recipients it has."""

    async def compose(self, ctx: context.Context, identity: compose.MessageIdentity) -> transaction.Submission:
        """Everything that will be stored of it."""


async def submit(
    ctx: context.Context, who: caller.Caller, request: mail.SendRequest, info: SubmissionInfo
) -> transaction.Accepted:
    """Accept a message by its fields: when this returns, it is on disk.

    Raises a PostroadError, and then nothing is stored.
    """
    large = _characters(request) > INLINE_CHARACTERS

    async def make() -> tuple[Draft, SubmissionInfo]:
        return FieldsDraft(await run(lambda: validation.check(request), threaded=large), is_large=large), info

    return await submit_draft(ctx, who, make, source=info.source)


async def submit_draft(
    ctx: context.Context,
    who: caller.Caller,
    make: Callable[[], Awaitable[tuple[Draft, SubmissionInfo]]],
    *,
    source: mail.Source,
) -> transaction.Accepted:
    """Accept what a door makes of its bytes by its own rules; a refusal is counted by its code, whoever gave it."""
    try:
        draft, info = await make()
        accepted = await _submit(ctx, who, draft, info)
    except errors.PostroadError as refusal:
        ctx.metrics.refused.add(source.value, refusal.code)
        raise
    counter = ctx.metrics.replayed if accepted.replayed else ctx.metrics.accepted
    counter.add(source.value)
    return accepted


async def _submit(ctx: context.Context, who: caller.Caller, draft: Draft, info: SubmissionInfo) -> transaction.Accepted:
    with _InFlight(ctx.in_flight, info.key):
        try:
            ctx.rate_limiter.take(sending_identity(who), now=ctx.clock())
            domain = await own_domain(ctx, who.account_id, draft.sender.domain)
            ctx.queue_limit.check()
            submission = await draft.compose(ctx, _identity(ctx, who, info, draft, domain))
        except errors.PostroadError as refusal:
            return await _replay_or_refuse(ctx, who, info.key, refusal)
        accepted = await _accept(ctx, submission)
        ctx.mail_wakeup.set()
        return accepted


async def _accept(ctx: context.Context, submission: transaction.Submission) -> transaction.Accepted:
    """The transaction; what it says of the rate, this process remembers."""
    try:
        accepted = await ctx.accept_commits.submit(submission, size=submission.message.size)
    except rate_limit.Exceeded as refusal:
        ctx.rate_limiter.learn(submission.credential_id, refusal.full_at)
        raise
    if accepted.full_at is not None:
        ctx.rate_limiter.learn(submission.credential_id, accepted.full_at)
    return accepted


class FieldsDraft(msgspec.Struct, frozen=True):
    """A message that is given by its fields: Postroad writes its MIME."""

    checked: validation.CheckedSend
    is_large: bool

    @property
    def sender(self) -> address.Mailbox:
        """The field `from`."""
        return self.checked.sender

    @property
    def recipient_count(self) -> int:
        """`to`, `cc` and `bcc` together."""
        return len(self.checked.recipients)

    async def compose(self, ctx: context.Context, identity: compose.MessageIdentity) -> transaction.Submission:
        """Fill in the template, if there is one, and write the message."""
        checked = self.checked
        content = await _content(ctx, identity.account_id, checked)
        # A template may repeat a value: a small request can become a large message.
        large = self.is_large or len(content.text or "") + len(content.html or "") > INLINE_CHARACTERS
        return await run(lambda: compose.compose(checked, content, identity), threaded=large)


def sending_identity(who: caller.Caller) -> str:
    """What the caller's idempotency keys and rate belong to; an account without credentials is its own scope."""
    return who.credential_id or who.account_id


def _characters(request: mail.SendRequest) -> int:
    bodies = len(request.text or "") + len(request.html or "")
    return bodies + sum(len(attachment.content) for attachment in request.attachments)


async def run(work: Callable[[], T], *, threaded: bool) -> T:
    """Work that may take long is done in a thread, so that nobody else waits for it."""
    return await asyncio.to_thread(work) if threaded else work()


class _InFlight:
    """One request with a key at a time in this process; the accounts' locks keep hosts apart."""

    __slots__ = ("_keys", "_pair")

    def __init__(self, keys: set[idempotency.Pair], key: transaction.Key | None) -> None:
        self._keys = keys
        self._pair = None if key is None else key.pair

    def __enter__(self) -> None:
        if self._pair is not None:
            if self._pair in self._keys:
                raise transaction.in_progress()
            self._keys.add(self._pair)

    def __exit__(self, *_: object) -> None:
        if self._pair is not None:
            self._keys.discard(self._pair)


async def own_domain(ctx: context.Context, account_id: str, name: str) -> domains.Domain:
    """The domain, if the account may send from it; Forbidden if it may not."""
    known = await ctx.access_cache.refresh(ctx.clock())
    fact = ("domain", account_id, name)
    domain: domains.Domain | None = known.get(fact)
    if domain is None:
        async with ctx.store.reading() as tx:
            domain = await domains.by_name(tx, account_id, name)
            owner = await domains.verified_owner(tx, name)
            is_free = domain is not None and await warmup_status.is_free(ctx, tx, domain)
        if domain is None:
            raise errors.Forbidden(f"from: {name} is not a domain of this account; register it first")
        if owner not in (None, account_id):
            raise errors.Forbidden(f"from: the domain {name} belongs to another account, which has proven it")
        # Once through its warm-up a domain is as good as warm, and its mail need not ask again.
        known[fact] = domain = dataclasses.replace(domain, warm=int(is_free))
    if domain.verified_at is None and ctx.settings.domains.require_verified:
        raise errors.Forbidden(f"from: the domain {name} is not verified yet")
    return domain


async def _content(ctx: context.Context, account_id: str, checked: validation.CheckedSend) -> compose.Content:
    """Subject and bodies, from the request or from its template."""
    if checked.template is None:
        return compose.Content(checked.subject or "", checked.text, checked.html)
    async with ctx.store.reading() as tx:
        template = await stored_templates.by_alias(tx, account_id, checked.template)
    if template is None:
        raise errors.InvalidRequest(f"template: {checked.template!r} is not a template of this account")
    rendered = templates.render(template, checked.variables, subject=checked.subject)
    return compose.Content(rendered.subject, rendered.text, rendered.html)


def _identity(
    ctx: context.Context, who: caller.Caller, info: SubmissionInfo, draft: Draft, domain: domains.Domain
) -> compose.MessageIdentity:
    now = ctx.clock()
    # One microsecond apart: recipient ids sort in the order in which the recipients were written.
    recipient_ids = tuple(ctx.new_id(identifiers.RECIPIENT, now=now + index) for index in range(draft.recipient_count))
    return compose.MessageIdentity(
        message_id=ctx.new_id(identifiers.MESSAGE, now=now),
        recipient_ids=recipient_ids,
        ledger_id=ctx.new_id(identifiers.LEDGER, now=now),
        account_id=who.account_id,
        credential_id=sending_identity(who),
        request_id=info.request_id,
        source=info.source,
        key=info.key,
        now=now,
        warmup_domain=None if domain.warm else domain.name,
    )


async def _replay_or_refuse(
    ctx: context.Context, who: caller.Caller, key: transaction.Key | None, refusal: errors.PostroadError
) -> transaction.Accepted:
    """The answer of an earlier request with this key; else the refusal that comes first in the order of checks."""
    async with ctx.store.reading() as tx:
        if key is not None:
            used = (await idempotency.find(tx, [key.pair], now=ctx.clock())).get(key.pair)
            if used is not None and used.body_hash != key.body_hash:
                raise transaction.different_body()
            if used is not None:
                return await transaction.replay(tx, who.account_id, used)
        account = await accounts.by_id(tx, who.account_id)
    if account is not None and account.status == accounts.SUSPENDED:
        raise transaction.suspended(account.suspended_reason)
    raise refusal
