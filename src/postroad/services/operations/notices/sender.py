"""Sends notices: finds out who gets each, renders it from the templates in `texts/`, one by one or as a digest."""

import functools
import html
import itertools
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Final

import msgspec

from postroad import config, context, errors
from postroad.mail import notice_kinds
from postroad.mail.accept import submit
from postroad.model.mail import send_request, statuses
from postroad.model.people import callers
from postroad.model.units import identifiers, times
from postroad.protocol.text import mustache, placeholders
from postroad.services.domains import domain_registry as domains
from postroad.services.operations.notices import choices
from postroad.services.people import password_links
from postroad.storage.engine import store
from postroad.storage.operations import notices
from postroad.storage.people import accounts, users
from postroad.telemetry import logs

# Renders notices from the templates in `texts/`: plain text, and the same as HTML in one layout.
#
# A template begins with its subject. Values are cut, have no control characters, and are escaped in HTML; in those that
# strangers write as they like, nothing looks like a link. The only links are our own.

# A name of an account may have 200; a reader needs its beginning.
FREE_CHARACTERS: Final = 80
VALUE_CHARACTERS: Final = 500
MAX_DIGEST_ITEMS: Final = 50
DIGEST: Final = "digest"
_SUBJECT: Final = "Subject: "
# Control characters, line and paragraph separators, and marks that reverse the direction of text.
_UNPRINTABLE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]+")
# A time as the API has it.
_TIME: Final = re.compile(r"\b(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\d(?:\.\d+)?Z")
# What mail programs turn into a link: a colon before slashes, a dot before a letter as in a host name, an address.
_LINKED: Final = re.compile(r"(?<=\w)(?:@(?=\w)|\.(?=[^\W\d]))|:(?=//)")


class Rendered(msgspec.Struct, frozen=True):
    subject: str
    text: str
    html: str


class Footer(msgspec.Struct, frozen=True):
    """Where to choose what one gets by mail, and how to get no more of this kind; empty where that is impossible."""

    profile: str = ""
    unsubscribe: str = ""


def render(kind: str, values: Mapping[str, str], *, link: str, footer: Footer) -> Rendered:
    shown = cleaned(kind, values)
    subject, body = _template(kind)
    text = mustache.parse(body).render(shown, escape_html=False)
    return _laid_out(mustache.parse(subject).render(shown, escape_html=False), text, link=link, footer=footer)


def render_digest(items: Sequence[tuple[str, Mapping[str, str]]], *, link: str, footer: Footer) -> Rendered:
    """Several notices as one mail: the kinds and values of each."""
    lines = [summary(kind, values) for kind, values in items[:MAX_DIGEST_ITEMS]]
    shown = {"count": str(len(items)), "items": lines, "more": str(max(0, len(items) - len(lines)) or "")}
    subject, body = _template(DIGEST)
    text = mustache.parse(body).render(shown, escape_html=False)
    return _laid_out(mustache.parse(subject).render(shown, escape_html=False), text, link=link, footer=footer)


def summary(kind: str, values: Mapping[str, str]) -> str:
    return mustache.parse(_template(kind)[0]).render(cleaned(kind, values), escape_html=False)


def cleaned(kind: str, values: Mapping[str, str]) -> dict[str, str]:
    """The values as they are shown."""
    free = notice_kinds.KINDS[kind].free
    return {name: without_links(value) if name in free else _printable(value) for name, value in values.items()}


def without_links(text: str) -> str:
    """A text in which no mail program finds a link or an address: `shop[.]example`."""
    return _LINKED.sub(lambda match: f"[{match[0]}]", _printable(text)[:FREE_CHARACTERS])


def for_slack(text: str) -> str:
    """Text in which Slack and Mattermost find no link and no mention, such as @channel."""
    return html.escape(text, quote=False).replace("@", "@\u200b")


def _printable(text: str) -> str:
    return _TIME.sub(r"\1 \2 UTC", _UNPRINTABLE.sub(" ", text).strip()[:VALUE_CHARACTERS])


def _laid_out(subject: str, text: str, *, link: str, footer: Footer) -> Rendered:
    paragraphs = [" ".join(part.split()) for part in text.split("\n\n")]
    shown = {"subject": subject, "link": link, **msgspec.structs.asdict(footer)}
    plain = mustache.parse(_source("layout.txt")).render({**shown, "body": text.strip()}, escape_html=False)
    marked_up = mustache.parse(_source("layout.html")).render({**shown, "paragraphs": paragraphs}, escape_html=True)
    return Rendered(subject, plain, marked_up)


def _template(kind: str) -> tuple[str, str]:
    subject, _, body = _source(f"{kind}.txt").partition("\n\n")
    return subject.removeprefix(_SUBJECT), body


@functools.cache
def _source(name: str) -> str:
    return resources.files(__package__).joinpath("texts", name).read_text(encoding="utf-8")


# An account makes whom it likes an owner, and notices have the reputation of the operator.
MAX_OWNERS: Final = 5
# In UTC: before work begins in Europe, and after it has ended in America.
DIGEST_HOUR: Final = 6
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
    for notice in (row for row in unresolved if row.kind in notice_kinds.KINDS):
        async with ctx.store.transaction() as tx:
            await notices.resolve(tx, notice.id, await _mails(ctx, tx, notice), now=ctx.clock())
    async with ctx.store.reading() as tx:
        due = [
            mail
            for mail in await notices.due(tx, now=ctx.clock(), limit=MAX_ROWS)
            if mail.notice.kind in notice_kinds.KINDS
        ]
    alone = [[mail] for mail in due if not mail.is_digest]
    digests = itertools.groupby((mail for mail in due if mail.is_digest), key=lambda mail: (mail.due_at, mail.user_id))
    sent = 0
    for together in (*alone, *(list(group) for _, group in digests)):
        sent += await _send(ctx, together, log=log)
    return sent


def next_digest(now: int, *, hour: int) -> int:
    """The next time of digests, at an hour of the day in UTC."""
    today = times.day_of(now) * times.DAY + hour * times.HOUR
    return today if today > now else today + times.DAY


async def _mails(ctx: context.Context, tx: store.Transaction, notice: notices.Notice) -> list[notices.Mail]:
    kind, now = notice_kinds.KINDS[notice.kind], ctx.clock()
    mails = []
    if kind.audience is notice_kinds.Audience.OPERATORS and ctx.settings.operator.webhook_url:
        mails.append(notices.Mail(notices.WEBHOOK, is_digest=False, due_at=now, notice=notice))
    # Without a sender now, none is sent later: it would be old.
    for user in await _people(tx, notice) if ctx.settings.operator.sender else ():
        choice = choices.choice_of(notice.kind, await notices.choices(tx, user.id))
        if choice is not notice_kinds.Choice.OFF:
            is_digest = choice is notice_kinds.Choice.DIGEST
            due_at = next_digest(now, hour=DIGEST_HOUR) if is_digest else now
            mails.append(notices.Mail(user.id, is_digest=is_digest, due_at=due_at, notice=notice))
    return mails


async def _people(tx: store.Transaction, notice: notices.Notice) -> Sequence[users.User]:
    """The people whom a notice is for, as far as they are active. Whoever is only invited gets the invitation."""
    audience = notice_kinds.KINDS[notice.kind].audience
    if audience is notice_kinds.Audience.PERSON:
        user = await users.by_id(tx, notice.user_id)
        return [] if user is None or user.disabled_at is not None else [user]
    if audience is notice_kinds.Audience.OPERATORS:
        return [operator for operator in await users.operators(tx) if _is_active(operator)]
    members = await users.of_account(tx, notice.account_id)
    return [member for member in members if member.role == callers.Role.OWNER and _is_active(member)][:MAX_OWNERS]


def _is_wanted(user: users.User, kind: str, chosen: Mapping[str, str]) -> bool:
    """Whether a person still gets a notice: a digest is sent hours after it was known who gets it."""
    if user.disabled_at is not None or notice_kinds.KINDS[kind].audience is notice_kinds.Audience.PERSON:
        return user.disabled_at is None
    return kind in choices.offered(user) and choices.choice_of(kind, chosen) is not notice_kinds.Choice.OFF


def _is_active(user: users.User) -> bool:
    return user.joined_at is not None and user.disabled_at is None


async def _send(ctx: context.Context, together: Sequence[notices.Mail], *, log: logs.Logger) -> bool:
    """Send one notice, or the digest of several; returns whether it was sent."""
    first, now = together[0], ctx.clock()
    security = notice_kinds.KINDS[first.notice.kind].is_security
    async with ctx.store.reading() as tx:
        is_over = await notices.sent_since(tx, first.user_id, first.notice.kind, now - times.HOUR) >= MAX_PER_HOUR
        user = None if first.user_id == notices.WEBHOOK else await users.by_id(tx, first.user_id)
        chosen = {} if user is None else await notices.choices(tx, user.id)
        wanted = [mail.notice for mail in together if user is None or _is_wanted(user, mail.notice.kind, chosen)]
        items = [(notice.kind, await _values(tx, notice)) for notice in wanted]
    if is_over and not first.is_digest and not security:
        due_at = next_digest(now, hour=DIGEST_HOUR)
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
        for mail in together:
            await notices.mark_sent(tx, mail, now=now)
            if notice_kinds.KINDS[mail.notice.kind].has_secret:
                await notices.forget_content(tx, mail.notice.id)
    return True


async def _postpone(ctx: context.Context, together: Sequence[notices.Mail], *, due_at: int, is_digest: bool) -> None:
    async with ctx.store.transaction() as tx:
        for mail in together:
            await notices.postpone(tx, mail, due_at=due_at, is_digest=is_digest)


async def _values(tx: store.Transaction, notice: notices.Notice) -> dict[str, str]:
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
    who = callers.Caller(charged, None, callers.Scheme.TOKEN, frozenset({callers.Permission.SEND}))
    request_id = ctx.new_id(identifiers.REQUEST, now=ctx.clock())
    key = f"{DIGEST if first.is_digest else 'notice'}:{first.notice.id}:{user.id}"
    await submit.submit(ctx, who, request, request_id=request_id, source=statuses.Source.API, key=key)


def _render(
    ctx: context.Context, user: users.User, first: notices.Mail, items: Sequence[tuple[str, dict[str, str]]]
) -> tuple[str, Rendered]:
    """The link that ends mail of this kind, if it can be ended, and the mail."""
    base_url = config.base_url(ctx.settings)
    profile = f"{base_url}/profile#mail"
    if first.is_digest:
        return "", render_digest(items, link="", footer=Footer(profile))
    name, values = items[0]
    kind = notice_kinds.KINDS[name]
    if kind.has_secret:
        token = password_links.unseal(ctx, user.id, values["sealed_token"])
        return "", render(name, values, link=password_links.url(ctx.settings, token), footer=Footer())
    unsubscribe = "" if kind.is_security else choices.unsubscribe_url(ctx, user.id, name)
    link = base_url + kind.path.format_map(values)
    return unsubscribe, render(name, values, link=link, footer=Footer(profile, unsubscribe))


async def _post(ctx: context.Context, items: Sequence[tuple[str, dict[str, str]]]) -> None:
    """Send notices to the webhook, in the format of Slack."""
    text = "\n".join(summary(kind, values) for kind, values in items[:MAX_DIGEST_ITEMS])
    body = msgspec.json.encode({"text": for_slack(text)})
    response = await ctx.webhook_client.post(ctx.settings.operator.webhook_url, body, _SLACK_HEADERS)
    if not response.succeeded:
        problem = response.error or f"the webhook responded with {response.status_code}"
        raise errors.TemporaryFailure(problem, retry_after=RETRY_DELAY // times.SECOND)
