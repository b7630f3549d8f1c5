"""Sends notices: finds out who gets each, then sends what is due, one by one or as a digest.

A mail is accepted, signed, queued and charged like any other message of the account that has verified the domain of
`operator.from`. Its idempotency key follows from the notice and the person: processes that do this at the same time,
and one that continues after a crash, send it once. What cannot be accepted is tried again for a day.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from postroad import errors
from postroad.model import caller, identifiers, mail, send_request, times
from postroad.protocol import placeholders
from postroad.services import context
from postroad.services.acceptance import submit
from postroad.services.auth import password_links
from postroad.services.domains import registry as domains
from postroad.services.notices import choices, kinds, rendering
from postroad.storage import accounts, notices, store, users
from postroad.telemetry import logs

# An account makes whom it likes an owner, and notices have the reputation of the operator.
MAX_OWNERS: Final = 5
# What comes beyond that to one person in an hour goes into the digest: of each kind, because strangers can cause some,
# and must not hide the others.
MAX_PER_HOUR: Final = 10
# In a round; the rest follows in the next one.
MAX_ROWS: Final = 200
RETRY_DELAY: Final = 5 * 60 * times.SECOND
# As long as idempotency keys are kept.
LIFETIME: Final = times.DAY
_SLACK_HEADERS: Final = (("Content-Type", "application/json"),)


async def payer(ctx: context.Context) -> str | None:
    """The account that notices are sent from and charged to; None: none can be sent now."""
    sender = ctx.settings.operator.sender
    return await domains.verified_owner(ctx, sender.rpartition("@")[2]) if sender else None


async def send_due(ctx: context.Context, *, log: logs.Logger) -> int:
    """Send what is due; returns how many mails and requests were made."""
    async with ctx.store.reading() as tx:
        unresolved = await notices.unresolved(tx, limit=MAX_ROWS)
    # During an upgrade, newer hosts may know more kinds.
    for notice in (one for one in unresolved if one.kind in kinds.KINDS):
        async with ctx.store.transaction() as tx:
            await notices.resolve(tx, notice.id, await _mails(ctx, tx, notice), now=ctx.clock())
    async with ctx.store.reading() as tx:
        due = [one for one in await notices.due(tx, now=ctx.clock(), limit=MAX_ROWS) if one.notice.kind in kinds.KINDS]
    alone = [[one] for one in due if not one.is_digest]
    digests = itertools.groupby((one for one in due if one.is_digest), key=lambda one: (one.due_at, one.user_id))
    sent = 0
    for together in (*alone, *(list(group) for _, group in digests)):
        sent += await _send(ctx, together, log=log)
    return sent


def next_digest(now: int, *, hour: int) -> int:
    """The next time of digests, at an hour of the day in UTC."""
    today = times.day_of(now) * times.DAY + hour * times.HOUR
    return today if today > now else today + times.DAY


async def _mails(ctx: context.Context, tx: store.Transaction, notice: notices.Notice) -> list[notices.Mail]:
    """Who gets a notice, and when."""
    kind, now = kinds.KINDS[notice.kind], ctx.clock()
    mails = []
    if kind.audience is kinds.Audience.OPERATORS and ctx.settings.notices.webhook_url:
        mails.append(notices.Mail(notices.WEBHOOK, is_digest=False, due_at=now, notice=notice))
    # Without a sender now, none is sent later: it would be old.
    for user in await _people(tx, notice) if ctx.settings.operator.sender else ():
        choice = choices.choice_of(notice.kind, await notices.choices(tx, user.id))
        if choice is not kinds.Choice.OFF:
            is_digest = choice is kinds.Choice.DIGEST
            due_at = next_digest(now, hour=ctx.settings.notices.digest_hour) if is_digest else now
            mails.append(notices.Mail(user.id, is_digest=is_digest, due_at=due_at, notice=notice))
    return mails


async def _people(tx: store.Transaction, notice: notices.Notice) -> Sequence[users.User]:
    """The people whom a notice is for, as far as they are active. Whoever is only invited gets the invitation."""
    audience = kinds.KINDS[notice.kind].audience
    if audience is kinds.Audience.PERSON:
        user = await users.by_id(tx, notice.user_id)
        return [] if user is None or user.disabled_at is not None else [user]
    if audience is kinds.Audience.OPERATORS:
        return [one for one in await users.operators(tx) if _is_active(one)]
    members = await users.of_account(tx, notice.account_id)
    return [one for one in members if one.role == caller.Role.OWNER and _is_active(one)][:MAX_OWNERS]


def _is_wanted(user: users.User, kind: str, chosen: Mapping[str, str]) -> bool:
    """Whether a person still gets a notice: a digest is sent hours after it was known who gets it."""
    if user.disabled_at is not None or kinds.KINDS[kind].audience is kinds.Audience.PERSON:
        return user.disabled_at is None
    return kind in choices.offered(user) and choices.choice_of(kind, chosen) is not kinds.Choice.OFF


def _is_active(user: users.User) -> bool:
    return user.joined_at is not None and user.disabled_at is None


async def _send(ctx: context.Context, together: Sequence[notices.Mail], *, log: logs.Logger) -> bool:
    """Send one notice, or the digest of several; returns whether it was sent."""
    first, now = together[0], ctx.clock()
    security = kinds.KINDS[first.notice.kind].is_security
    async with ctx.store.reading() as tx:
        is_over = await notices.sent_since(tx, first.user_id, first.notice.kind, now - times.HOUR) >= MAX_PER_HOUR
        user = None if first.user_id == notices.WEBHOOK else await users.by_id(tx, first.user_id)
        chosen = {} if user is None else await notices.choices(tx, user.id)
        wanted = [one.notice for one in together if user is None or _is_wanted(user, one.notice.kind, chosen)]
        items = [(one.kind, await _values(tx, one)) for one in wanted]
    if is_over and not first.is_digest and not security:
        due_at = next_digest(now, hour=ctx.settings.notices.digest_hour)
        await _postpone(ctx, together, due_at=due_at, is_digest=True)
        return False
    try:
        if first.user_id == notices.WEBHOOK:
            await _post(ctx, items)
        elif user is not None and items:  # or else removed meanwhile, or not wanted any more
            await _submit(ctx, user, together, items)
    except errors.IdempotencyConflict:
        pass  # sent before a crash, in other words
    except (errors.PostroadError, placeholders.TemplateError) as problem:  # a bad text must not stop the others
        log.warning("notice_failed", kind=first.notice.kind, user_id=first.user_id, error=str(problem))
        if now - first.notice.created_at < (2 * LIFETIME if first.is_digest else LIFETIME):
            await _postpone(ctx, together, due_at=now + RETRY_DELAY, is_digest=first.is_digest)
            return False
    async with ctx.store.transaction() as tx:
        for one in together:
            await notices.mark_sent(tx, one, now=now)
            if kinds.KINDS[one.notice.kind].has_secret:
                await notices.forget_content(tx, one.notice.id)
    return True


async def _postpone(ctx: context.Context, together: Sequence[notices.Mail], *, due_at: int, is_digest: bool) -> None:
    async with ctx.store.transaction() as tx:
        for one in together:
            await notices.postpone(tx, one, due_at=due_at, is_digest=is_digest)


async def _values(tx: store.Transaction, notice: notices.Notice) -> dict[str, str]:
    """The values of a notice, with its account."""
    values = msgspec.json.decode(notice.content, type=dict[str, str])
    account = await accounts.by_id(tx, notice.account_id) if notice.account_id else None
    return {"account": account.name if account else "", "account_id": notice.account_id, **values}


async def _submit(
    ctx: context.Context,
    user: users.User,
    together: Sequence[notices.Mail],
    items: Sequence[tuple[str, dict[str, str]]],
) -> None:
    first, sender = together[0], ctx.settings.operator.sender
    charged = await payer(ctx)
    if charged is None:
        raise errors.Forbidden("operator.from: its domain is not verified by an account of this installation")
    unsubscribe, rendered = _render(ctx, user, first, items)
    headers = {"Auto-Submitted": "auto-generated"}
    if unsubscribe.startswith("https://"):  # RFC 8058 section 3.1
        headers |= {"List-Unsubscribe": f"<{unsubscribe}>", "List-Unsubscribe-Post": "List-Unsubscribe=One-Click"}
    request = send_request.SendRequest(
        sender=sender,
        to=user.email,
        subject=rendered.subject,
        text=rendered.text,
        html=rendered.html,
        headers=headers,
    )
    who = caller.Caller(charged, None, caller.Scheme.TOKEN, frozenset({caller.Permission.SEND}))
    request_id = ctx.new_id(identifiers.REQUEST, now=ctx.clock())
    key = f"{rendering.DIGEST if first.is_digest else 'notice'}:{first.notice.id}:{user.id}"
    await submit.submit(ctx, who, request, request_id=request_id, source=mail.Source.API, key=key)


def _render(
    ctx: context.Context, user: users.User, first: notices.Mail, items: Sequence[tuple[str, dict[str, str]]]
) -> tuple[str, rendering.Rendered]:
    """The link that ends mail of this kind, if it can be ended, and the mail."""
    base_url = choices.base_url(ctx.settings)
    profile = f"{base_url}/profile#mail"
    if first.is_digest:
        return "", rendering.render_digest(items, link="", footer=rendering.Footer(profile))
    name, values = items[0]
    kind = kinds.KINDS[name]
    if kind.has_secret:
        token = password_links.unseal(ctx, user.id, values["sealed_token"])
        return "", rendering.render(
            name, values, link=password_links.url(ctx.settings, token), footer=rendering.Footer()
        )
    unsubscribe = "" if kind.is_security else choices.unsubscribe_url(ctx, user.id, name)
    link = base_url + kind.path.format_map(values)
    return unsubscribe, rendering.render(name, values, link=link, footer=rendering.Footer(profile, unsubscribe))


async def _post(ctx: context.Context, items: Sequence[tuple[str, dict[str, str]]]) -> None:
    """Send notices to the webhook, in the format of Slack."""
    text = "\n".join(rendering.summary(kind, values) for kind, values in items[: rendering.MAX_DIGEST_ITEMS])
    body = msgspec.json.encode({"text": rendering.for_slack(text)})
    response = await ctx.webhook_client.post(ctx.settings.notices.webhook_url, body, _SLACK_HEADERS)
    if not response.succeeded:
        problem = response.error or f"the webhook responded with {response.status_code}"
        raise errors.TemporaryFailure(problem, retry_after=RETRY_DELAY // times.SECOND)
