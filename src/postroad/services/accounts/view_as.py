"""Looks: an operator sees the pages of an account, read-only and for at most an hour.

A look is a signed value that the operator's browser keeps. It names the session that it belongs to, so it ends with
that session, and no other can use it; whoever reads it also checks that the caller is still an operator. It contains
the messages whose content may be shown. The account's audit log tells each of them, and the look itself, before the
value is made.
"""

from typing import Final

import msgspec

from postroad import context
from postroad.model.units import times
from postroad.services import audit_log
from postroad.services.accounts import account_registry
from postroad.services.messages import lookup
from postroad.services.people import sessions, tokens
from postroad.storage.people import accounts

VIEW_SECONDS: Final = 3_600
PURPOSE: Final = "look"
# The value is in a cookie, which browsers keep up to 4 KB.
MAX_MESSAGES: Final = 20


class ViewAs(msgspec.Struct, frozen=True):
    """Who looks at which account, until when (in seconds since 1970), and the messages whose content is shown."""

    session_id: str
    account_id: str
    until: int
    message_ids: tuple[str, ...] = ()

    @property
    def ends_at(self) -> int:
        """Microseconds."""
        return self.until * times.SECOND


async def begin(ctx: context.Context, session: sessions.Session, account_id: str) -> ViewAs:
    """Begin a look; the context acts as an operator. Closed accounts can be looked at, too."""
    account = await account_registry.find(ctx, account_id)
    async with ctx.store.transaction() as tx:
        await audit_log.write(ctx, tx, account.id, "account.looked_at", account.name)
    return ViewAs(session.claims.jti, account.id, ctx.clock() // times.SECOND + VIEW_SECONDS)


async def show_content(ctx: context.Context, look: ViewAs, message_id: str) -> ViewAs:
    """The look with the content of one more message; the context acts as an operator."""
    if message_id in look.message_ids:
        return look
    message, _ = await lookup.find(ctx, look.account_id, message_id)
    async with ctx.store.transaction() as tx:
        await audit_log.write(ctx, tx, look.account_id, "message.looked_at", message.id)
    return msgspec.structs.replace(look, message_ids=(*look.message_ids, message.id)[-MAX_MESSAGES:])


async def account_of(ctx: context.Context, look: ViewAs) -> accounts.Account | None:
    """The account as it is now; None when it was removed."""
    async with ctx.store.reading() as tx:
        account = await accounts.by_id(tx, look.account_id)
    return account if account is not None and account.removed_at is None else None


def write(ctx: context.Context, look: ViewAs) -> str:
    return tokens.write_value(ctx, look, purpose=PURPOSE)


def read(ctx: context.Context, session: sessions.Session, value: str) -> ViewAs | None:
    """The look of a value, if it is ours, of this session, and not over."""
    look = tokens.read_value(ctx, value, ViewAs, purpose=PURPOSE)
    if look is None or ctx.clock() >= look.ends_at or look.session_id != session.claims.jti:
        return None
    return look
