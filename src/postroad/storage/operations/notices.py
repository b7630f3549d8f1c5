"""Notices, who gets them, and what people have chosen to get (`services/notices/`)."""

from collections.abc import Sequence
from typing import Final

import msgspec

from postroad.storage.engine import queries, store

# In the place of a person: the webhook of the installation.
WEBHOOK: Final = ""


class Notice(msgspec.Struct, frozen=True):
    """A row of `notices`; `content` is an object of JSON."""

    id: str
    kind: str
    account_id: str
    user_id: str
    subject: str
    content: str
    created_at: int


class Mail(msgspec.Struct, frozen=True):
    """A notice to a person, alone or in the digest of a time."""

    user_id: str
    is_digest: bool
    due_at: int
    notice: Notice


async def insert(tx: store.Transaction, notice: Notice, *, unless_since: int) -> bool:
    """Store a notice, unless there was one of its kind and subject since; returns whether it was stored."""
    row = msgspec.structs.astuple(notice)
    return await tx.execute("notices.insert", *row, unless_since) == 1


@queries.count("notices.count")
async def count(
    tx: store.Transaction, account_id: str, kind: str, *, since: int, user_id: str | None = None
) -> int: ...
@queries.rows("notices.unresolved", Notice)
async def unresolved(tx: store.Transaction, *, limit: int) -> list[Notice]: ...


async def resolve(tx: store.Transaction, notice_id: str, mails: Sequence[Mail], *, now: int) -> None:
    """Note who gets a notice, once."""
    if await tx.execute("notices.resolve", notice_id, now) == 1:
        for mail in mails:
            await tx.execute("notices.insert_mail", mail.user_id, notice_id, int(mail.is_digest), mail.due_at)


async def due(tx: store.Transaction, *, now: int, limit: int) -> list[Mail]:
    """Mails to send now."""
    found = await tx.fetch("notices.due", now, limit)
    return [Mail(row[0], bool(row[1]), row[2], Notice(*row[3:])) for row in found]


async def sent_since(tx: store.Transaction, user_id: str, kind: str, since: int) -> int:
    """How many notices of a kind a person has got one by one."""
    row = await tx.fetch_one("notices.sent_since", user_id, since, kind)
    return int(row[0]) if row else 0


async def mark_sent(tx: store.Transaction, mail: Mail, *, now: int) -> None:
    """Note that a mail is sent, or that it will not be."""
    await tx.execute("notices.mark_sent", mail.user_id, mail.notice.id, now)


async def postpone(tx: store.Transaction, mail: Mail, *, due_at: int, is_digest: bool) -> None:
    await tx.execute("notices.postpone", mail.user_id, mail.notice.id, due_at, int(is_digest))


@queries.change("notices.forget_content")
async def forget_content(tx: store.Transaction, notice_id: str) -> None: ...


async def choices(tx: store.Transaction, user_id: str) -> dict[str, str]:
    """What a person has chosen, by kind."""
    return {str(kind): str(choice) for kind, choice in await tx.fetch("notices.choices", user_id)}


@queries.change("notices.choose")
async def choose(tx: store.Transaction, user_id: str, kind: str, choice: str) -> None: ...
@queries.change("notices.remove_choices")
async def remove_choices(tx: store.Transaction, user_id: str) -> None: ...
# Delete up to SWEEP_ROWS old notices; returns how many.
@queries.changes("notices.sweep")
async def sweep(tx: store.Transaction, *, before: int, limit: int = store.SWEEP_ROWS) -> int: ...
@queries.changes("notices.sweep_mails")
async def sweep_mails(tx: store.Transaction, *, before: int, limit: int = store.SWEEP_ROWS) -> int: ...
