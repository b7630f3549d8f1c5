"""The only way in for mail.

Every door hands its message here. The order of checks is fixed: the rules of the fields, the idempotency key, the
account's state, rate, sender domain, credits. A key that was used before is answered as it was then, whatever the
later checks would say today; that is why a refusal first looks for a replay, while a success needs no look-up before
its transaction.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from postroad import errors
from postroad.model import caller, identifiers, mail
from postroad.protocol import address
from postroad.services import accepting, compose, context, rules, templates
from postroad.storage import accounts, domains, idempotency
from postroad.storage import templates as stored_templates

T = TypeVar("T")
# Decoding and encoding this much takes about a millisecond: beyond it, other requests should not wait for it.
INLINE_CHARACTERS = 256 * 1024


@dataclass(frozen=True, slots=True)
class Envelope:
    """What a door knows of a send beside its content. `key` is None only where a door has no key."""

    request_id: str
    source: mail.Source
    key: accepting.Key | None


async def submit(
    ctx: context.Context, who: caller.Caller, request: mail.SendRequest, envelope: Envelope
) -> accepting.Accepted:
    """Accept a message: when this returns, it is on disk. Raises a PostroadError, and then nothing is stored."""
    try:
        accepted = await _submit(ctx, who, request, envelope)
    except errors.PostroadError as refusal:
        ctx.metrics.refused.add(envelope.source.value, refusal.code)
        raise
    counter = ctx.metrics.replayed if accepted.replayed else ctx.metrics.accepted
    counter.add(envelope.source.value)
    return accepted


async def _submit(
    ctx: context.Context, who: caller.Caller, request: mail.SendRequest, envelope: Envelope
) -> accepting.Accepted:
    large = _characters(request) > INLINE_CHARACTERS
    checked = await _run(lambda: rules.check(request), threaded=large)
    with _InFlight(ctx.in_flight, envelope.key):
        try:
            ctx.rates.take(key_scope(who), now=ctx.clock())
            await _check_sender_domain(ctx, who, checked.sender)
            ctx.high_water.check()
            content = await _content(ctx, who, checked)
            # A template may repeat a value: a small request can become a large message.
            large = large or len(content.text or "") + len(content.html or "") > INLINE_CHARACTERS
            submission = await _run(
                lambda: compose.compose(checked, content, _identity(ctx, who, envelope, checked)), threaded=large
            )
        except errors.PostroadError as refusal:
            return await _replay_or_refuse(ctx, who, envelope.key, refusal)
        accepted = await ctx.accept.submit(submission, size=submission.message.size)
        ctx.arrivals.set()
        return accepted


def key_scope(who: caller.Caller) -> str:
    """What the caller's idempotency keys and rate belong to; an account without credentials is its own scope."""
    return who.credential_id or who.account_id


def _characters(request: mail.SendRequest) -> int:
    bodies = len(request.text or "") + len(request.html or "")
    return bodies + sum(len(attachment.content) for attachment in request.attachments)


async def _run(work: Callable[[], T], *, threaded: bool) -> T:
    return await asyncio.to_thread(work) if threaded else work()


class _InFlight:
    """One request with a key at a time in this process; the accounts' locks keep hosts apart."""

    __slots__ = ("_keys", "_scope")

    def __init__(self, keys: set[idempotency.Scope], key: accepting.Key | None) -> None:
        self._keys = keys
        self._scope = None if key is None else key.scope

    def __enter__(self) -> None:
        if self._scope is not None:
            if self._scope in self._keys:
                raise accepting.in_progress()
            self._keys.add(self._scope)

    def __exit__(self, *_: object) -> None:
        if self._scope is not None:
            self._keys.discard(self._scope)


async def _check_sender_domain(ctx: context.Context, who: caller.Caller, sender: address.Mailbox) -> None:
    known = await ctx.memory.recall(ctx.clock())
    fact = ("domain", who.account_id, sender.domain)
    domain: domains.Domain | None = known.get(fact)
    if domain is None:
        async with ctx.store.reading() as tx:
            domain = await domains.by_name(tx, who.account_id, sender.domain)
            owner = await domains.verified_owner(tx, sender.domain)
        if domain is None:
            raise errors.Forbidden(f"from: {sender.domain} is not a domain of this account; register it first")
        if owner not in (None, who.account_id):
            raise errors.Forbidden(f"from: the domain {sender.domain} belongs to another account, which has proven it")
        known[fact] = domain
    if domain.verified_at is None and ctx.settings.domains.require_verified:
        raise errors.Forbidden(f"from: the domain {sender.domain} is not verified yet")


async def _content(ctx: context.Context, who: caller.Caller, checked: rules.CheckedSend) -> compose.Content:
    """Subject and bodies, from the request or from its template."""
    if checked.template is None:
        return compose.Content(checked.subject or "", checked.text, checked.html)
    async with ctx.store.reading() as tx:
        template = await stored_templates.by_alias(tx, who.account_id, checked.template)
    if template is None:
        raise errors.InvalidRequest(f"template: {checked.template!r} is not a template of this account")
    rendered = templates.render(template, checked.variables, subject=checked.subject)
    return compose.Content(rendered.subject, rendered.text, rendered.html)


def _identity(
    ctx: context.Context, who: caller.Caller, envelope: Envelope, checked: rules.CheckedSend
) -> compose.Identity:
    now = ctx.clock()
    # One microsecond apart: recipient ids sort in the order in which the recipients were written.
    recipient_ids = tuple(
        ctx.new_id(identifiers.RECIPIENT, now=now + index) for index, _ in enumerate(checked.recipients)
    )
    return compose.Identity(
        message_id=ctx.new_id(identifiers.MESSAGE, now=now),
        recipient_ids=recipient_ids,
        ledger_id=ctx.new_id(identifiers.LEDGER, now=now),
        account_id=who.account_id,
        credential_id=key_scope(who),
        request_id=envelope.request_id,
        source=envelope.source,
        key=envelope.key,
        now=now,
    )


async def _replay_or_refuse(
    ctx: context.Context, who: caller.Caller, key: accepting.Key | None, refusal: errors.PostroadError
) -> accepting.Accepted:
    """The answer of an earlier request with this key; else the refusal that comes first in the order of checks."""
    async with ctx.store.reading() as tx:
        if key is not None:
            used = (await idempotency.find(tx, [key.scope], now=ctx.clock())).get(key.scope)
            if used is not None and used.body_hash != key.body_hash:
                raise accepting.different_body()
            if used is not None:
                return await accepting.replay(tx, who.account_id, used)
        account = await accounts.by_id(tx, who.account_id)
    if account is not None and account.status == accounts.SUSPENDED:
        raise accepting.suspended(account.suspended_reason)
    raise refusal
