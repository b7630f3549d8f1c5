"""Decisions about sends that wait: a person of the account approves or rejects them in the dashboard.

Approving runs the normal submit, with the checks of that moment and the key's other limits, under the idempotency key
of the request. So a send is done once however often it is approved: a second click, or the first one after a crash
between the send and its mark, gets the stored response.
"""

import dataclasses
from typing import Any, Final

import msgspec

from postroad import context, errors
from postroad.mail.accept import approval_limit, rendering, submit, submit_batch
from postroad.model.mail import send_request, statuses
from postroad.model.people import callers
from postroad.model.units import identifiers
from postroad.services import audit_log, usage_limits
from postroad.storage.mail import templates
from postroad.storage.people import approvals, credentials

ROWS: Final = approval_limit.MAX_PENDING
# Each has up to a hundred requests of 1 MiB.
LISTS: Final = usage_limits.WorkLimit("lists of approvals", per_account=2, per_process=10, retry_seconds=5)
_DECIDED: Final = (approvals.State.APPROVED, approvals.State.REJECTED)
_UNSENT: Final = (approvals.State.PENDING, approvals.State.APPROVING, approvals.State.REJECTED)


async def latest(ctx: context.Context, account_id: str) -> list[approvals.Approval]:
    """The latest sends of an account, newest first; `content` has what they send."""
    async with ctx.store.reading() as tx:
        return await approvals.of_account(tx, account_id, limit=ROWS)


async def approve(ctx: context.Context, account_id: str, approval_id: str) -> approvals.Approval:
    """Send it. Raises what the send would raise; then it still waits."""
    found = await _find(ctx, account_id, approval_id)
    who = await _caller(ctx, found)
    await _refuse_changed_templates(ctx, found)
    # From here on it can no longer be rejected.
    is_first = await _begin(ctx, found)
    try:
        if found.is_batch:
            batch: msgspec.Struct = msgspec.json.decode(found.body, type=send_request.BatchRequest)
            await submit_batch.submit_batch(ctx, who, batch, request_id=found.request_id, key=found.idempotency_key)
        else:
            single = msgspec.json.decode(found.body, type=send_request.SendRequest)
            source, key = statuses.Source.API, found.idempotency_key
            await submit.submit(ctx, who, single, request_id=found.request_id, source=source, key=key)
    except errors.PostroadError as refusal:
        # Only what was certainly not sent waits again: the first click may be sending it while this one is refused.
        certain = refusal.status < errors.InternalError.status
        if is_first and certain and not isinstance(refusal, errors.IdempotencyInProgress):
            async with ctx.store.transaction() as tx:
                await approvals.set_state(
                    tx, account_id, found.id, approvals.State.PENDING, among=(approvals.State.APPROVING,)
                )
        raise
    async with ctx.store.transaction() as tx:
        # It was sent, whatever was clicked meanwhile.
        if await approvals.decide(tx, account_id, found.id, approvals.State.APPROVED, among=_UNSENT):
            await audit_log.write(ctx, tx, account_id, "approval.approved", found.id)
    return found


async def reject(ctx: context.Context, account_id: str, approval_id: str) -> approvals.Approval:
    found = await _find(ctx, account_id, approval_id)
    waiting = (approvals.State.PENDING,)
    async with ctx.store.transaction() as tx:
        if not await approvals.decide(tx, account_id, found.id, approvals.State.REJECTED, among=waiting):
            raise _decided()
        await audit_log.write(ctx, tx, account_id, "approval.rejected", found.id)
    return found


async def content(ctx: context.Context, account_id: str, approval_id: str) -> dict[str, Any]:
    """The request as it was sent, for people; one at a time, because they may be large. Decided ones have none."""
    found = await _get(ctx, account_id, approval_id)
    if not found.body:
        return {}
    read: dict[str, Any] = await ctx.threads.run(account_id, lambda: msgspec.json.decode(found.body))
    return read


async def _get(ctx: context.Context, account_id: str, approval_id: str) -> approvals.Approval:
    if not identifiers.is_identifier(approval_id, identifiers.APPROVAL):
        raise errors.NotFound("there is no such request")
    # In a thread: it may be large, and a page has many.
    async with ctx.store.scanning(account_id) as tx:
        found = await approvals.by_id(tx, account_id, approval_id)
    if found is None:
        raise errors.NotFound("there is no such request")
    return found


async def _find(ctx: context.Context, account_id: str, approval_id: str) -> approvals.Approval:
    found = await _get(ctx, account_id, approval_id)
    if found.state in _DECIDED:
        raise _decided()
    if approval_limit.is_expired(found, now=ctx.clock()):
        raise errors.Conflict("this request has expired; it has to be sent again with a new Idempotency-Key")
    return found


async def _begin(ctx: context.Context, found: approvals.Approval) -> bool:
    """Mark it as being sent; returns whether no other click did. Raises Conflict if it is decided."""
    async with ctx.store.transaction() as tx:
        for state in (approvals.State.PENDING, approvals.State.APPROVING):
            if await approvals.set_state(tx, found.account_id, found.id, approvals.State.APPROVING, among=(state,)):
                return state == approvals.State.PENDING
    raise _decided()


def _decided() -> errors.Conflict:
    return errors.Conflict("this request was already approved or rejected")


async def _refuse_changed_templates(ctx: context.Context, found: approvals.Approval) -> None:
    """Whoever may change a template could otherwise send what nobody approved."""
    body: dict[str, Any] = msgspec.json.decode(found.body)
    aliases = {email.get("template") for email in (body, *(body.get("emails") or ()))} - {None}
    async with ctx.store.reading() as tx:
        for alias in sorted(aliases):
            template = await templates.by_alias(tx, found.account_id, alias)
            used = () if template is None else (template, *(await rendering.load_parts(tx, template)).used)
            if any(part.updated_at > found.created_at for part in used):
                raise errors.Conflict(
                    f"the template {alias} was changed after this request; reject it, and repeat it with a new key"
                )


async def _caller(ctx: context.Context, found: approvals.Approval) -> callers.Caller:
    """The key that asked, as it is now, without its approval limit."""
    async with ctx.store.reading() as tx:
        key = await credentials.key_by_id(tx, found.account_id, found.key_id)
    if key is None or key.revoked_at is not None:
        raise errors.Conflict("the API key of this request was revoked; reject the request")
    if key.limits.expires_at is not None and key.limits.expires_at <= ctx.clock():
        raise errors.Conflict("the API key of this request has expired; reject the request, or extend the key")
    limits = msgspec.structs.replace(key.limits, approval_above=None)
    scopes = callers.scopes_of(key.scopes)
    if callers.Scope.SEND not in scopes:
        raise errors.Conflict("the API key of this request no longer has the scope send; reject the request")
    who = callers.Caller(
        account_id=key.account_id,
        credential_id=key.credential_id,
        scheme=callers.Scheme.API_KEY,
        permissions=frozenset({callers.Permission.SEND}),
        key=callers.ApiKey(key.id, key.name, scopes, limits),
    )
    return dataclasses.replace(who, is_test=found.is_test)
