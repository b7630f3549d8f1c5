"""The journal of an account: who did what, and when.

Every service that changes something for an account writes one line here, in the transaction of the change, so there is
no change without its entry and no entry without its change. Whoever acts is known by the context. The subject is what
people call the thing; a secret, the path of a webhook's URL or the content of mail never gets here. Mail itself is not
in it: what was accepted and what became of it is told by the messages.
"""

import re
from collections.abc import Mapping
from typing import Final

from postroad.model import actors, cursors, identifiers
from postroad.protocol.mime import header_text
from postroad.services import context
from postroad.storage import audit_log, store, users

# Each action, and the sentence that tells it after the name of who did it.
ACTIONS: Final[Mapping[str, str]] = {
    "account.created": "made the account {subject}",
    "account.suspended": "stopped the account {subject} from sending",
    "account.resumed": "let the account {subject} send again",
    "api_key.created": "made the API key {subject}",
    "api_key.revoked": "revoked the API key {subject}",
    "credential.created": "made the SMTP credential {subject}",
    "credential.revoked": "revoked the SMTP credential {subject}",
    "credits.added": "added {subject} credits",
    "domain.added": "added the domain {subject}",
    "domain.removed": "removed the domain {subject}",
    "domain.verified": "verified the domain {subject}",
    "domain.unverified": "took back the verification of the domain {subject}",
    "domain.warm": "ended the warm-up of the domain {subject}",
    "domain.not_warm": "began the warm-up of the domain {subject} again",
    "message.cancelled": "gave up {subject}",
    "message.retried": "had {subject} tried at once",
    "person.created": "made a login for {subject}",
    "person.disabled": "locked {subject} out",
    "person.enabled": "let {subject} in again",
    "person.invited": "invited {subject}",
    "person.joined": "joined the account",
    "person.password_changed": "changed the password of {subject}",
    "person.password_link_made": "made a password link for {subject}",
    "person.token_made": "made a token for the API as {subject}",
    "person.removed": "removed {subject}",
    "person.role_changed": "changed the role of {subject}",
    "suppression.added": "put {subject} onto the suppression list",
    "suppression.imported": "imported {subject} into the suppression list",
    "suppression.removed": "took {subject} off the suppression list",
    "template.removed": "removed the template {subject}",
    "template.saved": "saved the template {subject}",
    "webhook.pinged": "sent a test event to the webhook at {subject}",
    "webhook.removed": "removed the webhook at {subject}",
    "webhook.replayed": "sent {subject} to the webhook again",
    "webhook.saved": "saved the webhook at {subject}",
    "webhook.secret_rotated": "made a new secret for the webhook at {subject}",
}
# What those are called who are no person.
NAMES: Final = {actors.Kind.OPERATOR: "operator", actors.Kind.SERVICE: "postroad"}
# What is counted in the subject of these is written so that it can be read.
_COUNTED: Final = frozenset({"credits.added", "suppression.imported", "message.cancelled", "message.retried"})
_COUNT: Final = re.compile(r"^\d{4,}(?= |$)", re.ASCII)
# Names of ours in a detail, which are lists or have underscores, and the words for them.
_ROLES: Final = frozenset({"person.created", "person.invited", "person.role_changed"})
# A line on a page; whatever is longer is cut.
MAX_CHARACTERS: Final = 200

_UNSEEN: Final = re.compile(f"[{header_text.UNSEEN}\ud800-\udfff]")


async def write(  # noqa: PLR0917 - every service says it on one line, in the order in which it is read
    ctx: context.Context, tx: store.Transaction, account_id: str, action: str, subject: str, detail: str = ""
) -> None:
    """Say that whoever the context acts for did this. An action that is not in the table is a bug."""
    if action not in ACTIONS:
        raise LookupError(f"{action}: no such action in the journal")
    now = ctx.clock()
    entry = audit_log.Entry(
        account_id=account_id,
        id=ctx.new_id(identifiers.AUDIT_ENTRY, now=now),
        actor_kind=ctx.actor.kind,
        user_id=ctx.actor.user_id,
        actor=await _name(tx, ctx.actor),
        action=action,
        subject=_one_line(subject),
        detail=_one_line(detail),
        request_id=ctx.actor.request_id,
        client_address=ctx.actor.client_address,
        created_at=now,
    )
    await audit_log.insert(tx, entry)


async def page(ctx: context.Context, account_id: str, *, before: str | None, limit: int) -> list[audit_log.Entry]:
    """An account's entries, newest first, before one of them; the newest ones come before None."""
    place = cursors.end(identifiers.AUDIT_ENTRY)
    if before is not None:
        place = cursors.check("before", before, identifiers.AUDIT_ENTRY)
    async with ctx.store.scanning() as tx:
        return await audit_log.page(tx, account_id, before=place, limit=limit)


def text(entry: audit_log.Entry) -> str:
    """What was done, as a sentence without its beginning: the name of who did it goes before it."""
    # A newer version that was here before may have written actions that this one does not know.
    known = ACTIONS.get(entry.action)
    subject, detail = _subject(entry), _detail(entry)
    sentence = known.format(subject=subject) if known else f"{entry.action}: {subject}"
    return f"{sentence} ({detail})" if detail else sentence


def _subject(entry: audit_log.Entry) -> str:
    """What it was done to, as people write it."""
    if entry.action not in _COUNTED:
        return entry.subject
    return _COUNT.sub(lambda found: f"{int(found[0]):,}", entry.subject)


def _detail(entry: audit_log.Entry) -> str:
    """What else is known of it, in words instead of names of ours."""
    if entry.action in _ROLES:
        return entry.detail.replace("_", "-")
    if entry.action == "api_key.created":
        return f"may {' and '.join(entry.detail.split())}" if entry.detail else ""
    return entry.detail.replace(" ", ", ") if entry.action == "webhook.saved" else entry.detail


async def _name(tx: store.Transaction, actor: actors.Actor) -> str:
    """What somebody is called now: people go, and their entries stay."""
    if actor.kind is not actors.Kind.PERSON:
        return NAMES[actor.kind]
    user = await users.by_id(tx, actor.user_id) if actor.user_id is not None else None
    return user.email if user is not None else "somebody"


def _one_line(text: str) -> str:
    """One line that deceives nobody who reads it."""
    return _UNSEEN.sub(" ", text)[:MAX_CHARACTERS]
