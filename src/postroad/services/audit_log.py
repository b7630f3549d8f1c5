"""The audit log of an account: who did what, and when.

Every service that changes an account writes an entry in the transaction of the change, so there is no change without an
entry and no entry without a change. The context knows the actor. The subject is the name of the object; a secret, the
path of a webhook URL or the content of mail is never logged. Mail is not logged here: the message log has it.
"""

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Final

import msgspec

from postroad import context
from postroad.model.people import callers
from postroad.model.units import identifiers, times
from postroad.protocol.mime import address
from postroad.protocol.text import csv_rows
from postroad.storage.engine import store
from postroad.storage.people import audit_log, users
from postroad.storage.people import audit_log as stored_audit_log

# Each action and its sentence, to follow the actor's name.
ACTIONS: Final[Mapping[str, str]] = {
    "account.created": "created the account {subject}",
    "account.suspended": "suspended the account {subject}",
    "account.resumed": "resumed the account {subject}",
    "account.limits_changed": "changed the limits of the account {subject}",
    "account.viewed": "viewed the pages of the account {subject}",
    "account.renamed": "renamed the account {subject}",
    "account.closed": "closed the account {subject}",
    "account.reopened": "reopened the account {subject}",
    "account.second_factor_required": "required two-factor authentication for the users of {subject}",
    "account.second_factor_optional": "stopped requiring two-factor authentication for the users of {subject}",
    "account.removed": "removed the account {subject}",
    "approval.approved": "approved the request {subject}",
    "approval.rejected": "rejected the request {subject}",
    "api_key.changed": "changed the API key {subject}",
    "api_key.created": "created the API key {subject}",
    "api_key.revoked": "revoked the API key {subject}",
    "credential.created": "created the SMTP credential {subject}",
    "credential.revoked": "revoked the SMTP credential {subject}",
    "credits.added": "added {subject} credits",
    "credits.unlimited": "gave the account {subject} unlimited credits",
    "credits.limited": "ended unlimited credits of the account {subject}",
    "delivery.held": "held the delivery of {subject}",
    "delivery.released": "released the delivery of {subject}",
    "domain.added": "added the domain {subject}",
    "domain.key_created": "created a new DKIM key for the domain {subject}",
    "domain.key_activated": "began to sign with the new DKIM key of the domain {subject}",
    "domain.key_deleted": "deleted the old DKIM key of the domain {subject}",
    "domain.link_host_changed": "changed the link host of the domain {subject}",
    "domain.network_dismissed": "dismissed a network that sends as the domain {subject}",
    "domain.network_restored": "restored a network that sends as the domain {subject}",
    "domain.removed": "removed the domain {subject}",
    "domain.verified": "verified the domain {subject}",
    "domain.unverified": "revoked the verification of the domain {subject}",
    "domain.warm": "ended the warm-up of the domain {subject}",
    "domain.not_warm": "resumed the warm-up of the domain {subject}",
    "installation.key_rotated": "rotated the installation key and re-encrypted {subject} secrets",
    "message.canceled": "canceled {subject}",
    "message.expired": "expired {subject} before their time",
    "message.viewed": "viewed the content of the message {subject}",
    "message.rescheduled": "rescheduled {subject}",
    "message.resent": "resent {subject}",
    "message.retried": "retried {subject}",
    "operator.added": "made {subject} an operator",
    "operator.removed": "ended the operator role of {subject}",
    "provider.changed": "changed the limits of {subject}",
    "provider.paused": "paused delivery to {subject}",
    "provider.restored": "restored the settings of {subject}",
    "provider.resumed": "resumed delivery to {subject}",
    "queue.canceled": "canceled {subject} in the queue",
    "queue.expired": "expired {subject} in the queue before their time",
    "queue.retried": "retried {subject} in the queue",
    "source.draining": "began to drain the source address {subject}",
    "source.paused": "paused the source address {subject}",
    "source.resumed": "resumed the source address {subject}",
    "source.warm": "ended the warm-up of the source address {subject}",
    "source.warming": "began the warm-up of the source address {subject}",
    "sso.changed": "changed the single sign-on with {subject}",
    "sso.connected": "set up single sign-on with {subject}",
    "sso.refused": "failed to log in with single sign-on as {subject}",
    "sso.removed": "removed the single sign-on with {subject}",
    "installation.checked": "started a consistency check of {subject}",
    "user.confirmed": "confirmed a session",
    "user.created": "created the user {subject}",
    "user.disabled": "disabled the user {subject}",
    "user.enabled": "enabled the user {subject}",
    "user.invited": "invited {subject}",
    "user.joined": "joined the account",
    "user.logged_in": "logged in",
    "user.login_failed": "failed to log in as {subject}",
    "user.notices_changed": "changed what {subject} gets by email",
    "user.password_changed": "changed the password of {subject}",
    "user.password_link_made": "created a password link for {subject}",
    "user.recovery_code_used": "used a recovery code of {subject}",
    "user.recovery_codes_renewed": "renewed the recovery codes of {subject}",
    "user.recovery_link_made": "created a recovery link for {subject}",
    "user.second_factor_added": "added a two-factor method for {subject}",
    "user.second_factor_failed": "entered a wrong code for {subject}",
    "user.second_factor_removed": "removed a two-factor method of {subject}",
    "user.secrets_handed_over": "took over the API keys and SMTP credentials of {subject}",
    "user.secrets_kept": "kept the API keys and SMTP credentials of {subject}, without a creator",
    "user.session_ended": "ended a session of {subject}",
    "user.sso_bound": "linked {subject} to single sign-on",
    "user.time_zone_changed": "changed the time zone of {subject}",
    "user.token_made": "created an API token for {subject}",
    "user.token_revoked": "revoked an API token of {subject}",
    "user.removed": "removed the user {subject}",
    "user.role_changed": "changed the role of {subject}",
    "inbound_route.added": "added the inbound route {subject}",
    "inbound_route.removed": "removed the inbound route {subject}",
    "received_message.removed": "removed the received message {subject}",
    "suppression.added": "added {subject} to the suppression list",
    "suppression.imported": "imported {subject} into the suppression list",
    "suppression.removed": "removed {subject} from the suppression list",
    "template.draft_saved": "saved a draft of the template {subject}",
    "template.removed": "removed the template {subject}",
    "template.saved": "saved the template {subject}",
    "view.removed": "removed the saved view {subject}",
    "view.renamed": "renamed the saved view {subject}",
    "view.saved": "saved the view {subject}",
    "webhook.disabled": "disabled the webhook at {subject}",
    "webhook.pinged": "sent a test event to the webhook at {subject}",
    "webhook.removed": "removed the webhook at {subject}",
    "webhook.replayed": "replayed {subject} to the webhook",
    "webhook.saved": "saved the webhook at {subject}",
    "webhook.secret_rotated": "rotated the secret of the webhook at {subject}",
}
# Stands for the account in entries that belong to no account, which only operators see.
INSTALLATION: Final = ""
# The names of actors that are not users.
NAMES: Final = {callers.ActorKind.OPERATOR: "operator", callers.ActorKind.SERVICE: "postroad"}
# Actions whose subject begins with a count, which is formatted.
_COUNTED: Final = frozenset(
    {
        "credits.added",
        "installation.key_rotated",
        "suppression.added",
        "suppression.imported",
        "message.canceled",
        "message.expired",
        "message.retried",
        "queue.canceled",
        "queue.expired",
        "queue.retried",
    }
)
_COUNT: Final = re.compile(r"^\d{4,}(?= |$)", re.ASCII)
# Details of these actions are identifiers, which are shown as words.
_ROLES: Final = frozenset({"user.created", "user.invited", "user.role_changed"})
# Entries that a search examines for a page; the page of a search takes no longer than this.
MAX_EXAMINED: Final = 10_000
# One line on a page; longer texts are cut.
MAX_CHARACTERS: Final = 200

_UNSEEN: Final = re.compile(f"[{address.UNSEEN}\ud800-\udfff]")


async def write(  # noqa: PLR0917 - every service writes it on one line, in reading order
    ctx: context.Context, tx: store.Transaction, account_id: str, action: str, subject: str, detail: str = ""
) -> None:
    """Record that the actor of the context did this. An action that is not in the table is a bug."""
    if action not in ACTIONS:
        raise LookupError(f"{action}: unknown audit log action")
    now = ctx.clock()
    key = None if ctx.actor.who is None else ctx.actor.who.key
    entry = audit_log.Entry(
        account_id=account_id,
        id=ctx.new_id(identifiers.AUDIT_ENTRY, now=now),
        actor_kind=ctx.actor.kind,
        user_id=ctx.actor.user_id if key is None else key.id,
        actor=await actor_name(tx, ctx.actor),
        action=action,
        subject=_one_line(subject),
        detail=_one_line(detail),
        request_id=ctx.actor.request_id,
        client_address=ctx.actor.client_address,
        created_at=now,
    )
    await audit_log.insert(tx, entry)


class Filters(msgspec.Struct, frozen=True, kw_only=True):
    """What to look for; empty lets everything pass. `action` may be a group: `domain` finds `domain.added`."""

    actor: str = ""
    action: str = ""
    subject: str = ""
    since: int | None = None
    until: int | None = None

    @property
    def patterns(self) -> audit_log.Patterns:
        return audit_log.Patterns(
            actor=containing(self.actor.lower()),
            action=_literal(self.action) + ("" if "." in self.action else ".%") if self.action else audit_log.ANYTHING,
            subject=containing(self.subject.lower()),
        )


async def page(ctx: context.Context, account_id: str, *, before: str | None, limit: int) -> list[audit_log.Entry]:
    """A page of entries, newest first, older than `before`; None for the newest."""
    return (await search(ctx, account_id, Filters(), before=before, limit=limit)).rows


async def search(
    ctx: context.Context, account_id: str | None, filters: Filters, *, before: str | None, limit: int
) -> identifiers.Page[audit_log.Entry]:
    """A page of the entries that match, newest first, of an account, or of all and the installation (None).

    At most MAX_EXAMINED are examined, and the cursor continues from there.
    """
    place = identifiers.before(before, identifiers.AUDIT_ENTRY)
    after = identifiers.at(identifiers.AUDIT_ENTRY, filters.since or 0)
    if filters.until is not None:
        place = min(place, identifiers.at(identifiers.AUDIT_ENTRY, filters.until))
    patterns, floor = filters.patterns, None
    async with ctx.store.scanning(account_id or INSTALLATION) as tx:
        if account_id is None:
            if patterns != audit_log.EVERYTHING:
                floor = await audit_log.floor_of_all(tx, _between(place, after), examined=MAX_EXAMINED)
            between = _between(place, floor or after)
            entries = await audit_log.page_of_all(tx, between, limit=limit + 1, patterns=patterns)
        else:
            if patterns != audit_log.EVERYTHING:
                floor = await audit_log.floor(tx, account_id, before=place, after=after, examined=MAX_EXAMINED)
            entries = await audit_log.page(
                tx, account_id, before=place, after=floor or after, limit=limit + 1, patterns=patterns
            )
    rows, next_cursor = identifiers.page(entries, limit=limit)
    return identifiers.Page(rows, next_cursor or floor)


def _between(before: str, after: str) -> audit_log.Between:
    is_end = before == identifiers.end(identifiers.AUDIT_ENTRY)
    latest = identifiers.LAST if is_end else identifiers.time_of(before, identifiers.AUDIT_ENTRY)
    return audit_log.Between(latest, identifiers.time_of(after, identifiers.AUDIT_ENTRY), before, after)


def _literal(text: str) -> str:
    """A text in a pattern of LIKE. PostgreSQL cannot take NUL, and no entry has one."""
    return re.sub("[!%_]", r"!\g<0>", text.replace("\0", ""))


def containing(text: str) -> str:
    return f"%{_literal(text)}%" if text else audit_log.ANYTHING


def text(entry: audit_log.Entry) -> str:
    """The action as a sentence to follow the actor's name."""
    # A newer version may have written actions that this one does not know.
    known = ACTIONS.get(entry.action)
    subject, detail = _subject(entry), _detail(entry)
    sentence = known.format(subject=subject) if known else f"{entry.action}: {subject}"
    return f"{sentence} ({detail})" if detail else sentence


def _subject(entry: audit_log.Entry) -> str:
    if entry.action not in _COUNTED:
        return entry.subject
    return _COUNT.sub(lambda found: f"{int(found[0]):,}", entry.subject)


def _detail(entry: audit_log.Entry) -> str:
    if entry.action in _ROLES:
        return entry.detail.replace("_", "-")
    if entry.action == "api_key.created":
        return f"scopes {entry.detail.replace(' ', ', ')}" if entry.detail else ""
    return entry.detail.replace(" ", ", ") if entry.action == "webhook.saved" else entry.detail


async def actor_name(tx: store.Transaction, actor: callers.Actor) -> str:
    """The current name of the actor: users and keys may be removed while their entries stay.

    Accounts are not told which of the operators it was.
    """
    if actor.kind in NAMES:
        return NAMES[actor.kind]
    if actor.who is not None and actor.who.key is not None:
        return f"API key {actor.who.key.name}"
    user = await users.by_id(tx, actor.user_id) if actor.user_id is not None else None
    return user.email if user is not None else "somebody"


def _one_line(text: str) -> str:
    return _UNSEEN.sub(" ", text)[:MAX_CHARACTERS]


CSV_COLUMNS: Final = (
    "created_at",
    "actor_kind",
    "actor",
    "action",
    "subject",
    "detail",
    "text",
    "client_address",
    "request_id",
    "id",
)
# Entries per query.
CSV_PAGE_ROWS: Final = 1_000
# More is a matter for the API, page by page.
MAX_CSV_ROWS: Final = 100_000


async def export_csv(ctx: context.Context, account_id: str, filters: Filters) -> AsyncGenerator[bytes, None]:
    """The entries that match, streamed; the newest MAX_ROWS at most."""
    yield csv_rows.lines([CSV_COLUMNS])
    cursor: str | None = None
    left = MAX_CSV_ROWS
    while left:
        found = await search(ctx, account_id, filters, before=cursor, limit=min(CSV_PAGE_ROWS, left))
        if found.rows:
            yield csv_rows.lines(map(_cells, found.rows))
        left -= len(found.rows)
        cursor = found.next_cursor
        if cursor is None:
            return


def _cells(entry: stored_audit_log.Entry) -> Sequence[str | int]:
    return (
        times.to_wire(entry.created_at),
        entry.actor_kind,
        entry.actor,
        entry.action,
        entry.subject,
        entry.detail,
        text(entry),
        entry.client_address,
        entry.request_id,
        entry.id,
    )
